// What openapi.json says, for reading.

const about = await (await fetch("/openapi.json")).json();
const schemas = about.components?.schemas ?? {};

function make(name, text, into) {
  const element = document.createElement(name);
  element.textContent = text;
  into.append(element);
  return element;
}

function kind(schema) {
  if (!schema) return "";
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items)}`;
  return schema.type ?? schema.$ref?.split("/").pop() ?? "anything";
}

function rows(fields, into) {
  const list = make("ul", "", into);
  for (const { name, schema, needed, place } of fields) {
    const item = make("li", "", list);
    make("code", name, item);
    const rest = [`${place}: ${kind(schema)}`];
    if (schema?.description) rest.push(schema.description.replace(/\.$/, ""));
    if (needed) rest.push("needed");
    else if (schema?.default !== undefined && schema.default !== null && schema.default !== "")
      rest.push(`otherwise ${JSON.stringify(schema.default)}`);
    item.append(`  ${rest.join(", ")}`);
  }
}

for (const [path, methods] of Object.entries(about.paths)) {
  for (const [method, route] of Object.entries(methods)) {
    const section = make("section", "", document.getElementById("routes"));
    make("h2", `${method.toUpperCase()} ${path}`, section);
    make("p", route.summary ?? "", section);
    const body = route.requestBody?.content?.["application/json"]?.schema;
    const shape = body?.$ref ? schemas[body.$ref.split("/").pop()] : body;
    const fields = (route.parameters ?? [])
      .filter((each) => each.in === "query")
      .map((each) => ({ name: each.name, schema: each.schema, needed: each.required, place: "in the address" }));
    for (const [name, schema] of Object.entries(shape?.properties ?? {}))
      fields.push({ name, schema, needed: (shape.required ?? []).includes(name), place: "in the body" });
    if (fields.length) rows(fields, section);
    if (route.description) make("pre", route.description, section);
  }
}
