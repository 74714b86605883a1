// The growth of the networks, step by step: what was tried, what stayed, the score and the size.

const PLOT = { width: 720, height: 220, left: 76, right: 12, top: 12, bottom: 30 };

function replayView(data) {
  const holder = el("div", { class: "replay" });
  let steps = [], now = 0, timer = 0;
  const range = el("input", { type: "range", id: "step", min: 0, step: 1, "aria-label": "Step of the growth", oninput: () => { stop(); show(Number(range.value)); } });
  const play = el("button", { type: "button", id: "play", onclick: () => (timer ? stop() : start()) }, "▶ Play");
  const words = el("p", { class: "said", role: "status", id: "step-words" });
  const chart = el("div", { class: "chart" }), chips = el("ol", { class: "chips" });
  holder.append(el("div", { class: "row" }, play, range), words, chart, chips);

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "▶ Play";
  }
  function start() {
    if (now >= steps.length - 1) show(0);
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => { if (now >= steps.length - 1) stop(); else show(now + 1); }, 450);
  }

  // The steps so far; a growth that is under way has more of them every time. `last` shows the newest.
  function set(all, last = true) {
    steps = all;
    range.max = Math.max(0, steps.length - 1);
    holder.hidden = !steps.length;
    if (steps.length) show(last ? steps.length - 1 : Math.min(now, steps.length - 1));
  }

  function wordsOf(step, n) {
    const network = steps.some((one) => one.member > 1) ? `network ${step.member}, ` : "";
    const what = {
      "fine-tune": "the whole network was tuned", layer: `layer ${step.layer} as a whole`,
      search: `layer ${step.layer}, pass ${step.block}`, block: `layer ${step.layer}, block ${step.block}`,
    }[step.kind];
    const neurons = step.kind === "block" || step.kind === "search" ? `: ${step.neurons} × ${spaced(step.operators || "")}` : "";
    return `Step ${n + 1} of ${steps.length}: ${network}${what}${neurons}, ${step.accepted ? "kept" : "not kept"}. ` +
      `${data.criterion} ${short(step.score)}, ${counted(step.parameters, "parameter")}, ${step.seconds.toFixed(2)} s.`;
  }

  function show(n) {
    now = n;
    range.value = String(n);
    range.setAttribute("aria-valuetext", wordsOf(steps[n], n));
    words.textContent = wordsOf(steps[n], n);
    chart.replaceChildren(scoreChart(n));
    const past = steps.slice(0, n + 1), blocks = past.some((one) => one.kind === "block");
    const lost = past.filter((step) => step.kind === "layer" && !step.accepted);
    const gone = (step) => !step.accepted || lost.some((one) => one.member === step.member && one.layer === step.layer);
    const several = past.some((step) => step.member > 1);
    chips.replaceChildren(...past.filter((step) => step.kind === (blocks ? "block" : "layer")).map((step) => {
      const place = `${several ? `network ${step.member}, ` : ""}layer ${step.layer}`;
      const chip = el("li", { class: gone(step) ? "chip no" : "chip", title: `${place}: ${gone(step) ? "not kept" : "kept"}` },
        `${step.neurons} × ${spaced(step.operators || `layer ${step.layer}`)}`);
      chip.style.borderLeftColor = (data.colours || {})[step.operators] || "var(--muted)";
      return chip;
    }));
  }

  function scoreChart(n) {
    const { width, height, left, right, top, bottom } = PLOT;
    const values = steps.map((step) => step.score).filter(Number.isFinite).sort((a, b) => a - b);
    const kept = steps.filter((step) => step.accepted && Number.isFinite(step.score)).map((step) => step.score);
    const spread = Math.max(...kept) - Math.min(...kept) || Math.abs(kept[0]) || 1;
    // Steps far off the kept ones lie on the edge instead of pressing the others together.
    const low = Math.max(values[0], Math.min(...kept) - spread), high = Math.min(values[values.length - 1], Math.max(...kept) + spread);
    const x = (k) => left + ((k + 0.5) / steps.length) * (width - left - right);
    const y = (v) => height - bottom - ((Math.min(high, Math.max(low, v)) - low) / (high - low || 1)) * (height - top - bottom);
    const biggest = Math.max(...steps.map((step) => step.parameters), 1);
    const parts = [];
    steps.forEach((step, k) => {
      const tall = (step.parameters / biggest) * (height - top - bottom), wide = (width - left - right) / steps.length;
      parts.push(svg("rect", { class: k <= n ? "bin" : "bin later", x: x(k) - wide * 0.4, width: wide * 0.8, y: height - bottom - tall, height: tall }));
    });
    for (const member of new Set(steps.map((step) => step.member))) {
      const own = steps.map((step, k) => [step, k]).filter(([step, k]) => step.member === member && step.accepted && k <= n);
      parts.push(svg("path", { class: "response", d: pathOf(own.map(([step, k]) => [x(k), y(step.score)])) }));
    }
    steps.forEach((step, k) => {
      if (k > n || !Number.isFinite(step.score)) return;
      parts.push(svg("circle", { class: step.accepted ? "dot" : "dot no", cx: x(k), cy: y(step.score), r: k === n ? 6 : 4 },
        svg("title", {}, wordsOf(step, k))));
    });
    const labels = [high, (high + low) / 2, low].map((value) => svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, short(value, 3)));
    return picture(width, height, `${data.criterion} of each step as dots, filled where the step was kept; bars are the number of parameters`,
      ...parts, ...labels, svg("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "steps; bars: parameters, dots: " + data.criterion));
  }
  return { node: holder, set, show, atEnd: () => now >= steps.length - 1 };
}
