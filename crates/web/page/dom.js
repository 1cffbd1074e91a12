// Elements and words. Names come from other programs: they are text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns the element with this id. */
export const byId = (id) => document.getElementById(id);

/** Creates an element with properties and children. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Creates an SVG element with attributes and children. */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const COLORS = ["#56b4e9", "#e8a33d", "#2fc894", "#d98cb8", "#e9df55", "#e0784a", "#98a2ff", "#a3d977"];
const colors = new Map();

/** Returns a client's colour, the same everywhere. */
export function colorOf(name) {
  if (!colors.has(name)) colors.set(name, COLORS[colors.size % COLORS.length]);
  return colors.get(name);
}

/** Formats µs for a column of numbers. */
export function micros(value) {
  if (value === undefined || value === null) return "–";
  return value >= 10000 ? `${(value / 1000).toFixed(1)}k` : value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

/** Formats µs with the most readable unit. */
export function time(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 100000 ? 0 : value >= 10000 ? 1 : 2)} ms`;
  return `${value.toFixed(value >= 100 ? 0 : 1)} µs`;
}
