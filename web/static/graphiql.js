"use strict";
// Sends the query to /graphql and shows the answer as text. The part of the URL after # may give query and variables.

const query = document.getElementById("query");
const variables = document.getElementById("variables");
const result = document.getElementById("result");
const took = document.getElementById("took");

const asked = new URLSearchParams(location.hash.slice(1));
if (asked.get("query")) {
  query.value = asked.get("query");
  variables.value = asked.get("variables") || "{}";
}

async function run() {
  const start = performance.now();
  took.textContent = "running";
  try {
    const response = await fetch("graphql", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ query: query.value, variables: JSON.parse(variables.value || "{}") }),
    });
    result.textContent = JSON.stringify(await response.json(), null, 2);
    took.textContent = response.status + " in " + Math.round(performance.now() - start) + " ms";
  } catch (err) {
    result.textContent = err.message;
    took.textContent = "failed";
  }
}

document.getElementById("run").addEventListener("click", run);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
});
