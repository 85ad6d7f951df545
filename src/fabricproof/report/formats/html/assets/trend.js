// One quantity run after run.

const TREND_FILTERS = ["pair", "stack", "leg"];

function trendView(host) {
  if (D.runs.length < 2) {
    return host.replaceChildren(make("p", {}, "There is one run only: nothing to draw."));
  }
  const keys = D.values.map((row, key) => key)
    .filter((key) => D.values[key].filter((value) => value !== null).length > 1);
  if (!keys.length) {
    return host.replaceChildren(make("p", {}, "No quantity was measured in two runs."));
  }
  const state = firstTrend(keys);
  const redraw = (focusId) => put(host, trendParts(keys, state, redraw), focusId);
  return redraw();
}

// What the newest event says most of; else what is red; else the first.
function firstTrend(keys) {
  const there = new Set(keys);
  const steps = D.trend ? D.trend.events.flatMap((event) => event.steps.map((step) => step[0])) : [];
  const key = [...steps, ...keys.filter((each) => isRed(each, D.now))].find((each) => there.has(each));
  if (key === undefined) return {};
  return {family: familyOf(key), size: D.keys.message_size[key], stack: field(key, "stack"),
    wanted: key};
}

function trendParts(all, state, redraw) {
  const [family, choice] = familyChoice("trend", all, state, redraw);
  const sizes = [...new Set(family.map((key) => D.keys.message_size[key]))]
    .sort((one, two) => two - one);
  if (!sizes.includes(state.size)) state.size = favourite(family, sizes);
  const keys = narrowed(family.filter((key) => D.keys.message_size[key] === state.size),
    TREND_FILTERS, state);
  const curves = styled(curvesOf(keys), wantedFocus(curvesOf(keys), state), redInRuns);
  const focus = curves.find((each) => each.focus);
  const spec = trendSpec(curves, focus);
  const pick = (name) => { state.focus = name; redraw(); say(`bold: ${name}`); };
  const controls = make("div", {class: "controls"}, choice,
    selectOf("trend-size", "size", sizes.map((size) => [String(size), sizeLabel(size) || "(none)"]),
      String(state.size), (value) => {
        state.size = value === "null" ? null : Number(value);
        redraw("trend-size");
      }),
    ...filterControls("trend", family, TREND_FILTERS, state, D.now, redraw));
  return [controls, figure(spec), legend(curves, pick), overlayLegend([
    ...spec.areas.map((each) => [each.kind, each.name, true]),
    ...spec.lines.map((each) => [each.kind, each.name, false])]), markList(spec.marks),
  trendTable(focus)];
}

function wantedFocus(curves, state) {
  const wanted = curves.find((curve) => curve.keys.includes(state.wanted));
  if (wanted && state.focus === undefined) state.focus = wanted.name;
  return state;
}

function redInRuns(curve) {
  return curve.keys.reduce((num, key) =>
    num + D.runs.filter((run, column) => isRed(key, column)).length, 0);
}

function trendSpec(curves, focus) {
  const unit = field(focus.keys[0], "unit");
  const columns = D.runs.map((run, column) => column).filter((column) =>
    curves.some((curve) => curve.keys.some((key) => valueOf(key, column) !== null)));
  const series = curves.map((curve) => ({...curve, points: columns.map((column, x) => {
    const run = D.runs[column];
    const key = curve.keys.find((each) => valueOf(each, column) !== null);
    if (key === undefined) return null;
    const value = valueOf(key, column);
    const red = isRed(key, column);
    const text = `${curve.name}: ${run[1]} ${shown(value, unit)}${red ? ` ${wordOf(key, column)}` : ""}`;
    return {x, y: value, key, red, text};
  }).filter(Boolean)}));
  const name = field(focus.keys[0], "quantity");
  const flat = (value) => columns.map((column, x) => ({x, y: value}));
  const key = focus.keys[0];
  const reference = boundOf(key, "reference");
  const at = D.band.get(key);
  return {title: `${field(key, "program")} ${name} run after run`,
    summary: `${curves.length} curves, ${columns.length} runs`, series, xLabel: "run (UTC)",
    xs: columns.map((column) => ({label: D.runs[column][1].slice(5)})), yLabel: `${name}, ${unit}`, yKind: "linear",
    areas: at === undefined ? [] : [{name: `baseline ${D.bands.baselines[D.bands.baseline[at]]}`,
      kind: "band", points: columns.map((column, x) =>
        ({x, low: D.bands.low[at], high: D.bands.high[at]}))}],
    lines: reference === null ? []
      : [{name: "reference of this run", kind: "reference", points: flat(reference)}],
    marks: marksOf(columns)};
}

// Marks stand at the first run shown that is not before them; what was before all of them is none.
function marksOf(columns) {
  const marks = D.marks.map(([column, text]) => ({column, text, kind: "machine"}));
  for (const event of D.trend ? D.trend.events : []) {
    if (D.column.has(event.run)) {
      marks.push({column: D.column.get(event.run), text: event.sentence, kind: "event"});
    }
  }
  return marks.map((mark) => ({...mark, x: columns.findIndex((column) => column >= mark.column)}))
    .filter((mark) => mark.x > 0).sort((one, two) => one.column - two.column);
}

function markList(marks) {
  if (!marks.length) return make("p", {class: "remark"}, "No event and no known change in these runs.");
  const items = marks.map((mark) => make("li", {},
    `${mark.kind === "event" ? "▼ event" : "◆ changed"}, ${D.runs[mark.column][1]}: ${mark.text}`));
  return make("details", {open: marks.length < 8}, make("summary", {}, "Marks in the chart"),
    make("ul", {class: "marks"}, ...items));
}

function trendTable(focus) {
  const rows = D.runs.map((run, column) => {
    const key = focus.keys.find((each) => valueOf(each, column) !== null);
    if (key === undefined) return null;
    return [run[1], run[0], rawButton(key, shown(valueOf(key, column), field(key, "unit"))),
      wordOf(key, column) ? word(wordOf(key, column)) : "-"];
  }).filter(Boolean);
  return make("details", {}, make("summary", {}, `The bold curve as a table: ${focus.name}`),
    tableOf(`Bold curve: ${focus.name}`, ["begun (UTC)", "run", "value", "verdict"], rows, [2]));
}
