"use strict";
// Elements and numbers. All text goes through textContent: names of layers may contain markup.
const R = {};

R.h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
R.s = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// Spells out control characters and bidirectional marks.
R.clean = (text) =>
  String(text ?? "").replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"),
  );
R.short = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
// Truncates the beginning of a long name, because the end is more specific.
R.tail = (text, length) => (text.length > length ? "…" + text.slice(1 - length) : text);

// The width of a text in px; `font`: weight and size in the typeface of the page.
R.textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d"),
    widths = new Map();
  let family = null;
  return (text, font) => {
    const key = font + text;
    if (!widths.has(key)) {
      family ??= getComputedStyle(document.body).fontFamily;
      pen.font = `${font} ${family}`;
      widths.set(key, pen.measureText(text).width);
    }
    return widths.get(key);
  };
})();
// Truncates a text to a width in px, by R.short or R.tail.
R.fit = (text, width, font, cut = R.short) => {
  let length = Math.min(text.length, 34);
  while (length > 2 && R.textWidth(cut(text, length), font) > width) length -= 1;
  return cut(text, length);
};

R.count = (n) => {
  if (n === null || n === undefined) return "?";
  for (const [size, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ])
    if (n >= size) return (n / (unit === "k" ? 1e3 : size)).toPrecision(3) + " " + unit;
  return n.toLocaleString("en");
};
R.bytes = (n) => {
  if (n === null || n === undefined) return "?";
  for (const [size, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "KB"],
  ])
    if (n >= size) return (n / size).toPrecision(3) + " " + unit;
  return n + " B";
};
R.seconds = (t) =>
  t >= 1 ? t.toPrecision(3) + " s" : t >= 1e-3 ? (t * 1e3).toPrecision(3) + " ms" : (t * 1e6).toPrecision(3) + " µs";
R.number = (x) => {
  if (typeof x !== "number") return x ?? "–";
  if (x === 0 || (Number.isInteger(x) && Math.abs(x) < 1e7)) return String(x);
  const text = Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6 ? x.toExponential(2) : x.toPrecision(4);
  return text.includes("e") ? text : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
};
