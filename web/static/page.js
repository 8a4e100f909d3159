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
