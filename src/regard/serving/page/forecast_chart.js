// A forecast: a chart of each column with its history, bands between quantiles and the truth; the values as a table.

import { byId, element, option, svgElement } from "../../views/page/dom.js";

const WIDTH = 640;
const HEIGHT = 190;
const MARGIN = { left: 56, right: 8, top: 8, bottom: 22 };
const HISTORY_STEPS = 3; // drawn before the forecast, in multiples of its length
const MAX_CHARTS = 12;
let shown = [];

/** Show the forecasts of a response of /v1/forecast; nothing if it is null. */
export function showForecasts(response) {
  shown = response?.forecasts ?? [];
  byId("forecast").hidden = !shown.length;
  byId("target").hidden = shown.length > 0;
  byId("forecast-notes").textContent = (response?.notes ?? []).join("; ");
  const selection = byId("forecast-series");
  selection.parentElement.hidden = shown.length < 2;
  selection.replaceChildren(...shown.map(({ series }, index) => option(index, series)));
  drawSelected();
}

export function addForecastEvents() {
  byId("forecast-series").addEventListener("change", drawSelected);
}

function drawSelected() {
  const forecast = shown[Number(byId("forecast-series").value) || 0];
  byId("forecast-charts").replaceChildren();
  byId("forecast-values").replaceChildren();
  if (!forecast) return;
  const columns = Object.keys(forecast.columns);
  byId("forecast-charts").append(...columns.slice(0, MAX_CHARTS).map((column) => chart(forecast, column)));
  byId("forecast-values").append(valueTable(forecast, columns));
  offerTable();
}

/** The lines of one column: history, point forecast, truth; and bands, the widest first. */
function linesOf(forecast, column) {
  const steps = HISTORY_STEPS * forecast.time.length;
  const history = forecast.history.columns[column].slice(-steps);
  const outputs = forecast.columns[column];
  const names = Object.keys(outputs).sort((a, b) => Number(a) - Number(b));
  const bands = [];
  for (let low = 0; low < Math.floor(names.length / 2); low += 1) {
    bands.push([outputs[names[low]], outputs[names[names.length - 1 - low]]]);
  }
  return { history, point: outputs[forecast.point], truth: forecast.truth?.[column] ?? [], bands };
}

function chart(forecast, column) {
  const { history, point, truth, bands } = linesOf(forecast, column);
  const values = [...history, ...point, ...truth, ...bands.flat(2)].filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const count = history.length + point.length;
  const x = (step) => MARGIN.left + (WIDTH - MARGIN.left - MARGIN.right) * (step / Math.max(1, count - 1));
  const y = (value) => MARGIN.top + (HEIGHT - MARGIN.top - MARGIN.bottom) * (1 - (value - low) / (high - low || 1));
  const points = (line, start) => line
    .map((value, step) => (value === null ? "" : `${x(start + step).toFixed(1)},${y(value).toFixed(1)}`))
    .filter(Boolean)
    .join(" ");
  const svg = svgElement("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.setAttribute("aria-label", describe(forecast, column, point));
  for (const [lower, upper] of bands) {
    svg.append(svgElement("polygon", { class: "band", points: bandOutline(lower, upper, history.length, points) }));
  }
  const last = history.at(-1);
  const joined = last === null ? point : [last, ...point];
  const start = history.length - (last === null ? 0 : 1);
  svg.append(
    svgElement("polyline", { class: "history", points: points(history, 0) }),
    svgElement("polyline", { class: "truth", points: points(truth, history.length) }),
    svgElement("polyline", { class: "point", points: points(joined, start) }),
    axisLabel(4, y(high) + 4, format(high)),
    axisLabel(4, y(low) + 4, format(low)),
    axisLabel(MARGIN.left, HEIGHT - 6, forecast.history.time.at(-history.length)),
    axisLabel(WIDTH - MARGIN.right, HEIGHT - 6, forecast.time.at(-1), "end"),
  );
  const figure = element("figure");
  figure.append(element("figcaption", "", column), svg);
  return figure;
}

/** The outline of a band: its upper line, and its lower line back. */
function bandOutline(lower, upper, start, points) {
  const back = points(lower, start).split(" ").reverse().join(" ");
  return `${points(upper, start)} ${back}`;
}

function axisLabel(x, y, text, anchor = "start") {
  const created = svgElement("text", { x, y, "text-anchor": anchor });
  created.textContent = text;
  return created;
}

function format(value) {
  return value.toLocaleString(undefined, { maximumSignificantDigits: 5 });
}

function describe({ time }, column, point) {
  return `${column}: forecast from ${format(point[0])} at ${time[0]} to ${format(point.at(-1))} at ${time.at(-1)}`;
}

function valueTable(forecast, columns) {
  const table = element("table");
  const [header, ...rows] = rowsOf(forecast, columns);
  const row = (cells, name) => {
    const created = element("tr");
    created.append(...cells.map((cell) => element(name, "", typeof cell === "number" ? format(cell) : cell)));
    return created;
  };
  table.append(row(header, "th"), ...rows.map((cells) => row(cells, "td")));
  return table;
}

/** The header and the rows of a forecast as a table. */
function rowsOf(forecast, columns) {
  const outputs = columns.flatMap((column) => Object.entries(forecast.columns[column]).map(([name, values]) => ({
    name: name === "mean" ? column : `${column} ${name}`,
    values,
  })));
  const rows = forecast.time.map((time, step) => [time, ...outputs.map(({ values }) => values[step])]);
  return [["time", ...outputs.map(({ name }) => name)], ...rows];
}

function offerTable() {
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell));
  const named = shown.some(({ series }) => series);
  const lines = shown.flatMap((forecast, index) => {
    const rows = rowsOf(forecast, Object.keys(forecast.columns));
    const withName = rows.map((cells, row) => (named ? [row ? forecast.series : "series", ...cells] : cells));
    return index ? withName.slice(1) : withName;
  });
  const link = byId("forecast-download");
  if (link.href) URL.revokeObjectURL(link.href);
  const text = lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
}
