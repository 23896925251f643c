"use strict";
// The views of the comparison, layer by layer, and of the edits.
(() => {
  R.views.comparison = () => {
    const found = R.data.comparison;
    const number = (m, key) => R.h("td", { class: "number" }, m ? R.number(m[key]) : "–");
    const rows = [...found.layers]
      .sort((a, b) => a.passed - b.passed)
      .map((e) =>
        R.h(
          "tr",
          e.layer === null ? {} : R.pick(e.layer),
          R.h("td", { class: e.passed ? "" : "differs" }, e.passed ? "✓" : "≠"),
          R.h(
            "td",
            {},
            e.layer === null ? R.clean(e.name) : R.link(e.layer, R.clean(e.name)),
            e.problem ? R.h("div", { class: "differs" }, R.clean(e.problem)) : null,
          ),
          R.h("td", {}, e.operation),
          number(e.own, "max_abs"),
          number(e.own, "needed"),
          number(e.total, "max_abs"),
          number(e.total, "needed"),
          R.h("td", { class: "number" }, R.number(e.tolerance)),
          number(e.own ?? e.total, "cosine"),
        ),
      );
    return R.h(
      "div",
      { class: "sheet" },
      R.h("p", { class: "verdict " + (found.passed ? "good" : "bad") }, R.clean(found.verdict)),
      R.h(
        "p",
        { class: "intro" },
        "Own error: the error on the same inputs. Total error: includes the errors of earlier layers. Needs: the smallest tolerance that passes.",
      ),
      R.table(
        ["", "layer", "operation", "own max", "own needs", "total max", "total needs", "tolerance", "cosine"],
        rows,
      ),
    );
  };

  R.views.difference = () => {
    const found = R.data.difference;
    const rows = found.edits.flatMap((e) => {
      const sides =
        e.kind === "changed"
          ? R.changes(e)
          : [
              R.h(
                "tr",
                {},
                R.h("td", {}, e.place ? R.clean(e.place) : ""),
                R.h("td", { class: e.kind === "removed" ? "removed" : "" }, e.kind === "removed" ? e.operation : ""),
                R.h("td", { class: e.kind === "added" ? "added" : "" }, e.kind === "added" ? e.operation : ""),
              ),
              ...R.changes(e),
            ];
      return [
        R.h(
          "tr",
          e.layer === null ? {} : R.pick(e.layer),
          R.h(
            "td",
            { colspan: 3 },
            R.h("b", {}, `${e.kind} `),
            e.layer === null ? R.clean(e.name) : R.link(e.layer, R.clean(e.name)),
            R.h("span", { class: "quiet" }, ` ${e.operation}`),
          ),
        ),
        ...sides,
      ];
    });
    return R.h(
      "div",
      { class: "sheet" },
      R.h("p", { class: "verdict" }, R.clean(found.summary)),
      found.edits.length ? R.table(["", "A: " + R.clean(found.a), "B: " + R.clean(found.b)], rows) : null,
      found.follows.length
        ? [
            R.h("h2", {}, `Follow from the edits: ${found.follows.length} outputs have another type or shape`),
            R.table(
              ["layer", "A", "B"],
              found.follows.slice(0, 500).map((f) =>
                R.h(
                  "tr",
                  {},
                  [R.clean(f.name), f.a, f.b].map((t) => R.h("td", {}, t)),
                ),
              ),
            ),
          ]
        : null,
    );
  };
})();
