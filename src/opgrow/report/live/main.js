// Brings the page to life: one state, and the views that follow it.

function startReplay() {
  const place = byId("replay");
  if (!place || !data.steps) return null;
  const view = replayView(data);
  place.replaceChildren(view.node);
  view.set(data.steps);
  return view;
}

// The first row: one of which the network is in doubt, where curves have most to show.
function doubtful(model, rows) {
  if (!model.classes) return 0;
  const doubt = rows.slice(0, 100).map((row) => -Math.max(...model.predict(row).shares));
  return best(doubt);
}

function startModel() {
  const model = modelOf(data), rows = data.rows.values;
  const middle = data.columns.map((column) => (column.kind === "number" ? column.median : column.categories ? column.categories[0] ?? null : null));
  const first = rows.length ? doubtful(model, rows) : null;
  const state = { values: first === null ? middle : rows[first], row: first, last: first, output: 0, chosen: false, muted: new Set(), prediction: null };
  const views = [];
  const refresh = () => {
    state.prediction = model.predict(state.values, state.muted);
    if (model.classes && !state.chosen) state.output = data.outputs.length === 2 ? 1 : state.prediction.label;
    for (const view of views) view.update();
  };
  const changed = onceAFrame(refresh);
  const pick = (row) => {
    Object.assign(state, { values: rows[row], row, last: row });
    changed();
  };
  state.prediction = model.predict(state.values);
  if (model.classes) state.output = data.outputs.length === 2 ? 1 : state.prediction.label;
  const panel = predictionPanel(model, data, state, changed, pick), cards = inputCards(model, data, state, changed);
  const table = rowTable(model, data, state, pick);
  views.push(panel, cards, ...(table ? [table] : []));
  byId("live").replaceChildren(panel.node, el("div", { class: "inputs" }, ...(table ? [table.node] : []), cards.node));
  refresh();
  // What is further down the page comes when this is drawn.
  const ready = new Promise((done) => setTimeout(() => {
    const why = whyView(model, data, state, changed), explained = byId("neurons"), more = [why];
    explained.replaceChildren(why.node);
    if (model.network.layers.length) {
      const neurons = neuronsView(model, data, state), blocks = blocksView(model, data, state, changed);
      more.push(neurons, blocks);
      explained.append(neurons.node);
      byId("blocks").replaceChildren(blocks.node);
      setTimeout(blocks.measure, 0);
    }
    for (const view of more) view.update();
    why.compute();
    views.push(...more);
    done(true);
  }, 0));
  return { model, state, changed, refresh, pick, ready };
}

// A part that fails leaves the others alone, and the browser's console says why.
function attempt(start) {
  try {
    return start();
  } catch (error) {
    queueMicrotask(() => { throw error; });
    return null;
  }
}

const page = { data, replay: attempt(startReplay) };
if (data.explanation) attempt(() => byId("portraits").replaceChildren(portraitsView(data)));
if (data.network) Object.assign(page, attempt(startModel));
globalThis.opgrow = page;
