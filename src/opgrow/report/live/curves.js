// The pictures of the cards: the response to an input over the distribution of the data, as a curve or as bars.

const CARD = { width: 280, height: 92, left: 4, right: 34, top: 6, bottom: 16 };
const LISTED = 12;

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

// The mean response over rows of the data, where the explanation of the page has it: places and values.
function averagedPoints(data, column, output) {
  const told = data.explanation, place = told ? told.columns.findIndex((one) => one.name === column.name && one.grid && one.kind !== "levels") : -1;
  const found = place < 0 ? null : told.responses.find((one) => one.column === place);
  if (!found) return [];
  const values = (found.probability || found.mean || [])[output];
  const scale = column.kind === "date" ? (column.form === "date" ? DAY : 3600) : 1;
  const points = told.columns[place].grid.flatMap((p, k) => (p === null || !values || p * scale < column.low || p * scale > column.high ? [] : [[p * scale, values[k]]]));
  return points.length > 1 ? points : [];
}

// The ends of the common scale, beside the picture.
function scaleWords(data, [low, high]) {
  const words = (value) => (data.classes ? percent(value, 0) : short(value, 3));
  const at = (y, value) => svg("text", { class: "scale", x: CARD.width, y, "text-anchor": "end" }, words(value));
  return [at(CARD.top + 7, high), at(CARD.height - CARD.bottom, low)];
}

// Words below a picture, centred at a place as far as the edges allow.
const LETTER = 6.2;
function below(x, words) {
  const half = (words.length * LETTER) / 2;
  const at = x - half < 0 ? ["start", 0] : x + half > CARD.width ? ["end", CARD.width] : ["middle", x];
  return svg("text", { x: at[1].toFixed(1), y: CARD.height - 3, "text-anchor": at[0] }, words);
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
  const x = inside ? Math.min(CARD.width - CARD.right + 3, Math.max(3, frame.x(at))) : null;
  const ends = [column.low, column.high].map((end) => (end === undefined ? "" : date ? textOfSeconds(end, column) : short(end)));
  const drawn = picture(CARD.width, CARD.height, label,
    ...histogram(column, frame),
    svg("path", { class: "response mean", d: pathOf(averagedPoints(data, column, output).map(([p, mean]) => [frame.x(p), frame.y(mean)])) }),
    svg("path", { class: "response", d: pathOf(places.map((p, k) => [frame.x(p), frame.y(said[k])])) }),
    ...(inside ? [svg("line", { class: "here-line", x1: x, x2: x, y1: CARD.top, y2: CARD.height - CARD.bottom }),
      svg("circle", { class: "here-dot", cx: x, cy: frame.y(now), r: 4 })] : []),
    ...scaleWords(data, scale),
    below(frame.x(column.low), ends[0]), below(frame.x(column.high), ends[1]));
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
  // Bars too narrow for words: the chosen one has its name, and the others tell theirs when they are pointed at.
  const narrow = wide < 6 * LETTER && tried.some((category) => category.length * LETTER > wide);
  const parts = tried.flatMap((category, k) => {
    const n = column.counts ? column.counts[column.index.get(category)] : 0, x = frame.x(k), chosen = category === value;
    const y = frame.y(said[k]), letters = Math.floor((wide - 5) / LETTER);
    const words = category.length > letters ? category.slice(0, letters - 1) + "…" : category;
    return [
      svg("g", { class: chosen ? "category chosen" : "category", onclick: () => set(category) },
        svg("rect", { class: "hit", x, y: 0, width: wide, height: CARD.height }),
        svg("rect", { class: "bin", x: x + 1, width: Math.max(1, wide - 2), y: CARD.height - CARD.bottom - (n / most) * room, height: (n / most) * room }),
        svg("line", { class: "response", x1: x + 2, x2: x + wide - 2, y1: y, y2: y }),
        ...(chosen ? [svg("circle", { class: "here-dot", cx: x + wide / 2, cy: y, r: 4 })] : []),
        ...(narrow ? [] : [below(x + wide / 2, words)]),
        svg("title", {}, `${category}: ${short(said[k], 3)}, ${counted(n || 0, "row")}`)),
    ];
  });
  if (narrow) {
    const place = tried.indexOf(value), all = column.categories.length;
    parts.push(place < 0 ? below(0, all > tried.length ? `the ${tried.length} most frequent of ${all}` : "") : below(frame.x(place + 0.5), value));
  }
  return picture(CARD.width, CARD.height, label, ...parts, ...scaleWords(data, scale));
}
