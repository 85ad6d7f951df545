// The tables of the page, made searchable; what has raw numbers becomes a button.

const PAGE = 60;
const CHANGES = ["WORSE", "BETTER", "UNDECIDED", "SAME"];

function quantitiesView(host) {
  const made = D.comparison;
  if (!made || !made.key.length) return;
  const state = {words: "", change: ALL, shown: PAGE};
  const body = make("div", {});
  const counts = new Map(CHANGES.map((name) => [name, 0]));
  for (const at of made.word) counts.set(made.words[at], counts.get(made.words[at]) + 1);
  const options = [[ALL, "every word"], ...CHANGES.map((name) => [name, `${name} (${counts.get(name)})`])];
  const again = () => body.replaceChildren(...quantityRows(state, again));
  const input = make("input", {type: "search", id: "quantity-search", oninput: () => {
    state.words = input.value.toLowerCase();
    state.shown = PAGE;
    again();
  }, placeholder: "rail1 latency vc3"});
  const controls = make("div", {class: "controls"},
    make("label", {class: "choice", for: "quantity-search"}, make("span", {}, "containing"), input),
    selectOf("quantity-word", "word", options, ALL, (value) => {
      state.change = value;
      state.shown = PAGE;
      again();
    }));
  again();
  host.replaceChildren(make("h3", {}, "Quantities"), controls, body);
}

function quantityRows(state, again) {
  const made = D.comparison;
  const words = state.words.split(/\s+/).filter(Boolean);
  const found = made.key.map((key, at) => at).filter((at) => {
    if (state.change !== ALL && made.words[made.word[at]] !== state.change) return false;
    const label = words.length ? labelOf(made.key[at]).toLowerCase() : "";
    return words.every((each) => label.includes(each));
  });
  const rows = found.slice(0, state.shown).map((at) => {
    const key = made.key[at];
    const unit = field(key, "unit");
    const interval = made.low[at] === null ? "none: too few runs"
      : `${percent(made.low[at])} to ${percent(made.high[at])}`;
    return [word(made.words[made.word[at]]), rawButton(key, labelOf(key)),
      shown(made.median_first[at], unit), shown(made.median_second[at], unit),
      percent(made.ratio[at]), interval, String(Number(made.p[at].toPrecision(2))),
      `${made.num_first[at]} / ${made.num_second[at]}`, remarkOf(at)];
  });
  const head = ["word", "quantity", "before", "after", "change", "interval", "p", "runs", "note"];
  const caption = `Quantities, the surest worsening first (${rows.length} of ${found.length})`;
  const more = found.length > rows.length
    ? make("button", {type: "button", onclick: () => { state.shown += 5 * PAGE; again(); }},
      `Show more of ${found.length}`) : null;
  say(`${found.length} quantities`);
  return [tableOf(caption, head, rows, [2, 3, 4, 5, 6, 7]), more].filter(Boolean);
}

function remarkOf(at) {
  const made = D.comparison;
  const note = made.notes[made.note[at]];
  if (made.words[made.word[at]] !== "UNDECIDED") return note;
  const more = made.more_runs[at] === null ? "no number of runs up to 1000 would decide it"
    : made.more_runs[at] ? `needs ${made.more_runs[at]} more runs on each side` : "";
  return [more, note].filter(Boolean).join("; ");
}

// The green legs that the page itself leaves out, in the order of its columns.
function loadLegs(table) {
  const lines = D.legs.of.map((cells, at) => {
    const [verdict, stack, program, leg, rails, nodes, reason, path] =
      cells.map((index) => D.legs.words[index]);
    const numbers = D.legs.keys[at].filter((key) => D.keys.named[key]).map((key) => make("li", {},
      rawButton(key, `${field(key, "quantity")} ${shown(valueOf(key, D.now), field(key, "unit"))}`)));
    const texts = [word(verdict), stack, program, leg, rails, nodes, make("ul", {}, ...numbers),
      reason, path];
    return make("tr", {}, ...texts.map((text) => make("td", {}, text)));
  });
  D.legs.of = [];
  table.tBodies[0].append(...lines);
}

function filterTable(table) {
  let rows = [...table.tBodies[0].rows];
  let texts = rows.map((row) => row.textContent.toLowerCase());
  const name = table.dataset.filter;
  const told = make("span", {class: "remark"}, `${rows.length} rows`);
  const all = rows.length + D.legs.of.length;
  const load = () => {
    if (!D.legs.of.length) return;
    loadLegs(table);
    more.remove();
    rows = [...table.tBodies[0].rows];
    texts = rows.map((row) => row.textContent.toLowerCase());
  };
  const more = make("button", {type: "button", onclick: () => { load(); filter(); }},
    `Show all ${all}`);
  const filter = () => {
    load();
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let num = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((each) => texts[at].includes(each));
      num += Number(!row.hidden);
    });
    told.textContent = `${num} of ${rows.length} rows`;
    say(told.textContent);
  };
  const input = make("input", {type: "search", id: `${name}-search`, oninput: filter,
    placeholder: "FAIL rail1 openmpi5"});
  table.closest(".scroll").before(make("div", {class: "controls"}, make("label", {class: "choice",
    for: `${name}-search`}, make("span", {}, "containing"), input), told, D.legs.of.length ? more : ""));
}

function rawButtons() {
  for (const span of document.querySelectorAll("span[data-key]")) {
    span.replaceWith(rawButton(Number(span.dataset.key), span.textContent));
  }
}
