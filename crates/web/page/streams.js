// Devices and streams: what each does, how loud it is, and where a stream is heard.

import { byId, element } from "./dom.js";

/** Least time between two requests of one control. */
const PAUSE_MS = 50;
/** What the server sends follows its answer to a request after this many ms at the latest. */
const ECHO_MS = 500;
/** Position of a slider for samples as they are, and at its end. Loudness follows the cube. */
const [UNITY, END] = [100, 150];

const STATES = {
  cycling: ["cycles", "It starts the cycles of the graph"],
  deep: ["deep", "It plays what was rendered ahead, and sleeps in between"],
  parked: ["asleep", "It plays nothing, and nothing wakes it"],
};

let sendCommand;
let devices = [];
let shown = { devices: [], streams: [] };
const rows = new Map();

const positionOf = (factor) => Math.min(Math.round(UNITY * Math.cbrt(factor)), END);
const factorAt = (position) => (position / UNITY) ** 3;

/** Formats a volume as `consort volume` does. */
function loudness(factor) {
  const decibels = factor > 0 ? ` (${(20 * Math.log10(factor)).toFixed(1)} dB)` : "";
  return `${Number((factor * 100).toFixed(1))} %${decibels}`;
}

const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Makes the controls work: `give` sends a command, and returns nothing if that failed. */
export function startStreams(give) {
  sendCommand = give;
  show();
}

/** Shows what the server has sent. */
export function showStreams(sent) {
  shown = sent;
  devices = sent.devices.filter((device) => device.channels > 0).map((device) => device.name);
  show();
}

function show() {
  const wanted = [
    ...shown.devices.map((device) => [`device ${device.name}`, "device-rows", device, fillDevice]),
    ...shown.streams.map((stream) => [`stream ${stream.number} ${stream.direction}`, "stream-rows", stream, fillStream]),
  ];
  const keys = new Set(wanted.map(([key]) => key));
  for (const [key, made] of rows) if (!keys.has(key)) { made.row.remove(); rows.delete(key); }
  const places = new Map();
  for (const [key, id, what, fill] of wanted) {
    if (!rows.has(key)) rows.set(key, makeRow(key));
    const [made, list, place] = [rows.get(key), byId(id), places.get(id) ?? 0];
    places.set(id, place + 1);
    // A row that is moved loses the focus.
    if (list.children[place] !== made.row) list.insertBefore(made.row, list.children[place] ?? null);
    fill(made, what);
  }
  byId("no-streams").hidden = shown.streams.length > 0;
}

/** Returns a sender of the newest value: one request at a time, and a pause after each. What the
 * server sends is not shown in the control meanwhile. */
function newest(control, commandFor) {
  let [wanted, isSending, rounds] = [undefined, false, 0];
  return async (value) => {
    wanted = value;
    if (isSending) return;
    [isSending, control.isHeld] = [true, true];
    rounds += 1;
    const round = rounds;
    while (wanted !== undefined) {
      const next = wanted;
      wanted = undefined;
      await sendCommand(commandFor(next));
      await pause(PAUSE_MS);
    }
    isSending = false;
    await pause(ECHO_MS);
    if (round !== rounds) return;
    control.isHeld = false;
    show();
  };
}

function makeRow(key) {
  const made = { of: {}, name: element("td"), state: element("td", { className: "dim" }), on: element("td") };
  made.slider = element("input", { type: "range", min: 0, max: END, step: 1 });
  made.loudness = element("span");
  made.mute = element("button", { type: "button", className: "mute", textContent: "Mute", ariaPressed: "false" });
  const sendVolume = newest(made.slider, (factor) => ({ volume: { of: made.of, factor } }));
  made.slider.oninput = () => {
    const factor = factorAt(made.slider.valueAsNumber);
    showLoudness(made, factor);
    sendVolume(factor);
  };
  const sendMute = newest(made.mute, (muted) => ({ mute: { of: made.of, muted } }));
  made.mute.onclick = () => {
    made.mute.ariaPressed = String(made.mute.ariaPressed !== "true");
    sendMute(made.mute.ariaPressed === "true");
  };
  const cells = [made.name, made.state, element("td", {}, made.slider), element("td", {}, made.loudness), element("td", {}, made.mute), made.on];
  made.row = element("tr", {}, ...cells);
  made.row.dataset.key = key;
  return made;
}

function showLoudness(made, factor) {
  put(made.loudness, loudness(factor));
  made.slider.setAttribute("aria-valuetext", loudness(factor));
}

function fill(made, of, { name, state, title, volume, muted }) {
  made.of = of;
  put(made.name, name);
  made.name.title = name;
  put(made.state, state);
  made.state.title = `${state}. ${title}`;
  made.slider.ariaLabel = `Volume of ${name}`;
  made.mute.ariaLabel = `Mute ${name}`;
  if (!made.slider.isHeld) {
    if (made.slider.valueAsNumber !== positionOf(volume)) made.slider.value = positionOf(volume);
    showLoudness(made, volume);
  }
  if (!made.mute.isHeld) made.mute.ariaPressed = String(muted);
}

function fillDevice(made, device) {
  const [word, title] = STATES[device.state];
  const reason = device.awake_reason ? `, ${device.awake_reason}` : "";
  const rate = device.state === "parked" ? "" : `, ${device.wake_ups_per_second.toFixed(1)} wake-ups/s`;
  const lost = device.lost_frames ? `, ${device.lost_frames} frames not rendered in time` : "";
  fill(made, { device: device.name }, { ...device, state: `${word}${rate}${lost}${reason}`, title });
  // A device that only captures has no volume.
  made.slider.hidden = made.loudness.hidden = made.mute.hidden = device.channels === 0 && !device.drives;
  put(made.on, `${device.sample_rate_hz} Hz`);
  made.on.title = `${device.about}, ${device.channels} channels`;
}

function fillStream(made, stream) {
  const doing = { playback: "plays", record: "records", monitor: "records what is played" };
  const missed = stream.missed_frames ? `, ${stream.missed_frames} frames came too late` : "";
  const state = `${stream.plays ? doing[stream.direction] : "holds"}${missed}`;
  const name = `${stream.program}: ${stream.name}`;
  fill(made, { stream: stream.number }, { ...stream, name, state, title: `Stream ${stream.number} of process ${stream.process}` });
  const device = stream.wanted ?? stream.device;
  if (stream.direction === "playback") fillChoice(made, name, stream.number, device);
  else put(made.on, device);
}

function fillChoice(made, name, number, device) {
  made.choice ??= makeChoice(made, number);
  made.choice.ariaLabel = `Device of ${name}`;
  const names = devices.includes(device) ? devices : [device, ...devices];
  if ([...made.choice.options].map((option) => option.value).join("\n") !== names.join("\n")) {
    made.choice.replaceChildren(...names.map((each) => element("option", { value: each, textContent: each })));
    made.choice.value = device;
  }
  if (!made.choice.isHeld) made.choice.value = device;
}

function makeChoice(made, stream) {
  const choice = element("select");
  const sendMove = newest(choice, (device) => ({ move: { stream, device } }));
  choice.onchange = () => sendMove(choice.value);
  made.on.append(choice);
  return choice;
}
