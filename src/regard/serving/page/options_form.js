// The form of decoding options. Its fields come from the schema of options in /v1/models.

import { byId, element, option } from "../../views/page/dom.js";
import { optionSchema, selectedModel } from "./session.js";

const REQUESTED_BY_PAGE = new Set(["scores", "alignment", "attention", "nbest", "to"]);

function label(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** The control for a field: a checkbox, a number, a choice, one line, or several lines. */
function createControl({ type, enum: choices, ...schema }) {
  if (choices) {
    const select = element("select");
    select.append(option("", ""), ...choices.map((choice) => option(choice, choice)));
    return select;
  }
  if (type === "array" || type === "object") {
    const lines = element("textarea");
    lines.rows = 2;
    lines.placeholder = type === "array" ? "one per line" : "term = translation, one per line";
    return lines;
  }
  const input = element("input");
  input.type = { boolean: "checkbox", integer: "number", number: "number" }[type] ?? "text";
  if (input.type === "number") {
    input.step = type === "integer" ? 1 : "any";
    input.min = schema.minimum ?? schema.exclusiveMinimum ?? "";
    input.max = schema.maximum ?? schema.exclusiveMaximum ?? "";
    input.placeholder = schema.default ?? "";
  }
  return input;
}

function readLines(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

function readTerms(text) {
  return Object.fromEntries(readLines(text).map((line) => {
    const [term, ...translation] = line.split("=");
    return [term.trim(), translation.join("=").trim()];
  }));
}

function formatTerms(terms) {
  return Object.entries(terms).map((pair) => pair.join(" = ")).join("\n");
}

/** The value of a control, undefined if nothing was entered. */
function readControl(control, { type }) {
  if (type === "boolean") return control.checked || undefined;
  const text = control.value.trim();
  if (!text) return undefined;
  if (type === "integer" || type === "number") return Number(text);
  if (type === "array") return readLines(text);
  return type === "object" ? readTerms(text) : text;
}

/** Show the options of the selected model; what was entered for an option stays when the model changes. */
export function showOptions() {
  const names = (selectedModel()?.options ?? []).filter((name) => !REQUESTED_BY_PAGE.has(name));
  const entered = enteredOptions();
  byId("options").hidden = !names.length;
  byId("option-fields").replaceChildren(...names.map((name) => {
    const schema = optionSchema()[name];
    const field = element("label", "", label(name));
    const control = createControl(schema);
    control.name = name;
    control.title = schema.description;
    const value = entered[name];
    if (value !== undefined) {
      if (schema.type === "boolean") control.checked = value;
      else if (schema.type === "array") control.value = value.join("\n");
      else if (schema.type === "object") control.value = formatTerms(value);
      else control.value = value;
    }
    field.append(control);
    return field;
  }));
}

/** The options that are entered, by name. */
export function enteredOptions() {
  const controls = [...byId("option-fields").querySelectorAll("[name]")];
  const entries = controls.map((control) => [control.name, readControl(control, optionSchema()[control.name])]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** The options that are entered, as pairs for a query string. */
export function queryOptions() {
  return Object.entries(enteredOptions()).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [typeof value === "object" ? JSON.stringify(value) : value];
    return values.map((each) => [name, each]);
  });
}

/** Call a function when an option changes. */
export function onOptionsChanged(callback) {
  byId("option-fields").addEventListener("input", callback);
  byId("reset-options").addEventListener("click", () => {
    byId("option-fields").replaceChildren();
    showOptions();
    callback();
  });
}
