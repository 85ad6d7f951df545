// What to show: a row of choices, each over what the ones before it have left.

// Puts a view's parts in place, then its chart, which asks how wide it may be.  At once and not with
// the next frame: a page that is printed has no next frame.
function put(host, parts, focusId) {
  host.replaceChildren(...parts);
  const plot = host.querySelector(".figure");
  if (plot && plot.spec) Chart(plot, plot.spec);
  const back = focusId && document.getElementById(focusId);
  if (back) back.focus();
}

function figure(spec) {
  const plot = make("div", {class: "figure"});
  plot.spec = spec;
  return plot;
}

const ALL = "\u0000all";

// A family is what may be drawn over one axis: program, metric, unit, on one partition and fabric.
function familyOf(key) {
  return ["partition", "fabric", "suite", "program", "unit"].map((name) => field(key, name))
    .concat(metricOf(key)).join("\u0001");
}

function familyLabel(key, keys, several) {
  const unit = field(key, "unit");
  const place = several ? ` on ${field(key, "partition")} ${field(key, "fabric")}` : "";
  const red = keys.filter((each) => isRed(each, D.now)).length;
  const told = `${field(key, "program")} ${metricOf(key)}${unit ? `, ${unit}` : ""}`;
  return `${told} (${field(key, "suite")}${place})${red ? ` - ${red} red` : ""}`;
}

function selectOf(name, label, options, chosen, onchange) {
  const select = make("select", {id: name, onchange: () => onchange(select.value)});
  for (const [value, text] of options) {
    select.append(make("option", {value, selected: value === chosen}, text));
  }
  return make("label", {class: "choice"}, make("span", {}, label), select);
}

// The keys as groups by a field, the reddest first, then by name as people count.
function optionsOf(keys, name, column) {
  const groups = grouped(keys, (key) => (name === "pair" ? pairOf(key) : field(key, name)));
  const redOf = (each) => each.filter((key) => isRed(key, column)).length;
  return [...groups].map(([value, each]) => [value, redOf(each)])
    .sort((one, two) => two[1] - one[1] || natural(one[0], two[0]))
    .map(([value, red]) => [value, (value || "(none)") + (red ? ` - ${red} red` : "")]);
}

// Filters by these fields; state keeps what was chosen, and forgets it where it is no more.
function narrowed(keys, names, state) {
  let left = keys;
  for (const name of names) {
    const wanted = state[name];
    const valueIn = (key) => (name === "pair" ? pairOf(key) : field(key, name));
    if (wanted === undefined || wanted === ALL) continue;
    const kept = left.filter((key) => valueIn(key) === wanted);
    if (kept.length) left = kept;
    else state[name] = ALL;
  }
  return left;
}

const NAMES = {pair: "nodes", stack: "stack", leg: "leg", rails: "rails"};

function filterControls(prefix, keys, names, state, column, changed) {
  return names.map((name) => {
    const others = narrowed(keys, names.filter((each) => each !== name), {...state});
    const options = [[ALL, "all"], ...optionsOf(others, name, column)];
    return selectOf(`${prefix}-${name}`, NAMES[name], options, state[name] || ALL, (value) => {
      state[name] = value;
      changed(`${prefix}-${name}`);
    });
  });
}

// Which curve a key is a point of, and a name that says only what differs among the curves.
const CURVE = ["stack", "leg", "nodes", "rails", "check", "settings", "tool_version", "build"];

function curvesOf(keys) {
  const groups = grouped(keys, (key) => CURVE.map((name) => field(key, name))
    .join("\u0001"));
  const firsts = [...groups.values()].map((each) => each[0]);
  const told = tellingFields(firsts);
  return [...groups.values()].map((each) => {
    const texts = told.map((name) => (name === "nodes" ? pairOf(each[0]) : field(each[0], name)));
    const plain = `${field(each[0], "stack")} ${field(each[0], "leg")} ${pairOf(each[0])}`;
    return {keys: each, name: texts.filter(Boolean).join(", ") || plain};
  });
}

// The fewest fields, in order, by which all curves are told apart.
function tellingFields(firsts) {
  const told = [];
  let num = 1;
  for (const name of CURVE) {
    const names = new Set(firsts.map((key) =>
      [...told, name].map((each) => field(key, each)).join("\u0001")));
    if (names.size > num) {
      told.push(name);
      num = names.size;
    }
  }
  return told;
}

// The eight most telling curves have a style of their own: red ones, then by name.
const STYLED = 8;

function styled(curves, state, redOf) {
  const order = curves.map((curve) => ({...curve, red: redOf(curve)}))
    .sort((one, two) => two.red - one.red || natural(one.name, two.name));
  const focus = Math.max(order.findIndex((each) => each.name === state.focus), 0);
  const num = focus < STYLED ? STYLED : STYLED - 1;
  return order.map((curve, index) => {
    const faint = index >= num && index !== focus;
    return {...curve, style: Math.min(index, STYLED - 1), faint, focus: index === focus};
  });
}

function legend(series, pick) {
  const shownOnes = series.filter((each) => !each.faint);
  const rest = series.length - shownOnes.length;
  const items = shownOnes.map((each) => make("li", {}, make("button", {type: "button",
    class: "key", "aria-pressed": String(!!each.focus), onclick: () => pick(each.name)},
  sampleOf(each.style, false), each.name + (each.red ? ` - ${each.red} red` : ""))));
  const box = make("ul", {class: "legend", "aria-label": "Curves; the pressed one is bold"}, ...items);
  if (!rest) return box;
  const faint = series.filter((each) => each.faint);
  const more = selectOf("", `and ${rest} more in grey:`,
    [["", "choose one"], ...faint.slice(0, 2000).map((each) => [each.name, each.name])], "",
    (name) => name && pick(name));
  more.classList.add("more");
  return make("div", {}, box, more);
}

function overlayLegend(names) {
  const items = names.map(([kind, text, isArea]) => make("li", {}, draw("svg", {viewBox: "0 0 36 14",
    width: 36, height: 14, "aria-hidden": "true"}, isArea
    ? draw("rect", {x: 1, y: 1, width: 34, height: 12, class: `area a-${kind}`})
    : draw("path", {d: "M1,7H35", class: `line l-${kind}`})), text));
  return make("ul", {class: "overlays", "aria-label": "Drawn for the bold curve"}, ...items);
}
