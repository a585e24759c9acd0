// A translation: uncertain words are marked, words are linked by alignment, alternatives can be chosen.

import { byId, element, showStatus } from "../../views/page/dom.js";

const UNCERTAIN = 0.6; // probability of a word
const VERY_UNCERTAIN = 0.3;

/** The probability of each word: the product over its tokens. */
function wordProbabilities({ tokens = [], token_scores: scores }) {
  const sums = [];
  tokens.slice(0, -1).forEach((token, index) => {
    if (!sums.length || token.startsWith("▁")) sums.push(0);
    sums[sums.length - 1] += scores[index];
  });
  return sums.map(Math.exp);
}

/** Append a text, its words as elements. Returns these elements. */
function appendWords(container, text) {
  const words = [];
  for (const part of text.split(/(\s+)/)) {
    if (!part) continue;
    if (/^\s+$/.test(part)) {
      container.append(part);
      continue;
    }
    const word = element("span", "", part);
    word.tabIndex = -1;
    words.push(word);
    container.append(word);
  }
  return words;
}

/** Append what precedes a sentence in the rest of the text, such as a line break. Returns the text after it. */
function appendUpTo(container, rest, sentence) {
  const start = sentence ? rest.indexOf(sentence) : 0;
  if (start > 0) container.append(rest.slice(0, start));
  return rest.slice(Math.max(0, start) + sentence.length);
}

/** Mark words that are less certain. Returns whether there are any. */
function markUncertain(words, probabilities) {
  const uncertain = words.filter((_, index) => (probabilities[index] ?? 1) < UNCERTAIN);
  for (const word of uncertain) {
    const probability = probabilities[words.indexOf(word)];
    word.classList.add(probability < VERY_UNCERTAIN ? "very-uncertain" : "uncertain");
    word.title = `${Math.round(100 * probability)} % sure`;
  }
  return uncertain.length > 0;
}

/** Highlight a word, and those it is linked to, while it is in focus. */
function highlightOnFocus(word, linked) {
  const highlight = (on) => () => [word, ...linked].forEach((each) => each.classList.toggle("highlighted", on));
  for (const name of ["pointerenter", "focus"]) word.addEventListener(name, highlight(true));
  for (const name of ["pointerleave", "blur"]) word.addEventListener(name, highlight(false));
}

/** alignment: pairs of the indices of a source and a target word. */
function linkWords(sources, targets, alignment) {
  const linked = (side, index, words) => alignment
    .filter((pair) => pair[side] === index)
    .map((pair) => words[pair[1 - side]])
    .filter(Boolean);
  targets.forEach((word, index) => highlightOnFocus(word, linked(1, index, sources)));
  sources.forEach((word, index) => highlightOnFocus(word, linked(0, index, targets)));
}

/** Show a translation, or nothing if it is null. */
export function showTranslation(translation, source = "") {
  const target = byId("target");
  const aligned = byId("aligned-source");
  target.replaceChildren();
  target.classList.remove("waiting");
  aligned.replaceChildren();
  byId("elapsed").textContent = "";
  byId("copy").disabled = !translation?.text;
  target.dataset.text = translation?.text ?? "";
  let marked = false;
  let rest = translation?.text ?? "";
  for (const sentence of translation?.sentences ?? []) {
    rest = appendUpTo(target, rest, sentence.text);
    const words = appendWords(target, sentence.text);
    marked = markUncertain(words, wordProbabilities(sentence)) || marked;
    if (!sentence.alignment?.length) continue;
    source = appendUpTo(aligned, source, sentence.source);
    linkWords(appendWords(aligned, sentence.source), words, sentence.alignment);
    marked = marked || words.length > 0;
  }
  target.append(rest);
  for (const group of [target, aligned]) {
    const first = group.querySelector("span");
    if (first) first.tabIndex = 0;
  }
  byId("legend").hidden = !marked;
  showAlternatives(translation);
  if (translation?.error) showStatus(`Not translated: ${translation.error}`, true);
}

function showAlternatives(translation) {
  const texts = [...new Set(translation?.alternatives)].filter((text) => text !== translation.text);
  byId("alternatives").hidden = !texts.length;
  byId("alternatives").querySelector("ul").replaceChildren(...texts.map((text) => {
    const button = element("button", "", text);
    button.type = "button";
    button.addEventListener("click", () => swapWithTranslation(button));
    const item = element("li");
    item.append(button);
    return item;
  }));
}

function swapWithTranslation(button) {
  const target = byId("target");
  const text = button.textContent;
  button.textContent = target.dataset.text;
  target.replaceChildren(text);
  target.dataset.text = text;
  byId("aligned-source").replaceChildren(); // its words were linked to those of the previous translation
  byId("legend").hidden = true;
}

/** Arrow keys move the focus from word to word; for Tab all words of a text are one stop. */
function moveFocus(event) {
  const words = [...event.currentTarget.querySelectorAll("span")];
  const current = words.indexOf(document.activeElement);
  const next = words[{
    ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1, ArrowUp: current - 1,
    Home: 0, End: words.length - 1,
  }[event.key]];
  if (current < 0 || !next) return;
  event.preventDefault();
  words[current].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function showElapsed(startTime) {
  byId("elapsed").textContent = `${Math.max(1, Math.round(performance.now() - startTime))} ms`;
}

export async function copyTranslation() {
  const { text } = byId("target").dataset;
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(byId("target"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => {
    byId("copy").textContent = "Copy";
  }, 1500);
}

export function addWordNavigation() {
  for (const id of ["target", "aligned-source"]) byId(id).addEventListener("keydown", moveFocus);
}
