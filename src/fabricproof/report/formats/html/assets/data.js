// The data of the report: unpacked once, then read by row of the table of keys.

const FIELDS = ["site", "partition", "fabric", "stack", "build", "suite", "program", "tool_version",
  "check", "leg", "rails", "nodes", "settings", "quantity", "unit"];

let D = null;

async function unpacked() {
  const holder = document.getElementById("data");
  const text = holder.textContent;
  if (holder.dataset.coding === "plain") return JSON.parse(text);
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack gzip (DecompressionStream); use one from 2023 on");
  }
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function settle(data) {
  D = data;
  D.num = D.keys.message_size.length;
  D.column = new Map(D.runs.map((run, column) => [run[0], column]));
  D.night = new Map(D.runs);
  settleRaw(D.raw);
  D.values.forEach(fillFromRaw);
  D.band = new Map(D.bands.key.map((key, at) => [key, at]));
  D.compared = new Map(D.comparison ? D.comparison.key.map((key, at) => [key, at]) : []);
}

// Where each key's raw numbers begin, whole line numbers, and which of its form each reason is.
function settleRaw(raw) {
  let begin = 0;
  raw.begin = raw.num.map((num) => (begin += num) - num);
  const last = new Map();
  const seen = new Int32Array(raw.forms.length);
  raw.nth = new Int32Array(raw.run.length);
  for (let at = 0; at < raw.run.length; at += 1) {
    const place = raw.run[at] * raw.files.length + raw.file[at];
    raw.line[at] += last.get(place) || 0;
    last.set(place, raw.line[at]);
    raw.nth[at] = seen[raw.form[at]];
    seen[raw.form[at]] += 1;
  }
}

function fillFromRaw(row, key) {
  if (!row.includes(0)) return;
  const raw = D.raw;
  for (let at = raw.begin[key]; at < raw.begin[key] + raw.num[key]; at += 1) {
    const column = D.column.get(raw.runs[raw.run[at]]);
    if (raw.attempt[at] >= 0 && row[column] === 0) row[column] = raw.value[at];
  }
}

function reasonOf(at) {
  const form = D.raw.form[at];
  const pieces = D.raw.forms[form].split("\u0000");
  const holes = pieces.length - 1;
  const gaps = D.raw.gaps[form];
  const from = D.raw.nth[at] * holes;
  return pieces.reduce((text, piece, index) => text + gaps[from + index - 1] + piece);
}

function rawOf(key) {
  const raw = D.raw;
  const found = [];
  for (let at = raw.begin[key]; at < raw.begin[key] + raw.num[key]; at += 1) {
    const attempt = raw.attempt[at];
    found.push({
      run: raw.runs[raw.run[at]],
      attempt: attempt >= 0 ? attempt : -attempt - 1,
      counts: attempt >= 0,
      value: raw.value[at],
      verdict: raw.words[raw.word[at]],
      reason: reasonOf(at),
      file: raw.files[raw.file[at]],
      line: raw.line[at],
    });
  }
  return found;
}

function field(key, name) {
  const column = D.keys[name];
  return column.words ? column.words[column.of[key]] : column[key];
}

function pairOf(key) {
  const nodes = field(key, "nodes").split(",");
  if (nodes.length <= 2) return nodes.join(" - ");
  return `${nodes[0]} .. ${nodes[nodes.length - 1]} (${nodes.length})`;
}

function labelOf(key) {
  const words = ["stack", "program", "leg", "quantity"].map((name) => field(key, name));
  return [...words, pairOf(key)].join(" ");
}

// "bandwidth" of "bandwidth_4MiB"; a quantity without a size is its own metric.
function metricOf(key) {
  const name = field(key, "quantity");
  return D.keys.message_size[key] === null ? name : name.replace(/_[^_]*$/, "");
}

function valueOf(key, column) {
  const row = D.values[key];
  return row && column !== null && column !== undefined ? row[column] ?? null : null;
}

function wordOf(key, column) {
  const row = D.verdicts.of[key];
  return row && column !== null && column !== undefined ? D.verdicts.words[row[column]] || "" : "";
}

function isRed(key, column) {
  const word = wordOf(key, column);
  return word !== "" && word !== "PASS" && word !== "SKIPPED";
}

function boundOf(key, name) {
  return D.bounds[name][key] ?? null;
}

// Share of the ceiling, 1 at the limit of physics; of a time the floor over it.
function shareOf(key, value, against) {
  if (!value || !against) return null;
  return field(key, "unit") === "us" || field(key, "unit") === "ms" ? against / value : value / against;
}
