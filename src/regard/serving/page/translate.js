// The page: types are sent when typing stops, words are linked by alignment, files go up and come back.
// Everything that came from a person or a model is put in as text, never as markup.

const $ = (id) => document.getElementById(id);
const PAUSE = 350; // milliseconds after the last key
const DOUBT = 0.6; // a word's probability below which it is less sure
const MUCH_DOUBT = 0.3;

let models = [];
let limits = {};
let asked = 0; // the number of the newest question: older answers are dropped
let leaving = null;

function headers(more = {}) {
  const key = $("key").value.trim();
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

function tell(text, bad = false) {
  $("state").textContent = text;
  $("state").classList.toggle("bad", bad);
}

async function answerOf(response) {
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(content.error || `the service answered ${response.status}`);
  return content;
}

function label(model) {
  const name = (code) => {
    try {
      return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
    } catch {
      return code;
    }
  };
  if (!model.source && !model.target) return model.name;
  return `${model.source ? name(model.source) : "any"} → ${model.target ? name(model.target) : "any"}`;
}

async function start() {
  for (;;) {
    try {
      const ready = await fetch("/ready");
      if (ready.ok) break;
      const why = await ready.json();
      tell(why.why ? `A model could not be loaded: ${why.why}` : "Loading the models …", Boolean(why.why));
    } catch {
      tell("The service cannot be reached.", true);
    }
    await new Promise((resolve) => setTimeout(resolve, 700));
  }
  const about = await answerOf(await fetch("/v1/models"));
  models = about.models;
  limits = about.limits;
  for (const [number, model] of models.entries()) {
    const option = document.createElement("option");
    option.value = String(number);
    option.textContent = label(model);
    option.title = model.engine;
    $("pair").append(option);
  }
  $("pair").disabled = false;
  for (const each of [document.querySelector("label.key"), $("key")]) each.hidden = !about.needs_key;
  $("swap").disabled = back() < 0;
  tell("");
  arrange();
  changed();
}

const chosen = () => models[Number($("pair").value)];
const readsFiles = () => Boolean(chosen()) && (chosen().reads || "text") !== "text";

// A model of pictures or recordings takes a file where others take a text.
function arrange() {
  const files = readsFiles();
  const pictures = files && chosen().reads === "images";
  $("reading").hidden = !files;
  $("source").hidden = files;
  $("source").parentElement.querySelector(".under").hidden = files;
  $("source-title").textContent = !files ? "Text" : pictures ? "Picture" : "Recording";
  $("target-title").textContent = !files ? "Translation" : chosen().says === "labels" ? "Class" : pictures ? "Caption" : "Transcript";
  const title = { labels: "Class", tags: "Tags", span: "Answer" }[chosen()?.says];
  if (!files && title) $("target-title").textContent = title;
  $("media-label").textContent = pictures ? "Choose a picture …" : "Choose a recording …";
  $("media").accept = pictures ? "image/*" : "audio/*";
  const languages = (chosen() && chosen().languages) || [];
  $("to").hidden = !languages.length;
  $("to").replaceChildren(...languages.map((code) => {
    const made = document.createElement("option");
    made.value = code;
    made.textContent = code;
    return made;
  }));
}

let held = null; // the file that was chosen last

async function read(file) {
  if (!file || !readsFiles()) return;
  held = file;
  const number = ++asked;
  show(null);
  const pictures = chosen().reads === "images";
  const shown = $(pictures ? "seen" : "heard");
  for (const id of ["seen", "heard"]) $(id).hidden = true;
  if (shown.src) URL.revokeObjectURL(shown.src);
  shown.src = URL.createObjectURL(file);
  shown.hidden = false;
  if (pictures) shown.alt = file.name;
  const began = performance.now();
  $("target").classList.add("waiting");
  try {
    if (limits.file && file.size > limits.file) throw new Error(`it is over ${limits.file.toLocaleString()} bytes`);
    const given = { model: chosen().name, nbest: 3, ...($("to").hidden ? {} : { to: $("to").value }) };
    const response = await fetch(`/v1/read?${new URLSearchParams(given)}`, { method: "POST", headers: headers(), body: file });
    const content = await answerOf(response);
    if (number !== asked) return;
    show({ text: content.text, others: content.others.map((each) => each.text), sentences: [] });
    $("took").textContent = `${Math.max(1, Math.round(performance.now() - began))} ms`;
    tell("");
  } catch (error) {
    if (number !== asked) return;
    shown.hidden = true;
    tell(`${file.name}: ${error.message}`, true);
  } finally {
    if (number === asked) $("target").classList.remove("waiting");
  }
}

// The model that goes the other way, or -1.
function back() {
  const one = chosen();
  return models.findIndex((other) => one && other.source && other.source === one.target && other.target === one.source);
}

function changed() {
  clearTimeout(leaving);
  if (readsFiles()) return;
  const text = $("source").value;
  const most = limits.characters || Infinity;
  const size = [...text].length;
  const long = size > most;
  $("count").textContent = `${size.toLocaleString()} of ${most.toLocaleString()}${long ? ": too long" : ""}`;
  $("count").classList.toggle("bad", long);
  leaving = setTimeout(long ? nothing : translate, PAUSE);
}

function nothing() {
  asked++;
  show(null);
}

async function translate() {
  const text = $("source").value;
  const number = ++asked;
  if (!text.trim() || !chosen()) {
    show(null);
    return;
  }
  $("target").classList.add("waiting"); // until it is there, what is shown is of an older text
  const began = performance.now();
  try {
    const response = await fetch("/v1/translate", {
      method: "POST",
      headers: headers({ "content-type": "application/json" }),
      body: JSON.stringify({ text, model: chosen().name, nbest: 3, scores: true, alignment: chosen().aligns }),
    });
    const content = await answerOf(response);
    if (number !== asked) return;
    show(content.translations[0], text);
    $("took").textContent = `${Math.max(1, Math.round(performance.now() - began))} ms`;
    tell("");
  } catch (error) {
    if (number !== asked) return;
    show(null);
    tell(`Not translated: ${error.message}`, true);
  } finally {
    if (number === asked) $("target").classList.remove("waiting");
  }
}

// The probability of each word: the product of its pieces'.
function sure(sentence) {
  const words = [];
  (sentence.tokens || []).slice(0, -1).forEach((piece, place) => {
    if (!words.length || piece.startsWith("▁")) words.push(0);
    words[words.length - 1] += sentence.token_scores[place];
  });
  return words.map(Math.exp);
}

// Words as elements that can be pointed at; blanks as they are. Returns the elements.
function put(into, text, make) {
  const found = [];
  for (const part of text.split(/(\s+)/)) {
    if (!part) continue;
    if (/^\s+$/.test(part)) {
      into.append(part);
      continue;
    }
    const element = document.createElement("span");
    element.textContent = part;
    element.tabIndex = -1;
    make(element, found.length);
    found.push(element);
    into.append(element);
  }
  return found;
}

// One stop for Tab, the arrows go from word to word.
function reachable(group) {
  const words = [...group.querySelectorAll("span")];
  if (words.length) words[0].tabIndex = 0;
}

function moved(event) {
  const words = [...event.currentTarget.querySelectorAll("span")];
  const at = words.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 };
  const next = words[to[event.key]];
  if (at < 0 || !next) return;
  event.preventDefault();
  words[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// What stands before this in the rest of a text, such as a line's end, goes in as it is; what is behind it is returned.
function upTo(into, rest, text) {
  const at = text ? rest.indexOf(text) : 0;
  if (at > 0) into.append(rest.slice(0, at));
  return rest.slice(Math.max(0, at) + text.length);
}

function link(from, to) {
  const light = (on) => () => [from, ...to].forEach((element) => element.classList.toggle("lit", on));
  for (const [name, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
    from.addEventListener(name, light(on));
  }
}

function show(answer, source = "") {
  const target = $("target");
  const shown = $("shown-source");
  const others = $("others");
  target.replaceChildren();
  target.classList.remove("waiting");
  shown.replaceChildren();
  others.querySelector("ul").replaceChildren();
  $("took").textContent = "";
  $("copy").disabled = !answer || !answer.text;
  target.dataset.text = answer ? answer.text : "";
  let doubts = false;
  let linked = false;
  if (answer) {
    let rest = answer.text;
    for (const sentence of answer.sentences) {
      rest = upTo(target, rest, sentence.text);
      const chances = sure(sentence);
      const words = put(target, sentence.text, (element, place) => {
        const chance = chances[place] ?? 1;
        if (chance >= DOUBT) return;
        doubts = true;
        element.classList.add(chance < MUCH_DOUBT ? "much-doubt" : "doubt");
        element.title = `${Math.round(100 * chance)} % sure`;
      });
      if ((sentence.alignment || []).length) {
        source = upTo(shown, source, sentence.source);
        const sources = put(shown, sentence.source, () => {});
        for (const [place, word] of words.entries()) {
          const own = sentence.alignment.filter(([, to]) => to === place).map(([from]) => sources[from]).filter(Boolean);
          link(word, own);
          linked = true;
        }
        for (const [place, word] of sources.entries()) {
          link(word, sentence.alignment.filter(([from]) => from === place).map(([, to]) => words[to]).filter(Boolean));
        }
      }
    }
    target.append(rest);
    [target, shown].forEach(reachable);
    for (const text of new Set(answer.others)) {
      if (text === answer.text) continue;
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => take(button));
      item.append(button);
      others.querySelector("ul").append(item);
    }
    if (answer.wrong) tell(`Not translated: ${answer.wrong}`, true);
  }
  others.hidden = !others.querySelector("li");
  $("legend").hidden = !doubts && !linked;
}

// The alternative becomes the translation, and the translation the alternative.
function take(button) {
  const text = button.textContent;
  button.textContent = $("target").dataset.text;
  $("target").replaceChildren(text);
  $("target").dataset.text = text;
  $("shown-source").replaceChildren(); // its links were to the words that were there
  $("legend").hidden = true;
}

function swap() {
  const other = back();
  if (other < 0) return;
  const text = $("target").dataset.text;
  $("pair").value = String(other);
  if (text) $("source").value = text;
  show(null);
  changed();
}

async function copy() {
  const text = $("target").dataset.text;
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents($("target"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  $("copy").textContent = "Copied";
  setTimeout(() => ($("copy").textContent = "Copy"), 1500);
}

async function upload() {
  const file = $("file").files[0];
  $("file").value = "";
  if (!file || !chosen()) return;
  const state = $("filing-state");
  $("filing").hidden = false;
  $("download").hidden = true;
  state.classList.remove("bad");
  state.textContent = `${file.name}: reading`;
  $("progress").removeAttribute("value");
  try {
    if (limits.file && file.size > limits.file) throw new Error(`it is over ${limits.file.toLocaleString()} bytes`);
    const where = `/v1/file?${new URLSearchParams({ name: file.name, model: chosen().name })}`;
    const response = await fetch(where, { method: "POST", headers: headers(), body: file });
    if (!response.ok) await answerOf(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      waiting += value;
      const lines = waiting.split("\n");
      waiting = lines.pop();
      for (const line of lines) filed(JSON.parse(line), file, state);
    }
  } catch (error) {
    state.textContent = error.message.startsWith(file.name) ? error.message : `${file.name}: ${error.message}`;
    state.classList.add("bad");
    $("progress").value = 0;
  }
}

function filed(record, file, state) {
  if (record.error) throw new Error(record.error);
  if (record.total !== undefined) {
    $("progress").max = Math.max(1, record.total);
    $("progress").value = record.done;
    state.textContent = `${file.name}: ${record.done.toLocaleString()} of ${record.total.toLocaleString()} texts`;
  }
  if (record.content === undefined) return;
  const raw = atob(record.content);
  const bytes = Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
  const link = $("download");
  if (link.href) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  link.download = record.name;
  link.hidden = false;
  link.focus();
  const texts = record.wrong === 1 ? "text" : "texts";
  state.textContent = `${file.name}: done${record.wrong ? `, ${record.wrong} ${texts} without a translation` : ""}`;
}

$("source").addEventListener("input", changed);
for (const group of [$("target"), $("shown-source")]) group.addEventListener("keydown", moved);
$("pair").addEventListener("change", () => {
  $("swap").disabled = back() < 0;
  asked++;
  held = null;
  for (const id of ["seen", "heard"]) $(id).hidden = true;
  show(null);
  arrange();
  changed();
});
$("media").addEventListener("change", () => {
  read($("media").files[0]);
  $("media").value = "";
});
$("to").addEventListener("change", () => read(held));
for (const name of ["dragover", "drop"]) {
  $("reading").addEventListener(name, (event) => {
    event.preventDefault();
    if (name === "drop") read(event.dataTransfer.files[0]);
  });
}
$("key").addEventListener("change", changed);
$("swap").addEventListener("click", swap);
$("copy").addEventListener("click", copy);
$("file").addEventListener("change", upload);
$("clear").addEventListener("click", () => {
  $("source").value = "";
  changed();
  $("source").focus();
});
document.addEventListener("keydown", (event) => {
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  const does = { s: swap, c: copy }[event.key.toLowerCase()];
  if (!does) return;
  event.preventDefault();
  does();
});
start();
