// Helpers for the document, shared by all pages. Text of a person or a model is inserted as text, never as markup.

export function byId(id) {
  return document.getElementById(id);
}

export function element(name, className = "", text = "") {
  const created = document.createElement(name);
  if (className) created.className = className;
  if (text) created.textContent = text;
  return created;
}

export function svgElement(name, attributes) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

export function option(value, text) {
  const created = element("option", "", text);
  created.value = String(value);
  return created;
}

/** A message in a status line of the page. */
export function showStatus(text, isError = false, id = "status") {
  byId(id).textContent = text;
  byId(id).classList.toggle("error", isError);
}
