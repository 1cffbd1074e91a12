// The cycle: a line for the driver and for each client, with bars from signaled to awake to
// finished.

import { byId, colorOf, element, micros, time } from "./dom.js";

/** Part of the period that is shown, including some time after the deadline. */
const WIDTH = 1.12;
const SLOWEST_MS = 5000;
/** Number of columns in a second. */
const SECOND = 10;

let shown = "latest";
let isPaused = false;
const slowest = [];
const lately = new Map();
const lines = new Map();

/** Connects the buttons. */
export function startTimeline() {
  for (const which of ["latest", "slowest"]) {
    byId(which).onclick = () => {
      shown = which;
      for (const other of ["latest", "slowest"]) byId(other).ariaPressed = String(other === which);
    };
  }
  byId("pause").onclick = () => {
    isPaused = !isPaused;
    byId("pause").ariaPressed = String(isPaused);
  };
}

function length(cycle) {
  return Math.max(cycle.woken_us, cycle.end_us, ...cycle.clients.map((pass) => (pass.is_late ? 1e12 : pass.finished_us ?? 0)));
}

function remember(live) {
  const now = performance.now();
  if (live.slowest.period_us > 0) slowest.push({ now, cycle: live.slowest, length: length(live.slowest) });
  while (slowest.length && slowest[0].now < now - SLOWEST_MS) slowest.shift();
  for (const column of live.columns) {
    for (const [id, times] of Object.entries(column.clients)) {
      const list = lately.get(Number(id)) ?? [];
      list.push(times);
      lately.set(Number(id), list.slice(-SECOND));
    }
  }
  const there = new Set(live.status.clients.map((client) => client.id));
  for (const id of lately.keys()) if (!there.has(id)) lately.delete(id);
}

/** Returns median of the medians and maximum of the last second, of scheduling latency or duration. */
function usual(id, part) {
  const list = (lately.get(id) ?? []).map((times) => times[part]);
  if (!list.length) return [undefined, undefined];
  const medians = list.map((spread) => spread[1]).sort((a, b) => a - b);
  return [medians[medians.length >> 1], Math.max(...list.map((spread) => spread[2]))];
}

/** Draws received cycles. */
export function showCycle(live) {
  remember(live);
  if (isPaused) return;
  const worst = slowest.reduce((most, each) => (!most || each.length > most.length ? each : most), undefined);
  const cycle = shown === "latest" ? live.latest : worst?.cycle ?? live.latest;
  if (!cycle.period_us) return;
  byId("cycle-about").textContent = `number ${cycle.number}, due every ${time(cycle.period_us)}; the driver woke ${time(cycle.woken_us)} after it was due`;
  drawAxis(cycle.period_us);
  const passes = new Map(cycle.clients.map((pass) => [pass.id, pass]));
  const wanted = [driverLine(cycle), ...live.status.clients.map((client) => clientLine(client, passes.get(client.id), cycle.period_us))];
  const keys = new Set(wanted.map((line) => line.key));
  for (const [key, line] of lines) if (!keys.has(key)) { line.row.remove(); lines.delete(key); }
  wanted.forEach((line, at) => {
    const row = lineOf(line.key).row;
    if (byId("rows").children[at] !== row) byId("rows").insertBefore(row, byId("rows").children[at] ?? null);
    fill(lineOf(line.key), line);
  });
}

function drawAxis(period) {
  const axis = byId("axis");
  const text = [0, 0.25, 0.5, 0.75, 1].map((part) => (part ? time(part * period) : "0"));
  if (axis.dataset.text === text.join()) return;
  axis.dataset.text = text.join();
  axis.replaceChildren(...text.map((label, at) => {
    const span = element("span", { textContent: label });
    span.style.left = `${(at / 4 / WIDTH) * 100}%`;
    return span;
  }));
}

function driverLine(cycle) {
  const bars = [["run", cycle.woken_us, cycle.end_us]];
  return { key: "driver", name: "driver", color: "#c8d0da", cpu: cycle.cpu, bars, period: cycle.period_us, sched: [], dur: [], late: "" };
}

function clientLine(client, pass, period) {
  const line = {
    key: `client ${client.id}`, name: client.name, color: colorOf(client.name), period, bars: [], late: client.late_cycles,
    cpu: pass && pass.cpu !== 65535 ? pass.cpu : client.cpu, sched: usual(client.id, 1), dur: usual(client.id, 2),
  };
  if (client.bypassed) return { ...line, note: "bypassed: it does not answer" };
  if (!client.active) return { ...line, note: "inactive" };
  if (!pass || pass.signaled_us === null) return { ...line, note: "not signaled in this cycle" };
  const end = period * WIDTH;
  const run = pass.is_late ? "over" : "run";
  line.bars.push(["wait", pass.signaled_us, pass.awake_us ?? end]);
  if (pass.awake_us !== null) line.bars.push([run, pass.awake_us, pass.finished_us ?? end]);
  return line;
}

function lineOf(key) {
  if (!lines.has(key)) {
    const cells = Array.from({ length: 8 }, (_, at) => element("td", { className: at === 2 ? "lane" : at ? "n" : "" }));
    cells[4].classList.add("wide");
    cells[6].classList.add("wide");
    const swatch = element("i", { className: "swatch" });
    const name = document.createTextNode("");
    cells[0].append(swatch, name);
    const lane = element("div");
    const bars = [element("b"), element("b")];
    const note = element("em");
    const deadline = element("u");
    deadline.style.left = `${100 / WIDTH}%`;
    lane.append(...bars, deadline, note);
    cells[2].append(lane);
    lines.set(key, { row: element("tr", {}, ...cells), cells, swatch, name, bars, note });
  }
  return lines.get(key);
}

function fill(made, line) {
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  made.swatch.style.background = line.color;
  put(made.name, line.name);
  made.cells[0].title = line.name;
  put(made.cells[1], line.cpu === undefined || line.cpu === null ? "–" : String(line.cpu));
  put(made.note, line.note ?? "");
  made.bars.forEach((bar, at) => {
    const [kind, from, to] = line.bars[at] ?? ["", 0, 0];
    const percent = (value) => (Math.min(Math.max(value / line.period, 0), WIDTH) / WIDTH) * 100;
    bar.className = kind;
    bar.hidden = !kind;
    bar.style.left = `${percent(from)}%`;
    bar.style.width = `${Math.max(percent(to) - percent(from), 0)}%`;
    bar.title = kind ? `${time(from)} to ${time(to)}` : "";
  });
  put(made.cells[3], line.sched.length ? micros(line.sched[0]) : "");
  put(made.cells[4], line.sched.length ? micros(line.sched[1]) : "");
  put(made.cells[5], line.dur.length ? micros(line.dur[0]) : "");
  put(made.cells[6], line.dur.length ? micros(line.dur[1]) : "");
  put(made.cells[7], String(line.late));
  made.cells[7].classList.toggle("bad", line.late > 0);
}
