// Small helpers: elements, numbers for people, what is said aloud.

const SVG = "http://www.w3.org/2000/svg";
const SYMBOLS = {PASS: "●", FAIL: "▼", INVALID: "✕", MISSING: "○", UNJUDGED: "?", SKIPPED: "-",
  BETTER: "▲", SAME: "=", WORSE: "▼", UNDECIDED: "?"};
const natural = new Intl.Collator("en", {numeric: true}).compare;

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  return fill(element, attributes, children);
}

function draw(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Children are nodes or text; text never becomes markup.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function shown(value, unit) {
  if (value === null || value === undefined) return "-";
  let text = String(Number(value.toPrecision(5)));
  if (text.includes("e+")) text = value.toFixed(0);
  return unit && unit !== "1" ? `${text} ${unit}` : text;
}

function percent(ratio) {
  if (ratio === null || ratio === undefined) return "-";
  const change = (ratio - 1) * 100;
  return `${change < 0 ? "" : "+"}${change.toFixed(1)} %`;
}

function sizeLabel(bytes) {
  if (bytes === null) return "";
  for (const [label, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) {
    if (bytes >= factor && bytes % factor === 0) return bytes / factor + label;
  }
  return `${bytes}B`;
}

function word(name) {
  const symbol = make("span", {"aria-hidden": "true", class: "sym"}, SYMBOLS[name] || "·");
  return make("span", {class: `word w-${name}`}, symbol, " ", name);
}

function say(text) {
  document.getElementById("said").textContent = text;
}

// A table as the page's own are: in a box that scrolls, with a caption.
function tableOf(caption, head, rows, numbers) {
  const right = new Set(numbers || []);
  const cell = (kind, text, column) =>
    make(kind, {class: right.has(column) ? "n" : null, scope: kind === "th" ? "col" : null}, text);
  const body = rows.map((row) => {
    const line = make("tr", {class: row.kind || null});
    line.append(...row.map((text, column) => cell("td", text, column)));
    return line;
  });
  const table = make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((text, column) => cell("th", text, column)))),
    make("tbody", {}, ...body));
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, table);
}

function grouped(items, nameOf) {
  const groups = new Map();
  for (const item of items) {
    const name = nameOf(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

function median(numbers) {
  const order = [...numbers].sort((one, two) => one - two);
  const middle = order.length / 2;
  return order.length % 2 ? order[Math.floor(middle)] : (order[middle - 1] + order[middle]) / 2;
}
