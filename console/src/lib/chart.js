// Charts by Observable Plot. Its labels are text nodes; its own style element is taken off before the page sees it.
import * as Plot from "@observablehq/plot";
import { key, number } from "./show.js";
import { locale, t } from "./texts.js";

export const MOST_ROWS = 40;

const HEIGHT = 27;
const DAY = 86_400_000; // milliseconds
const TEMPORAL = new Set(["date", "timestamp"]);

/** Make a plotted figure fit for the page: one image with one name, no style element, nothing that is announced in parts. */
function finish(figure, label) {
  for (const style of figure.querySelectorAll("style")) style.remove();
  for (const part of figure.querySelectorAll("[aria-label], [aria-description]")) {
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-label", label);
  return figure;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }).format(value);
  return number(value, size >= 100 ? 0 : 3);
}

function cutLabel(text, most) {
  const signs = [...text];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : text;
}

/** One released column: a dot and its interval for every row, over time where the only key is a moment, else one below the other. */
export function drawAnswer(answer, column, width) {
  const keys = answer.columns.filter((one) => one.kind === "key");
  const all = answer.rows.filter((row) => row[column.name] !== null && row[column.name] !== undefined);
  const over = keys.length === 1 && TEMPORAL.has(keys[0].type) && all.length > 2;
  const rows = all.slice(0, over ? 1000 : MOST_ROWS).map((row, place) => ({
    place,
    label: keys.map((one) => key(row[one.name])).join(", ") || t("answer.all"),
    when: over ? new Date(row[keys[0].name]) : null,
    value: Number(row[column.name]),
    low: Number(row[`${column.name}_low`] ?? row[column.name]),
    high: Number(row[`${column.name}_high`] ?? row[column.name]),
  }));
  const label = t("chart.answer", { column: key(column.name), rows: rows.length });
  return finish(over ? overTime(rows, width) : belowEachOther(rows, width), label);
}

function belowEachOther(rows, width) {
  const most = width < 420 ? 14 : 26;
  const labels = rows.map((row) => cutLabel(row.label, most));
  const wide = Math.max(...labels.map((label) => [...label].length), 3);
  return Plot.plot({
    className: "plot",
    width,
    height: Math.max(rows.length, 2) * HEIGHT + 34,
    marginLeft: Math.min(wide * 7 + 16, width * 0.42),
    marginRight: 22,
    marginTop: 4,
    marginBottom: 30,
    x: { label: null, grid: true, nice: true, ticks: Math.max(2, Math.floor(width / 130)), tickFormat: short },
    y: { label: null, domain: rows.map((row) => row.place), tickFormat: (place) => labels[place], tickSize: 0, type: "point" },
    marks: [
      Plot.ruleY(rows, {
        y: "place",
        x1: "low",
        x2: "high",
        stroke: "var(--data)",
        strokeOpacity: 0.42,
        strokeWidth: 5,
        strokeLinecap: "round",
      }),
      Plot.dot(rows, { y: "place", x: "value", r: 4, fill: "var(--data)" }),
    ],
  });
}

function overTime(rows, width) {
  return Plot.plot({
    className: "plot",
    width,
    height: 240,
    marginLeft: 56,
    marginRight: 16,
    x: { label: null, type: "utc", ticks: Math.max(2, Math.floor(width / 110)) },
    y: { label: null, grid: true, nice: true, ticks: 5, tickSize: 0, tickFormat: short },
    marks: [
      Plot.line(rows, { x: "when", y: "value", stroke: "var(--data)", strokeOpacity: 0.35, strokeWidth: 1.2 }),
      Plot.ruleX(rows, { x: "when", y1: "low", y2: "high", stroke: "var(--data)", strokeOpacity: 0.42, strokeWidth: 4, strokeLinecap: "round" }),
      Plot.dot(rows, { x: "when", y: "value", r: 3.2, fill: "var(--data)" }),
    ],
  });
}

/** What was spent of the whole budget after each day: {time, total_share}. */
export function drawBudget(days, width) {
  const rows = days.map((one) => ({ when: new Date(`${one.time}T12:00:00Z`), total: 100 * Number(one.total_share) }));
  const end = rows.at(-1).when.getTime() + DAY / 2;
  const start = Math.min(rows[0].when.getTime() - DAY, end - 7 * DAY); // a week at least, so that days are days
  const all = [{ when: new Date(start), total: 0 }, ...rows, { when: new Date(end), total: rows.at(-1).total }];
  const spread = (end - start) / DAY;
  const figure = Plot.plot({
    className: "plot",
    width,
    height: 230,
    marginLeft: 48,
    marginRight: 14,
    x: { label: null, type: "utc", ticks: spread < 12 && width > 420 ? "day" : spread < 25 ? "2 days" : Math.max(2, Math.floor(width / 110)) },
    y: { label: null, domain: [0, 100], ticks: [0, 25, 50, 75, 100], grid: true, tickSize: 0, tickFormat: (value) => `${value} %` },
    marks: [
      Plot.areaY(all, { x: "when", y: "total", curve: "step-after", fill: "var(--data)", fillOpacity: 0.16 }),
      Plot.lineY(all, { x: "when", y: "total", curve: "step-after", stroke: "var(--data)", strokeWidth: 2 }),
      Plot.ruleY([100], { stroke: "var(--bad)", strokeWidth: 1.5, strokeDasharray: "4 4" }),
    ],
  });
  return finish(figure, t("chart.budget", { total: number(rows.at(-1).total, 2) }));
}
