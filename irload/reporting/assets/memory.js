"use strict";
// The view of memory: live activations while each layer runs.
(() => {
  R.views.memory = () => {
    const { series, peak, at, unknown } = R.data.memory;
    if (!series.length || !peak)
      return R.h(
        "div",
        { class: "sheet" },
        R.h(
          "p",
          { class: "quiet" },
          "All sizes are unknown: the model has dynamic inputs. irrun report --shape sets them.",
        ),
      );
    const W = R.chartWidth(),
      H = 320,
      left = 70,
      bottom = 26,
      n = series.length;
    const x = (k) => left + ((W - left - 10) * k) / n,
      y = (v) => H - bottom - ((H - bottom - 16) * v) / peak;
    let d = `M${x(0)},${y(0)}`;
    series.forEach(([, v], k) => {
      d += `L${x(k)},${y(v)}L${x(k + 1)},${y(v)}`;
    });
    const hair = R.s("line", { class: "axis", y1: 10, y2: H - bottom, x1: -9, x2: -9 });
    const chart = R.s(
      "svg",
      {
        class: "chart",
        viewBox: `0 0 ${W} ${H}`,
        role: "img",
        "aria-label": `Memory of activations over time, ${R.bytes(peak)} at the peak`,
      },
      [0, 0.25, 0.5, 0.75, 1].map((s) => [
        R.s("line", { class: "axis", x1: left, x2: W - 10, y1: y(peak * s), y2: y(peak * s) }),
        R.s("text", { x: left - 8, y: y(peak * s) + 4, "text-anchor": "end" }, R.bytes(Math.round(peak * s))),
      ]),
      R.s("path", { class: "area", d: d + `L${x(n)},${y(0)}Z` }),
      R.s("text", { x: (W + left) / 2, y: H - 7, "text-anchor": "middle" }, "layers in order of execution"),
      hair,
    );
    const note = R.h("p", {}, "\u00a0");
    const indexAt = (event) => {
      const box = chart.getBoundingClientRect();
      return Math.max(
        0,
        Math.min(n - 1, Math.floor((((event.clientX - box.left) * W) / box.width - left) / ((W - left - 10) / n))),
      );
    };
    chart.addEventListener("mousemove", (event) => {
      const k = indexAt(event),
        l = R.layers[series[k][0]];
      hair.setAttribute("x1", x(k + 0.5));
      hair.setAttribute("x2", x(k + 0.5));
      note.replaceChildren(R.h("b", {}, R.bytes(series[k][1])), ` while ${l.type} ${l.shown} runs`);
    });
    chart.addEventListener("click", (event) => R.select(series[indexAt(event)][0], false));
    const top = [...series]
      .filter(([k]) => !R.layers[k].constantOnly)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 12);
    return R.h(
      "div",
      { class: "sheet" },
      R.h(
        "p",
        { class: "intro" },
        `Live activations while each layer runs, ${R.bytes(peak)} at the peak`,
        at === null ? "." : [", at ", R.link(at), "."],
        ` Constants take ${R.bytes(R.data.model.constant_bytes)} more. An estimate: plans reuse more memory, and their kernels need scratch memory.`,
        unknown ? ` ${unknown} tensors of unknown size are left out.` : "",
      ),
      chart,
      note,
      R.h("h2", {}, "Layers with the most live memory"),
      R.table(
        ["layer", "operation", "live", "output"],
        top.map(([k, v]) =>
          R.h(
            "tr",
            R.pick(k),
            R.h("td", {}, R.link(k)),
            R.h("td", {}, R.layers[k].type),
            R.h("td", { class: "number" }, R.bytes(v)),
            R.h("td", {}, R.h("code", {}, R.outputType(R.layers[k]))),
          ),
        ),
      ),
    );
  };
})();
