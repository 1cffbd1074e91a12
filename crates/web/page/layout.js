// Positions of the clients: sources to the left of their readers, as far as loops allow.

export const WIDTH = 160;
export const HEAD = 22;
export const ROW = 19;
const [GAP_X, GAP_Y, PAD] = [48, 12, 10];
/** Height reserved for a connection that passes a layer. */
const PASSAGE = 14;

/** Makes boxes with ports from clients: the sound card's two sides are two boxes. */
function boxes(clients) {
  return clients.flatMap((client) => {
    const inputs = client.ports.filter((port) => port.is_input);
    const outputs = client.ports.filter((port) => !port.is_input);
    const isCard = client.ports.some((port) => port.is_physical);
    const box = (key, ins, outs, end) => ({ key: `${client.id}${key}`, client, inputs: ins, outputs: outs, end });
    if (isCard && inputs.length && outputs.length) return [box("<", [], outputs, "first"), box(">", inputs, [], "last")];
    return [box("", inputs, outputs, isCard ? (inputs.length ? "last" : "first") : undefined)];
  });
}

/** Returns the boxes with x, y and height, the detours of connections, and the total size. */
export function layout(clients) {
  const all = boxes(clients).filter((box) => box.inputs.length + box.outputs.length > 0);
  const owner = new Map();
  for (const box of all) for (const port of box.inputs) owner.set(port.id, box);
  for (const box of all) {
    box.layer = 0;
    box.feeds = new Set(box.outputs.flatMap((port) => port.readers.map((reader) => owner.get(reader)).filter(Boolean)));
  }
  // The longest path. In a loop it ends after as many rounds as there are boxes; further layers are
  // cut.
  for (let round = 0; round < all.length; round += 1) {
    let isStill = true;
    for (const box of all) {
      for (const reader of box.feeds) {
        if (reader !== box && reader.end !== "first" && reader.layer <= box.layer && box.layer + 1 < all.length) {
          reader.layer = box.layer + 1;
          isStill = false;
        }
      }
    }
    if (isStill) break;
  }
  const last = Math.max(1, ...all.map((box) => box.layer + (box.end === "last" || !box.feeds.size ? 0 : 1)));
  for (const box of all) if (box.end === "last") box.layer = last;
  const used = [...new Set(all.map((box) => box.layer))].sort((a, b) => a - b);
  for (const box of all) box.layer = used.indexOf(box.layer);
  return place(used.map((_, layer) => all.filter((box) => box.layer === layer)), owner);
}

/** Returns where connections pass the layers between their ends: next to the boxes, not under them.
 * Keyed by "source reader". */
function passages(layers, owner) {
  const passing = new Map();
  for (const box of layers.flat()) {
    for (const port of box.outputs) {
      for (const id of port.readers) {
        const reader = owner.get(id);
        let before = box;
        for (let at = box.layer + 1; reader && at < reader.layer; at += 1) {
          const passage = { isPassage: true, layer: at, height: PASSAGE, feeds: new Set(), key: `${port.id} ${id}` };
          before.feeds.add(passage);
          layers[at].push(passage);
          passing.set(passage.key, [...(passing.get(passage.key) ?? []), passage]);
          before = passage;
        }
        if (before !== box) before.feeds.add(reader);
      }
    }
  }
  return passing;
}

function place(layers, owner) {
  const passing = passages(layers, owner);
  const middles = new Map();
  let height = 0;
  for (const [at, layer] of layers.entries()) {
    // Next to its sources.
    const wanted = (box) => {
      const before = layers.slice(0, at).flat().filter((other) => other.feeds.has(box)).map((other) => middles.get(other));
      return before.length ? before.reduce((a, b) => a + b) / before.length : Infinity;
    };
    const order = new Map(layer.map((box) => [box, wanted(box)]));
    layer.sort((a, b) => (order.get(a) === order.get(b) ? 0 : order.get(a) - order.get(b)));
    let y = PAD;
    for (const box of layer) {
      if (!box.isPassage) box.height = HEAD + ROW * Math.max(box.inputs.length, box.outputs.length) + 5;
      box.x = PAD + at * (WIDTH + GAP_X);
      box.y = y;
      middles.set(box, y + box.height / 2);
      y += box.height + GAP_Y;
    }
    layer.height = y - GAP_Y + PAD;
    height = Math.max(height, layer.height);
  }
  for (const layer of layers) for (const box of layer) box.y += (height - layer.height) / 2;
  const real = layers.flat().filter((box) => !box.isPassage);
  return { boxes: real, passing, width: 2 * PAD + Math.max(layers.length, 1) * (WIDTH + GAP_X) - GAP_X, height: Math.max(height, 30) };
}
