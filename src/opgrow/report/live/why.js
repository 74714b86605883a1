// Why the network says what it says of the values that are set: what each input contributes, and what would change it.

const SHOWN_INPUTS = 10;
// A factor beyond which nobody counts.
const MANY = 1e4;

// The number that is explained, made of the outputs: for classes the logarithm of the odds of the chosen one against
// the other, or of many against the one that comes next.
function quantityOf(model, data, state) {
  const n = data.outputs.length, c = state.output, mix = new Array(n).fill(0);
  mix[c] = 1;
  if (!model.classes) return { mix, words: data.outputs[c], sum: `the predicted ${data.outputs[c]}`, odds: false };
  const { shares } = state.prediction, rival = best(shares.with(c, -Infinity));
  mix[rival] = -1;
  const name = called(model.classes[c]), other = called(model.classes[rival]);
  const lead = `the lead of ${name} over ${other}`, words = `the odds of ${name}${n > 2 ? ` against ${other}` : ""}`;
  return data.loss === "mse" ? { mix, words: lead, sum: lead, odds: false } : { mix, words, sum: `the logarithm of ${words}`, odds: true };
}

// What a contribution does, such as "raises the odds of yes by a factor of 2.4".
function effectOf({ words, odds }, value) {
  const size = Math.abs(value), factor = Math.exp(size), percents = 100 * Math.abs(Math.expm1(value));
  const by = !odds ? short(size, 3) : factor >= MANY ? `a factor of more than ${short(MANY)}` : factor >= 1.1 ? `a factor of ${short(factor, 2)}`
    : percents >= 0.1 ? `${short(percents, 2)} %` : "less than 0.1 %";
  return `${value < 0 ? "lowers" : "raises"} ${words} by ${by}`;
}

// What there was on average and what has been added to it, in a sentence.
function sumWords(base, total, from, { sum, odds }, share) {
  const probability = odds && share !== null ? `: a probability of ${percent(share)}` : "";
  return `${short(base)} on average and ${signed(total, 4)} from the ${from} are ${short(base + total)}, ${sum}${probability}.`;
}

// Single changes that change the predicted class, the nearest first: by the share of a slider's reach.
function flipsOf(model, data, state, most = 3) {
  const found = [];
  if (!model.classes) return found;
  const label = state.prediction.label;
  data.columns.forEach((column, i) => {
    if (column.kind === "dropped") return;
    const at = column.categories ? null : placeOf(column, state.values[i]);
    let nearest = null;
    for (const value of triedValues(column, 31)) {
      if (value === state.values[i]) continue;
      const distance = column.categories ? 0.5 : at === null || Number.isNaN(at) ? 1 : Math.abs(placeOf(column, value) - at) / (column.high - column.low || 1);
      if (nearest && distance >= nearest.distance) continue;
      const said = model.predict(state.values.with(i, value), state.muted);
      if (said.label !== label) nearest = { i, value, distance, label: said.label };
    }
    if (nearest) found.push(nearest);
  });
  return found.sort((a, b) => a.distance - b.distance).slice(0, most);
}

// The probability of the chosen class where it has one other: the odds say it.
const shareOf = (model, state) => (model.classes && model.classes.length === 2 ? state.prediction.shares[state.output] : null);

function whyView(model, data, state, changed) {
  const heading = el("p", { class: "said", id: "why-words" }), list = el("ol", { class: "neurons" });
  const sum = el("p", { id: "why-sum" }), flips = el("div", { id: "flips" });
  const about = el("p", { class: "note" });
  const node = el("div", {}, el("h3", {}, "What each input contributes"), heading, list, sum, flips, about);
  const later = debounced(compute, 120);

  function compute() {
    const quantity = quantityOf(model, data, state), { mix } = quantity;
    const found = contributionsOf(model, data, state, mix);
    node.hidden = !found;
    if (!found) return;
    const { base, values, errors, columns } = found;
    const order = [...columns].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])), top = order.slice(0, SHOWN_INPUTS);
    const rest = order.slice(SHOWN_INPUTS).reduce((total, i) => total + values[i], 0);
    const most = Math.max(1e-12, ...top.map((i) => Math.abs(values[i])));
    const shown = (i) => textOf(state.values[i]);
    about.textContent = `Each bar is what changes when the value of that input replaces those of ${counted(found.rows, "row")} of this page, averaged over ` +
      `${errors ? "rows and orders" : "rows and all orders"} of the inputs (Shapley values). Contributions add up exactly` +
      `${errors ? ", and each has the standard error that is shown, because rows and orders are a sample" : ""}. How a joint effect is divided among inputs is a convention.`;
    list.replaceChildren(...top.map((i) => twoSided(`${data.columns[i].name} ${shown(i)}`, values[i], most, values[i] < 0 ? "var(--warm)" : "var(--accent)", errors && errors[i])),
      ...(order.length > top.length ? [twoSided(`all ${counted(order.length - top.length, "other input")}`, rest, most, "var(--muted)")] : []));
    const total = values.reduce((s, v) => s + v, 0), now = mixed(mix, state.prediction.outputs);
    state.why = { base, values, total, output: now };
    heading.textContent = top.slice(0, 2).filter((i) => values[i] !== 0).map((i) => `${data.columns[i].name} ${shown(i)} ${effectOf(quantity, values[i])}.`).join(" ") || "The values are those of the rows that they are compared with.";
    sum.textContent = sumWords(base, total, "inputs", quantity, shareOf(model, state));
    showFlips();
  }

  function showFlips() {
    const found = flipsOf(model, data, state);
    flips.replaceChildren(...(model.classes ? [el("h3", {}, "What would change the answer")] : []), ...found.map(({ i, value, label }) => el("p", { class: "row" },
      el("span", {}, `With ${data.columns[i].name} ${textOf(value)}, it would be ${called(model.classes[label])}.`),
      el("button", { type: "button", onclick: () => { state.values = state.values.with(i, value); state.row = null; changed(); }, "aria-label": `Set ${data.columns[i].name} to ${textOf(value)}` }, "Try"))),
    ...(model.classes && !found.length ? [el("p", {}, "No input alone changes it within the range of the data.")] : []));
  }
  return { node, update: later, compute };
}

function twoSided(words, value, most, colour, error = null) {
  const fill = el("span", { class: value < 0 ? "fill minus" : "fill plus" });
  fill.style.width = `${Math.min(50, (50 * Math.abs(value)) / most)}%`;
  fill.style.background = colour;
  const title = error === null ? null : `standard error ${short(error, 2)}`;
  return el("li", { title }, el("span", { class: "name" }, words), el("span", { class: "bar two" }, fill),
    el("span", { class: "figure" }, signed(value), ...(error ? [el("small", {}, ` ± ${short(error, 1)}`)] : [])));
}
