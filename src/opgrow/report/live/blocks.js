// Blocks that can be taken out: their neurons say 0, the head stays as it is, and everything on the page follows.

function blocksView(model, data, state, changed) {
  const blocks = model.network.layers.flat();
  const perLayer = model.network.layers.flatMap((layer, l) => layer.map(() => l + 1));
  const whole = model.score(), what = model.classes ? "accuracy" : "R2";
  const rows = counted(data.rows.values.length, "row");
  const shown = (value) => (value === null ? "–" : model.classes ? percent(value) : value.toFixed(3));
  const result = el("p", { class: "said", role: "status", id: "pruned" });
  const restore = el("button", { type: "button", id: "restore", onclick: () => { state.muted.clear(); changed(); } }, "Put all back");
  const alone = blocks.map(() => null);
  const buttons = blocks.map((block, b) => {
    const cost = el("span", { class: "note cost" }, whole === null ? "" : "…");
    const name = spaced(block.operators.join("/"));
    const button = el("button", { type: "button", class: "block", "data-block": b, "aria-pressed": "false", onclick: () => {
      if (state.muted.has(b)) state.muted.delete(b); else state.muted.add(b);
      changed();
    } }, el("b", {}, `Block ${b + 1}`), el("span", {}, name),
      el("span", { class: "note" }, `${data.layers > 1 ? `layer ${perLayer[b]}, ` : ""}${counted(block.neurons, "neuron")}, ${counted(data.block_parameters[b], "parameter")}`), cost);
    button.style.borderLeftColor = data.colours[block.operators.join("/")];
    return { button, cost };
  });
  const node = el("div", {},
    el("p", {}, "Click a block to take it out: its neurons say 0, the head stays as it is, and predictions and curves above follow."),
    el("div", { class: "blocks", role: "group", "aria-label": "Blocks of the network" }, ...buttons.map((one) => one.button)),
    el("div", { class: "row" }, result, restore));

  // One block in a moment of rest, until all have been tried.
  let next = 0;
  function measure() {
    if (whole === null || next >= blocks.length || blocks.length > 60) return;
    alone[next] = model.score(new Set([next]));
    const change = alone[next] - whole;
    const points = model.classes ? `${(100 * change).toFixed(1)} points` : change.toFixed(3);
    buttons[next].cost.textContent = `${what} without it: ${shown(alone[next])} (${change < 0 ? "" : "+"}${points.replace("-", "−")})`;
    next += 1;
    setTimeout(measure, 0);
  }

  function update() {
    buttons.forEach(({ button }, b) => button.setAttribute("aria-pressed", String(state.muted.has(b))));
    restore.hidden = !state.muted.size;
    const left = data.parameters - [...state.muted].reduce((sum, b) => sum + data.block_parameters[b], 0);
    state.score = state.muted.size ? model.score(state.muted) : whole;
    const sentence = (words) => words[0].toUpperCase() + words.slice(1);
    const about = whole === null ? "No true values are in this page, so what it costs is not known."
      : state.muted.size ? `${what} on ${rows}: ${shown(whole)} with all blocks, ${shown(state.score)} without ${counted(state.muted.size, "block")}` : `${what} on ${rows}: ${shown(whole)}`;
    const size = state.muted.size ? `; ${data.parameters.toLocaleString("en-US")} parameters, ${left.toLocaleString("en-US")} left.` : ".";
    result.textContent = sentence(whole === null ? about : about + size);
  }
  return { node, update, measure };
}
