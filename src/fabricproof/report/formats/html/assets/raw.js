// Every raw number behind a point, a cell or a row, in a panel.

function openRaw(key) {
  const numbers = rawOf(key);
  const unit = field(key, "unit");
  document.getElementById("panel-title").textContent = `Raw numbers: ${labelOf(key)}`;
  const now = D.now === null ? "" : D.runs[D.now][0];
  const rows = numbers.map((each) => {
    const row = [
      each.run, D.night.get(each.run) || "", each.attempt ? String(each.attempt) : "relation",
      each.counts ? "yes" : "no", shown(each.value, unit), word(each.verdict), each.reason,
      make("span", {class: "path"}, `${each.file}:${each.line}`),
    ];
    row.kind = each.run === now ? "now" : null;
    return row;
  });
  const head = ["run", "begun (UTC)", "attempt", "counts", "value", "verdict", "reason", "record"];
  const caption = `${numbers.length} raw numbers, oldest first; the reported run is marked`;
  const table = numbers.length
    ? tableOf(caption, head, rows, [4])
    : make("p", {}, "No raw number was given to this report for it.");
  const panel = document.getElementById("panel");
  document.getElementById("panel-body").replaceChildren(whatItIs(key), table);
  panel.dataset.key = key;
  panel.showModal();
  const marked = panel.querySelector("tr.now");
  if (marked) marked.scrollIntoView({block: "nearest"});
}

function whatItIs(key) {
  const list = make("dl", {class: "facts"});
  const put = (name, text) => {
    if (text) list.append(make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  };
  for (const name of FIELDS.slice(1)) put(name.replace("_", " "), field(key, name));
  const unit = field(key, "unit");
  const ceiling = boundOf(key, "ceiling");
  if (ceiling !== null) {
    put("ceiling", `${shown(ceiling, unit)} ${D.bounds.ceiling_names[D.bounds.ceiling_name[key]]}`);
  }
  const reference = boundOf(key, "reference");
  if (reference !== null) {
    put("reference", `${shown(reference, unit)} (${D.bounds.origins[D.bounds.origin[key]]})`);
  }
  put("accepted", accepted(key));
  return list;
}

function accepted(key) {
  const unit = field(key, "unit");
  const [lower, upper] = [boundOf(key, "lower"), boundOf(key, "upper")];
  if (lower !== null && upper !== null) return `${shown(lower)} to ${shown(upper, unit)}`;
  if (lower !== null) return `at least ${shown(lower, unit)}`;
  return upper !== null ? `at most ${shown(upper, unit)}` : "";
}

function rawButton(key, text) {
  const open = () => openRaw(key);
  return make("button", {type: "button", class: "raw", "data-key": key, onclick: open}, text,
    make("span", {class: "unseen"}, ", raw numbers"));
}

// Any quantity by its name: words in any order.
function rawView(host) {
  const found = make("div", {});
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const keys = [];
    let num = 0;
    for (let key = 0; key < D.num && words.length; key += 1) {
      const label = labelOf(key).toLowerCase();
      if (!words.every((each) => label.includes(each))) continue;
      num += 1;
      if (keys.length < 50) keys.push(key);
    }
    const rows = keys.map((key) => [rawButton(key, labelOf(key)), String(D.raw.num[key]),
      shown(valueOf(key, D.now), field(key, "unit"))]);
    const caption = `${num} quantities${num > keys.length ? `, the first ${keys.length}` : ""}`;
    found.replaceChildren(words.length ? tableOf(caption, ["quantity", "raw numbers", "this run"],
      rows, [1, 2]) : "");
    say(words.length ? caption : "");
  };
  const input = make("input", {type: "search", id: "raw-search", oninput: search,
    placeholder: "rail1 osu_bw 4MiB vc1"});
  host.append(make("p", {class: "controls"}, make("label", {for: "raw-search"},
    `Find any of ${D.num} quantities: `), input), found);
}
