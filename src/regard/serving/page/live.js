// The live attention page: it is updated while the source and the target are typed.

import { showCaptures, startPage } from "../../views/page/attention_page.js";
import { byId, option, showStatus } from "../../views/page/dom.js";
import { request, sizeError, startRequest, waitUntilReady } from "./client.js";
import { fileInput } from "./file_inputs.js";

const TYPING_MILLISECONDS = 400; // after the last key
const RETRY_MILLISECONDS = 1000; // if the service is overloaded
const MAX_ATTRIBUTION_CHARACTERS = 120; // of longer texts only attention is requested
let timer = 0;
let service = { models: [], limits: {} };
let targetEdited = false;

function showLiveStatus(text, isError = false) {
  showStatus(text, isError, "live-status");
}

/** How the files of the selected model are chosen; null if it reads text. */
function selectedFileInput() {
  return fileInput(service.models.find(({ name }) => name === byId("live-model").value));
}

/** Show the input that fits the selected model. */
function showInput() {
  const files = selectedFileInput();
  byId("live-file-label").hidden = !files;
  byId("live-file").accept = files?.accept ?? "";
  byId("live-source").parentElement.hidden = Boolean(files);
}

function clearAttention() {
  showCaptures([]);
  showStatus("");
  if (!targetEdited) byId("live-target").value = "";
}

/** Request the attention of what is entered, and show it. */
async function updateAttention() {
  const model = byId("live-model").value;
  if (!model) return; // the models are not loaded yet
  showInput();
  const isLatest = startRequest();
  const isText = !selectedFileInput();
  const source = isText ? byId("live-source").value.trim() : byId("live-file").files[0];
  const target = byId("live-target").value.trim();
  if (!source || (targetEdited && !target)) {
    clearAttention();
    showLiveStatus(source ? "write something, or take its own words" : "");
    return;
  }
  showLiveStatus("looking …");
  try {
    const length = Math.max(isText ? source.length : 0, target.length);
    const options = { model, packed: true, ...(targetEdited ? { target } : {}) };
    const { text, attention } = await requestAttention(source, options, length < MAX_ATTRIBUTION_CHARACTERS);
    if (!isLatest()) return;
    if (!targetEdited) byId("live-target").value = text;
    showCaptures([attention]);
    showLiveStatus(targetEdited ? "of your own words" : "of its own words");
  } catch (error) {
    if (!isLatest()) return;
    clearAttention();
    showLiveStatus(error.busy ? "many ask at once: trying again …" : error.message, !error.busy);
    if (error.busy) timer = setTimeout(updateAttention, RETRY_MILLISECONDS * (1 + Math.random()));
  }
}

/** If the attribution is refused, since the text has too many tokens, only attention is requested. */
async function requestAttention(source, options, attribution) {
  const key = byId("live-key").value.trim();
  try {
    if (!(source instanceof Blob)) {
      return await request("/v1/attend", { body: { text: source, ...options, attribution }, key });
    }
    const tooLarge = sizeError(source, service.limits);
    if (tooLarge) throw new Error(`the file is ${tooLarge}.`);
    const query = { ...options, attribution, name: source.name };
    return await request("/v1/attend-file", { body: source, key, query });
  } catch (error) {
    if (!attribution || !error.message.startsWith("attribution")) throw error;
    return requestAttention(source, options, false);
  }
}

function scheduleUpdate() {
  clearTimeout(timer);
  timer = setTimeout(updateAttention, TYPING_MILLISECONDS);
}

async function startLivePage() {
  await waitUntilReady(showLiveStatus);
  service = await request("/v1/models");
  byId("live-model").replaceChildren(...service.models.map(({ name }) => option(name, name)));
  byId("live-key").parentElement.hidden = !service.requires_api_key;
  updateAttention();
}

/** Call a function at an event; edited: whether the target then is the user's, undefined if that stays as it is. */
function on(id, name, callback, edited) {
  byId(id).addEventListener(name, () => {
    targetEdited = edited ?? targetEdited;
    callback();
  });
}

on("live-source", "input", scheduleUpdate, false);
on("live-target", "input", scheduleUpdate, true);
on("live-reset", "click", updateAttention, false);
on("live-file", "change", updateAttention, false);
on("live-model", "change", updateAttention);
on("live-key", "change", updateAttention);
byId("live").addEventListener("submit", (event) => event.preventDefault());
startPage();
showCaptures([]);
startLivePage().catch((error) => showLiveStatus(error.message, true));
