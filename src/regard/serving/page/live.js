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

/** What the service answers to an object, to a file, or to nothing. */
async function answered(path, given) {
  const key = $("live-key").value.trim();
  const file = given instanceof Blob;
  const headers = { ...(file ? {} : { "content-type": "application/json" }), ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, given ? { method: "POST", headers, body: file ? given : JSON.stringify(given) } : {});
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = new Error(content.error || `the service answered ${response.status}`);
    throw Object.assign(error, { busy: response.status === 429 });
  }
  return content;
}

const reads = () => models.find((each) => each.name === $("live-model").value)?.reads || "text";

/** A picture or a recording where the model reads such, a text where it reads text. */
function arrange() {
  const files = reads() !== "text";
  $("live-choose").hidden = !files;
  $("live-file").accept = reads() === "images" ? "image/*" : "audio/*";
  $("live-source").parentElement.hidden = files;
}

async function look() {
  if (!$("live-model").value) return; // until the models are there
  arrange();
  const number = (asked += 1);
  const file = reads() === "text" ? null : $("live-file").files[0];
  const text = $("live-source").value.trim();
  const target = $("live-target").value.trim();
  const given = reads() === "text" ? text : file;
  if (!given || (edited && !target)) {
    nothing();
    live(given ? "write something, or take its own words" : "");
    return;
  }
  live("looking …");
  try {
    const wished = { model: $("live-model").value, packed: true, ...(edited ? { target } : {}) };
    const ask = file ? (attribution) => lookedAt(file, { ...wished, attribution }) : (attribution) => answered("/v1/attend", { text, ...wished, attribution });
    const found = await looked(ask, Math.max(file ? 0 : text.length, target.length) < SHORT);
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

async function lookedAt(file, wished) {
  if (limits.file && file.size > limits.file) throw new Error(`the file is over ${limits.file.toLocaleString()} bytes.`);
  return answered(`/v1/look?${new URLSearchParams(wished)}`, file);
}

/** What was shown is of other words. */
function nothing() {
  present([]);
  tell("");
  if (!edited) $("live-target").value = "";
}

/** With attribution, unless it is too much after all: some scripts have many subwords. */
async function looked(ask, attribution) {
  try {
    return await ask(attribution);
  } catch (error) {
    if (!attribution || !error.message.startsWith("attribution")) throw error;
    return ask(false);
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
