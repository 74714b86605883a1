// What the network computes: the inputs that matter, the neurons that matter with the curves that they are made of, and
// the formula of a small network. Python has computed all of it; here it is drawn.

const MINI = { width: 132, height: 74, left: 3, right: 3, top: 4, bottom: 14 };
const CURVES = 3, MAPS = 2, BARS = 12, PAIRS = 6;

function portraitsView(data) {
  const told = data.explanation, most = Math.max(1e-12, ...told.importance.map((one) => one.size));
  const bars = told.importance.slice(0, BARS).map((one) => {
    const fill = el("span", { class: "fill" });
    fill.style.width = `${(100 * one.size) / most}%`;
    return el("li", {}, el("span", { class: "name" }, told.columns[one.column].name), el("span", { class: "bar" }, fill), el("span", { class: "figure" }, short(one.size, 3)));
  });
  const rows = told.importance[0]?.rows ?? 0, views = [...new Set(told.neurons.map((neuron) => neuron.view))];
  const parts = [
    el("h3", {}, "Inputs that matter"),
    el("p", { class: "note" }, `The mean size of what each input contributes, over ${counted(rows, "row")}${told.importance.length > BARS ? `; the first ${BARS} of ${told.importance.length}` : ""}.`),
    el("ol", { class: "neurons importance" }, ...bars),
  ];
  if (told.pairs.length) parts.push(
    el("h3", {}, "Inputs that act together"),
    el("p", { class: "note" }, "Averaged over rows: what each pair does together beyond what its inputs do one by one. Blue raises, orange lowers."),
    el("div", { class: "minis" }, ...told.pairs.slice(0, PAIRS).map((one) => pairPicture(told, one))));
  if (told.neurons.length) parts.push(
    el("h3", {}, "Neurons that matter"),
    el("p", { class: "note" }, `The ${counted(told.neurons.length, "neuron")} of ${told.neurons_in_all.toLocaleString("en-US")} that change the outputs most. ` +
      "On the left of each is what its activation makes of the sum, over the sums that occur; beside it are the curves that it adds up."),
    ...views.map((view) => el("p", { class: "note" }, told.words[view])),
    el("div", { class: "portraits" }, ...told.neurons.map((neuron) => portrait(data, told, neuron))));
  if (told.formula) parts.push(el("h3", {}, "Formula"), el("pre", { id: "formula" }, told.formula.text),
    el("details", {}, el("summary", {}, "As LaTeX"), el("pre", {}, told.formula.latex)));
  return el("div", {}, ...parts);
}

function portrait(data, told, neuron) {
  const where = [neuron.member && told.several ? `network ${neuron.member}` : null, `layer ${neuron.layer}`, `block ${neuron.block}`].filter(Boolean).join(", ");
  const pictures = [activation(neuron), ...neuron.curves.slice(0, CURVES).map((one) => curvePicture(told, neuron, one)),
    ...neuron.maps.slice(0, MAPS).map((one) => mapPicture(told, one))].filter(Boolean);
  const adds = neuron.adds.map(([q, low, , high]) => `adds between ${signed(low, 2)} and ${signed(high, 2)} to ${told.outputs[q].name}`).join("; ");
  const hidden = neuron.left_out + Math.max(0, neuron.curves.length - CURVES) + Math.max(0, neuron.maps.length - MAPS);
  const node = el("div", { class: "card portrait" }, el("div", { class: "card-head" }, el("b", {}, spaced(neuron.operators)), el("span", { class: "note" }, where)),
    el("div", { class: "minis" }, ...pictures),
    el("p", { class: "note" }, [adds, hidden > 0 ? `${hidden} smaller ${hidden === 1 ? "curve" : "curves"} not drawn` : ""].filter(Boolean).join("; ")));
  node.style.borderLeft = `0.35rem solid ${data.colours[neuron.operators] || "var(--muted)"}`;
  return node;
}

function mini(label, words, ...marks) {
  return el("figure", { class: "mini" }, picture(MINI.width, MINI.height, label, ...marks), el("figcaption", {}, words));
}

const finiteRange = (values) => {
  const finite = values.filter(Number.isFinite);
  return finite.length ? [Math.min(...finite), Math.max(...finite)] : [0, 1];
};
const placeIn = ([low, high], from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

function activation(neuron) {
  if (!neuron.activated) return null;
  const { sum, value } = neuron.activated, x = placeIn(finiteRange(sum), MINI.left, MINI.width - MINI.right);
  const y = placeIn(finiteRange(value), MINI.height - MINI.bottom, MINI.top), counts = neuron.counts || [], edges = neuron.edges || [];
  const room = MINI.height - MINI.top - MINI.bottom, largest = Math.max(1, ...counts);
  const bins = counts.map((n, b) => svg("rect", { class: "bin", x: x(edges[b]).toFixed(1), width: Math.max(0.5, x(edges[b + 1]) - x(edges[b]) - 0.4).toFixed(1),
    y: (MINI.height - MINI.bottom - (n / largest) * room).toFixed(1), height: ((n / largest) * room).toFixed(1) }));
  const [low, high] = finiteRange(sum);
  return mini(`The activation ${neuron.activation}, from ${short(finiteRange(value)[0], 3)} to ${short(finiteRange(value)[1], 3)}`, neuron.activation,
    ...bins, svg("path", { class: "response", d: pathOf(sum.map((s, k) => [x(s), y(value[k])])) }), ...ends(short(low, 2), short(high, 2)));
}

const ends = (low, high) => [svg("text", { x: MINI.left, y: MINI.height - 3 }, low), svg("text", { x: MINI.width - MINI.right, y: MINI.height - 3, "text-anchor": "end" }, high)];

// Where the values of a column's grid lie: numbers and dates to scale, levels and gaps one after the other.
function gridOf(column) {
  const known = column.kind === "levels" ? [] : column.grid.filter((value) => value !== null);
  if (!known.length) return { at: placeIn([0, Math.max(1, column.labels.length - 1)], MINI.left + 6, MINI.width - MINI.right - 6), places: column.labels.map((_, k) => k), levels: true };
  return { at: placeIn([known[0], known[known.length - 1]], MINI.left, MINI.width - MINI.right), places: column.grid, levels: false };
}

function curvePicture(told, neuron, one) {
  const column = told.columns[one.column], { at, places, levels } = gridOf(column), range = finiteRange(one.values);
  const all = neuron.curves.slice(0, CURVES).map((curve) => finiteRange(curve.values)), tallest = Math.max(...all.map(([l, h]) => h - l)) || 1;
  // Curves of a neuron share their scale, so that flat ones are seen to be flat.
  const middle = (range[0] + range[1]) / 2, y = placeIn([middle - tallest / 2, middle + tallest / 2], MINI.height - MINI.bottom, MINI.top);
  const points = places.map((place, k) => [place === null ? NaN : at(place), y(one.values[k])]);
  const marks = levels ? points.map(([px, py], k) => svg("circle", { class: "dot", cx: px, cy: py, r: 3 }, svg("title", {}, `${column.labels[k]}: ${short(one.values[k], 3)}`)))
    : [svg("path", { class: "response", d: pathOf(points) })];
  const known = column.labels.filter((_, k) => places[k] !== null);
  const cut = (words) => (words.length > 9 ? words.slice(0, 8) + "…" : words);
  return mini(`${column.name}: from ${short(one.values[0], 3)} to ${short(one.values[one.values.length - 1], 3)}`, column.name, ...marks, ...ends(cut(known[0]), cut(known[known.length - 1])));
}

// What two columns do together, of the output that this changes most.
function pairPicture(told, one) {
  const [first, second] = one.columns.map((j) => told.columns[j]), output = told.outputs.length > 1 ? `, ${told.outputs[one.output].name}` : "";
  const [size, cells] = cellsOf(one.joint), reach = (column, k) => {
    const known = one.places[k].filter((place) => column.kind === "levels" || column.grid[place] !== null), label = (place) => column.labels[place];
    return `${column.name}, ${label(known[0])} to ${label(known.at(-1))}${known.length < one.places[k].length ? ", then missing" : ""}`;
  };
  const words = `across: ${reach(first, 0)}; up: ${reach(second, 1)}; at most ${short(size, 2)}${output}`;
  return el("figure", { class: "mini pair-map" }, picture(MINI.width, MINI.height, words, ...cells), el("figcaption", {}, words));
}

function mapPicture(told, one) {
  const [first, second] = one.columns.map((j) => told.columns[j]), [size, cells] = cellsOf(one.values);
  const still = one.fixed ? Object.entries(one.fixed).map(([j, k]) => `${told.columns[j].name} at ${(told.columns[j].labels || [])[k] ?? k}`).join(", ") : "";
  return mini(`A map over ${first.name} and ${second.name}, largest size ${short(size, 3)}`, `${first.name} × ${second.name}${still ? ` (${still})` : ""}`, ...cells);
}

// The cells of a map, the stronger the larger their values are, and the largest size.
function cellsOf(rows) {
  const size = Math.max(1e-12, ...rows.flat().map((v) => Math.abs(v ?? 0)));
  const wide = (MINI.width - MINI.left - MINI.right) / rows.length, tall = (MINI.height - MINI.top - MINI.bottom) / rows[0].length;
  const cells = rows.flatMap((values, i) => values.map((value, k) => svg("rect", { class: value < 0 ? "cell minus" : "cell plus", "fill-opacity": (Math.abs(value ?? 0) / size).toFixed(2),
    x: (MINI.left + i * wide).toFixed(1), width: (wide + 0.3).toFixed(1), y: (MINI.height - MINI.bottom - (k + 1) * tall).toFixed(1), height: (tall + 0.3).toFixed(1) })));
  return [size, cells];
}
