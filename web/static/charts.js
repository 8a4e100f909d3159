"use strict";
// Draws the series of data-chart: seconds, values, lower and upper bounds.

function colors() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  // A canvas knows no light-dark(): an element resolves it.
  const probe = document.createElement("span");
  document.body.append(probe);
  const resolved = (name) => {
    probe.style.color = of(name);
    return getComputedStyle(probe).color;
  };
  const found = { line: resolved("--accent"), soft: resolved("--soft"), grid: resolved("--line"), band: resolved("--band") };
  probe.remove();
  return found;
}

function draw(box) {
  const [xs, ys, lows, highs] = JSON.parse(box.dataset.chart);
  if (!ys.some((y) => y !== null)) {
    box.textContent = "Nothing to draw yet.";
    return;
  }
  const c = colors();
  const bounded = lows.some((v) => v !== null);
  const axis = { stroke: c.soft, grid: { stroke: c.grid, width: 1 }, ticks: { stroke: c.grid, width: 1 }, font: "12px system-ui" };
  const range = (u, least, greatest) => [
    box.dataset.least === undefined ? least : Number(box.dataset.least),
    box.dataset.greatest === undefined ? Math.max(greatest, 1) : Number(box.dataset.greatest),
  ];
  const series = [{}, {
    label: "value", stroke: c.line, width: 2, points: { show: false },
    paths: bounded ? uPlot.paths.linear() : uPlot.paths.bars({ size: [0.7, 24] }), fill: bounded ? undefined : c.line,
  }];
  const data = [xs, ys];
  const bands = [];
  if (bounded) {
    for (const values of [highs, lows]) {
      data.push(values);
      series.push({ stroke: c.band, width: 1, points: { show: false } });
    }
    bands.push({ series: [2, 3], fill: c.band });
  }
  box.replaceChildren();
  new uPlot({
    width: Math.max(240, box.clientWidth), height: 180, series, bands, axes: [axis, { ...axis, size: 44 }],
    scales: { y: { range } }, legend: { show: false }, cursor: { y: false },
  }, data, box);
}

function drawAll() {
  for (const box of document.querySelectorAll("[data-chart]")) draw(box);
}

let waits = 0;
addEventListener("resize", () => { clearTimeout(waits); waits = setTimeout(drawAll, 150); });
document.addEventListener("themechange", drawAll);
drawAll();
