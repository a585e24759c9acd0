// The source of a model that reads files: one is chosen or dropped, shown, and the prediction requested.

import { byId, option, showStatus } from "../../views/page/dom.js";
import { request, sizeError, startRequest } from "./client.js";
import { fileInput, PREVIEWS } from "./file_inputs.js";
import { addForecastEvents, showForecasts } from "./forecast_chart.js";
import { queryOptions } from "./options_form.js";
import { apiKey, limits, readsFiles, selectedModel } from "./session.js";
import { showElapsed, showTranslation } from "./translation_view.js";

let currentFile = null;

/** Show the inputs and titles that fit the selected model. */
export function showSourceInput() {
  const model = selectedModel();
  const files = fileInput(model);
  byId("source-file").hidden = !files;
  byId("source").hidden = Boolean(files);
  byId("source-toolbar").hidden = Boolean(files);
  byId("source-title").textContent = files?.title ?? "Text";
  byId("target-title").textContent = model?.output ?? "Translation";
  byId("media-label").textContent = files?.button ?? "";
  byId("media").accept = files?.accept ?? "";
  const languages = model?.languages || [];
  byId("target-language").hidden = !languages.length;
  byId("target-language").replaceChildren(...languages.map((code) => option(code, code)));
}

export function clearSourceFile() {
  currentFile = null;
  hidePreviews();
  showForecasts(null);
}

function hidePreviews() {
  for (const preview of PREVIEWS) byId(preview).hidden = true;
}

function showPreview(file) {
  hidePreviews();
  byId("file-name").textContent = file.name;
  const preview = byId(fileInput(selectedModel()).preview ?? "");
  if (!preview) return;
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.src = URL.createObjectURL(file);
  preview.hidden = false;
  if ("alt" in preview) preview.alt = file.name;
}

async function readFile(file) {
  if (!file || !readsFiles()) return;
  currentFile = file;
  const isLatest = startRequest();
  showTranslation(null);
  showPreview(file);
  byId("target").classList.add("waiting");
  const startTime = performance.now();
  const language = byId("target-language");
  try {
    const tooLarge = sizeError(file, limits());
    if (tooLarge) throw new Error(`it is ${tooLarge}`);
    const nbest = selectedModel().options.includes("nbest") ? [["nbest", 3]] : [];
    const to = language.hidden ? [] : [["to", language.value]];
    const query = [["model", selectedModel().name], ["name", file.name], ...nbest, ...to, ...queryOptions()];
    const response = await request(selectedModel().path, { body: file, key: apiKey(), query });
    if (!isLatest()) return;
    showPrediction(response);
    showElapsed(startTime);
    showStatus("");
  } catch (error) {
    if (!isLatest()) return;
    hidePreviews();
    showForecasts(null);
    showStatus(`${file.name}: ${error.message}`, true);
  } finally {
    if (isLatest()) byId("target").classList.remove("waiting");
  }
}

function showPrediction(response) {
  if (response.forecasts) {
    showForecasts(response);
    return;
  }
  const alternatives = response.alternatives.map((each) => each.text);
  showTranslation({ text: response.text, alternatives, sentences: [] });
}

/** Predict again, since an option was changed. */
export function rereadFile() {
  readFile(currentFile);
}

export function addSourceFileEvents() {
  addForecastEvents();
  byId("media").addEventListener("change", () => {
    readFile(byId("media").files[0]);
    byId("media").value = "";
  });
  byId("target-language").addEventListener("change", () => readFile(currentFile));
  byId("source-file").addEventListener("dragover", (event) => event.preventDefault());
  byId("source-file").addEventListener("drop", (event) => {
    event.preventDefault();
    readFile(event.dataTransfer.files[0]);
  });
}
