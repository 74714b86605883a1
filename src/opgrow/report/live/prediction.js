// What the network says of the values that are set, and the rows that can be picked.

const LISTED_CLASSES = 8, PAGE = 10, CELLS = 6;

function predictionPanel(model, data, state, changed, pick) {
  const caption = el("h3", { class: "caption" }, data.target ? `Prediction of ${data.target}` : "Prediction");
  const heading = el("p", { class: "said" }), detail = el("p", { class: "note" });
  const live = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const shares = el("div", { class: "shares" });
  const rows = data.rows.values.length;
  const outputs = el("select", { id: "output", onchange: () => { state.output = Number(outputs.value); state.chosen = true; changed(); } },
    ...data.outputs.map((name, c) => el("option", { value: c }, name)));
  const step = (by) => pick((((state.row ?? state.last ?? 0) + by) % rows + rows) % rows);
  const buttons = rows ? el("div", { class: "row" },
    el("button", { type: "button", id: "before", onclick: () => step(-1), "aria-label": "Previous row" }, "◀"),
    el("button", { type: "button", id: "reset", onclick: () => pick(state.last ?? 0) }, "Back to row"),
    el("button", { type: "button", id: "after", onclick: () => step(1), "aria-label": "Next row" }, "▶")) : null;
  const chooser = data.outputs.length > 1 ? el("p", { class: "row" }, el("label", { for: "output" }, model.classes ? "Curves show the probability of" : "Curves show"), outputs) : null;
  const node = el("aside", { class: "panel", "aria-label": "Prediction" }, ...[caption, heading, shares, detail, live, buttons, chooser].filter(Boolean));
  const announce = debounced(() => { live.textContent = heading.textContent; }, 400);

  function update() {
    const { prediction } = state;
    outputs.value = String(state.output);
    if (model.classes) {
      heading.textContent = `${model.classes[prediction.label]}, ${percent(prediction.shares[prediction.label])}`;
      showShares(prediction.shares);
    } else {
      const named = (name, c) => `${data.outputs.length > 1 || !data.target ? `${name}: ` : ""}${short(prediction.outputs[c], 5)}`;
      heading.textContent = data.outputs.map(named).slice(0, 6).join(", ");
    }
    const place = state.row ?? state.last;
    const truth = data.rows.truth && place !== null && place !== undefined ? data.rows.truth[place] : null;
    const said = truth === null ? "" : model.classes ? `, whose true class is ${model.classes[truth]}` : `, whose true value is ${truth.map((v) => short(v, 5)).join(", ")}`;
    const where = place === null || place === undefined ? "" : `row ${data.rows.numbers[place]}`;
    detail.textContent = state.row === null ? (where ? `Changed from ${where}${said}.` : "Values of your own.") : `The values of ${where}${said}.`;
    announce();
  }

  function showShares(values) {
    const order = values.map((_, c) => c).sort((a, b) => values[b] - values[a]).slice(0, LISTED_CLASSES);
    if (values.length <= LISTED_CLASSES) order.sort((a, b) => a - b);
    shares.replaceChildren(...order.map((c) => {
      const fill = el("span", { class: "fill" });
      fill.style.width = percent(values[c], 2).replace(" ", "");
      return el("div", { class: c === state.prediction.label ? "share first" : "share", "data-class": c },
        el("span", { class: "name", title: model.classes[c] }, model.classes[c]),
        el("span", { class: "bar" }, fill),
        el("span", { class: "figure" }, percent(values[c])));
    }), ...(values.length > order.length ? [el("p", { class: "note" }, `and ${counted(values.length - order.length, "class")
      .replace("classs", "classes")} more`)] : []));
  }
  return { node, update };
}

// A table of the rows that the page has, a page at a time.
function rowTable(model, data, state, pick) {
  const all = data.rows.values.map((_, i) => i);
  if (!all.length) return null;
  const columns = data.columns.map((_, i) => i).filter((i) => data.columns[i].kind !== "dropped");
  let start = 0, wrong = false;
  const body = el("tbody"), where = el("span", { class: "note" });
  const said = (i) => model.predict(data.rows.values[i]);
  const missed = () => all.filter((i) => said(i).label !== data.rows.truth[i]);
  const list = () => (wrong ? missed() : all);
  const head = ["row", ...(data.rows.truth ? ["truth"] : []), "predicted", ...columns.slice(0, CELLS).map((i) => data.columns[i].name)];
  const step = (by) => { start = Math.max(0, Math.min(list().length - 1, start + by * PAGE)); show(); };
  const only = data.rows.truth && model.classes ? el("label", { class: "gap" },
    el("input", { type: "checkbox", id: "mistakes", onchange: (event) => { wrong = event.target.checked; start = 0; show(); } }), "only mistakes") : null;
  const node = el("details", { class: "rows", id: "rows" }, el("summary", {}, `Pick one of ${counted(all.length, "row")}`),
    el("div", { class: "row" }, el("button", { type: "button", onclick: () => step(-1), "aria-label": "Earlier rows" }, "◀"), where,
      el("button", { type: "button", onclick: () => step(1), "aria-label": "Later rows" }, "▶"), ...(only ? [only] : [])),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...head.map((name) => el("th", {}, name)))), body)));
  node.addEventListener("toggle", () => show());

  const value = (v) => (v === null ? "" : textOf(v));
  function show() {
    if (!node.open) return;
    const listed = list(), part = listed.slice(start, start + PAGE);
    where.textContent = listed.length ? `${start + 1} to ${start + part.length} of ${listed.length}` : "none";
    body.replaceChildren(...part.map((i) => {
      const { label, outputs } = said(i), truth = data.rows.truth ? data.rows.truth[i] : null;
      const right = model.classes ? [model.classes[label], label === truth] : [outputs.map((v) => short(v, 5)).join(", "), true];
      return el("tr", { class: i === state.row ? "picked" : null },
        el("td", {}, el("button", { type: "button", "data-row": i, onclick: () => { pick(i); show(); } }, String(data.rows.numbers[i]))),
        ...(data.rows.truth ? [el("td", {}, model.classes ? model.classes[truth] : truth.map((v) => short(v, 5)).join(", "))] : []),
        el("td", { class: right[1] || truth === null ? null : "wrong" }, right[0]),
        ...columns.slice(0, CELLS).map((c) => el("td", {}, value(data.rows.values[i][c]))));
    }));
  }
  return { node, update: show };
}
