// The source of a model that reads images or recordings: a file is chosen or dropped, shown, and described.

import { byId, option, showStatus } from "../../views/page/dom.js";
import { request, sizeError, startRequest } from "./client.js";
import { FILES } from "./file_inputs.js";
import { queryOptions } from "./options_form.js";
import { apiKey, limits, readsFiles, selectedModel } from "./session.js";
import { showElapsed, showTranslation } from "./translation_view.js";

let currentFile = null;

/** Show the inputs and titles that fit the selected model. */
export function showSourceInput() {
  const model = selectedModel();
  const files = FILES[model?.modality];
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
}

function hidePreviews() {
  for (const { preview } of Object.values(FILES)) byId(preview).hidden = true;
}

function showPreview(file) {
  const preview = byId(FILES[selectedModel().modality].preview);
  hidePreviews();
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
    const query = [["model", selectedModel().name], ...nbest, ...to, ...queryOptions()];
    const { text, alternatives } = await request("/v1/predict-file", { body: file, key: apiKey(), query });
    if (!isLatest()) return;
    showTranslation({ text, alternatives: alternatives.map((each) => each.text), sentences: [] });
    showElapsed(startTime);
    showStatus("");
  } catch (error) {
    if (!isLatest()) return;
    hidePreviews();
    showStatus(`${file.name}: ${error.message}`, true);
  } finally {
    if (isLatest()) byId("target").classList.remove("waiting");
  }
}

export function addSourceFileEvents() {
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
