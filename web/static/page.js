"use strict";
// What every page can do with JavaScript: copy, change the theme, and say that the index changed. Pages work without.

const root = document.documentElement;
root.classList.add("scripted");

function themed(name) {
  if (name) root.dataset.theme = name;
}
try { themed(localStorage.getItem("theme")); } catch { /* storage may be off */ }

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "theme") {
    themed(isDark() ? "light" : "dark");
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* storage may be off */ }
    document.dispatchEvent(new Event("themechange"));
  }
  if (button.dataset.copy) {
    const text = button.dataset.copy.startsWith("/") ? new URL(button.dataset.copy, location.href).href : button.dataset.copy;
    let how = "done";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      how = "failed";
    }
    button.classList.add(how);
    setTimeout(() => button.classList.remove(how), 1500);
  }
});

// Rows that follow the index are asked for again, at most once a second: after a reorganization they are right again by
// themselves.
function follow(shown) {
  const stream = new EventSource("/changes");
  let waits = 0;
  const changed = () => {
    if (waits) return;
    waits = setTimeout(() => {
      waits = 0;
      if (!document.hidden) document.body.dispatchEvent(new CustomEvent("indexchange"));
    }, 1000);
  };
  const kinds = shown.dataset.kinds.split(" ");
  for (const kind of kinds) stream.addEventListener(kind, changed);
  stream.addEventListener("open", () => { shown.textContent = "live"; shown.className = "live js on"; });
  stream.addEventListener("error", () => { shown.textContent = "not live: trying again"; shown.className = "live js"; });
  addEventListener("pagehide", () => stream.close());
}

const live = document.getElementById("live");
if (live) follow(live);

// Pages about work may need a token. It is kept in this tab alone, and goes nowhere but into the header of requests to
// this server. A part of a page with data-private is asked for again with it; one with data-live every few seconds too.
const tokenName = "repute-token";
const liveEvery = 3000;

function keptToken() {
  try { return sessionStorage.getItem(tokenName) || ""; } catch { return ""; }
}

function keepToken(text) {
  try {
    if (text) sessionStorage.setItem(tokenName, text);
    else sessionStorage.removeItem(tokenName);
    return true;
  } catch {
    return false;
  }
}

function sayToken(text) {
  const shown = document.getElementById("token-state");
  if (shown) shown.textContent = text;
}

// reload asks for a part of the page again.
function reload(part) {
  part.dispatchEvent(new CustomEvent("reload"));
}

function reloadAll() {
  for (const part of document.querySelectorAll("[data-private]")) reload(part);
}

// isWritten reports whether somebody types into a part, which a new answer would disturb.
function isWritten(part) {
  const at = document.activeElement;
  if (at && at.matches("input, textarea, select") && part.contains(at)) return true;
  return [...part.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
}

document.addEventListener("htmx:config:request", (event) => {
  const ctx = event.detail.ctx;
  if (ctx.sourceElement.matches("[data-private]") && keptToken()) {
    ctx.request.headers.Authorization = "Bearer " + keptToken();
  }
});

// sayStale says that what is shown may be old; "" takes it back.
function sayStale(text) {
  const shown = document.getElementById("work-state");
  if (!shown) return;
  shown.hidden = !text;
  shown.textContent = text;
}

function isPrivate(event) {
  return Boolean(event.detail.ctx?.sourceElement?.matches?.("[data-private]"));
}

// An answer that is no page, such as that of a proxy or a rate limit, does not replace what is shown.
document.addEventListener("htmx:before:response", (event) => {
  if (!isPrivate(event)) return;
  const { response } = event.detail.ctx;
  const isPage = (response.headers.get("Content-Type") || "").startsWith("text/html") && response.status !== 404;
  sayStale(isPage ? "" : `The server answers with status ${response.status}. What is shown may be old; it is asked again.`);
  if (!isPage) event.preventDefault();
});
document.addEventListener("htmx:error", (event) => {
  if (isPrivate(event)) sayStale("The server does not answer. What is shown may be old; it is asked again.");
});

// Details that are open stay open when their part is replaced.
let opened = [];
document.addEventListener("htmx:before:swap", () => {
  opened = [...document.querySelectorAll("[data-private] details[open][id]")].map((d) => d.id);
});
document.addEventListener("htmx:after:swap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
});

// act sends what a form asks for to the API, with the token, and says what became of it.
async function act(form, submitter) {
  const shown = form.querySelector("[role=status]");
  const token = keptToken();
  if (!token) {
    shown.textContent = "Type a token first, at the top of the page.";
    document.getElementById("token-text").focus();
    return;
  }
  const body = {};
  for (const [name, value] of new FormData(form, submitter)) {
    if (name === "approved") body.approved = value === "true";
    else if (value !== "") body[name] = value;
  }
  const buttons = form.querySelectorAll("button");
  for (const b of buttons) b.disabled = true;
  shown.textContent = "Asking…";
  try {
    const answer = await fetch(form.dataset.act, {
      method: "POST", credentials: "omit", redirect: "error", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", Authorization: "Bearer " + token },
    });
    const said = await answer.json();
    shown.textContent = answer.ok ? "Done." : [said.detail, said.hint].filter(Boolean).join("; ");
    if (answer.ok) {
      form.reset();
      document.activeElement?.blur();
      reloadAll();
    }
  } catch (err) {
    shown.textContent = "The server does not answer: " + err.message + ". Nothing is known to have changed.";
  }
  for (const b of buttons) b.disabled = false;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "token") {
    event.preventDefault();
    const field = document.getElementById("token-text");
    const text = field.value.trim();
    field.value = "";
    if (!text) {
      sayToken("Type a token first.");
    } else {
      sayToken(keepToken(text) ? "This tab uses the token." : "The browser keeps nothing: its storage is off.");
      reloadAll();
    }
  } else if (form.dataset.act) {
    event.preventDefault();
    act(form, event.submitter);
  }
});

document.addEventListener("click", (event) => {
  if (event.target.id !== "token-forget") return;
  keepToken("");
  sayToken("The token is forgotten.");
  reloadAll();
});

document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("[data-private]")) return;
  if (keptToken()) {
    sayToken("This tab uses a token.");
    setTimeout(reloadAll); // after htmx has begun
  }
  setInterval(() => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-live]")) if (!isWritten(part)) reload(part);
  }, liveEvery);
});
