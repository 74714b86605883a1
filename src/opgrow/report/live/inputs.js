// A card for each input: a slider or a menu, and the response of the chosen output as this input alone moves, drawn
// over the distribution of the data.

const CARD = { width: 280, height: 92, left: 4, right: 4, top: 6, bottom: 16 };
const POINTS = 41, FEW_POINTS = 11, SLOW = 60, SHOWN = 24, LISTED = 12;

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
    el("div", { class: "card-head" }, el("label", { for: id, title: column.name }, column.name), control.shown),
    control.node, place);

  let tried = [], said = [];
  function compute(points) {
    tried = triedValues(column, points);
    said = tried.map((other) => model.predict(state.values.with(i, other), state.muted).shares[state.output]);
    return said;
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
  const node = el("select", { id, onchange: () => set(node.value === "gap" ? null : node.value === "other" ? "\u0000another" : column.categories[node.value]) }, ...options, gap, other);
  return {
    node, shown: null,
    show(value) {
      const place = value === null ? "gap" : column.index.get(String(value));
      node.value = place === undefined ? "other" : String(place);
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

// --- pictures ---

function frameOf(column, scale) {
  const { width, height, left, right, top, bottom } = CARD;
  const [from, to] = column.edges || [column.low, column.high];
  const span = to - from || 1, tall = scale[1] - scale[0] || 1;
  return {
    x: (v) => left + ((v - from) / span) * (width - left - right),
    back: (px) => from + ((px - left) / (width - left - right)) * span,
    y: (v) => height - bottom - ((v - scale[0]) / tall) * (height - top - bottom),
  };
}

// The mean response over rows of the data, where the explanation of the page has it.
function averaged(data, column, output, at) {
  const told = data.explanation, place = told ? told.columns.findIndex((one) => one.name === column.name && one.grid && one.kind !== "levels") : -1;
  const found = place < 0 ? null : told.responses.find((one) => one.column === place);
  if (!found) return [];
  const values = (found.probability || found.mean || [])[output];
  const scale = column.kind === "date" ? (column.form === "date" ? DAY : 3600) : 1;
  const points = told.columns[place].grid.flatMap((p, k) => (p === null || !values || p * scale < column.low || p * scale > column.high ? [] : [[p * scale, values[k]]]));
  return points.length > 1 ? [svg("path", { class: "response mean", d: pathOf(points.map(at)) })] : [];
}

// The ends of the common scale, at the right edge.
function scaleWords(data, [low, high]) {
  const words = (value) => (data.classes ? percent(value, 0) : short(value, 3));
  const at = (y, value) => svg("text", { class: "scale", x: CARD.width - CARD.right, y, "text-anchor": "end" }, words(value));
  return [at(CARD.top + 6, high), at(CARD.height - CARD.bottom - 3, low)];
}

function histogram(column, frame) {
  const counts = column.bins || [], most = Math.max(1, ...counts);
  const [from, to] = column.edges || [0, 1];
  const room = CARD.height - CARD.top - CARD.bottom;
  return counts.map((n, b) => {
    const x = frame.x(from + ((to - from) * b) / counts.length), next = frame.x(from + ((to - from) * (b + 1)) / counts.length);
    const h = (n / most) * room;
    return svg("rect", { class: "bin", x: x.toFixed(1), width: Math.max(0.5, next - x - 0.6).toFixed(1), y: (CARD.height - CARD.bottom - h).toFixed(1), height: h.toFixed(1) });
  });
}

function curve(data, output, column, tried, said, value, now, scale, label, set) {
  const frame = frameOf(column, scale), places = tried.map((one) => placeOf(column, one));
  const at = placeOf(column, value), date = column.kind === "date";
  const inside = at !== null && Number.isFinite(at);
  const x = inside ? Math.min(CARD.width - 3, Math.max(3, frame.x(at))) : null;
  const ends = [column.low, column.high].map((end) => (end === undefined ? "" : date ? textOfSeconds(end, column) : short(end)));
  const drawn = picture(CARD.width, CARD.height, label,
    ...histogram(column, frame),
    ...averaged(data, column, output, ([p, value]) => [frame.x(p), frame.y(value)]),
    svg("path", { class: "response", d: pathOf(places.map((p, k) => [frame.x(p), frame.y(said[k])])) }),
    ...(inside ? [svg("line", { class: "here-line", x1: x, x2: x, y1: CARD.top, y2: CARD.height - CARD.bottom }),
      svg("circle", { class: "here-dot", cx: x, cy: frame.y(now), r: 4 })] : []),
    ...scaleWords(data, scale),
    svg("text", { x: CARD.left, y: CARD.height - 3 }, ends[0]),
    svg("text", { x: CARD.width - CARD.right, y: CARD.height - 3, "text-anchor": "end" }, ends[1]));
  const drag = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = drawn.getBoundingClientRect();
    const found = Math.min(column.high, Math.max(column.low, frame.back(((event.clientX - box.left) / box.width) * CARD.width)));
    set(date ? textOfSeconds(found, column) : column.whole ? Math.round(found) : Number(found.toPrecision(5)));
  };
  drawn.addEventListener("pointerdown", drag);
  drawn.addEventListener("pointermove", drag);
  return drawn;
}

function bars(data, column, tried, said, value, scale, label, set) {
  const frame = frameOf({ edges: [0, tried.length] }, scale), most = Math.max(1, ...(column.counts || [0]));
  const room = CARD.height - CARD.top - CARD.bottom, wide = (CARD.width - CARD.left - CARD.right) / tried.length;
  const parts = tried.flatMap((category, k) => {
    const n = column.counts ? column.counts[column.index.get(category)] : 0, x = frame.x(k), chosen = category === value;
    const y = frame.y(said[k]), letters = Math.max(2, Math.floor(wide / 6.2));
    const words = category.length > letters ? category.slice(0, letters - 1) + "…" : category;
    return [
      svg("g", { class: chosen ? "category chosen" : "category", onclick: () => set(category) },
        svg("rect", { class: "hit", x, y: 0, width: wide, height: CARD.height }),
        svg("rect", { class: "bin", x: x + 1, width: Math.max(1, wide - 2), y: CARD.height - CARD.bottom - (n / most) * room, height: (n / most) * room }),
        svg("line", { class: "response", x1: x + 2, x2: x + wide - 2, y1: y, y2: y }),
        ...(chosen ? [svg("circle", { class: "here-dot", cx: x + wide / 2, cy: y, r: 4 })] : []),
        svg("text", { x: x + wide / 2, y: CARD.height - 3, "text-anchor": "middle" }, words),
        svg("title", {}, `${category}: ${short(said[k], 3)}, ${counted(n || 0, "row")}`)),
    ];
  });
  return picture(CARD.width, CARD.height, label, ...parts, ...scaleWords(data, scale));
}
