// The graph: drawn, and edited by mouse, finger or keyboard. Selecting two ports one after the
// other connects them; a selected connection can be removed.

import { byId, drawn } from "./dom.js";
import { HEAD, ROW, WIDTH, layout } from "./layout.js";

const HINT = "Choose two ports to connect them, or a connection to remove it.";

let clients = [];
let ports = new Map();
let chosenPort;
let chosenWire;
let sendCommand;
let drag;

/** Makes the graph editable: `give` sends a command. */
export function startGraph(give) {
  sendCommand = give;
  byId("cut").onclick = () => chosenWire && disconnect(chosenWire.source, chosenWire.target);
  byId("graph").addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(undefined, undefined);
  });
  const canvas = byId("canvas");
  canvas.addEventListener("pointerdown", beginDrag);
  window.addEventListener("pointermove", moveDrag);
  window.addEventListener("pointerup", endDrag);
  new ResizeObserver(draw).observe(canvas);
  hint();
}

/** Draws a new graph. */
export function showGraph(graph) {
  clients = graph;
  ports = new Map(graph.flatMap((client) => client.ports.map((port) => [port.id, { ...port, client }])));
  chosenPort = ports.get(chosenPort?.id);
  if (chosenWire && !ports.get(chosenWire.source.id)?.readers.includes(chosenWire.target.id)) chosenWire = undefined;
  draw();
}

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
const isConnected = (one, other) => one.readers.includes(other.id) || other.readers.includes(one.id);
const fits = (one, other) => one.is_input !== other.is_input && one.is_midi === other.is_midi;

function choose(port, wire) {
  [chosenPort, chosenWire] = [port, wire];
  draw();
}

function press(port) {
  if (!chosenPort || !fits(chosenPort, port)) {
    choose(chosenPort?.id === port.id ? undefined : port, undefined);
    return;
  }
  const [source, target] = port.is_input ? [chosenPort, port] : [port, chosenPort];
  chosenPort = undefined;
  if (isConnected(source, target)) disconnect(source, target);
  else sendCommand({ connect: { source: source.name, destination: target.name } });
  draw();
}

function disconnect(source, target) {
  chosenWire = undefined;
  sendCommand({ disconnect: { source: source.name, destination: target.name } });
  draw();
}

function hint() {
  const { name } = chosenPort ?? {};
  const text = chosenWire
    ? `${chosenWire.source.name} → ${chosenWire.target.name}`
    : name ? `${name}: choose the other end. A port that is connected with it is disconnected. Esc: none`
      : `${HINT} ${count(ports.size, "port")}, ${count([...ports.values()].reduce((sum, port) => sum + port.readers.length, 0), "connection")}.`;
  if (byId("hint").textContent !== text) byId("hint").textContent = text;
  byId("cut").hidden = !chosenWire;
}

function draw() {
  hint();
  const canvas = byId("canvas");
  const focused = document.activeElement?.dataset?.key;
  const { boxes, passing, width, height } = layout(clients);
  const room = canvas.clientWidth / width;
  const scale = Math.min(Math.max(room, 0.8), 1.25);
  const svg = drawn("svg", { width: width * scale, height: height * scale, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Graph" });
  const ends = new Map();
  for (const box of boxes) {
    box.inputs.forEach((port, row) => ends.set(port.id, [box.x, rowMiddle(box, row)]));
    box.outputs.forEach((port, row) => ends.set(port.id, [box.x + WIDTH, rowMiddle(box, row)]));
  }
  for (const source of ports.values()) {
    for (const reader of source.readers) {
      const target = ports.get(reader);
      if (target && ends.has(source.id) && ends.has(reader)) svg.append(wire(source, target, pathOf(ends.get(source.id), passing.get(`${source.id} ${reader}`) ?? [], ends.get(reader))));
    }
  }
  for (const box of boxes) svg.append(node(box));
  if (!boxes.length) svg.append(drawn("text", { x: 10, y: 20 }, "no ports"));
  canvas.replaceChildren(svg);
  if (focused) canvas.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const rowMiddle = (box, row) => box.y + HEAD + ROW * row + ROW / 2;

function curve([x1, y1], [x2, y2]) {
  // A connection that goes backwards, in a loop, bends outwards.
  const bend = x2 > x1 ? Math.max((x2 - x1) / 2, 22) : 90;
  return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function pathOf(from, passages, to) {
  let [path, at] = ["", from];
  for (const passage of passages) {
    const y = passage.y + passage.height / 2;
    path += `${curve(at, [passage.x, y])} L${passage.x + WIDTH} ${y} `;
    at = [passage.x + WIDTH, y];
  }
  return path + curve(at, to);
}

function wire(source, target, path) {
  const isChosen = chosenWire?.source.id === source.id && chosenWire?.target.id === target.id;
  const isNear = chosenPort && (chosenPort.id === source.id || chosenPort.id === target.id);
  const made = drawn("g", {
    class: `wire ${source.is_midi ? "midi" : ""} ${isChosen ? "chosen" : ""} ${isNear ? "near" : ""}`, tabindex: 0, role: "button",
    "aria-pressed": isChosen, "aria-label": `connection from ${source.name} to ${target.name}; Delete removes it`,
    "data-key": `wire ${source.id} ${target.id}`,
  }, drawn("path", { d: path, class: "seen" }), drawn("path", { d: path, class: "grip" }));
  made.onclick = () => choose(undefined, isChosen ? undefined : { source, target });
  made.ondblclick = () => disconnect(source, target);
  made.onkeydown = (event) => {
    if (event.key === "Delete" || event.key === "Backspace") disconnect(source, target);
    else if (event.key === "Enter" || event.key === " ") made.onclick();
    else return;
    event.preventDefault();
  };
  return made;
}

const shortened = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

function node(box) {
  const { client } = box;
  const state = client.bypassed ? "bypassed" : client.active ? "" : "idle";
  const made = drawn("g", { class: `node ${state}` },
    drawn("rect", { x: box.x, y: box.y, width: WIDTH, height: box.height, rx: 5 }),
    drawn("text", { x: box.x + 8, y: box.y + 15 }, shortened(client.name, 21)), drawn("title", {}, client.name));
  const isWide = !box.inputs.length || !box.outputs.length;
  const letters = isWide ? 23 : 10;
  box.inputs.forEach((port, row) => made.append(portBox(ports.get(port.id), box.x, box.y + HEAD + ROW * row, isWide, letters)));
  box.outputs.forEach((port, row) => {
    const x = isWide ? box.x : box.x + WIDTH / 2;
    made.append(portBox(ports.get(port.id), x, box.y + HEAD + ROW * row, isWide, letters));
  });
  return made;
}

function portBox(port, x, y, isWide, letters) {
  const width = isWide ? WIDTH : WIDTH / 2;
  const isChosen = chosenPort?.id === port.id;
  const kind = `${port.is_midi ? "midi" : ""} ${isChosen ? "chosen" : chosenPort && fits(chosenPort, port) ? "fits" : ""}`;
  const peers = port.is_input ? [...ports.values()].filter((other) => other.readers.includes(port.id)) : port.readers.map((id) => ports.get(id)).filter(Boolean);
  const connected = peers.length ? `connected to ${peers.map((peer) => peer.name).join(", ")}` : "not connected";
  const short = port.name.slice(port.name.indexOf(":") + 1);
  const label = `${port.name}, ${port.is_midi ? "MIDI " : ""}${port.is_input ? "input" : "output"}, ${connected}`;
  const made = drawn("g", { class: `port ${kind}`, tabindex: 0, role: "button", "aria-pressed": isChosen, "aria-label": label, "data-key": `port ${port.id}` },
    drawn("title", {}, label), drawn("rect", { x: x + 2, y: y + 1, width: width - 4, height: ROW - 2, rx: 3 }),
    drawn("text", { x: port.is_input ? x + 8 : x + width - 8, y: y + 13, "text-anchor": port.is_input ? "start" : "end" }, shortened(short, letters)));
  made.onclick = () => press(port);
  made.onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    press(port);
    event.preventDefault();
  };
  return made;
}

const portAt = (target) => {
  const key = target?.closest?.(".port")?.dataset.key;
  return key && ports.get(Number(key.split(" ")[1]));
};

/** With a mouse, ports can also be connected by dragging; fingers scroll. */
function beginDrag(event) {
  const port = portAt(event.target);
  drag = port && event.pointerType === "mouse" ? { port, x: event.clientX, y: event.clientY } : undefined;
}

function moveDrag(event) {
  if (!drag || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 6) return;
  const svg = byId("canvas").querySelector("svg");
  const toDrawing = (x, y) => {
    const point = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
    return [point.x, point.y];
  };
  drag.line?.remove();
  drag.line = drawn("path", { d: `M${toDrawing(drag.x, drag.y)} L${toDrawing(event.clientX, event.clientY)}`, class: "seen", stroke: "#4cc38a", "stroke-width": 2, "pointer-events": "none" });
  svg.append(drag.line);
}

function endDrag(event) {
  const { port, line } = drag ?? {};
  drag = undefined;
  if (!line) return;
  line.remove();
  const other = portAt(document.elementFromPoint(event.clientX, event.clientY));
  if (!other || !fits(port, other) || isConnected(port, other)) return;
  const [source, target] = other.is_input ? [port, other] : [other, port];
  sendCommand({ connect: { source: source.name, destination: target.name } });
}
