"use strict";
// The values in the panel of a layer: constants with a histogram, and outputs included in the page.
(() => {
  const { section } = R.panel,
    { link } = R;

  // Outputs included in this report.
  function arrays(layer) {
    return section(
      "Values",
      (layer.arrays ?? []).map(([name, npy]) => R.h("div", {}, R.clean(name), R.saveArray(name, npy))),
    );
  }

  // The data of the layer, or the data that it reads through constant layers only.
  function constants(layer) {
    const found = new Set();
    const visit = (l, depth) => {
      if (l.constant) found.add(l);
      else if (depth < 6 && (l === layer || l.constantOnly)) for (const [k] of l.inputs) visit(R.layers[k], depth + 1);
    };
    visit(layer, 0);
    return section(
      "Constants",
      [...found].map((l) => constant(l, l !== layer)),
    );
  }

  function constant(layer, named) {
    const s = layer.constant.statistics;
    const head = [
      named ? link(layer.index) : null,
      R.h(
        "div",
        { class: "mono" },
        layer.outputs[0]?.type ?? "",
        R.h("span", { class: "quiet" }, "  " + R.bytes(layer.constant.bytes)),
        R.saveArray(layer.name, layer.constant.npy),
      ),
    ];
    if (!s) return R.h("div", {}, head);
    const numbers =
      s.min === undefined || layer.constant.size <= 8
        ? null
        : `${R.number(s.min)} … ${R.number(s.max)}, mean ${R.number(s.mean)} ± ${R.number(s.std)}`;
    const odd = [
      s.zeros > 0 ? (s.zeros * 100).toPrecision(3) + " % zeros" : null,
      s.nonfinite ? s.nonfinite.toLocaleString("en") + " not finite" : null,
    ]
      .filter(Boolean)
      .join(", ");
    return R.h(
      "div",
      { style: { "margin-bottom": "10px" } },
      head,
      numbers ? R.h("div", {}, numbers) : null,
      odd ? R.h("div", { class: s.nonfinite ? "differs" : "quiet" }, odd) : null,
      s.histogram?.length > 1 && layer.constant.size > 8 ? histogram(s) : R.h("div", { class: "mono quiet" }, s.first),
    );
  }

  function histogram(s) {
    const most = Math.max(...s.histogram),
      w = 340 / s.histogram.length;
    const label = `Histogram from ${R.number(s.min)} to ${R.number(s.max)}`;
    return R.s(
      "svg",
      { class: "chart", viewBox: "0 0 350 66", role: "img", "aria-label": label },
      s.histogram.map((n, k) => {
        const height = n ? Math.max(1, (52 * n) / most) : 0;
        return R.s(
          "rect",
          { class: "bar", x: 5 + k * w, y: 58 - height, width: Math.max(w - 1, 1), height },
          R.s(
            "title",
            {},
            `${n.toLocaleString("en")} from ${R.number(s.min + ((s.max - s.min) * k) / s.histogram.length)}`,
          ),
        );
      }),
      R.s("line", { class: "axis", x1: 5, x2: 345, y1: 58.5, y2: 58.5 }),
    );
  }

  Object.assign(R.panel, { arrays, constants });
})();
