"use strict";
// The view of time: a flame chart by scope and body, and the slowest steps.
(() => {
  const ROW = 22;

  R.views.profile = () => {
    const total = R.totalTime || 1,
      all = R.steps.flatMap(function flat(s) {
        return [s, ...s.inside.flatMap(flat)];
      });
    const most = Math.max(...all.map((s) => s.seconds), 1e-12),
      inside = all.length - R.steps.length;
    const rows = [...all]
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, 100)
      .map((s) => {
        const k = s.layers.at(-1),
          body = k !== undefined && R.data.graphs[R.layers[k].graph].owner;
        return R.h(
          "tr",
          k === undefined ? {} : R.pick(k),
          R.h("td", { class: "number" }, R.seconds(s.seconds)),
          R.h(
            "td",
            {},
            R.h("span", { class: "meter", style: { width: Math.max(1, (100 * s.seconds) / most) + "px" } }),
            ` ${((100 * s.seconds) / total).toFixed(1)} %`,
          ),
          R.h("td", {}, s.operation),
          R.h(
            "td",
            {},
            k === undefined ? "" : R.link(k),
            typeof body === "number" ? R.h("span", { class: "quiet" }, " in ", R.link(body)) : null,
          ),
          R.h("td", {}, s.kernel),
          R.h("td", { class: "number" }, s.rate),
        );
      });
    const note = inside
      ? ` ${inside} more steps are in bodies: their time, summed over all iterations, is included in the layer that runs the body.`
      : "";
    return R.h(
      "div",
      { class: "sheet" },
      R.h(
        "p",
        { class: "intro" },
        `${R.seconds(total)} in ${R.steps.length} steps; medians.${note} By scope, from the model down:`,
      ),
      flame(),
      R.h("h2", {}, "Steps"),
      R.table(["time", "share", "operation", "layer", "kernel", "rate"], rows),
    );
  };

  const timeOf = (layers) => layers.reduce((sum, l) => sum + l.time, 0);

  // The children of a block: parts of a scope, or of the bodies of a layer.
  function parts(layers, depth) {
    if (layers.length === 1 && (depth === null || depth > R.scopeOf(layers[0].shown).length)) {
      const inside = (layers[0].bodies ?? [])
        .flatMap((b) => R.layersOfGraph(R.data.graphs[b.graph]))
        .filter((l) => l.time > 0);
      return inside.length
        ? { found: new Map(inside.map((l) => ["\0" + l.index, [l]])), depth: null }
        : { found: new Map() };
    }
    const found = new Map();
    for (const l of layers) {
      const key = R.scopeOf(l.shown)[depth] ?? "\0" + l.index;
      found.set(key, [...(found.get(key) ?? []), l]);
    }
    return { found, depth: depth + 1 };
  }

  // Each scope is as wide as its time, with its children below.
  function flame() {
    const W = R.chartWidth(),
      blocks = [];
    const tree = (layers, depth, row, x, width, label) => {
      blocks.push({ row, x, width, label, time: timeOf(layers), layer: layers.length === 1 ? layers[0].index : null });
      const { found, depth: below } = parts(layers, depth),
        whole = Math.max(timeOf(layers), timeOf([...found.values()].flat())) || 1;
      let at = x;
      for (const [key, inside] of found) {
        const w = (width * timeOf(inside)) / whole;
        if (w > 1.5)
          tree(
            inside,
            below,
            row + 1,
            at,
            w,
            key.startsWith("\0") ? inside[0].type + " " + R.tail(inside[0].shown, 30) : key,
          );
        at += w;
      }
    };
    tree(
      R.layersOfGraph(R.data.graphs[0]).filter((l) => l.time > 0),
      0,
      0,
      0,
      W,
      "the model",
    );
    const rows = blocks.reduce((n, b) => Math.max(n, b.row), 0) + 1;
    return R.s(
      "svg",
      { class: "chart flame", viewBox: `0 0 ${W} ${rows * ROW + 2}`, role: "img", "aria-label": "Time by scope" },
      blocks.map((b) =>
        R.s(
          "g",
          {
            onclick: () => {
              if (b.layer !== null) R.select(b.layer, false);
            },
          },
          R.s(
            "rect",
            {
              class: "block",
              x: b.x,
              y: b.row * ROW + 1,
              width: Math.max(b.width - 0.5, 0.5),
              height: ROW - 1,
              rx: 2,
              style: { fill: b.layer === null ? "var(--move)" : `var(--${R.layers[b.layer].kind})` },
            },
            R.s("title", {}, `${b.label}: ${R.seconds(b.time)}, ${((100 * b.time) / (R.totalTime || 1)).toFixed(1)} %`),
          ),
          b.width > 40
            ? R.s(
                "text",
                { class: "label", x: b.x + 5, y: b.row * ROW + 15 },
                R.short(b.label, Math.floor((b.width - 6) / 6.6)),
              )
            : null,
        ),
      ),
    );
  }
})();
