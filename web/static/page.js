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

// Pages about work may need a token. The browser keeps it until this tab is closed, and copies it where the tab is
// duplicated. It is sent to this server alone, in a header. A part of a page with data-private is asked for again with it;
// while the part has data-live, also every data-every seconds.
const tokenName = "repute-token";

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

// reload asks for a part of the page again. Live says that the clock asks, and not a person.
function reload(part, live = false) {
  part.dispatchEvent(new CustomEvent("reload", { detail: { live } }));
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

// Forms, by id, whose action has no answer yet.
const busy = new Set();

// isHeld reports whether a live answer must not replace a part: somebody types into it, an action has no answer yet, or the
// pointer or the focus is at a decision, so that another decision moved into its place would get the click.
function isHeld(part) {
  return busy.size > 0 || isWritten(part) || part.querySelector("[data-decisions] form:is(:hover, :focus-within)") !== null;
}

// bearer is the header of a request with the token; "" without one.
function bearer() {
  return keptToken() && "Bearer " + keptToken();
}

document.addEventListener("htmx:config:request", (event) => {
  const ctx = event.detail.ctx;
  if (ctx.sourceElement.matches("[data-private]") && keptToken()) ctx.request.headers.Authorization = bearer();
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

// An answer that is no page, such as that of a proxy or a rate limit, does not replace what is shown; nor does one to a
// token that was forgotten or replaced since, nor a live one while the part is held.
document.addEventListener("htmx:before:response", (event) => {
  if (!isPrivate(event)) return;
  const { request, response, sourceElement, sourceEvent } = event.detail.ctx;
  if ((request.headers.Authorization || "") !== bearer()) {
    event.preventDefault();
    setTimeout(() => reload(sourceElement)); // after htmx has ended this request
    return;
  }
  if (sourceEvent?.detail?.live && isHeld(sourceElement)) {
    event.preventDefault();
    return;
  }
  const isPage = (response.headers.get("Content-Type") || "").startsWith("text/html") && response.status !== 404;
  sayStale(isPage ? "" : `The server answers with status ${response.status}. What is shown may be old; it is asked again.`);
  if (!isPage) event.preventDefault();
});
document.addEventListener("htmx:error", (event) => {
  if (isPrivate(event)) sayStale("The server does not answer. What is shown may be old; it is asked again.");
});

// A part that somebody waits for says so. Parts that the clock asks for stay as they are.
function setBusy(event, isBusy) {
  const { sourceElement, sourceEvent } = event.detail.ctx ?? {};
  if (sourceEvent?.detail?.live) return;
  const part = sourceElement?.matches?.("form.search") ? document.getElementById("results")
    : sourceElement?.matches?.("[data-private]") ? document.getElementById(sourceElement.id) : null;
  part?.setAttribute("aria-busy", String(isBusy));
}
document.addEventListener("htmx:before:request", (event) => setBusy(event, true));
document.addEventListener("htmx:finally:request", (event) => setBusy(event, false));

// Details that are open stay open when their part is replaced.
let opened = [];
document.addEventListener("htmx:before:swap", () => {
  opened = [...document.querySelectorAll("[data-private] details[open][id]")].map((d) => d.id);
});
document.addEventListener("htmx:after:swap", () => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const id of busy) showAct(id, "Asking…"); // a new answer has buttons that can be used
});

// showAct says what became of an action. The part around its form may have been replaced since it began.
function showAct(id, text) {
  const form = document.getElementById(id);
  if (!form) return;
  form.querySelector("[role=status]").textContent = text;
  for (const b of form.querySelectorAll("button")) b.disabled = busy.has(id);
}

// failureOf says why the server refused an action. Proxies answer with pages instead of JSON.
async function failureOf(answer) {
  try {
    const said = await answer.json();
    const text = [said.detail, said.hint].filter(Boolean).join("; ");
    if (text) return text;
  } catch { /* no JSON */ }
  return `The answer has status ${answer.status} and no reason. Nothing is known to have changed.`;
}

// act sends what a form asks for to the API, with the token, and says what became of it. Button is the decision's; it is
// absent for forms that submit.
async function act(form, button) {
  if (busy.has(form.id)) return;
  const token = keptToken();
  if (!token) {
    showAct(form.id, "Type a token first, at the top of the page.");
    document.getElementById("token-text").focus();
    return;
  }
  const body = {};
  for (const [name, value] of new FormData(form)) if (value !== "") body[name] = value;
  if (button) body.approved = button.value === "true";
  busy.add(form.id);
  showAct(form.id, "Asking…");
  let text;
  let isDone = false;
  try {
    const answer = await fetch(form.dataset.act, {
      method: "POST", credentials: "omit", redirect: "error", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", Authorization: "Bearer " + token },
    });
    isDone = answer.ok;
    text = isDone ? "Done." : await failureOf(answer);
  } catch (err) {
    text = "The server does not answer: " + err.message + ". Nothing is known to have changed.";
  }
  busy.delete(form.id);
  showAct(form.id, text);
  if (!isDone) return;
  form.reset();
  document.activeElement?.blur();
  reloadAll();
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
    if (form.querySelector("button[name=approved]")) showAct(form.id, "Choose Approve or Reject.");
    else act(form);
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=approved]");
  const form = button?.closest("form[data-act]");
  // The second click of a double click may meet the next decision, which has moved into this place.
  if (form && event.detail < 2) act(form, button);
});

// What the token showed is taken off the page at once: the server may not answer.
document.addEventListener("click", (event) => {
  if (event.target.id !== "token-forget") return;
  keepToken("");
  sayToken("The token is forgotten.");
  for (const part of document.querySelectorAll("[data-private]")) part.replaceChildren();
  reloadAll();
});

document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("[data-private]")) return;
  if (keptToken()) {
    sayToken("This tab uses a token.");
    setTimeout(reloadAll); // after htmx has begun
  }
  for (const { id, dataset } of document.querySelectorAll("[data-private]")) {
    setInterval(() => {
      const part = document.getElementById(id);
      if (!document.hidden && part?.matches("[data-live]") && !isHeld(part)) reload(part, true);
    }, dataset.every * 1000);
  }
});
