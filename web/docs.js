"use strict";
// Draws openapi.json: operations with their parameters, then the schemas.

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

function link(schema) {
  const code = element("code", typeOf(schema));
  const target = schema && (schema.$ref || (schema.items && schema.items.$ref));
  if (!target) return code;
  const a = element("a");
  a.href = "#schema-" + refName(target);
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

function operation(path, method, op) {
  const box = element("details");
  box.id = op.operationId;
  const title = element("summary");
  title.append(element("span", method.toUpperCase(), "method"), element("code", path), element("span", "  " + (op.summary || ""), "soft"));
  box.append(title);
  const params = (op.parameters || []).map((p) => [
    element("code", p.name), p.in, link(p.schema), (p.required ? "required. " : "") + (p.description || p.schema.description || ""),
  ]);
  if (params.length) box.append(tableOf(["parameter", "in", "type", ""], params));
  const responses = Object.entries(op.responses || {}).map(([status, r]) => {
    const content = Object.entries(r.content || {})[0];
    return [element("code", status), content ? link(content[1].schema) : "", r.description || ""];
  });
  box.append(tableOf(["answer", "body", ""], responses));
  return box;
}

function schema(name, s) {
  const box = element("details");
  box.id = "schema-" + name;
  box.append(element("summary", name));
  const required = new Set(s.required || []);
  const rows = Object.entries(s.properties || {}).map(([field, p]) => [
    element("code", field), link(p), (required.has(field) ? "" : "optional. ") + (p.description || ""),
  ]);
  box.append(tableOf(["field", "type", ""], rows));
  return box;
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
}

async function draw() {
  const about = document.getElementById("about");
  try {
    const doc = await (await fetch("openapi.json")).json();
    about.textContent = doc.info.description;
    for (const [path, methods] of Object.entries(doc.paths)) {
      for (const [method, op] of Object.entries(methods)) {
        document.getElementById("operations").append(operation(path, method, op));
      }
    }
    for (const [name, s] of Object.entries(doc.components.schemas)) {
      document.getElementById("schemas").append(schema(name, s));
    }
    openTarget();
  } catch (err) {
    about.textContent = "openapi.json cannot be read: " + err.message;
  }
}

addEventListener("hashchange", openTarget);
draw();
