// One kind of chart: lines over a horizontal axis, drawn as SVG so that paper, dark mode and screen
// readers get the same drawing.  Colour, dash and symbol say the same thing three times.

const SHAPES = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  (r) => `M0,${-r * 1.2}L${r * 1.2},${r}L${-r * 1.2},${r}Z`,
  (r) => `M0,${-r * 1.4}L${r * 1.4},0L0,${r * 1.4}L${-r * 1.4},0Z`,
  (r) => `M0,${r * 1.2}L${r * 1.2},${-r}L${-r * 1.2},${-r}Z`,
  (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`,
  (r) => `M0,${-r * 1.3}V${r * 1.3}M${-r * 1.3},0H${r * 1.3}`,
  (r) => `M${-r * 1.4},${-r * 0.6}h${2.8 * r}v${1.2 * r}h${-2.8 * r}Z`,
];

const HEIGHT = 380;

// Between the margins of A4, in CSS pixels: letters are then as large as those of the text.
const PAPER = 700;
const SPACE = {left: 66, right: 34, top: 14, bottom: 48};

function scaleOf(kind, low, high, from, to) {
  if (kind === "log") {
    const [begin, end] = [Math.log(low), Math.log(high)];
    return (value) => from + ((Math.log(value) - begin) / (end - begin || 1)) * (to - from);
  }
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

function niceTicks(low, high, kind) {
  if (kind !== "log" || high / low < 4) return evenTicks(low, high, 5);
  const decades = Math.log10(high / low);
  const steps = decades > 3 ? [1] : decades > 1.2 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

function evenTicks(low, high, about) {
  const rough = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}

// spec: title, xs [{at, label}], yKind, yLabel, unit, series [{name, style, focus, points [{x, y,
// key, text, red}]}], areas [{name, kind, points [{x, low, high}]}], lines [{name, kind, points}],
// marks [{x, text}], onFocus(index)
function Chart(host, spec) {
  const box = make("div", {class: "chart", tabindex: "0", role: "group",
    "aria-roledescription": "chart", "aria-label": `${spec.title}. ${spec.summary}. Arrow keys go
    from point to point and from curve to curve, Enter shows the raw numbers.`});
  const tip = make("div", {class: "tip", hidden: true});
  host.append(box);
  let here = null;
  let picture = null;

  const redraw = (wanted) => {
    picture = render(spec, wanted || Math.max(box.clientWidth, 280));
    box.replaceChildren(picture.svg, tip);
    if (here) show(here, false);
  };

  const show = (point, aloud) => {
    here = point;
    const [x, y] = [picture.x(point.x), picture.y(point.y)];
    picture.ring.setAttribute("transform", `translate(${x},${y})`);
    picture.ring.removeAttribute("visibility");
    tip.textContent = point.text;
    tip.hidden = false;
    const scale = box.clientWidth / picture.width;
    // Where it fits: a tip beyond the edge would make the whole page scroll.
    tip.style.left = "0px";
    const half = tip.offsetWidth / 2;
    tip.style.left = `${Math.max(Math.min(x * scale, box.clientWidth - half), half)}px`;
    tip.style.top = `${y * scale + (y < 90 ? 14 : -14)}px`;
    tip.classList.toggle("below", y < 90);
    if (aloud) say(point.text);
  };

  const hide = () => {
    here = null;
    tip.hidden = true;
    if (picture) picture.ring.setAttribute("visibility", "hidden");
  };

  const nearest = (event) => {
    const place = box.getBoundingClientRect();
    const scale = picture.width / place.width;
    const [left, top] = [(event.clientX - place.left) * scale, (event.clientY - place.top) * scale];
    let best = null;
    let least = 30 ** 2;
    for (const series of spec.series) {
      for (const point of series.points) {
        const far = (picture.x(point.x) - left) ** 2 + (picture.y(point.y) - top) ** 2;
        const away = series.focus ? far * 0.5 : far;
        if (away < least) [best, least] = [point, away];
      }
    }
    return best;
  };

  const walk = (event) => {
    const moves = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
      Home: [-1e9, 0], End: [1e9, 0]};
    if (event.key === "Escape") return hide();
    if (event.key === "Enter" && here) return openRaw(here.key);
    if (!(event.key in moves) || !spec.series.some((each) => each.points.length)) return undefined;
    event.preventDefault();
    const [along, across] = moves[event.key];
    return show(stepped(spec.series, here, along, across), true);
  };

  box.addEventListener("mousemove", (event) => {
    const point = nearest(event);
    box.classList.toggle("over", point !== null);
    if (point) show(point, false);
    else hide();
  });
  box.addEventListener("mouseleave", hide);
  box.addEventListener("click", (event) => {
    const point = nearest(event);
    if (point) openRaw(point.key);
  });
  box.addEventListener("keydown", walk);
  redraw();
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width || matchMedia("print").matches) return;
    width = box.clientWidth;
    redraw();
  }).observe(box);
  box.redraw = redraw;
  return box;
}

// The next point from here: along its curve, or the one of the next curve that is nearest in x.
function stepped(series, here, along, across) {
  const there = series.filter((each) => each.points.length);
  const focus = there.find((each) => each.focus) || there[0];
  if (!here) return focus.points[0];
  const mine = there.find((each) => each.points.includes(here)) || focus;
  if (across) {
    const next = there[(there.indexOf(mine) + across + there.length) % there.length];
    return next.points.reduce((best, point) =>
      Math.abs(point.x - here.x) < Math.abs(best.x - here.x) ? point : best);
  }
  const at = mine.points.indexOf(here) + along;
  return mine.points[Math.min(Math.max(at, 0), mine.points.length - 1)];
}

function extent(spec) {
  const all = [];
  for (const series of spec.series) for (const point of series.points) all.push(point.y);
  for (const line of spec.lines) for (const point of line.points) all.push(point.y);
  for (const area of spec.areas) for (const point of area.points) all.push(point.low, point.high);
  const good = all.filter((value) => value !== null && (spec.yKind !== "log" || value > 0));
  if (!good.length) return [1, 10];
  const [low, high] = good.reduce(([least, most], value) =>
    [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  if (spec.yKind === "log") return [low / 1.15, high * 1.15];
  const pad = (high - low) * 0.08 || Math.abs(high) * 0.05 || 1;
  return [spec.fromZero ? 0 : Math.max(low - pad, low >= 0 ? 0 : low - pad), high + pad];
}

function render(spec, width) {
  const svg = draw("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": spec.title, class: "plot"});
  const [low, high] = extent(spec);
  const [right, bottom] = [width - SPACE.right, HEIGHT - SPACE.bottom];
  const x = scaleOf("linear", 0, Math.max(spec.xs.length - 1, 1), SPACE.left + 10, right - 10);
  const y = scaleOf(spec.yKind, low, high, bottom, SPACE.top);
  svg.append(axes(spec, x, y, low, high, right, bottom));
  for (const area of spec.areas) svg.append(areaOf(area, x, y));
  for (const mark of spec.marks || []) svg.append(markOf(mark, x, bottom));
  for (const line of spec.lines) svg.append(lineOf(line, x, y));
  const order = [...spec.series].sort((one, two) => Number(!!one.focus) - Number(!!two.focus));
  for (const series of order) svg.append(seriesOf(series, x, y));
  const ring = draw("circle", {r: 9, class: "ring", visibility: "hidden"});
  svg.append(ring);
  return {svg, x, y, ring, width};
}

function axes(spec, x, y, low, high, right, bottom) {
  const group = draw("g", {class: "axes"});
  for (const tick of niceTicks(low, high, spec.yKind)) {
    const at = y(tick);
    group.append(draw("line", {x1: SPACE.left, x2: right, y1: at, y2: at, class: "grid"}),
      draw("text", {x: SPACE.left - 6, y: at + 4, "text-anchor": "end"}, shown(tick)));
  }
  const longest = Math.max(...spec.xs.map((each) => each.label.length), 1) * 7 + 10;
  const every = Math.max(1, Math.ceil((longest * spec.xs.length) / (right - SPACE.left)));
  spec.xs.forEach((each, index) => {
    if (index % every) return;
    group.append(draw("line", {x1: x(index), x2: x(index), y1: bottom, y2: bottom + 5}),
      draw("text", {x: x(index), y: bottom + 18, "text-anchor": "middle"}, each.label));
  });
  group.append(draw("line", {x1: SPACE.left, x2: right, y1: bottom, y2: bottom}),
    draw("line", {x1: SPACE.left, x2: SPACE.left, y1: SPACE.top, y2: bottom}),
    draw("text", {x: (SPACE.left + right) / 2, y: HEIGHT - 8, "text-anchor": "middle",
      class: "name"}, spec.xLabel),
    draw("text", {transform: `translate(14,${(SPACE.top + bottom) / 2}) rotate(-90)`,
      "text-anchor": "middle", class: "name"}, spec.yLabel));
  return group;
}

function pathOf(points, x, y) {
  return points.map((point, at) =>
    `${at ? "L" : "M"}${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join("");
}

function areaOf(area, x, y) {
  const there = area.points.map((point) => ({x: point.x, y: point.high}));
  const back = area.points.map((point) => ({x: point.x, y: point.low})).reverse();
  return draw("path", {d: `${pathOf([...there, ...back], x, y)}Z`, class: `area a-${area.kind}`},
    draw("title", {}, area.name));
}

function lineOf(line, x, y) {
  return draw("path", {d: pathOf(line.points, x, y), class: `line l-${line.kind}`},
    draw("title", {}, line.name));
}

function markOf(mark, x, bottom) {
  const at = x(mark.x);
  return draw("g", {class: `mark m-${mark.kind}`}, draw("title", {}, mark.text),
    draw("line", {x1: at, x2: at, y1: SPACE.top + 12, y2: bottom}),
    draw("text", {x: at, y: SPACE.top + 8, "text-anchor": "middle"},
      mark.kind === "event" ? "▼" : "◆"));
}

function seriesOf(series, x, y) {
  const kind = series.faint ? "faint" : `s${series.style}`;
  const group = draw("g", {class: `series ${kind}${series.focus ? " focus" : ""}`});
  group.append(draw("path", {d: pathOf(series.points, x, y), class: "curve"}));
  if (series.faint) return group;
  const shape = SHAPES[series.style % SHAPES.length];
  for (const point of series.points) {
    const at = `translate(${x(point.x).toFixed(1)},${y(point.y).toFixed(1)})`;
    group.append(draw("path", {d: shape(series.focus ? 4.5 : 3), transform: at, class: "pt",
      "data-key": point.key}));
    if (point.red) {
      group.append(draw("path", {d: "M-7,-7L7,7M-7,7L7,-7", transform: at, class: "redpt"}));
    }
  }
  return group;
}

function sampleOf(style, faint) {
  const shape = SHAPES[style % SHAPES.length];
  return draw("svg", {viewBox: "0 0 36 14", width: 36, height: 14, "aria-hidden": "true",
    class: `series ${faint ? "faint" : `s${style}`}`}, draw("path", {d: "M1,7H35", class: "curve"}),
  faint ? null : draw("path", {d: shape(3.5), transform: "translate(18,7)", class: "pt"}));
}
