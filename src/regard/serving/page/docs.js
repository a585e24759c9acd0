// The API, as openapi.json describes it.

import { byId, element } from "../../views/page/dom.js";
import { request } from "./client.js";

function append(parent, name, text = "") {
  const child = element(name, "", text);
  parent.append(child);
  return child;
}

function typeName(schema) {
  if (!schema) return "";
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items)}`;
  return schema.type ?? schema.$ref?.split("/").pop() ?? "anything";
}

function addFields(section, fields) {
  const list = append(section, "ul");
  for (const { name, schema, required, location } of fields) {
    const item = append(list, "li");
    append(item, "code", name);
    const details = [`${location}: ${typeName(schema)}`];
    if (schema?.description) details.push(schema.description.replace(/\.$/, ""));
    if (required) details.push("needed");
    else if (!["", null, undefined].includes(schema?.default)) {
      details.push(`otherwise ${JSON.stringify(schema.default)}`);
    }
    item.append(`  ${details.join(", ")}`);
  }
}

function addRoute(path, method, route, schemas) {
  const section = append(byId("routes"), "section");
  append(section, "h2", `${method.toUpperCase()} ${path}`);
  append(section, "p", route.summary);
  const fields = (route.parameters ?? [])
    .filter((parameter) => parameter.in === "query")
    .map(({ name, schema, required }) => ({ name, schema, required, location: "in the address" }));
  const content = route.requestBody?.content?.["application/json"]?.schema;
  const body = content?.$ref ? schemas[content.$ref.split("/").pop()] : content;
  for (const [name, schema] of Object.entries(body?.properties ?? {})) {
    fields.push({ name, schema, required: (body.required ?? []).includes(name), location: "in the body" });
  }
  if (fields.length) addFields(section, fields);
  if (route.description) append(section, "pre", route.description);
}

const api = await request("/openapi.json");
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, route] of Object.entries(methods)) addRoute(path, method, route, api.components?.schemas ?? {});
}
