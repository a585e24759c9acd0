// The page: what the controls say is shown in a panel for each capture.

const $ = (id) => document.getElementById(id);
const VIEWS = { matrix: MatrixView, arcs: ArcsView, heads: HeadsView, steps: StepsView, beam: BeamView, table: TableView };
const NAMES = { matrix: "Matrix", arcs: "Arcs", heads: "Heads", steps: "Steps", beam: "Beam", table: "Table" };

let captures = [];
const state = { view: "matrix", kind: "cross", layer: "best", head: "mean", words: true, marks: false, find: "" };
let panels = [];
let shownLast = "";

function tell(text) {
  $("told").textContent = text;
}

function option(value, text) {
  const made = element("option", "", text);
  made.value = String(value);
  return made;
}

/** A choice of the controls as it is kept: numbers are numbers. */
function value(select) {
  return /^\d+$/.test(select.value) ? Number(select.value) : select.value;
}

/** Choices that any of the models has; those that have it not say so in their panels. */
function fill() {
  const having = captures.filter((each) => each.kinds.includes(state.kind));
  const has = (layer) => state.kind === "cross" && having.some((each) => !each.lacks({ kind: "cross", layer }));
  const counts = having.map((each) => each.layers(state.kind));
  const named = (sizes) => (at) => (new Set(sizes).size === 1 ? `${at + 1} of ${sizes[0]}` : String(at + 1));
  const numbers = (sizes) => [...Array(Math.max(0, ...sizes)).keys()].map((at) => option(at, named(sizes)(at)));
  const choices = [];
  if (has("best")) choices.push(option("best", having.some((each) => each.record.choice?.[3]) ? "not known: a guess" : "aligns best"));
  if (Math.max(0, ...counts)) choices.push(option("mean", "mean of all"), ...numbers(counts));
  if (has("rollout")) choices.push(option("rollout", "rollout, all layers"));
  if (has("attribution")) choices.push(option("attribution", "gradient × input"));
  $("layer").replaceChildren(...choices);
  if (!choices.some((each) => each.value === String(state.layer))) state.layer = choices[0].value;
  $("layer").value = String(state.layer);
  const single = ["best", "rollout", "attribution"].includes(state.layer);
  const layer = typeof state.layer === "number" ? state.layer : 0;
  const heads = having.filter((each) => layer < each.layers(state.kind)).map((each) => each.heads(state.kind, layer));
  $("head").replaceChildren(option("mean", single ? "—" : "mean of all"), ...(single ? [] : numbers(heads)));
  if (single || state.head >= Math.max(...heads)) state.head = "mean";
  $("head").value = String(state.head);
  $("head").disabled = single;
}

function found(label) {
  return Boolean(state.find) && label.toLowerCase().includes(state.find.toLowerCase());
}

function where(capture) {
  if (state.layer === "attribution") return "gradient times input: its size, the largest of each row full";
  if (state.layer === "best") {
    const [layer, head, shifted, guessed] = capture.record.choice;
    const why = guessed ? "since nothing is known of which aligns best" : "which aligns best";
    return `layer ${layer + 1}, ${head === null ? "all heads" : `head ${head + 1}`}, ${why}${shifted ? "; of the step after each word's own" : ""}`;
  }
  return "";
}

function render() {
  if (!panels.length) return;
  fill();
  const searched = captures.some((each) => (each.record.beam || []).length > 1);
  if (state.view === "beam" && !searched) state.view = "matrix";
  for (const tab of $("views").children) {
    if (tab.dataset.view === "beam") tab.hidden = !searched;
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  if (state.view !== shownLast) tell(""); // what was told is of another view
  shownLast = state.view;
  for (const { capture, body, about, views } of panels) {
    const leave = () => {
      for (const each of views.values()) each.leave?.();
      views.clear();
    };
    // All heads at once, and the beam, have no layer and no head of their own.
    const free = { heads: { kind: state.kind, layer: "mean", head: "mean" }, beam: { kind: "cross", layer: "mean", head: "mean" } };
    const lacking = capture.lacks(free[state.view] || state)
      || (state.view === "beam" && (capture.record.beam || []).length < 2 ? "No search was captured of it." : "");
    if (lacking) {
      leave();
      body.replaceChildren(element("p", "quiet", lacking));
      about.textContent = "";
      continue;
    }
    if (!views.has(state.view)) {
      leave();
      body.replaceChildren();
      views.set(state.view, new VIEWS[state.view](body, tell, (layer, head) => {
        Object.assign(state, { layer, head, view: "matrix" });
        render();
      }));
    }
    about.textContent = free[state.view] ? "" : where(capture);
    const view = free[state.view] ? null : shown(capture, state); // heads and beam show other things
    views.get(state.view).show(view, found, capture, state);
  }
  for (const id of ["png", "svg"]) $(id).disabled = !["matrix", "arcs"].includes(state.view);
}

function saved(name, blob) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function drawings() {
  return panels.map(({ views }) => views.get(state.view)).filter(Boolean);
}

function asText(svg) {
  svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(svg);
}

function savePicture(view, number) {
  const name = `attention${number ? number + 1 : ""}.png`;
  if (view.whole) {
    view.whole().toBlob((blob) => saved(name, blob));
    return;
  }
  const svg = view.drawing();
  const picture = new Image();
  picture.onload = () => {
    const canvas = element("canvas");
    canvas.width = 2 * svg.getAttribute("width");
    canvas.height = 2 * svg.getAttribute("height");
    const pen = canvas.getContext("2d");
    pen.fillStyle = theme().paper;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saved(name, blob));
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asText(svg))}`;
}

/** One of many at a time: the last, until another is asked for. */
function presentOverTime(records) {
  const bar = $("time");
  bar.hidden = false;
  const slider = bar.querySelector("input");
  slider.max = records.length - 1;
  const choose = () => {
    const record = records[Number(slider.value)];
    bar.querySelector("output").textContent = record.name;
    present([record]);
  };
  slider.addEventListener("input", choose);
  slider.value = slider.max;
  choose();
}

/** Show these captures instead of what was shown; what the controls say stays, where it can. */
function present(records) {
  captures = records.map((record) => new Capture(record));
  for (const { views } of panels) for (const each of views.values()) each.leave?.();
  panels = [];
  $("controls").hidden = !captures.some((each) => each.kinds.length);
  $("panels").replaceChildren();
  if (!captures.some((each) => each.kinds.length)) {
    if (captures.length) $("panels").append(element("p", "quiet", "This model does not attend."));
    return;
  }
  if (captures.some((each) => each.record.shown)) state.view = "steps"; // a picture is looked at, not read
  const kinds = Object.keys(KINDS).filter((kind) => captures.some((each) => each.kinds.includes(kind)));
  $("kind").replaceChildren(...kinds.map((kind) => option(kind, KINDS[kind])));
  if (!kinds.includes(state.kind)) [state.kind] = kinds;
  $("kind").value = state.kind;
  panels = captures.map((capture) => {
    const panel = element("section", "panel");
    const text = (axis) => axis.word_labels.filter((_, word) => !axis.special[axis.words.indexOf(word)]).map(cut).join(" ");
    panel.append(element("h2", "", capture.name), element("p", "pair", `${capture.record.shown ? "" : `${apart(text(capture.record.source))} → `}${apart(text(capture.record.target))}`));
    const about = element("p", "quiet");
    const body = element("div", "body");
    panel.append(about, body);
    $("panels").append(panel);
    return { capture, about, body, views: new Map() };
  });
  render();
}

function start() {
  for (const [name, text] of Object.entries(NAMES)) {
    const tab = element("button", "", text);
    tab.type = "button";
    tab.dataset.view = name;
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => {
      state.view = name;
      render();
    });
    $("views").append(tab);
  }
  $("views").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = [...$("views").children].filter((tab) => !tab.hidden).map((tab) => tab.dataset.view);
    state.view = names[(names.indexOf(state.view) + step + names.length) % names.length];
    render();
    $("views").querySelector('[aria-selected="true"]').focus();
  });
  for (const id of ["kind", "layer", "head"]) {
    $(id).addEventListener("change", () => {
      state[id] = value($(id));
      render();
    });
  }
  for (const id of ["words", "marks"]) {
    $(id).addEventListener("change", () => {
      state[id] = $(id).checked;
      render();
    });
  }
  $("find").addEventListener("input", () => {
    state.find = $("find").value.trim();
    render();
    const all = panels.flatMap(({ capture }) => [...capture.record.source.word_labels, ...capture.record.target.word_labels]);
    tell(state.find ? `${all.filter(found).length} found` : "");
  });
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("png").addEventListener("click", () => drawings().forEach(savePicture));
  $("svg").addEventListener("click", () => drawings().forEach((view, number) =>
    saved(`attention${number ? number + 1 : ""}.svg`, new Blob([asText(view.drawing())], { type: "image/svg+xml" }))));
  $("json").addEventListener("click", () => {
    const all = captures.map(exported);
    saved("attention.json", new Blob([JSON.stringify(all.length === 1 ? all[0] : all)], { type: "application/json" }));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  const given = JSON.parse($("data").textContent);
  Object.assign(state, given.first);
  $("words").checked = state.words;
  $("marks").checked = state.marks;
  if (given.over_time) presentOverTime(given.captures);
  else present(given.captures);
}

start();
