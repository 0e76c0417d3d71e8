// How values are shown. Keys, questions and names are written by others: what they hold is shown as signs, never obeyed.
import { locale, t } from "./texts.js";

export const LONGEST = 100;

// Controls, signs that turn the direction of writing, signs without width, separators that start a line, tags, halves of pairs.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

function escapeSign(sign) {
  if (sign === "\n") return "⏎";
  if (sign === "\t") return "⇥";
  return `\\u{${sign.codePointAt(0).toString(16)}}`;
}

/** A text of somebody else's, safe to look at: hidden signs as their numbers, cut where it is long. */
export function shown(value, most = LONGEST) {
  const signs = [...String(value ?? "")];
  const cut = signs.length > most;
  const text = (cut ? signs.slice(0, most - 1) : signs).join("").replace(HIDDEN, escapeSign);
  return cut ? `${text}…` : text;
}

/** Several lines of somebody else's text, with its line ends. */
export function shownLines(value, most = 20_000) {
  const signs = [...String(value ?? "")];
  const text = signs.slice(0, most).join("");
  const lines = text.split(/\r\n|\n/).map((line) => line.replace(/\t/g, "  ").replace(HIDDEN, escapeSign));
  return lines.join("\n") + (signs.length > most ? "…" : "");
}

/** A share 0..1 as a percentage. What is spent is rounded up, what is left is rounded down. */
export function percent(share, { up = false } = {}) {
  const value = Number(share) * 100;
  if (!Number.isFinite(value)) return "–";
  if (value <= 0) return "0 %";
  const digits = value >= 10 ? 1 : value >= 1 ? 2 : 3;
  const scale = 10 ** digits;
  const exact = value * scale;
  const close = Math.round(exact);
  // A binary fraction a hair beside a round number is that number.
  const whole = Math.abs(exact - close) < 1e-6 ? close : up ? Math.ceil(exact) : Math.floor(exact);
  if (whole === 0) return t("number.below", { value: `${1 / scale} %` });
  return `${number(whole / scale, digits)} %`;
}

/** An exact amount, "3/8" or "0.375", as a number to look at. */
export function amount(text) {
  const [above, below = "1"] = String(text ?? "0").split("/");
  return Number(above) / Number(below);
}

/** An exact amount for people who know what it is: a small one by its power of ten. */
export function exponent(text) {
  const value = amount(text);
  if (!Number.isFinite(value)) return shown(text, 40);
  return value === 0 || value >= 0.001 ? number(value, 6) : value.toExponential().replace(/(\.\d{3})\d+/, "$1");
}

/** What an amount is of a limit: {rho, delta} or {epsilon}, of which the first decides. 0 where there is nothing. */
export function partOf(amounts, limit) {
  const name = limit?.rho === undefined ? "epsilon" : "rho";
  const found = amount(amounts?.[name]) / amount(limit?.[name]);
  return Number.isFinite(found) ? found : 0;
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: digits }).format(value);
}

/** A released number with the digits that its interval makes worth reading. */
export function released(value, low, high) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return /^-?\d+(\.\d+)?$/.test(value) ? groupDigits(value) : shown(value);
  if (typeof value !== "number") return shown(value);
  if (Number.isInteger(value)) return number(value);
  const half = typeof low === "number" && typeof high === "number" ? (high - low) / 2 : NaN;
  return number(value, digitsFor(half, value));
}

function digitsFor(half, value) {
  const size = half > 0 ? half : Math.abs(value) / 1000;
  if (!Number.isFinite(size) || size <= 0) return 6;
  return Math.max(0, Math.min(12, 1 - Math.floor(Math.log10(size))));
}

/** An exact number too long for a float, with its digits in groups. */
function groupDigits(text) {
  const [whole, rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

/** The ± of a value where its interval is symmetric, its two ends where it is not. */
export function interval(value, low, high) {
  if (low === null || low === undefined || high === null || high === undefined) {
    const end = (one, none) => (one === null || one === undefined ? none : released(one));
    return `${end(low, "−∞")} … ${end(high, "∞")}`;
  }
  if (typeof value === "number" && typeof low === "number" && typeof high === "number") {
    const half = (high - low) / 2;
    const even = Math.abs(high - value - (value - low)) <= 1e-9 * Math.max(half, 1e-300);
    if (even) return `± ${Number.isInteger(value) && Number.isInteger(half) ? number(half) : number(half, digitsFor(half, value))}`;
  }
  return `${released(low, low, high)} … ${released(high, low, high)}`;
}

/** An expected error, to two digits. */
export function reach(value) {
  if (value === null || value === undefined) return "";
  return `± ${number(value, value >= 10 ? 0 : Math.min(12, digitsFor(value, value)))}`;
}

export function key(value) {
  if (value === null || value === undefined) return t("answer.noValue");
  if (value === true) return t("answer.true");
  if (value === false) return t("answer.false");
  return shown(value);
}

/** A moment as the reader's clock has it, of seconds since 1970 or of a text; a text that is none is shown as a text. */
export function moment(value) {
  if (!value) return "–";
  const found = new Date(typeof value === "number" ? value * 1000 : value);
  if (Number.isNaN(found.getTime())) return shown(value, 40);
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(found);
}

export function duration(seconds) {
  if (!(seconds > 0)) return t("duration.seconds", { value: 0 });
  if (seconds < 120) return t("duration.seconds", { value: number(Math.round(seconds)) });
  return t("duration.minutes", { value: number(Math.round(seconds / 60)) });
}
