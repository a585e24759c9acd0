// Labels of tokens and words: truncated, measured, and isolated from the text around them.

import { element } from "./dom.js";

export const FONT = '13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const MAX_CHARACTERS = 24;
// Control characters and characters that change the direction of the text around them.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function truncate(label) {
  const characters = Array.from(label);
  const text = characters.length > MAX_CHARACTERS ? `${characters.slice(0, MAX_CHARACTERS - 1).join("")}…` : label;
  return text.replace(INVISIBLE, "�");
}

/** A text between Unicode isolates: its direction does not affect the text around it. */
export function isolate(text) {
  return `\u2068${text}\u2069`;
}

/** A token with a dot instead of ▁, which marks a preceding space. */
export function tokenLabel(token) {
  return token.replace("▁", "·");
}

/** The width in pixels of a text in the font of the labels. */
export function labelMeasure() {
  const context = element("canvas").getContext("2d");
  context.font = FONT;
  return (text) => context.measureText(text).width;
}

/** The end of a status message: the weight of a row that lies on hidden special tokens. */
export function hiddenWeightText(matrix, row) {
  return matrix.hidden[row] > 0.0005 ? `; ${matrix.hidden[row].toFixed(3)} of its row on hidden special tokens` : "";
}

/** A line of words in the direction of their script. */
export function wordLine() {
  const line = element("p", "sentence");
  line.dir = "auto";
  return line;
}

/** Show these elements in a line, with blanks between them, at which the line may break. */
export function showWords(line, words) {
  line.replaceChildren(...words.flatMap((word) => [word, document.createTextNode(" ")]));
}
