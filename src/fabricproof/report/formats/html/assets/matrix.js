// Node by node: one cell for each pair.

const MATRIX_FILTERS = ["stack", "rails"];
const SMALL = 24;

// Lower end of each grade and its symbol, worst first; 1 is the ceiling, or what is usual.
const GRADES = {
  ceiling: [[0, "✖"], [0.5, "▼"], [0.7, "▽"], [0.85, "="], [0.95, "▲"]],
  usual: [[0, "✖"], [0.8, "▼"], [0.95, "▽"], [0.98, "="], [1.02, "▲"]],
};

function matrixView(host) {
  const pairs = [];
  for (let key = 0; key < D.values.length; key += 1) {
    const nodes = field(key, "nodes").split(",");
    if (nodes.length === 2 && field(key, "unit") && valueOf(key, D.now) !== null) pairs.push(key);
  }
  if (!pairs.length) {
    return host.replaceChildren(make("p", {}, "This run measured nothing between two nodes."));
  }
  const state = {order: "name", family: tellingFamily(pairs)};
  const redraw = (focusId) => put(host, matrixParts(pairs, state, redraw), focusId);
  return redraw();
}

function matrixParts(pairs, state, redraw) {
  const [family, choice] = familyChoice("matrix", pairs, state, redraw);
  const sizes = [...new Set(family.map((key) => D.keys.message_size[key]))]
    .sort((one, two) => two - one);
  if (!sizes.includes(state.size)) state.size = favourite(family, sizes);
  const keys = narrowed(family.filter((key) => D.keys.message_size[key] === state.size),
    MATRIX_FILTERS, state);
  state.against = state.against || (field(family[0], "unit") === "us" ? "usual" : "ceiling");
  const usual = median(keys.map((key) => valueOf(key, D.now)));
  if (state.against === "ceiling" && keys.every((key) => boundOf(key, "ceiling") === null)) {
    state.against = "usual";
  }
  const cells = cellsOf(keys, state, usual);
  const set = (name) => (value) => { state[name] = value; redraw(`matrix-${name}`); };
  const hops = D.hops || (D.hops = hopsOf());
  const controls = make("div", {class: "controls"}, choice,
    selectOf("matrix-size", "size", sizes.map((size) => [String(size), sizeLabel(size) || "(none)"]),
      String(state.size), (value) => set("size")(value === "null" ? null : Number(value))),
    ...filterControls("matrix", family, MATRIX_FILTERS, state, D.now, redraw),
    selectOf("matrix-against", "compared with", [["ceiling", "ceiling"],
      ["usual", "median of what is shown"]], state.against, set("against")),
    hops.size ? selectOf("matrix-order", "order", [["name", "by name"],
      ["distance", "by distance"]], state.order, set("order")) : null);
  const nodes = ordered([...new Set([...cells.values()].flatMap((cell) => cell.nodes))], state, hops);
  return [controls, gradeLegend(state), gridOf(nodes, cells, state), worstPairs(cells, state)];
}

// The family that is red in most numbers, else the one that has most pairs.
function tellingFamily(keys) {
  const worth = [...grouped(keys, familyOf)].map(([name, each]) => [name,
    each.filter((key) => isRed(key, D.now)).length, new Set(each.map(pairOf)).size]);
  return worth.sort((one, two) => two[1] - one[1] || two[2] - one[2] || natural(one[0], two[0]))[0][0];
}

// The size in which most pairs are red, else the largest.
function favourite(family, sizes) {
  const redOf = (size) => family.filter((key) =>
    D.keys.message_size[key] === size && isRed(key, D.now)).length;
  return [...sizes].sort((one, two) => redOf(two) - redOf(one))[0];
}

function cellsOf(keys, state, usual) {
  const cells = new Map();
  for (const key of keys) {
    const value = valueOf(key, D.now);
    const against = state.against === "ceiling" ? boundOf(key, "ceiling") : usual;
    const share = shareOf(key, value, against);
    const nodes = field(key, "nodes").split(",");
    const name = nodes.join(",");
    const known = cells.get(name);
    const num = (known ? known.num : 0) + 1;
    const isWorse = !known || (share ?? 9) < (known.share ?? 9);
    cells.set(name, isWorse ? {key, value, share, nodes, num} : {...known, num});
  }
  return cells;
}

function gradeOf(share, against) {
  if (share === null) return [0, "·", "u"];
  const grades = GRADES[against];
  let grade = 0;
  grades.forEach(([from], index) => { if (share >= from) grade = index; });
  return [grade, grades[grade][1], String(grade)];
}

// How far two nodes are apart, as the names of legs tell: "rail0.hops3".
function hopsOf() {
  const hops = new Map();
  for (let key = 0; key < D.num; key += 1) {
    const told = /\.hops(\d+)/.exec(field(key, "leg"));
    if (told && field(key, "nodes").split(",").length === 2) {
      hops.set(field(key, "nodes"), Number(told[1]));
    }
  }
  return hops;
}

function ordered(nodes, state, hops) {
  const names = [...nodes].sort(natural);
  if (state.order !== "distance") return names;
  const farOf = (one, two) => hops.get([one, two].sort().join(",")) ?? Infinity;
  const order = [];
  while (names.length) {
    const last = order[order.length - 1];
    const next = last === undefined ? 0
      : names.reduce((best, name, at) => (farOf(last, name) < farOf(last, names[best]) ? at : best), 0);
    order.push(...names.splice(next, 1));
  }
  return order;
}

function gradeLegend(state) {
  const grades = GRADES[state.against];
  const items = grades.map(([from, symbol], index) => {
    const to = grades[index + 1];
    const text = to ? `${symbol} ${from * 100} to ${to[0] * 100} %` : `${symbol} from ${from * 100} %`;
    return make("li", {class: `cell g${index}`}, text);
  });
  const what = state.against === "ceiling" ? "share of ceiling" : "against the median, better is more";
  return make("ul", {class: "grades", "aria-label": what}, make("li", {}, `${what}:`), ...items,
    make("li", {}, "blank: not measured"));
}

function gridOf(nodes, cells, state) {
  const isSmall = nodes.length > SMALL;
  const box = make("div", {class: `scroll grid${isSmall ? " small" : ""}`});
  const head = make("tr", {}, make("td", {}),
    ...nodes.map((node) => make("th", {scope: "col"}, make("span", {}, node))));
  const rows = nodes.map((node, row) => make("tr", {}, make("th", {scope: "row"}, node),
    ...nodes.map((other, column) => gridCell(cells, node, other, row, column, isSmall, state))));
  const caption = `${nodes.length} nodes, ${cells.size} ${cells.size === 1 ? "pair" : "pairs"} measured`;
  const table = make("table", {role: "grid", "aria-label": caption}, make("caption", {}, caption),
    make("thead", {}, head), make("tbody", {}, ...rows));
  const first = table.querySelector("td[data-key]");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => gridKey(event, table));
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-key]");
    if (cell) openRaw(Number(cell.dataset.key));
  });
  box.append(table);
  return box;
}

function gridCell(cells, node, other, row, column, isSmall, state) {
  const cell = cells.get([node, other].sort().join(",")) || cells.get(`${node},${other}`)
    || cells.get(`${other},${node}`);
  if (node === other || !cell) {
    return make("td", {class: node === other ? "self" : "none", "data-at": `${row},${column}`},
      node === other ? "" : make("span", {class: "unseen"}, "not measured"));
  }
  const [, symbol, grade] = gradeOf(cell.share, state.against);
  const text = cellText(cell);
  const red = isRed(cell.key, D.now);
  const inside = isSmall ? [symbol]
    : [make("b", {}, shown(Number(cell.value.toPrecision(4)))), make("span", {}, shareText(cell, symbol))];
  return make("td", {class: `cell g${grade}${red ? " redcell" : ""}`, "data-key": cell.key,
    "data-at": `${row},${column}`, tabindex: "-1", title: text, "aria-label": text}, ...inside);
}

function shareText(cell, symbol) {
  return cell.share === null ? symbol : `${symbol} ${(cell.share * 100).toFixed(0)} %`;
}

function cellText(cell) {
  const red = isRed(cell.key, D.now) ? ` ${wordOf(cell.key, D.now)}` : "";
  const worst = cell.num > 1 ? `, worst of ${cell.num}` : "";
  return `${pairOf(cell.key)}: ${shown(cell.value, field(cell.key, "unit"))}`
    + (cell.share === null ? "" : `, ${(cell.share * 100).toFixed(1)} %`)
    + `${red} (${field(cell.key, "stack")} ${field(cell.key, "leg")}${worst})`;
}

function gridKey(event, table) {
  const cell = event.target.closest("td[data-key]");
  if (!cell) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openRaw(Number(cell.dataset.key));
    return;
  }
  const moves = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
  if (!(event.key in moves)) return;
  event.preventDefault();
  const [down, right] = moves[event.key];
  let [row, column] = cell.dataset.at.split(",").map(Number);
  for (;;) {
    row += down;
    column += right;
    const next = table.querySelector(`td[data-at="${row},${column}"]`);
    if (!next) return;
    if (!next.dataset.key) continue;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    say(next.getAttribute("aria-label"));
    return;
  }
}

function worstPairs(cells, state) {
  const order = [...cells.values()].filter((cell) => cell.share !== null)
    .sort((one, two) => one.share - two.share).slice(0, 10);
  const rows = order.map((cell) => {
    const [, symbol] = gradeOf(cell.share, state.against);
    const told = wordOf(cell.key, D.now);
    return [rawButton(cell.key, pairOf(cell.key)), `${symbol} ${(cell.share * 100).toFixed(1)} %`,
      shown(cell.value, field(cell.key, "unit")), `${field(cell.key, "stack")} ${field(cell.key, "leg")}`,
      told ? word(told) : "-"];
  });
  return tableOf("Worst pairs first", ["pair", "share", "value", "what", "verdict"], rows, [1, 2]);
}
