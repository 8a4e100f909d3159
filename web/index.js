"use strict";
// Everything shown here is set as text: names and errors come from outside.

const state = document.getElementById("state");
const table = document.getElementById("chains");

function behind(asOf) {
  if (asOf.lagSeconds === null) return "unknown";
  const blocks = asOf.lagBlocks === null ? "" : ", " + asOf.lagBlocks + " blocks";
  return asOf.lagSeconds + " s" + blocks;
}

function missing(completeness) {
  return completeness.openGaps + completeness.pending + completeness.undecoded;
}

// One endpoint may be asked by several processes: it works when it works for one.
function endpoints(list) {
  if (list.length === 0) return "none";
  const all = new Set(list.map((e) => e.name));
  const working = new Set(list.filter((e) => e.state === "closed").map((e) => e.name));
  return working.size + " of " + all.size;
}

function row(chain) {
  const tr = document.createElement("tr");
  const problem = chain.halted ? "halted: " + (chain.lastError || "") : chain.lastError || "";
  const cells = [
    chain.name ? chain.name + " (" + chain.chainId + ")" : chain.chainId,
    chain.asOf.block, behind(chain.asOf), chain.asOf.completeness.status,
    missing(chain.asOf.completeness), endpoints(chain.endpoints),
    chain.agents, chain.feedback, chain.documents.due, problem,
  ];
  for (const value of cells) tr.insertCell().textContent = String(value);
  return tr;
}

async function refresh() {
  try {
    const response = await fetch("status", { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error("status " + response.status);
    const status = await response.json();
    state.textContent = status.status + ", version " + status.version +
      (status.chains.length === 0 ? ", no chain indexed yet" : "");
    state.className = status.status === "ok" ? "soft" : "bad";
    table.hidden = status.chains.length === 0;
    table.tBodies[0].replaceChildren(...status.chains.map(row));
  } catch (err) {
    state.textContent = "the index does not answer: " + err.message;
    state.className = "bad";
  }
}

refresh();
setInterval(refresh, 5000);
