// The playground: a growth that is watched while it happens, and the page about the network when it is done.

const WAIT = 300;

function watchPlace() {
  const words = byId("status"), doing = byId("doing"), buttons = [...document.querySelectorAll("button[data-do]")];
  const steps = [], palette = data.palette;
  data.colours = {};
  const view = replayView(data);
  byId("replay").replaceChildren(view.node);
  view.set(steps);
  for (const button of buttons) button.addEventListener("click", () => tell(button.dataset.do));

  async function tell(what) {
    const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ what }) };
    try {
      show(await (await fetch("do", sent)).json());
    } catch {
      gone();
    }
  }

  function gone() {
    words.textContent = "The playground has ended.";
    for (const button of buttons) button.hidden = true;
  }

  function show(state) {
    if (state.error) doing.textContent = state.error;
    if (!state.status) return;
    words.textContent = state.words;
    if (!state.error) doing.textContent = state.doing;
    document.body.dataset.status = state.status;
    for (const button of buttons) button.hidden = !state.can.includes(button.dataset.do);
    if (state.criterion) data.criterion = state.criterion;
    if (state.first <= steps.length && state.steps.length) {
      const following = view.atEnd();
      steps.splice(state.first, steps.length, ...state.steps);
      for (const { operators } of steps)
        if (operators && !data.colours[operators]) data.colours[operators] = palette[Object.keys(data.colours).length % palette.length];
      view.set(steps, following);
    }
    if (state.status === "finished") report();
  }

  function report() {
    if (byId("report").firstChild) return;
    byId("growth").open = false;
    byId("report").replaceChildren(el("iframe", { src: "report", title: "The report on the network" }));
  }

  async function follow() {
    try {
      const state = await (await fetch(`state?after=${steps.length}`)).json();
      show(state);
      if (state.status !== "finished" && state.status !== "failed") setTimeout(follow, WAIT);
    } catch {
      gone();
    }
  }
  follow();
  return { steps, tell };
}

globalThis.opgrow = watchPlace();
