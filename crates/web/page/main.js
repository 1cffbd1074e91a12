// The page: shows what the server sends, and sends the user's commands.

import { byId, element, time } from "./dom.js";
import { showGraph, startGraph } from "./graph.js";
import { addColumns, startPlots } from "./plots.js";
import { startState } from "./state.js";
import { showStreams, startStreams } from "./streams.js";
import { showCycle, startTimeline } from "./timeline.js";

const RETRY_MS = 2000;
/** The server sends something five times per second: after this many ms it counts as gone. */
const SILENCE_MS = 8000;
let sampleRate = 48000;
let silence;

function link(state, text) {
  byId("link").className = state;
  if (byId("link").textContent !== text) byId("link").textContent = text;
}

const noticeEnds = new Map();
function notice(id, text) {
  byId(id).textContent = text;
  byId(id).hidden = false;
  clearTimeout(noticeEnds.get(id));
  noticeEnds.set(id, setTimeout(() => { byId(id).hidden = true; }, 7000));
}
const complain = (text) => notice("error", text);

/** Returns the server's answer if the command succeeded. */
async function ask(path, options) {
  try {
    const answer = await fetch(path, options);
    if (answer.ok) return answer;
    const text = await answer.text();
    complain(answer.headers.get("Content-Type") === "application/json" ? JSON.parse(text).error : text);
  } catch {
    complain("Not sent: the page has no connection to the server.");
  }
  return undefined;
}

const sendCommand = (what) => ask("/order", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });

function listen() {
  const events = new EventSource("/events");
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      events.close();
      link("down", "no connection");
      listen();
    }, SILENCE_MS);
  };
  alive();
  const on = (name, show) => events.addEventListener(name, (event) => { alive(); show(JSON.parse(event.data)); });
  on("live", showLive);
  on("graph", showGraph);
  on("streams", showStreams);
  on("xruns", showXruns);
  events.onerror = () => {
    link("down", "no connection");
    // The browser reconnects by itself, unless it was refused.
    if (events.readyState !== EventSource.CLOSED) return;
    clearTimeout(silence);
    setTimeout(listen, RETRY_MS);
  };
}

function showLive(live) {
  if (!live.up) {
    link("down", "no server");
    byId("mode").textContent = live.why;
    return;
  }
  link("up", "live");
  showStatus(live.status);
  showTransport(live.transport);
  showCycle(live);
  addColumns(live);
}

function showStatus(status) {
  sampleRate = status.sample_rate_hz;
  const period = (status.quantum / status.sample_rate_hz) * 1e6;
  const put = (id, text) => { if (byId(id).textContent !== text) byId(id).textContent = text; };
  put("name", status.name);
  document.title = `${status.xruns ? `${status.xruns} xruns · ` : ""}${status.name} – consort`;
  const priority = status.realtime_priority === null ? "not real-time" : `FIFO ${status.realtime_priority}`;
  put("mode", `${status.driver} · ${status.sample_rate_hz} Hz · ${status.quantum} frames, ${time(period)} · ${status.sync ? "sync" : "async"}${status.freewheel ? " · freewheel" : ""} · ${priority}`);
  put("counts", `${status.xruns} xruns · ${status.cycles} cycles`);
  const load = Math.round(status.load * 1000) / 10;
  const meter = byId("load");
  meter.firstChild.style.width = `${Math.min(load, 100)}%`;
  meter.lastChild.textContent = `DSP ${load.toFixed(1)} %`;
  meter.setAttribute("aria-valuenow", load);
  meter.className = `meter ${load >= 90 ? "full" : load >= 70 ? "high" : ""}`;
}

function showTransport({ rolling, frame }) {
  const seconds = frame / sampleRate;
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  byId("position").value = `${Math.floor(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}.${Math.floor((seconds * 10) % 10)}`;
  if (byId("roll").ariaPressed !== String(rolling)) {
    byId("roll").ariaPressed = String(rolling);
    byId("roll").textContent = rolling ? "■ Stop" : "▶ Play";
  }
}

const ms = (ns) => (ns === null || ns === undefined ? "–" : (ns / 1e6).toFixed(2));

function showXruns(xruns) {
  const items = xruns.map((xrun) => {
    const cycles = xrun.cycles === 1 ? "1 cycle" : `${xrun.cycles} cycles`;
    const when = new Date(xrun.unix_ms).toLocaleTimeString([], { hour12: false });
    const head = element("div", {}, `${when} `, element("b", { textContent: xrun.client ?? "the driver" }), `, ${cycles}: `,
      element("span", { className: "late", textContent: xrun.text ?? "not judged yet" }));
    return element("li", {}, head, element("small", { textContent: details(xrun) }));
  });
  byId("list").replaceChildren(...(items.length ? items : [element("li", { className: "dim", textContent: "none since the server started" })]));
}

function details(xrun) {
  const parts = [];
  if (xrun.client !== null) {
    const { signaled_ns: signaled, awake_ns: awake, finished_ns: finished } = xrun.timestamps;
    parts.push(`of ${ms(xrun.period_ns)} ms: signaled ${ms(signaled)}, awake ${ms(awake)}, finished ${ms(finished)}`);
  } else parts.push(`woke ${ms(xrun.driver_late_ns)} ms late`);
  const evidence = xrun.evidence;
  if (evidence) parts.push(`ran ${ms(evidence.running_ns)}, was ready ${ms(evidence.runnable_ns)}, slept ${ms(evidence.asleep_ns)} ms`);
  if (xrun.had_cpu.length) parts.push(`its CPU had ${xrun.had_cpu.map((user) => `${user.name} ${ms(user.ran_ns)} ms`).join(", ")}`);
  if (xrun.chain.length) parts.push(`after ${xrun.chain.join(", ")}`);
  return parts.join("; ");
}

byId("roll").onclick = () => sendCommand({ roll: { roll: byId("roll").ariaPressed !== "true" } });
byId("rewind").onclick = () => sendCommand({ locate: { frame: 0 } });
byId("transport").onsubmit = (event) => {
  event.preventDefault();
  const frame = Math.round(Number(byId("seconds").value.replace(",", ".")) * sampleRate);
  if (byId("seconds").value.trim() && frame >= 0 && frame < 2 ** 32) sendCommand({ locate: { frame } });
  else complain("Seconds from the beginning, such as 12.5.");
};
for (const id of ["error", "done"]) byId(id).onclick = () => { byId(id).hidden = true; };
startTimeline();
startPlots();
startGraph(sendCommand);
startStreams(sendCommand);
startState(ask, (text) => notice("done", text));
listen();
