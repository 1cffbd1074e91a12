// The five plots of the last minute. Each column is a tenth of a second: a line from the minimum to
// the maximum, with the median marked.

import { byId, colorOf, element, time } from "./dom.js";

const SPAN_MS = 60000;
const MARGIN = { left: 46, bottom: 12, top: 3 };
const PLOTS = [
  { title: "Driver period", of: (column) => driver(column.periods), isAround: true },
  { title: "Driver end time", of: (column) => driver(column.ends) },
  { title: "Clients’ end times", of: (column, names) => clients(column, names, 0), hasPeriod: true },
  { title: "Scheduling latencies", of: (column, names) => clients(column, names, 1) },
  { title: "Durations", of: (column, names) => clients(column, names, 2) },
];

const columns = [];
const names = new Map();
const figures = [];

const driver = (spread) => (spread ? [["driver", spread, "#c8d0da"]] : []);

function clients(column, known, part) {
  return Object.entries(column.clients).map(([id, times]) => {
    const name = known.get(Number(id)) ?? "?";
    return [name, times[part], colorOf(name)];
  });
}

/** Creates the figures. */
export function startPlots() {
  for (const plot of PLOTS) {
    const numbers = element("span", { className: "dim" });
    const button = element("button", { title: "Enlarge" }, plot.title, numbers);
    button.ariaExpanded = "false";
    const canvas = element("canvas", { role: "img" });
    const figure = element("figure", {}, button, canvas);
    button.onclick = () => {
      button.ariaExpanded = String(figure.classList.toggle("large"));
      draw();
    };
    figure.onkeydown = (event) => {
      if (event.key === "Escape" && figure.classList.contains("large")) button.click();
    };
    byId("plots").append(figure);
    figures.push({ plot, canvas, numbers });
  }
  new ResizeObserver(draw).observe(byId("plots"));
}

/** Adds received columns. */
export function addColumns(live) {
  for (const client of live.status.clients) names.set(client.id, client.name);
  // The clock of another server.
  if (live.columns.length && columns.length && live.columns[0].at_ms < columns.at(-1).at_ms) columns.length = 0;
  columns.push(...live.columns);
  while (columns.length && columns[0].at_ms < columns.at(-1).at_ms - SPAN_MS) columns.shift();
  if (live.columns.length && !document.hidden) draw();
}

function draw() {
  for (const figure of figures) drawOne(figure);
}

function drawOne({ plot, canvas, numbers }) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width || !height) return;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  if (!columns.length) return;
  const points = columns.map((column) => ({ at: column.at_ms, series: plot.of(column, names) }));
  const period = columns.at(-1)?.period_us ?? 0;
  const [low, high] = extent(plot, points, period);
  const bottom = height - MARGIN.bottom;
  const y = (value) => bottom - ((Math.min(Math.max(value, low), high) - low) / (high - low || 1)) * (bottom - MARGIN.top);
  const end = columns.at(-1)?.at_ms ?? 0;
  const x = (at) => width - ((end - at) / SPAN_MS) * (width - MARGIN.left) - 1;
  drawAxes(context, { low, high, y, width, bottom });
  if (plot.hasPeriod || plot.isAround) line(context, "#ff6f6f88", MARGIN.left, width, y(period));
  const thickness = Math.max((width - MARGIN.left) / (SPAN_MS / 100), 1);
  for (const { at, series } of points) {
    for (const [, [least, median, most], color] of series) {
      context.fillStyle = color;
      context.globalAlpha = 0.4;
      context.fillRect(x(at), y(most), thickness, Math.max(y(least) - y(most), 1));
      context.globalAlpha = 1;
      context.fillRect(x(at), y(median) - 0.75, thickness, 1.5);
    }
  }
  const words = summary(points);
  numbers.textContent = words;
  canvas.ariaLabel = `${plot.title}, last minute: ${words || "nothing yet"}`;
}

function extent(plot, points, period) {
  let [low, high] = plot.isAround ? [period * 0.95, period * 1.05] : [0, plot.hasPeriod ? period * 1.1 : 1];
  for (const { series } of points) {
    for (const [, [least, , most]] of series) {
      if (plot.isAround) low = Math.min(low, least);
      high = Math.max(high, most * (plot.isAround ? 1 : 1.08));
    }
  }
  return [low, high];
}

function line(context, color, from, to, at) {
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(from, Math.round(at) + 0.5);
  context.lineTo(to, Math.round(at) + 0.5);
  context.stroke();
}

function drawAxes(context, { low, high, y, width, bottom }) {
  context.font = "10px system-ui, sans-serif";
  context.fillStyle = "#8d9aab";
  context.textAlign = "right";
  const steps = bottom > 160 ? 6 : 2;
  for (let step = 0; step <= steps; step += 1) {
    const value = low + ((high - low) * step) / steps;
    line(context, "#222b38", MARGIN.left, width, y(value));
    context.textBaseline = step === steps ? "top" : step ? "middle" : "bottom";
    context.fillText(time(value), MARGIN.left - 4, y(value));
  }
  context.textBaseline = "top";
  context.fillText("now", width, bottom + 1);
  for (const seconds of [20, 40]) context.fillText(`−${seconds} s`, width - ((seconds * 1000) / SPAN_MS) * (width - MARGIN.left) + 10, bottom + 1);
}

/** Returns the newest median and the maximum of the client with the largest maximum. */
function summary(points) {
  let longest;
  for (const { series } of points) for (const each of series) if (!longest || each[1][2] > longest[1][2]) longest = each;
  const newest = points.at(-1)?.series.find(([name]) => name === longest?.[0]);
  if (!longest) return "";
  return `${newest ? `${longest[0]} ${time(newest[1][1])}, ` : ""}longest ${time(longest[1][2])}`;
}
