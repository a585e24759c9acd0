// The page of attention: a panel for each capture, which shows what is selected in the controls.

import { selectedMatrix } from "./aggregate.js";
import { ArcsView } from "./arcs_view.js";
import { BeamView } from "./beam_view.js";
import { AXES, Capture, KIND_LABELS } from "./capture.js";
import { byId, element, option, showStatus } from "./dom.js";
import { attentionRecord, download, downloadPng, downloadSvg } from "./export.js";
import { HeadsView } from "./heads_view.js";
import { isolate, truncate } from "./labels.js";
import { MatrixView } from "./matrix_view.js";
import { StepsView } from "./steps_view.js";
import { TableView } from "./table_view.js";

const VIEWS = {
  matrix: { label: "Matrix", View: MatrixView },
  arcs: { label: "Arcs", View: ArcsView },
  heads: { label: "Heads", View: HeadsView },
  steps: { label: "Steps", View: StepsView },
  beam: { label: "Beam", View: BeamView },
  table: { label: "Table", View: TableView },
};
const DRAWINGS = ["matrix", "arcs"]; // views that can be saved as images
const SINGLE_MATRIX = ["best", "rollout", "attribution"]; // layers without heads

// words: whether tokens are merged into words; null: by the `merge` of the captures' axes.
const state = { view: "matrix", kind: "cross", layer: "best", head: "mean", words: null, special: false, find: "" };
let captures = [];
let panels = []; // { capture, heading, body, views }
let lastView = "";

/** Prepare the controls. initial: the initial selection, instead of the defaults. */
export function startPage(initial = {}) {
  Object.assign(state, initial);
  byId("special").checked = state.special;
  addTabs();
  addSelections();
  addSearch();
  addDownloads();
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
}

/** Show these captures instead of the previous ones. The selection stays, where it exists. */
export function showCaptures(records) {
  captures = records.map((record) => new Capture(record));
  panels.forEach(disposeViews);
  panels = [];
  const attends = captures.some(({ kinds }) => kinds.length);
  byId("controls").hidden = !attends;
  byId("panels").replaceChildren();
  if (!attends) {
    if (captures.length) byId("panels").append(element("p", "muted", "This model does not attend."));
    return;
  }
  // The view that shows an image or a recording:
  if (captures.some(({ record }) => record.source_media)) state.view = "steps";
  const kinds = Object.keys(KIND_LABELS).filter((kind) => captures.some((capture) => capture.kinds.includes(kind)));
  byId("kind").replaceChildren(...kinds.map((kind) => option(kind, KIND_LABELS[kind])));
  if (!kinds.includes(state.kind)) [state.kind] = kinds;
  byId("kind").value = state.kind;
  panels = captures.map(addPanel);
  render();
}

/** Show one capture at a time, the last one first, with a slider to choose another. */
export function showTimeline(records) {
  const slider = byId("timeline").querySelector("input");
  const choose = () => {
    const record = records[Number(slider.value)];
    byId("timeline").querySelector("output").textContent = record.name;
    showCaptures([record]);
  };
  byId("timeline").hidden = false;
  slider.max = records.length - 1;
  slider.value = slider.max;
  slider.addEventListener("input", choose);
  choose();
}

function addPanel(capture) {
  const { source, target, source_media: media } = capture.record;
  const isText = (axis) => (_, word) => !axis.special[axis.words.indexOf(word)];
  const text = (axis) => isolate(axis.word_labels.filter(isText(axis)).map(truncate).join(" "));
  const panel = element("section", "panel");
  const pair = media ? text(target) : `${text(source)} → ${text(target)}`;
  const heading = element("p", "muted");
  const body = element("div", "body");
  panel.append(element("h2", "", capture.name), element("p", "pair", pair), heading, body);
  byId("panels").append(panel);
  return { capture, heading, body, views: new Map() };
}

function disposeViews({ views }) {
  for (const view of views.values()) view.dispose?.();
  views.clear();
}

function update(changes) {
  Object.assign(state, changes);
  render();
}

function isMatch(label) {
  return Boolean(state.find) && label.toLowerCase().includes(state.find.toLowerCase());
}

function mergesWords() {
  return state.words ?? captures.every(({ record }) => record[AXES[state.kind][0]].merge);
}

/** Offer the layers and heads that any of the captures has. */
function fillSelections() {
  const { kind } = state;
  const available = captures.filter((capture) => capture.kinds.includes(kind));
  const has = (layer) => kind === "cross" && available.some((capture) => !capture.missing({ kind, layer }));
  const numbered = (counts) => Array.from({ length: Math.max(0, ...counts) }, (_, index) =>
    option(index, new Set(counts).size === 1 ? `${index + 1} of ${counts[0]}` : index + 1));
  const layerCounts = available.map((capture) => capture.layerCount(kind));
  const layers = [];
  if (has("best")) {
    const is_default = available.some(({ record }) => record.alignment_head?.[3]);
    layers.push(option("best", is_default ? "not known: a guess" : "aligns best"));
  }
  if (Math.max(0, ...layerCounts)) layers.push(option("mean", "mean of all"), ...numbered(layerCounts));
  if (has("rollout")) layers.push(option("rollout", "rollout, all layers"));
  if (has("attribution")) layers.push(option("attribution", "gradient × input"));
  byId("layer").replaceChildren(...layers);
  if (!layers.some(({ value }) => value === String(state.layer))) state.layer = layers[0].value;
  byId("layer").value = String(state.layer);
  const single = SINGLE_MATRIX.includes(state.layer);
  const layer = typeof state.layer === "number" ? state.layer : 0;
  const headCounts = available
    .filter((capture) => layer < capture.layerCount(kind))
    .map((capture) => capture.headCount(kind, layer));
  byId("head").replaceChildren(
    option("mean", single ? "—" : "mean of all"), ...(single ? [] : numbered(headCounts)));
  if (single || state.head >= Math.max(...headCounts)) state.head = "mean";
  byId("head").value = String(state.head);
  byId("head").disabled = single;
}

/** A description of the selected matrix, if the controls do not show it. */
function describeSelection(capture) {
  if (state.layer === "attribution") return "gradient times input: its size, the largest of each row full";
  if (state.layer !== "best") return "";
  const [layer, head, shifted, is_default] = capture.record.alignment_head;
  const heads = head === null ? "all heads" : `head ${head + 1}`;
  const reason = is_default ? "since nothing is known of which aligns best" : "which aligns best";
  return `layer ${layer + 1}, ${heads}, ${reason}${shifted ? "; of the step after each word's own" : ""}`;
}

function render() {
  if (!panels.length) return;
  fillSelections();
  byId("words").checked = mergesWords();
  const hasBeam = captures.some((capture) => capture.hasBeam);
  if (state.view === "beam" && !hasBeam) state.view = "matrix";
  for (const tab of byId("views").children) {
    if (tab.dataset.view === "beam") tab.hidden = !hasBeam;
    const selected = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
  if (state.view !== lastView) showStatus(""); // it describes another view
  lastView = state.view;
  panels.forEach(renderPanel);
  for (const id of ["png", "svg"]) byId(id).disabled = !DRAWINGS.includes(state.view);
}

function renderPanel(panel) {
  const { capture, heading, body, views } = panel;
  // The views of all heads and of the beam do not depend on the selected layer and head.
  const independent = {
    heads: { kind: state.kind, layer: "mean", head: "mean" },
    beam: { kind: "cross", layer: "mean", head: "mean" },
  }[state.view];
  const missing = capture.missing(independent || state)
    || (state.view === "beam" && !capture.hasBeam ? "No search was captured of it." : "");
  heading.textContent = missing || independent ? "" : describeSelection(capture);
  if (missing) {
    disposeViews(panel);
    body.replaceChildren(element("p", "muted", missing));
    return;
  }
  if (!views.has(state.view)) {
    disposeViews(panel);
    body.replaceChildren();
    const selectHead = (layer, head) => update({ layer, head, view: "matrix" });
    views.set(state.view, new VIEWS[state.view].View(body, selectHead));
  }
  const matrix = independent ? null : selectedMatrix(capture, state, mergesWords());
  views.get(state.view).show({ matrix, isMatch, capture, state });
}

function addTabs() {
  const tabs = Object.entries(VIEWS).map(([view, { label }]) => {
    const tab = element("button", "", label);
    tab.type = "button";
    tab.dataset.view = view;
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => update({ view }));
    return tab;
  });
  byId("views").append(...tabs);
  byId("views").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const views = tabs.filter((tab) => !tab.hidden).map((tab) => tab.dataset.view);
    update({ view: views[(views.indexOf(state.view) + step + views.length) % views.length] });
    tabs.find((tab) => tab.dataset.view === state.view).focus();
  });
}

function addSelections() {
  for (const id of ["kind", "layer", "head"]) {
    byId(id).addEventListener("change", () => {
      const { value } = byId(id);
      update({ [id]: /^\d+$/.test(value) ? Number(value) : value });
    });
  }
  for (const id of ["words", "special"]) {
    byId(id).addEventListener("change", () => update({ [id]: byId(id).checked }));
  }
}

function addSearch() {
  byId("find").addEventListener("input", () => {
    update({ find: byId("find").value.trim() });
    const words = captures.flatMap(({ record }) => [...record.source.word_labels, ...record.target.word_labels]);
    showStatus(state.find ? `${words.filter(isMatch).length} found` : "");
  });
}

function addDownloads() {
  const forEachDrawing = (save) => panels
    .map(({ views }) => views.get(state.view))
    .filter(Boolean)
    .forEach((view, index) => save(`attention${index ? index + 1 : ""}`, view));
  byId("png").addEventListener("click", () => forEachDrawing((name, view) => downloadPng(`${name}.png`, view)));
  byId("svg").addEventListener("click", () => forEachDrawing((name, view) => downloadSvg(`${name}.svg`, view)));
  byId("json").addEventListener("click", () => {
    const records = captures.map(attentionRecord);
    const text = JSON.stringify(records.length === 1 ? records[0] : records);
    download("attention.json", new Blob([text], { type: "application/json" }));
  });
}
