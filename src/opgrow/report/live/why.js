// Why the network says what it says of the values that are set: what each input contributes, and what would change it.

const BACKGROUND = 12, ORDERS = 40, WORK = 3e7, SHOWN_INPUTS = 10;

// The number that is explained, made of the outputs: for two classes the logarithm of the odds.
function quantityOf(model, data, c) {
  const n = data.outputs.length, name = data.outputs[c];
  const mix = new Array(n).fill(0);
  mix[c] = 1;
  if (!model.classes) return { mix, words: name, odds: false };
  const logits = data.loss !== "mse";
  if (n === 2) {
    mix[1 - c] = -1;
    return { mix, words: logits ? `the logarithm of the odds of ${name}` : `the share of ${name}, minus the other`, odds: logits };
  }
  if (!logits) return { mix, words: `the share of ${name}`, odds: false };
  return { mix: mix.map((m) => m - 1 / n), words: `the logit of ${name}, minus the mean of all`, odds: false };
}
const mixed = (mix, outputs) => mix.reduce((sum, weight, k) => sum + weight * outputs[k], 0);

// Orders of the columns, the same every time; each is followed by its reverse, which makes errors smaller.
function ordersOf(columns, n) {
  let seed = 12345;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const orders = [];
  while (orders.length < n) {
    const order = [...columns];
    for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    orders.push(order, [...order].reverse());
  }
  return orders;
}

// What each column contributes: what replacing the values of some rows by these changes, averaged over orders.
function contributionsOf(model, data, state, mix) {
  const columns = data.columns.map((_, i) => i).filter((i) => data.columns[i].kind !== "dropped");
  const all = data.rows.values, rows = Array.from({ length: Math.min(BACKGROUND, all.length) }, (_, k) => all[Math.floor((k * all.length) / BACKGROUND) % all.length]);
  if (!rows.length) return null;
  const n = Math.max(2, Math.min(ORDERS, 2 * Math.floor(WORK / (2 * columns.length * Math.max(100, data.parameters)))));
  const orders = ordersOf(columns, n), values = data.columns.map(() => 0), squares = data.columns.map(() => 0);
  let base = 0;
  for (let k = 0; k < orders.length; k += 2) {
    const start = rows[(k / 2) % rows.length], first = mixed(mix, model.predict(start, state.muted).outputs);
    const pair = data.columns.map(() => 0);
    for (const order of orders.slice(k, k + 2)) {
      const now = [...start];
      let before = first;
      for (const i of order) {
        if (now[i] !== state.values[i]) {
          now[i] = state.values[i];
          const after = mixed(mix, model.predict(now, state.muted).outputs);
          pair[i] += (after - before) / 2;
          before = after;
        }
      }
    }
    base += (2 * first) / orders.length;
    pair.forEach((value, i) => { values[i] += (2 * value) / orders.length; squares[i] += value * value; });
  }
  const pairs = orders.length / 2;
  const errors = values.map((value, i) => (pairs > 1 ? Math.sqrt(Math.max(0, squares[i] / pairs - value * value) / (pairs - 1)) : null));
  return { base, values, errors, columns };
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

function whyView(model, data, state, changed) {
  const heading = el("p", { class: "said", id: "why-words" }), list = el("ol", { class: "neurons" });
  const sum = el("p", { id: "why-sum" }), flips = el("div", { id: "flips" });
  const sampled = "What replacing the values of some rows of this page by these values changes, averaged over orders of the inputs (Shapley values). " +
    "The orders are a sample: contributions add up exactly, and each has the standard error that is shown. How a joint effect is divided is a convention.";
  const node = el("div", {}, el("h3", {}, "What each input contributes"), heading, list, sum, flips, el("p", { class: "note" }, sampled));
  const later = debounced(compute, 120);

  function compute() {
    const { mix, words, odds } = quantityOf(model, data, state.output), name = data.outputs[state.output];
    const found = contributionsOf(model, data, state, mix);
    node.hidden = !found;
    if (!found) return;
    const { base, values, errors, columns } = found;
    const order = [...columns].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])), top = order.slice(0, SHOWN_INPUTS);
    const rest = order.slice(SHOWN_INPUTS).reduce((total, i) => total + values[i], 0);
    const most = Math.max(1e-12, ...top.map((i) => Math.abs(values[i])));
    const shown = (i) => (state.values[i] === null ? "missing" : typeof state.values[i] === "number" ? short(state.values[i], 5) : state.values[i]);
    list.replaceChildren(...top.map((i) => twoSided(`${data.columns[i].name} ${shown(i)}`, values[i], most, values[i] < 0 ? "var(--warm)" : "var(--accent)", errors[i])),
      ...(order.length > top.length ? [twoSided(`all ${counted(order.length - top.length, "other input")}`, rest, most, "var(--muted)")] : []));
    const total = values.reduce((s, v) => s + v, 0), now = mixed(mix, state.prediction.outputs);
    state.why = { base, values, total, output: now };
    const effect = (v) => (odds ? `${v < 0 ? "lowers" : "raises"} the odds of ${name} by a factor of ${short(Math.exp(Math.abs(v)), 2)}` : `${v < 0 ? "lowers" : "raises"} ${words} by ${short(Math.abs(v), 3)}`);
    heading.textContent = top.slice(0, 2).filter((i) => values[i] !== 0).map((i) => `${data.columns[i].name} ${shown(i)} ${effect(values[i])}.`).join(" ") || "The values are those of the rows that it is compared with.";
    sum.textContent = `On average ${short(base, 5)}, from the inputs ${signed(total, 5)}: together ${short(base + total, 5)}, ${words}.`;
    showFlips();
  }

  function showFlips() {
    const found = flipsOf(model, data, state);
    const text = (v) => (typeof v === "number" ? short(v, 5) : v);
    flips.replaceChildren(...(model.classes ? [el("h3", {}, "What would change the answer")] : []), ...found.map(({ i, value, label }) => el("p", { class: "row" },
      el("span", {}, `With ${data.columns[i].name} ${text(value)} it would be ${model.classes[label]}.`),
      el("button", { type: "button", onclick: () => { state.values = state.values.with(i, value); state.row = null; changed(); }, "aria-label": `Set ${data.columns[i].name} to ${text(value)}` }, "Try"))),
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
