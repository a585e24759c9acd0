// The live page: a sentence is typed, its translation edited, and the attention follows.

const PAUSE = 400; // milliseconds after the last key
const AGAIN = 1000; // milliseconds until a service that has too much to do is asked again
const SHORT = 120; // characters of a text whose attribution is asked for, too
let asked = 0; // the number of the newest question: older answers are dropped
let waiting = 0;
let models = [];
let limits = {};
let edited = false; // whether the translation is a person's

function live(text, bad = false) {
  $("live-state").textContent = text;
  $("live-state").classList.toggle("bad", bad);
}

async function answered(path, given) {
  const key = $("live-key").value.trim();
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, given ? { method: "POST", headers, body: JSON.stringify(given) } : {});
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(content.error || `the service answered ${response.status}`);
    throw Object.assign(error, { busy: response.status === 429 });
  }
  return content;
}

const model = () => models.find((each) => each.name === $("live-model").value);
const reads = () => model()?.reads || "text";

/** Of a picture or a recording that was chosen. */
async function lookAtFile() {
  const number = (asked += 1);
  const file = $("live-file").files[0];
  const target = $("live-target").value.trim();
  if (!file || (edited && !target)) {
    nothing();
    live(file ? "write something, or take its own words" : "");
    return;
  }
  live("looking …");
  try {
    if (limits.file && file.size > limits.file) throw new Error(`the file is over ${limits.file.toLocaleString()} bytes.`);
    const given = new URLSearchParams({ model: $("live-model").value, packed: "true", ...(edited ? { target } : {}) });
    const key = $("live-key").value.trim();
    const response = await fetch(`/v1/look?${given}`, { method: "POST", headers: key ? { authorization: `Bearer ${key}` } : {}, body: file });
    const found = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(found.error || `the service answered ${response.status}`);
    if (number !== asked) return;
    if (!edited) $("live-target").value = found.text;
    present([found.attention]);
    live(edited ? "of your own words" : "of its own words");
  } catch (error) {
    if (number !== asked) return;
    nothing();
    live(error.message, true);
  }
}

async function look() {
  if (!$("live-model").value) return; // until the models are there
  const files = reads() !== "text";
  $("live-choose").hidden = !files;
  $("live-file").accept = reads() === "images" ? "image/*" : "audio/*";
  $("live-source").parentElement.hidden = files;
  if (files) {
    await lookAtFile();
    return;
  }
  const number = (asked += 1);
  const text = $("live-source").value.trim();
  const target = $("live-target").value.trim();
  if (!text || (edited && !target)) {
    nothing();
    live(text ? "write something, or take its own translation" : "");
    return;
  }
  live("looking …");
  try {
    const given = { text, model: $("live-model").value, packed: true, ...(edited ? { target } : {}) };
    const found = await looked(given, Math.max(text.length, target.length) < SHORT);
    if (number !== asked) return;
    if (!edited) $("live-target").value = found.text;
    present([found.attention]);
    live(edited ? "of your own words" : "of its own words");
  } catch (error) {
    if (number !== asked) return;
    nothing();
    live(error.busy ? "many ask at once: trying again …" : error.message, !error.busy);
    if (error.busy) waiting = setTimeout(look, AGAIN * (1 + Math.random()));
  }
}

/** What was shown is of other words. */
function nothing() {
  present([]);
  tell("");
  if (!edited) $("live-target").value = "";
}

/** With attribution, unless it is too much after all: some scripts have many subwords. */
async function looked(given, attribution) {
  try {
    return await answered("/v1/attend", { ...given, attribution });
  } catch (error) {
    if (!attribution || !error.message.startsWith("attribution")) throw error;
    return answered("/v1/attend", given);
  }
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(look, PAUSE);
}

$("live-source").addEventListener("input", () => {
  edited = false;
  soon();
});
$("live-target").addEventListener("input", () => {
  edited = true;
  soon();
});
$("live-own").addEventListener("click", () => {
  edited = false;
  look();
});
$("live-file").addEventListener("change", () => {
  edited = false;
  look();
});
for (const id of ["live-model", "live-key"]) $(id).addEventListener("change", look);
$("live").addEventListener("submit", (event) => event.preventDefault());

async function whenReady() {
  for (;;) {
    const ready = await fetch("/ready").catch(() => null);
    if (ready?.ok) break;
    const why = await ready?.json().catch(() => null);
    const wrong = ready ? why?.why && `a model could not be loaded: ${why.why}` : "the service cannot be reached.";
    live(wrong || "loading the models …", Boolean(wrong));
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  const about = await answered("/v1/models");
  models = about.models;
  limits = about.limits;
  $("live-model").replaceChildren(...about.models.map((model) => option(model.name, model.name)));
  $("live-key").parentElement.hidden = !about.needs_key;
  look();
}

whenReady().catch((error) => live(error.message, true));
