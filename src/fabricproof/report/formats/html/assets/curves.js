// Curves over message size.

const AXES = {ceiling: "share of ceiling (1 = limit)", reference: "ratio to reference",
  before: "ratio to before"};
const CURVE_FILTERS = ["pair", "stack", "leg"];

function curvesView(host) {
  const sized = [];
  for (let key = 0; key < D.values.length; key += 1) {
    if (D.keys.message_size[key] !== null && D.values[key].some((value) => value !== null)) {
      sized.push(key);
    }
  }
  if (!sized.length) return host.replaceChildren(make("p", {}, "No quantity has a message size."));
  const state = {column: D.now ?? D.runs.length - 1, scale: "log", as: "value"};
  const redraw = (focusId) => put(host, curvesParts(sized, state, redraw), focusId);
  return redraw();
}

function curvesParts(sized, state, redraw) {
  const here = sized.filter((key) => valueOf(key, state.column) !== null);
  if (!here.length) return [runChoice(state, redraw), make("p", {}, "That run has no curve.")];
  const [family, choice] = familyChoice("curves", here, state, redraw);
  const keys = narrowed(family, CURVE_FILTERS, state);
  const curves = styled(curvesOf(keys), state, (curve) =>
    curve.keys.filter((key) => isRed(key, state.column)).length);
  const focus = curves.find((each) => each.focus);
  const spec = curveSpec(curves, focus, state);
  const pick = (name) => {
    state.focus = name;
    redraw();
    say(`bold: ${name}`);
  };
  const controls = make("div", {class: "controls"}, choice,
    ...filterControls("curves", family, CURVE_FILTERS, state, state.column, redraw),
    runChoice(state, redraw),
    selectOf("curves-scale", "scale", [["log", "logarithmic"], ["linear", "linear"]], state.scale,
      (value) => { state.scale = value; redraw("curves-scale"); }),
    selectOf("curves-as", "shown as", shownAs(family), state.as, (value) => {
      state.as = value;
      state.scale = value === "value" ? "log" : "linear";
      redraw("curves-as");
    }));
  return [controls, figure(spec), legend(curves, pick),
    overlayLegend([...spec.areas.map((each) => [each.kind, each.name, true]),
      ...spec.lines.map((each) => [each.kind, each.name, false])]), curveTable(focus, state)];
}

// What a value may be divided by, as far as it is known here.
function shownAs(keys) {
  const choices = [["value", "value"]];
  const has = (name) => keys.some((key) => boundOf(key, name) !== null);
  if (has("ceiling")) choices.push(["ceiling", "share of ceiling"]);
  if (has("reference")) choices.push(["reference", "ratio to reference"]);
  if (keys.some((key) => comparedOf(key) !== null)) choices.push(["before", "ratio to before"]);
  return choices;
}

function turned(as, key, value) {
  if (as === "value" || value === null) return value;
  if (as === "ceiling") return shareOf(key, value, boundOf(key, "ceiling"));
  const at = comparedOf(key);
  const by = as === "reference" ? boundOf(key, "reference")
    : at === null ? null : D.comparison.median_first[at];
  return by ? value / by : null;
}

// The families by how red they are; the chosen one stays as long as there is any of it.
function familyChoice(prefix, keys, state, redraw) {
  const families = grouped(keys, familyOf);
  const places = new Set(keys.map((key) => field(key, "partition") + field(key, "fabric")));
  const redOf = (each) => each.filter((key) => isRed(key, D.now)).length;
  const order = [...families].sort((one, two) => redOf(two[1]) - redOf(one[1])
    || natural(one[0], two[0]));
  if (!families.has(state.family)) state.family = order[0][0];
  const options = order.map(([name, each]) =>
    [name, familyLabel(each[0], each, places.size > 1)]);
  const choice = selectOf(`${prefix}-family`, "program and metric", options, state.family,
    (value) => { state.family = value; redraw(`${prefix}-family`); });
  return [families.get(state.family), choice];
}

function runChoice(state, redraw) {
  const options = D.runs.map((run, column) =>
    [String(column), `${run[1]}${column === D.now ? " (this run)" : ""}`]).reverse();
  return selectOf("curves-run", "run", options, String(state.column), (value) => {
    state.column = Number(value);
    redraw("curves-run");
  });
}

function curveSpec(curves, focus, state) {
  const sizes = [...new Set(curves.flatMap((each) =>
    each.keys.map((key) => D.keys.message_size[key])))].sort((one, two) => one - two);
  const at = new Map(sizes.map((size, index) => [size, index]));
  const pointsOf = (keys, numberOf) => keys.map((key) =>
    ({x: at.get(D.keys.message_size[key]), y: turned(state.as, key, numberOf(key)), key}))
    .filter((point) => point.y !== null && point.y > 0)
    .sort((one, two) => one.x - two.x);
  const series = curves.map((curve) => ({...curve,
    points: pointsOf(curve.keys, (key) => valueOf(key, state.column)).map((point) => ({...point,
      red: isRed(point.key, state.column), text: pointText(point, curve.name, state)}))}));
  const unit = field(focus.keys[0], "unit");
  const metric = metricOf(focus.keys[0]);
  const title = `${field(focus.keys[0], "program")} ${metric} over message size`;
  return {title, summary: `${curves.length} curves, ${sizes.length} sizes`, series,
    xs: sizes.map((size) => ({label: sizeLabel(size)})), xLabel: "message size",
    yLabel: AXES[state.as] || `${metric}, ${unit}`, yKind: state.scale,
    areas: areasFor(focus, pointsOf), lines: linesFor(focus, pointsOf), marks: []};
}

function pointText(point, name, state) {
  const key = point.key;
  const unit = field(key, "unit");
  const value = valueOf(key, state.column);
  const share = shareOf(key, value, boundOf(key, "ceiling"));
  const red = isRed(key, state.column) ? ` ${wordOf(key, state.column)}` : "";
  return `${name}: ${sizeLabel(D.keys.message_size[key])} ${shown(value, unit)}`
    + (share ? `, ${(share * 100).toFixed(0)} % of ceiling` : "") + red;
}

function areasFor(focus, pointsOf) {
  const area = (name, kind, lowOf, highOf) => {
    const low = pointsOf(focus.keys, lowOf);
    const high = new Map(pointsOf(focus.keys, highOf).map((point) => [point.key, point.y]));
    const points = low.filter((point) => high.has(point.key)).map((point) =>
      ({x: point.x, low: Math.min(point.y, high.get(point.key)),
        high: Math.max(point.y, high.get(point.key))}));
    return points.length > 1 ? [{name, kind, points}] : [];
  };
  const band = (name) => (key) => (D.band.has(key) ? D.bands[name][D.band.get(key)] : null);
  const runs = (pick) => (key) => {
    const numbers = (D.values[key] || []).filter((value) => value !== null);
    return numbers.length > 1 ? pick(...numbers) : null;
  };
  const named = D.bands.baselines.length ? ` ${D.bands.baselines[0]}` : "";
  return [...area("all runs, lowest to highest", "runs", runs(Math.min), runs(Math.max)),
    ...area("accepted", "accepted", (key) => boundOf(key, "lower"), (key) => boundOf(key, "upper")),
    ...area(`baseline${named}`, "band", band("low"), band("high"))];
}

function linesFor(focus, pointsOf) {
  const line = (name, kind, numberOf) => {
    const points = pointsOf(focus.keys, numberOf);
    return points.length > 1 ? [{name, kind, points}] : [];
  };
  const side = (name) => (key) => {
    const at = comparedOf(key);
    return at === null ? null : D.comparison[name][at];
  };
  const isTime = field(focus.keys[0], "unit") === "us";
  const one = boundOf(focus.keys[0], "lower") === null ? "upper" : "lower";
  const both = focus.keys.some((key) => boundOf(key, "lower") !== null
    && boundOf(key, "upper") !== null);
  return [...line(isTime ? "floor (physics)" : "ceiling (physics)", "ceiling",
    (key) => boundOf(key, "ceiling")),
  ...line("reference", "reference", (key) => boundOf(key, "reference")),
  ...(both ? [] : line(`accepted: ${one === "lower" ? "at least" : "at most"}`, "limit",
    (key) => boundOf(key, one))),
  ...(D.comparison ? line(`before: ${D.comparison.first}`, "before", side("median_first")) : []),
  ...(D.comparison ? line(`after: ${D.comparison.second}`, "after", side("median_second")) : [])];
}

// A compared key may have a star where numbers were allowed to differ.
function comparedOf(key) {
  if (!D.comparison) return null;
  if (D.compared.has(key)) return D.compared.get(key);
  if (!D.starred) {
    D.starred = D.comparison.key.map((each, at) => [each, at])
      .filter(([each]) => FIELDS.some((name) => field(each, name) === "*"));
  }
  const found = D.starred.find(([each]) => D.keys.message_size[each] === D.keys.message_size[key]
    && FIELDS.every((name) => field(each, name) === "*" || field(each, name) === field(key, name)));
  return found ? found[1] : null;
}

function curveTable(focus, state) {
  const rows = [...focus.keys]
    .sort((one, two) => D.keys.message_size[one] - D.keys.message_size[two])
    .map((key) => {
      const unit = field(key, "unit");
      const value = valueOf(key, state.column);
      const share = shareOf(key, value, boundOf(key, "ceiling"));
      const at = comparedOf(key);
      const band = D.band.has(key) ? D.band.get(key) : null;
      return [rawButton(key, sizeLabel(D.keys.message_size[key])), shown(value, unit),
        share === null ? "-" : `${(share * 100).toFixed(1)} %`, shown(boundOf(key, "ceiling")),
        shown(boundOf(key, "reference")), accepted(key) || "-",
        band === null ? "-" : `${shown(D.bands.low[band])} to ${shown(D.bands.high[band])}`,
        at === null ? "-" : shown(D.comparison.median_first[at]),
        at === null ? "-" : shown(D.comparison.median_second[at]),
        wordOf(key, state.column) ? word(wordOf(key, state.column)) : "-"];
    });
  const head = ["size", "value", "of ceiling", "ceiling", "reference", "accepted", "baseline",
    "before", "after", "verdict"];
  return make("details", {}, make("summary", {}, `The bold curve as a table: ${focus.name}`),
    tableOf(`Bold curve: ${focus.name}`, head, rows, [1, 2, 3, 4, 5, 6, 7, 8]));
}
