// State of the translation page: models, the selected one, limits, the schema of options and the API key.

import { byId } from "../../views/page/dom.js";

const session = { models: [], limits: {}, optionSchema: {} };

export function setService({ models, limits, option_schema: schema }) {
  Object.assign(session, { models, limits, optionSchema: schema });
}

export function limits() {
  return session.limits;
}

/** The JSON schema of every decoding option, by name. */
export function optionSchema() {
  return session.optionSchema;
}

export function apiKey() {
  return byId("api-key").value.trim();
}

export function selectedModel() {
  return session.models[Number(byId("model").value)];
}

/** Whether the selected model reads files, such as images, recordings or tables of series. */
export function readsFiles() {
  return Boolean(selectedModel()?.accepts?.length);
}

/** The index of the model that translates in the other direction, or -1. */
export function reverseModel() {
  const selected = selectedModel();
  return session.models.findIndex((model) =>
    selected && model.source && model.source === selected.target && model.target === selected.source);
}
