// A card for each input: a slider or a menu, and the response of the chosen output as this input alone moves, drawn
// over the distribution of the data.

const POINTS = 41, FEW_POINTS = 11, SLOW = 60, SHOWN = 24;

// The values that a column is tried with: evenly over its reach, or the most frequent categories.
function triedValues(column, points) {
  if (column.categories) {
    const order = column.categories.map((_, i) => i);
    const counts = column.counts || [];
    order.sort((a, b) => (counts[b] || 0) - (counts[a] || 0) || a - b);
    return order.slice(0, LISTED).sort((a, b) => a - b).map((i) => column.categories[i]);
  }
  const [low, high] = [column.low, column.high];
  if (low === undefined || low === high) return low === undefined ? [] : [column.kind === "date" ? textOfSeconds(low, column) : low];
  const whole = column.whole && column.kind === "number", n = whole ? Math.min(points, high - low + 1) : points;
  const values = Array.from({ length: n }, (_, i) => low + ((high - low) * i) / (n - 1)).map((v) => (whole ? Math.round(v) : v));
  return column.kind === "date" ? values.map((seconds) => textOfSeconds(seconds, column)) : values;
}

// Where a value lies on the scale of a column's slider.
const placeOf = (column, value) =>
  value === null ? null : column.kind === "date" ? secondsOf(String(value), column.form, column.day_first) : Number(value);

// Which inputs come first: those that the explanation says, or else those that move the output most, on average over
// some rows.
function importances(model, data, output) {
  const told = data.explanation;
  if (told) {
    const sizes = new Map(told.importance.map((one) => [told.columns[one.column].name, one.size]));
    return data.columns.map((column) => sizes.get(column.name) ?? 0);
  }
  const used = data.columns.map((column) => column.kind !== "dropped");
  const work = Math.max(1, data.parameters) * 5 * used.filter(Boolean).length;
  const rows = data.rows.values.slice(0, Math.max(1, Math.min(24, Math.floor(6e7 / work))));
  return data.columns.map((column, i) => {
    if (!used[i] || !rows.length) return 0;
    const tried = triedValues(column, 5).slice(0, 6);
    let moved = 0;
    for (const row of rows) {
      const said = tried.map((value) => model.predict(row.with(i, value)).shares[output]);
      if (said.length) moved += Math.max(...said) - Math.min(...said);
    }
    return moved / rows.length;
  });
}

// The cards. `state` has values, output and muted; `changed` is called after the user has moved something.
function inputCards(model, data, state, changed) {
  const order = data.columns.map((_, i) => i).filter((i) => data.columns[i].kind !== "dropped");
  const weight = importances(model, data, state.output);
  order.sort((a, b) => weight[b] - weight[a] || a - b);
  const cards = new Map(), grid = el("div", { class: "cards-of-inputs" });
  let words = "", most = SHOWN;
  const note = el("p", { class: "note" });
  const more = el("button", { type: "button", onclick: () => { most = Infinity; arrange(); } });
  const filter = el("input", { type: "search", id: "filter", placeholder: "part of a name", oninput: () => { words = filter.value.toLowerCase(); arrange(); } });

  function set(i, value) {
    state.values = state.values.with(i, value);
    state.row = null;
    changed();
  }

  function arrange() {
    const fitting = order.filter((i) => data.columns[i].name.toLowerCase().includes(words));
    const shown = fitting.slice(0, most);
    grid.replaceChildren(...shown.map((i) => {
      if (!cards.has(i)) cards.set(i, inputCard(model, data, state, i, set));
      return cards.get(i).node;
    }));
    more.hidden = shown.length === fitting.length;
    more.textContent = `Show all ${fitting.length.toLocaleString("en-US")} inputs`;
    note.textContent = fitting.length ? "" : "No input has such a name.";
    update();
  }

  // All curves share one scale, so that they can be compared. Where that takes long, they are drawn with few points
  // while something moves, and with all of them afterwards.
  let taken = 0;
  const rest = debounced(() => draw(POINTS), 150);
  function draw(points) {
    const shown = [...cards.values()].filter((card) => card.node.isConnected);
    const scale = reachOf(shown.flatMap((card) => card.compute(points)), model, state);
    for (const card of shown) card.draw(scale);
  }
  function update() {
    if (taken > SLOW) {
      draw(FEW_POINTS);
      rest();
      return;
    }
    const started = performance.now();
    draw(POINTS);
    taken = performance.now() - started;
  }

  const search = order.length > LISTED ? el("p", { class: "row" }, el("label", { for: "filter" }, "Find an input"), filter) : null;
  const node = el("div", {}, ...[search, grid, note, more].filter(Boolean));
  queueMicrotask(arrange);
  return { node, update };
}

// The vertical reach of all curves: what they say, and a fifth of all probabilities at least.
function reachOf(said, model, state) {
  const finite = [...said, state.prediction.shares[state.output]].filter(Number.isFinite);
  let low = Math.min(...finite), high = Math.max(...finite);
  const least = model.classes ? 0.2 : 1e-6 * Math.max(Math.abs(low), Math.abs(high), 1e-300);
  const missing = Math.max(0, least - (high - low)) / 2;
  low -= missing;
  high += missing;
  if (!model.classes) return [low, high];
  if (low < 0) [low, high] = [0, Math.max(high, least)];
  return high > 1 ? [Math.min(low, 1 - least), 1] : [low, high];
}

function inputCard(model, data, state, i, set) {
  const column = data.columns[i], id = `input-${i}`;
  const control = column.categories ? menuFor(column, id, (v) => set(i, v)) : sliderFor(column, id, (v) => set(i, v));
  const place = el("div", { class: "curve" });
  const node = el("div", { class: "card" },
    el("div", { class: "card-head" }, el("label", { for: id, title: column.name }, ...breakable(column.name)), control.shown),
    control.node, place);

  let tried = [], said = [];
  function compute(points) {
    tried = triedValues(column, points);
    said = tried.map((other) => model.predict(state.values.with(i, other), state.muted).shares[state.output]);
    return [...said, ...averagedPoints(data, column, state.output).map(([, mean]) => mean)];
  }

  function draw(scale) {
    const value = state.values[i];
    control.show(value);
    const now = state.prediction.shares[state.output];
    const label = curveLabel(column, said, data, state);
    place.replaceChildren(column.categories
      ? bars(data, column, tried, said, value, scale, label, (v) => set(i, v))
      : curve(data, state.output, column, tried, said, value, now, scale, label, (v) => set(i, v)));
  }
  return { node, compute, draw };
}

function curveLabel(column, said, data, state) {
  const finite = said.filter(Number.isFinite);
  const what = data.classes ? `the probability of ${data.outputs[state.output]}` : data.outputs[state.output];
  if (!finite.length) return `${column.name}: nothing to draw`;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  return `As ${column.name} alone moves, ${what} goes from ${short(said[0], 3)} to ${short(said[said.length - 1], 3)}, ` +
    `between ${short(low, 3)} and ${short(high, 3)}`;
}

function menuFor(column, id, set) {
  const gap = el("option", { value: "gap" }, "(missing)");
  const other = el("option", { value: "other" }, "(another)");
  const options = column.categories.map((category, k) => el("option", { value: k }, category === "" ? "(empty)" : category));
  const node = el("select", { id, onchange: () => set(node.value === "gap" ? null : node.value === "other" ? ANOTHER : column.categories[node.value]) }, ...options, gap, other);
  return {
    node, shown: null,
    show(value) {
      const place = value === null ? "gap" : column.index.get(String(value));
      node.value = place === undefined ? "other" : String(place);
      other.textContent = place === undefined && value !== ANOTHER ? `${value} (unknown)` : "(another)";
    },
  };
}

function sliderFor(column, id, set) {
  const date = column.kind === "date", low = column.low ?? 0, high = column.high ?? 1;
  const step = date ? (column.form === "date" && !column.parts.includes("day") ? DAY : 60) : column.whole ? 1 : roundStep(high - low);
  const read = (n) => (date ? textOfSeconds(n, column) : n);
  const range = el("input", { type: "range", id, min: low, max: high, step: column.whole || date ? step : "any", oninput: () => set(read(Number(range.value))) });
  range.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!by || column.whole || date) return;
    event.preventDefault();
    set(Number(Math.min(high, Math.max(low, Number(range.value) + by * step)).toPrecision(12)));
  });
  const exact = el("input", { type: date ? "text" : "number", class: "exact", step: "any", "aria-label": `${column.name}, exact value`, onchange: () => {
    if (date) set(exact.value.trim() === "" ? null : exact.value);
    else set(exact.value === "" ? (column.gaps ? null : column.median) : Number(exact.value));
  } });
  const missing = column.gaps ? el("input", { type: "checkbox", "aria-label": `${column.name} is missing`, onchange: () => set(missing.checked ? null : read(Number(range.value))) }) : null;
  const node = el("div", { class: "row" }, range, ...(missing ? [el("label", { class: "gap" }, missing, "missing")] : []));
  return {
    node, shown: exact,
    show(value) {
      const place = placeOf(column, value), gap = place === null || Number.isNaN(place);
      if (document.activeElement !== exact) exact.value = gap ? (value === null ? "" : value) : date ? value : Number(place.toPrecision(6));
      exact.placeholder = "missing";
      if (missing) missing.checked = gap;
      if (!gap && document.activeElement !== range) range.value = place;
      range.setAttribute("aria-valuetext", gap ? "missing" : date ? String(value) : short(place, 6));
    },
  };
}
