// The translation page: a text is translated when typing stops.

import { byId, option, showStatus } from "../../views/page/dom.js";
import { request, startRequest, waitUntilReady } from "./client.js";
import { uploadDocument } from "./document_upload.js";
import { enteredOptions, onOptionsChanged, showOptions } from "./options_form.js";
import { apiKey, limits, readsFiles, reverseModel, selectedModel, setService } from "./session.js";
import { addSourceFileEvents, clearSourceFile, rereadFile, showSourceInput } from "./source_file.js";
import { addWordNavigation, copyTranslation, showElapsed, showTranslation } from "./translation_view.js";

const TYPING_MILLISECONDS = 350; // after the last key
let typingTimer = 0;

function languageName(code) {
  if (!code) return "any";
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

function modelLabel({ name, source, target }) {
  return source || target ? `${languageName(source)} → ${languageName(target)}` : name;
}

async function startTranslationPage() {
  await waitUntilReady((text, isError) => showStatus(text[0].toUpperCase() + text.slice(1), isError));
  const service = await request("/v1/models");
  setService(service);
  byId("model").append(...service.models.map((model, index) => {
    const choice = option(index, modelLabel(model));
    choice.title = model.engine;
    return choice;
  }));
  byId("model").disabled = false;
  for (const each of [byId("api-key-label"), byId("api-key")]) each.hidden = !service.requires_api_key;
  byId("swap").disabled = reverseModel() < 0;
  showStatus("");
  showSourceInput();
  showOptions();
  onSourceChanged();
}

function onSourceChanged() {
  clearTimeout(typingTimer);
  if (readsFiles()) return;
  const length = [...byId("source").value].length;
  const limit = limits().characters || Infinity;
  const tooLong = length > limit;
  const count = `${length.toLocaleString()} of ${limit.toLocaleString()}`;
  showStatus(tooLong ? `${count}: too long` : count, tooLong, "character-count");
  typingTimer = setTimeout(tooLong ? clearTranslation : translate, TYPING_MILLISECONDS);
}

/** Show nothing, and drop the results of requests that are still running. */
function clearTranslation() {
  startRequest();
  showTranslation(null);
}

async function translate() {
  const text = byId("source").value;
  if (!text.trim() || !selectedModel()) {
    clearTranslation();
    return;
  }
  const isLatest = startRequest();
  byId("target").classList.add("waiting"); // it still shows the translation of an older text
  const startTime = performance.now();
  try {
    const { name, aligns, options } = selectedModel();
    const language = byId("target-language");
    const to = language.hidden ? {} : { to: language.value };
    const defaults = { nbest: 3, scores: true, alignment: aligns, ...to };
    const applicable = Object.entries(defaults).filter(([option]) => options.includes(option));
    const body = { text, model: name, ...Object.fromEntries(applicable), ...enteredOptions() };
    const { translations } = await request("/v1/translate", { body, key: apiKey() });
    if (!isLatest()) return;
    showStatus("");
    showTranslation(translations[0], text);
    showElapsed(startTime);
  } catch (error) {
    if (!isLatest()) return;
    showTranslation(null);
    showStatus(`Not translated: ${error.message}`, true);
  } finally {
    if (isLatest()) byId("target").classList.remove("waiting");
  }
}

function onModelChanged() {
  byId("swap").disabled = reverseModel() < 0;
  clearSourceFile();
  clearTranslation();
  showSourceInput();
  showOptions();
  onSourceChanged();
}

function swapLanguages() {
  const reverse = reverseModel();
  if (reverse < 0) return;
  const { text } = byId("target").dataset;
  byId("model").value = String(reverse);
  if (text) byId("source").value = text;
  showTranslation(null);
  showOptions();
  onSourceChanged();
}

function clearSource() {
  byId("source").value = "";
  onSourceChanged();
  byId("source").focus();
}

function onShortcut(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  const action = { s: swapLanguages, c: copyTranslation }[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
}

byId("source").addEventListener("input", onSourceChanged);
byId("model").addEventListener("change", onModelChanged);
byId("api-key").addEventListener("change", onSourceChanged);
byId("swap").addEventListener("click", swapLanguages);
byId("copy").addEventListener("click", copyTranslation);
byId("clear").addEventListener("click", clearSource);
byId("document-file").addEventListener("change", uploadDocument);
document.addEventListener("keydown", onShortcut);
addWordNavigation();
addSourceFileEvents();
onOptionsChanged(() => (readsFiles() ? rereadFile() : onSourceChanged()));
byId("target-language").addEventListener("change", onSourceChanged);
startTranslationPage().catch((error) => showStatus(error.message, true));
