"use strict";
// Draws each OpenAPI document that the page links to: operations with their parameters and
// example answers, then the schemas. Ids are those of the document, a slash and the name.

function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

function refName(ref) { return ref.slice(ref.lastIndexOf("/") + 1); }

function typeOf(schema) {
  if (!schema) return "any";
  if (schema.$ref) return refName(schema.$ref);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  const types = [].concat(schema.type || "any");
  const names = types.map((t) => (t === "array" ? typeOf(schema.items) + "[]" : t));
  return names.join(" | ") + (schema.format ? " (" + schema.format + ")" : "");
}

function link(schema, doc) {
  const code = element("code", typeOf(schema));
  const target = schema && (schema.$ref || (schema.items && schema.items.$ref));
  if (!target) return code;
  const a = element("a");
  a.href = "#" + doc.at + "/schema/" + refName(target);
  a.append(code);
  return a;
}

function tableOf(heads, rows) {
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const h of heads) head.append(element("th", h));
  const body = table.createTBody();
  for (const cells of rows) {
    const tr = body.insertRow();
    for (const c of cells) tr.insertCell().append(c);
  }
  return table;
}

function resolved(doc, value) {
  if (!value || !value.$ref) return value;
  return value.$ref.slice(2).split("/").reduce((at, name) => (at || {})[name], doc);
}

function exampleOf(doc, media) {
  if (media.example !== undefined) return media.example;
  const named = resolved(doc, Object.values(media.examples || {})[0]);
  return named && named.value;
}

function operation(doc, path, method, op) {
  const box = element("details");
  box.id = doc.at + "/" + (op.operationId || method + path);
  const title = element("summary");
  title.append(element("span", method.toUpperCase(), "method"), element("code", path), element("span", "  " + (op.summary || ""), "soft"));
  box.append(title);
  if (op.description) box.append(element("p", op.description));
  const params = (op.parameters || []).map((ref) => resolved(doc, ref)).map((p) => [
    element("code", p.name), p.in, link(p.schema, doc), (p.required ? "required. " : "") + (p.description || (p.schema || {}).description || ""),
  ]);
  if (params.length) box.append(tableOf(["parameter", "in", "type", ""], params));
  const request = Object.values((resolved(doc, op.requestBody) || {}).content || {})[0];
  if (request) box.append(tableOf(["body", ""], [[link(request.schema, doc), op.requestBody.required ? "required" : ""]]));
  const responses = Object.entries(op.responses || {}).map(([status, ref]) => {
    const r = resolved(doc, ref);
    const content = Object.entries(r.content || {})[0];
    return [element("code", status), content ? link(content[1].schema, doc) : "", r.description || "", content];
  });
  box.append(tableOf(["answer", "body", ""], responses.map((r) => r.slice(0, 3))));
  for (const [code, , , content] of responses) {
    const value = content && code.textContent !== "default" ? exampleOf(doc, content[1]) : undefined;
    if (value === undefined) continue;
    const shown = element("details");
    shown.append(element("summary", "example of " + code.textContent), element("pre", typeof value === "string" ? value : JSON.stringify(value, null, 2)));
    box.append(shown);
  }
  return box;
}

function schema(doc, name, s) {
  const box = element("details");
  box.id = doc.at + "/schema/" + name;
  box.append(element("summary", name));
  const required = new Set(s.required || []);
  const rows = Object.entries(s.properties || {}).map(([field, p]) => [
    element("code", field), link(p, doc), (required.has(field) ? "" : "optional. ") + (p.description || ""),
  ]);
  box.append(tableOf(["field", "type", ""], rows));
  return box;
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.tagName === "DETAILS") target.open = true;
  target.scrollIntoView();
}

async function draw(at) {
  const section = element("section");
  section.id = at;
  document.getElementById("interfaces").append(section);
  const about = element("p", "loading", "soft");
  section.append(element("h2", at), about);
  try {
    const answer = await fetch(at);
    if (answer.status === 404) {
      about.textContent = "This process does not serve it.";
      return;
    }
    const doc = await answer.json();
    doc.at = at;
    section.firstChild.textContent = doc.info.title + " " + doc.info.version;
    about.textContent = doc.info.description || "";
    for (const [path, methods] of Object.entries(doc.paths)) {
      for (const [method, op] of Object.entries(methods)) {
        if (op.responses) section.append(operation(doc, path, method, op));
      }
    }
    section.append(element("h3", "Schemas"));
    for (const [name, s] of Object.entries((doc.components || {}).schemas || {})) section.append(schema(doc, name, s));
  } catch (err) {
    about.textContent = at + " cannot be read: " + err.message;
  }
}

async function drawAll() {
  await Promise.all([...document.querySelectorAll("a[data-openapi]")].map((a) => draw(a.getAttribute("href"))));
  openTarget();
}

addEventListener("hashchange", openTarget);
drawAll();
