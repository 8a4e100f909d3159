"use strict";
// Draws the nodes and edges of data-graph, whose places the server has computed. A click opens the page of a node.

function paint(box) {
  const data = JSON.parse(box.dataset.graph);
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  box.append(probe);
  const color = (name) => {
    probe.style.color = style.getPropertyValue(name);
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
    return "#" + [r, g, b].map((v) => Math.round(v).toString(16).padStart(2, "0")).join("");
  };
  const kinds = { self: color("--accent"), agent: color("--good"), owner: color("--soft"), reviewer: color("--warn") };
  const line = color("--line");
  const text = color("--text");
  probe.remove();
  const graph = new graphology.Graph({ multi: false, type: "directed" });
  for (const n of data.nodes) {
    graph.addNode(n.id, { x: n.x, y: n.y, label: n.label, color: kinds[n.kind], size: 4 + Math.min(10, 2 * Math.sqrt(n.degree)), url: n.url });
  }
  for (const e of data.edges) graph.addEdge(e.from, e.to, { color: line, size: 1 });
  const drawn = new Sigma(graph, box, { labelColor: { color: text }, labelFont: "system-ui, sans-serif", labelSize: 12, labelRenderedSizeThreshold: 5, allowInvalidContainer: true });
  drawn.on("clickNode", ({ node }) => { location.href = graph.getNodeAttribute(node, "url"); });
  return drawn;
}

let shown;
function repaint() {
  if (shown) shown.kill();
  const box = document.querySelector("[data-graph]");
  try {
    if (box) shown = paint(box);
  } catch (err) {
    box.textContent = "The graph cannot be drawn here: " + err.message;
  }
}
document.addEventListener("themechange", repaint);
repaint();
