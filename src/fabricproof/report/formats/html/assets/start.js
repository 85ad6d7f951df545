// Views are drawn when they come near the window, all of them before the page is printed.

const VIEWS = {curves: curvesView, matrix: matrixView, trend: trendView, raw: rawView,
  quantities: quantitiesView};
const KEYS = [["?", "these keys"], ["Tab", "the next thing that can be used"],
  ["arrow keys", "in a chart: along a curve, or to another; in a matrix: to the next pair"],
  ["Home, End", "in a chart: first and last point"], ["Enter", "raw numbers of the point or pair"],
  ["Esc", "close"], ["1 to 9", "go to a section"]];

const drawn = new Set();

function drawView(host) {
  if (drawn.has(host)) return;
  drawn.add(host);
  VIEWS[host.dataset.view](host);
  host.classList.add("drawn");
}

function lazily() {
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) drawView(entry.target);
  }, {rootMargin: "400px"});
  for (const host of document.querySelectorAll("[data-view]")) watch.observe(host);
}

let opened = [];

function readyForPaper() {
  document.querySelectorAll("[data-view]").forEach(drawView);
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const each of opened) each.open = true;
  for (const box of document.querySelectorAll(".chart")) box.redraw(PAPER);
}

function backFromPaper() {
  for (const each of opened) each.open = false;
  opened = [];
  for (const box of document.querySelectorAll(".chart")) box.redraw();
}

function openHelp() {
  const rows = KEYS.map(([key, text]) => [make("kbd", {}, key), text]);
  document.getElementById("help-body").replaceChildren(tableOf("Keys", ["key", "does"], rows));
  document.getElementById("help").showModal();
}

function pressed(event) {
  const inField = event.target.closest("input, select, textarea, dialog");
  if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") openHelp();
  const place = "123456789".indexOf(event.key);
  const link = place < 0 ? null : document.querySelectorAll("nav a")[place];
  if (link) link.click();
}

function trouble(error) {
  const line = document.getElementById("trouble");
  line.textContent = `The charts could not be drawn: ${error.message}. The tables hold all the same.`;
  line.hidden = false;
}

async function start() {
  document.documentElement.classList.add("js");
  settle(await unpacked());
  rawButtons();
  document.querySelectorAll("table[data-filter]").forEach(filterTable);
  for (const close of document.querySelectorAll("button.close")) {
    close.addEventListener("click", () => close.closest("dialog").close());
  }
  document.getElementById("help-button").addEventListener("click", openHelp);
  document.addEventListener("keydown", pressed);
  window.addEventListener("beforeprint", readyForPaper);
  window.addEventListener("afterprint", backFromPaper);
  lazily();
  document.documentElement.dataset.ready = "yes";
}

start().catch(trouble);
