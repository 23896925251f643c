"use strict";
// Printing: the whole graph if it is readable on one page, else the visible part; charts as wide as the paper.
(() => {
  const PAPER = { width: 680, height: 900 }; // px of a page within its margins
  let printing = false;
  R.boxOf = (svg) => (printing ? PAPER : svg.getBoundingClientRect());
  // The width available for charts.
  R.chartWidth = () =>
    printing ? PAPER.width : Math.max(300, document.getElementById("view").clientWidth - (innerWidth < 760 ? 20 : 46));

  // The printed part of the graph, and its height.
  function viewOnPaper() {
    const { graph } = R,
      camera = graph.camera(),
      view = camera.view(),
      box = graph.svg.getBoundingClientRect();
    const all = camera.whole(graph.drawn().extent, PAPER, 0);
    if (R.levelOf(all.k) !== "far" || R.levelOf(view.k) === "far") {
      const [, top, , bottom] = graph.drawn().extent,
        height = Math.ceil(all.k * (bottom - top));
      return { height, view: camera.put(all.x, all.y, all.k, { ...PAPER, height }) };
    }
    const [x, y] = view.invert([box.width / 2, box.height / 2]);
    return { height: PAPER.height, view: camera.put(x, y, Math.min(view.k, 1), PAPER) };
  }

  window.addEventListener("beforeprint", () => {
    const { graph } = R;
    if (!graph.element.isConnected) {
      printing = true;
      R.reshow();
      return;
    }
    if (!graph.drawn()) return;
    const { height, view } = viewOnPaper();
    printing = true;
    graph.svg.setAttribute("viewBox", `0 0 ${PAPER.width} ${height}`);
    graph.look(view);
  });
  window.addEventListener("afterprint", () => {
    if (!printing) return;
    printing = false;
    R.graph.svg.removeAttribute("viewBox");
    if (R.graph.element.isConnected) R.graph.look();
    else R.reshow();
  });
})();
