// What each neuron adds for the values that are set.
//
// Below a linear head these are exact: they add up to what is explained. A neuron is measured from its mean over the rows
// of the page. Below a head of operational neurons, what a neuron adds is how much the answer changes if the neuron says
// its mean instead; such effects need not add up, and the page says so.

const TOP = 10, LEAST = 64;

function neuronsView(model, data, state) {
  const { network } = model, sources = network.sources(), blocks = network.layers.flat();
  const means = meansOf(model, data, state);
  const list = el("ol", { class: "neurons", id: "added" }), sum = el("p", {}), note = el("p", { class: "note", id: "neurons-note" });
  const node = el("div", {}, el("h3", {}, "What each neuron adds"), list, sum, note);
  note.textContent = network.linear
    ? "Exact: each bar is what a neuron adds, measured from its mean over rows of this page. The bars, those that are not shown and the average add up to the output."
    : "The head is of operational neurons, so this view is approximate: a bar is how much the output changes if the neuron says its mean over rows of this page instead. Such changes need not add up to the output.";

  function update() {
    const { seen, outputs } = state.prediction, quantity = quantityOf(model, data, state), { mix } = quantity;
    const now = mixed(mix, outputs);
    const added = network.linear
      ? sources.map((_, f) => mix.reduce((slope, m, k) => slope + (m ? m * network.slope(k, f) : 0), 0) * (seen[f] - means[f]))
      : sources.map((_, f) => now - mixed(mix, network.headOf(seen.with(f, means[f]))));
    const order = sources.map((_, f) => f).sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]));
    const top = order.slice(0, TOP), rest = order.slice(TOP).reduce((s, f) => s + added[f], 0);
    const most = Math.max(1e-12, ...top.map((f) => Math.abs(added[f])));
    list.replaceChildren(...top.map((f) => twoSided(labelOf(f), added[f], most, data.colours[blocks[sources[f].block].operators.join("/")])),
      ...(order.length > TOP ? [twoSided(`all ${counted(order.length - TOP, "other neuron")}`, rest, most, "var(--muted)")] : []));
    const total = added.reduce((s, v) => s + v, 0), base = network.linear ? mixed(mix, network.headOf(means, true)) : null;
    state.sums = { base, total, output: now };
    sum.textContent = network.linear
      ? sumWords(base, total, "neurons", quantity, shareOf(model, state))
      : `${short(now)} is ${quantity.sum}.`;
  }

  function labelOf(f) {
    const { block, neuron } = sources[f], { operators, inputs, weight, first } = blocks[block];
    let largest = 0;
    for (let k = 1; k < inputs; k++) if (Math.abs(weight[neuron * inputs + k]) > Math.abs(weight[neuron * inputs + largest])) largest = k;
    const reads = block < network.layers[0].length ? data.inputs[first + largest] : `neuron ${first + largest + 1} of the layer before`;
    return `block ${block + 1}, neuron ${neuron + 1}: ${spaced(operators.join("/"))}; most weight on ${reads}`;
  }
  return { node, update };
}

function meansOf(model, data, state) {
  const { rows } = backgroundOf(data, LEAST);
  const means = new Float64Array(model.network.n_features);
  const all = rows.length ? rows : [state.values];
  for (const row of all) model.predict(row).seen.forEach((value, f) => { means[f] += value / all.length; });
  return means;
}
