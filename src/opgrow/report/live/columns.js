// A row of the user's table as the numbers that the network takes, as opgrow's TableEncoder makes them.
// Values are numbers, texts, or null for a gap.

const DAY = 86400;
const UNITS = { date: DAY, time: 3600, duration: 3600 };
const PERIODS = { year: 365.2425, week: 7, day: 1 };
const CLOCK = String.raw`\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?`;
const ZONE = String.raw` ?(?:Z|UTC|[+-]\d{2}:?\d{2})`;
const DATE = String.raw`\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})`;
const WHOLE = new RegExp(
  `^(?:(?:${DATE})(?:[T ]${CLOCK}(?:${ZONE})?)?|${CLOCK}|-?\\d+ (?:day|second)s?(?:,? \\+?${CLOCK})?)$`);
const PARTS = new RegExp(
  String.raw`^(?:(?<year>\d{4})[-/](?<month>\d{1,2})[-/](?<day>\d{1,2})` +
  String.raw`|(?<one>\d{1,2})(?<mark>[./-])(?<two>\d{1,2})[./-](?<last>\d{4}|\d{2})` +
  String.raw`|(?<count>-?\d+) (?<unit>day|second)s?,?)?` +
  String.raw`(?:(?:[T ]\+?)?(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}(?:[.,]\d+)?))?` +
  String.raw`(?: ?(?<zone>Z|UTC|[+-]\d{2}:?\d{2}))?)?$`);

// Days from 1970 to a date; null for one that does not exist.
function dayOf(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const exists = year >= 1 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return exists ? date.getTime() / 1000 / DAY : null;
}

// Seconds of a text, since 1970, since midnight or that have passed; null for all other texts.
function secondsOf(text, form, dayFirst) {
  text = text.trim();
  const found = WHOLE.test(text) ? PARTS.exec(text) : null;
  if (!found) return null;
  const part = found.groups;
  const kind = part.year || part.one ? "date" : part.unit ? "duration" : "time";
  if ((kind === "date") !== (form === "date")) return null;
  let clock = 0;
  if (part.hour !== undefined) {
    const [minute, second] = [Number(part.minute), Number((part.second || "0").replace(",", "."))];
    if (minute >= 60 || second >= 61) return null;
    clock = Number(part.hour) * 3600 + minute * 60 + second;
  }
  if (form !== "duration" && clock >= DAY) return null;
  if (form !== "date") return Number(part.count || 0) * ({ day: DAY, second: 1 }[part.unit] || 0) + clock;
  let day = part.year ? [Number(part.year), Number(part.month), Number(part.day)] : null;
  if (!day) {
    let year = Number(part.last);
    if (part.last.length === 2) year += year < 69 ? 2000 : 1900;
    const [one, two] = [Number(part.one), Number(part.two)];
    day = dayFirst ? [year, two, one] : [year, one, two];
  }
  const days = dayOf(...day);
  if (days === null) return null;
  let offset = 0;
  if (part.zone && part.zone !== "Z" && part.zone !== "UTC") {
    const digits = part.zone.slice(1).replace(":", "");
    offset = (Number(digits.slice(0, 2)) * 3600 + Number(digits.slice(2, 4)) * 60) * (part.zone[0] === "-" ? -1 : 1);
  }
  return days * DAY + clock - offset;
}

// Seconds as a text that a column is read from.
function textOfSeconds(seconds, column) {
  const days = Math.floor(seconds / DAY), rest = Math.floor(seconds - days * DAY);
  const two = (n) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(rest / 3600))}:${two(Math.floor((rest % 3600) / 60))}:${two(rest % 60)}`;
  if (column.form === "time") return clock;
  if (column.form === "duration") return `${days} days, ${clock}`;
  const date = new Date(days * DAY * 1000);
  const shown = `${String(date.getUTCFullYear()).padStart(4, "0")}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
  return column.parts.includes("day") ? `${shown} ${clock}` : shown;
}

const toText = (value) => (value === null ? null : String(value));
const nine = (value) => Math.round(value * 1e9) / 1e9;

// How each kind of column writes its numbers behind `out`.
const ENCODERS = {
  dropped() {},
  number(column, value, out) {
    const number = typeof value === "number" ? value : value === null || value.trim() === "" ? NaN : Number(value);
    const gap = Number.isNaN(number);
    out.push(gap ? column.median : column.single ? Math.fround(number) : number);
    if (column.missing) out.push(gap ? 1 : 0);
  },
  text(column, value, out) {
    const n = column.categories.length, start = out.length;
    for (let i = 0; i < n + column.pooled + column.missing; i++) out.push(0);
    let place = value === null ? (column.missing ? n + column.pooled : -1) : column.index.get(toText(value));
    if (place === undefined) place = column.pooled ? n : -1;
    if (place >= 0) out[start + place] = 1;
  },
  target(column, value, out) {
    const place = value === null ? (column.missing ? column.categories.length : undefined) : column.index.get(toText(value));
    out.push(...(place === undefined ? column.overall : column.means[place]));
  },
  date(column, value, out) {
    const seconds = value === null ? null : secondsOf(toText(value), column.form, column.day_first);
    out.push(seconds === null ? column.median : seconds / UNITS[column.form] - column.origin);
    for (const part of column.parts) {
      if (seconds === null) {
        out.push(0, 0);
        continue;
      }
      const days = seconds / DAY, turned = (part === "week" ? Math.floor(days) : days) / PERIODS[part];
      const angle = 2 * Math.PI * (turned - Math.floor(turned));
      out.push(nine(Math.sin(angle)), nine(Math.cos(angle)));
    }
    if (column.missing) out.push(seconds === null ? 1 : 0);
  },
};

function encoderOf(columns) {
  for (const column of columns) {
    if (column.categories) column.index = new Map(column.categories.map((category, i) => [category, i]));
  }
  return (values) => {
    const out = [];
    columns.forEach((column, i) => ENCODERS[column.kind](column, values[i], out));
    return out;
  };
}
