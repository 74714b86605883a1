// Elements of the page, and numbers as people read them. Text is always text: nothing from data becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
// A long name, which may go on in the next line after its signs.
const breakable = (name) => name.split(/(?<=[_./-])/).flatMap((part) => [part, el("wbr")]);
const byId = (id) => document.getElementById(id);
// What Python has written into the page.
const data = JSON.parse(byId("data").textContent);

// A number in a few digits.
function short(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const minus = value < 0 ? "−" : "";
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return minus + size.toExponential(1);
  const rounded = Number(size.toPrecision(digits));
  return minus + rounded.toLocaleString("en-US", { maximumFractionDigits: 6 });
}
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const signed = (value, digits = 3) => (value < 0 ? "−" : "+") + short(Math.abs(value), digits);
const counted = (n, what) => `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
// A value of an input, and a class within a sentence, where a bare number could be anything.
const ANOTHER = "\u0000another";
const textOf = (value) => (value === null ? "missing" : value === ANOTHER ? "(another)" : typeof value === "number" ? short(value, 5) : value);
const called = (name) => (/^[-−+.\d]/.test(name) ? `class ${name}` : name);
const spaced = (operators) => operators.split("/").join(" / ");

// About a hundredth of a range, as a round number.
function roundStep(range) {
  if (!(range > 0)) return 1;
  const raw = range / 200, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
}

// A function that is called once in a frame, however often it is asked for.
function onceAFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; work(); });
  };
}

// A function that is called once when nobody has asked for it for some milliseconds.
function debounced(work, wait) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(work, wait); };
}

// A picture whose viewBox is as large as given.
function picture(width, height, label, ...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
}

// A path through points, with gaps where a value is not finite.
function pathOf(points) {
  let down = false;
  return points.map(([x, y]) => {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { down = false; return ""; }
    const part = `${down ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    down = true;
    return part;
  }).join("");
}
