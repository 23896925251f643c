"use strict";
// Common parts of all tables, and the table of layers.
(() => {
  R.views = {};
  const dot = (layer) => R.h("span", { class: "dot", style: { "--tone": `var(--${layer.kind})` } });
  R.pick = (index) => ({
    onclick: (event) => {
      if (event.target.tagName !== "A") R.select(index, false);
    },
    "data-layer": index,
  });

  const NUMBERS = new Set([
    "own max",
    "own needs",
    "total max",
    "total needs",
    "tolerance",
    "cosine",
    "alive",
    "time",
    "rate",
  ]);
  R.table = (heads, rows) =>
    R.h(
      "div",
      { class: "rows" },
      R.h(
        "table",
        {},
        R.h(
          "thead",
          {},
          R.h(
            "tr",
            {},
            heads.map((t) => R.h("th", { scope: "col", class: NUMBERS.has(t) ? "number" : null }, t)),
          ),
        ),
        R.h("tbody", {}, rows),
      ),
    );

  function meter(value, most, text) {
    if (value === null || value === undefined || value === 0) return "";
    const width = most > 0 && value > 0 ? Math.round(46 * Math.min(1, value / most)) : 0;
    return [R.h("span", { class: "meter", style: { width: width + "px", "margin-right": "7px" } }), text(value)];
  }

  R.views.layers = () => {
    const columns = [
      ["#", (l) => l.index, (l) => String(l.index), true],
      ["operation", (l) => l.type, (l) => [dot(l), l.type]],
      ["name", (l) => l.shown, (l) => R.link(l.index)],
      ["output", (l) => R.outputBytes(l), (l) => R.h("code", {}, R.outputType(l))],
      ...R.measures
        .filter(([key]) => key !== "bytes")
        .map(([key, name, value, text]) => [
          name,
          (l) => value(l) ?? -1,
          (l) => meter(value(l), tops[key], text),
          true,
        ]),
      [
        "findings",
        (l) => l.findings.length,
        (l) => (l.findings.length ? [...new Set(l.findings.map((f) => f.code))].join(" ") : ""),
      ],
    ];
    const tops = Object.fromEntries(
      R.measures.map(([key, , value]) => [
        key,
        Math.max(...R.layers.map((l) => (Number.isFinite(value(l)) ? value(l) : 0))),
      ]),
    );
    let order = [0, 1];
    const all = R.layers.filter((l) => !l.constantOnly);
    const body = R.h("tbody");
    const filter = R.h("input", {
      type: "search",
      placeholder: "Filter by name, operation, tensor, attribute",
      "aria-label": "Filter",
      class: "filter",
      oninput: () => fillRows(),
    });
    const heads = columns.map(([name, , , number], k) =>
      R.h(
        "th",
        { class: number ? "number" : null, scope: "col" },
        R.h(
          "button",
          {
            onclick: () => {
              order = [k, order[0] === k ? -order[1] : k > 3 ? -1 : 1];
              fillRows();
            },
          },
          name,
        ),
      ),
    );
    function fillRows() {
      const [by, sign] = order,
        key = columns[by][1];
      const wanted = filter.value.trim() ? new Set(R.search(filter.value).map(({ layer }) => layer)) : null;
      const rows = all
        .filter((l) => wanted?.has(l) ?? true)
        .sort((a, b) => sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.index - b.index));
      heads.forEach((th, k) =>
        th.setAttribute("aria-sort", k === by ? (sign > 0 ? "ascending" : "descending") : "none"),
      );
      body.replaceChildren(
        ...rows.map((l) =>
          R.h(
            "tr",
            { ...R.pick(l.index), class: l.index === R.selected ? "selected" : null },
            columns.map(([, , text, number]) => R.h("td", { class: number ? "number" : null }, text(l))),
          ),
        ),
      );
    }
    fillRows();
    return R.h(
      "div",
      { class: "sheet" },
      filter,
      R.h("div", { class: "rows" }, R.h("table", {}, R.h("thead", {}, R.h("tr", {}, heads)), body)),
    );
  };
})();
