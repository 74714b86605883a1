// What each neuron adds to the chosen output for the values that are set.
//
// Below a linear head these are exact: they add up to the output. A neuron is measured from its mean over the rows of the
// page. Below a head of operational neurons, what a neuron adds is how much the output changes if the neuron says its
// mean instead; such effects need not add up, and the page says so.

const TOP = 10;

function neuronsView(model, data, state) {
  const { network } = model, sources = network.sources(), blocks = network.layers.flat();
  const means = meansOf(model, data, state), odds = data.outputs.length === 2 && data.classes && data.loss !== "mse";
  const said = (outputs) => outputs[state.output] - (odds ? outputs[1 - state.output] : 0);
  const list = el("ol", { class: "neurons" }), sum = el("p", {}), note = el("p", { class: "note" });
  const node = el("div", {}, note, list, sum);
  note.textContent = network.linear
    ? "Each bar is what a neuron adds, measured from its mean over the rows of this page. The bars, those that are not shown and the mean add up to the output."
    : "The head is of operational neurons, so this view is approximate: a bar is how much the output changes if the neuron says its mean over the rows of this page instead. Such changes need not add up to the output.";

  function update() {
    const c = state.output, { seen, outputs } = state.prediction;
    const added = network.linear
      ? sources.map((_, f) => (network.slope(c, f) - (odds ? network.slope(1 - c, f) : 0)) * (seen[f] - means[f]))
      : sources.map((_, f) => said(outputs) - said(network.headOf(seen.with(f, means[f]))));
    const order = sources.map((_, f) => f).sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]));
    const top = order.slice(0, TOP), rest = order.slice(TOP).reduce((s, f) => s + added[f], 0);
    const most = Math.max(1e-12, ...top.map((f) => Math.abs(added[f])));
    list.replaceChildren(...top.map((f) => bar(labelOf(f), added[f], most, data.colours[blocks[sources[f].block].operators.join("/")])),
      ...(order.length > TOP ? [bar(`all ${counted(order.length - TOP, "other neuron")}`, rest, most, "var(--muted)")] : []));
    const name = data.outputs[c];
    const what = odds ? `the logarithm of the odds of ${name}` : data.classes ? `the output for ${name}` : name;
    const total = added.reduce((s, v) => s + v, 0), base = network.linear ? said(network.headOf(means, true)) : null;
    state.sums = { base, total, output: said(outputs) };
    sum.textContent = network.linear
      ? `On average ${short(base, 5)}, from the neurons ${signed(total, 5)}: together ${short(base + total, 5)}, ${what}.`
      : `${short(said(outputs), 5)} is ${what}.`;
  }

  function labelOf(f) {
    const { block, neuron } = sources[f], { operators, inputs, weight, first } = blocks[block];
    let largest = 0;
    for (let k = 1; k < inputs; k++) if (Math.abs(weight[neuron * inputs + k]) > Math.abs(weight[neuron * inputs + largest])) largest = k;
    const reads = block < network.layers[0].length ? data.inputs[first + largest] : `neuron ${first + largest + 1} of the layer before`;
    return `block ${block + 1}, neuron ${neuron + 1}: ${spaced(operators.join("/"))}; most weight on ${reads}`;
  }

  function bar(words, value, most, colour) {
    const fill = el("span", { class: value < 0 ? "fill minus" : "fill plus" });
    fill.style.width = `${Math.min(50, (50 * Math.abs(value)) / most)}%`;
    fill.style.background = colour;
    return el("li", {}, el("span", { class: "name" }, words), el("span", { class: "bar two" }, fill), el("span", { class: "figure" }, signed(value)));
  }
  return { node, update };
}

function meansOf(model, data, state) {
  const rows = data.rows.values.slice(0, 300);
  const means = new Float64Array(model.network.n_features);
  const all = rows.length ? rows : [state.values];
  for (const row of all) model.predict(row).seen.forEach((value, f) => { means[f] += value / all.length; });
  return means;
}
