"use strict";
// The panel beside the graph: shared parts, a group, the model.
R.panel = {};
(() => {
  const panel = document.getElementById("panel");
  const link = (index, text) =>
    R.h(
      "a",
      {
        href: R.href(index),
        onclick: (event) => {
          event.preventDefault();
          R.select(index, true);
        },
      },
      text ?? R.layers[index].shown,
    );
  R.link = link;
  const row = (...cells) =>
    R.h(
      "tr",
      {},
      cells.map((c) => R.h("td", {}, c)),
    );
  const section = (title, ...content) => (content.flat().some((c) => c) ? [R.h("h3", {}, title), content] : []);
  const close = () =>
    R.h("button", { class: "close", title: "Close (Esc)", "aria-label": "Close", onclick: () => R.select(null) }, "✕");

  // Faulty layers inside; a link opens their groups.
  function faults(inside) {
    const bad = inside.filter(R.faulty);
    return section(
      "Faults inside",
      bad.length
        ? R.h(
            "table",
            {},
            bad.slice(0, 50).map((l) => row(l.type, link(l.index, R.pathOf(l)))),
          )
        : null,
    );
  }

  R.showGroup = (group) => {
    const layers = R.layersIn(group).map((k) => R.layers[k]);
    const shown = layers.filter((l) => !l.constantOnly);
    const sums = R.measures
      .filter(([key]) => key !== "error")
      .map(([, name, value, text]) => row(name, text(layers.reduce((sum, l) => sum + (value(l) ?? 0), 0))));
    panel.replaceChildren(
      close(),
      R.h("h2", {}, group.label),
      R.h("p", { class: "quiet" }, `${shown.length} layers. Press Enter or double-click to expand them.`),
      ...faults(R.within(group)).flat(9),
      ...section("Together", R.h("table", {}, sums)).flat(9),
      R.h("h3", {}, "Layers"),
      R.h(
        "table",
        {},
        shown.slice(0, 200).map((l) => row(l.type, link(l.index))),
      ),
    );
    panel.hidden = false;
  };

  R.showModel = () => {
    const { model } = R.data,
      counts = new Map();
    for (const l of R.layers) counts.set(l.type, (counts.get(l.type) ?? 0) + 1);
    const ports = (list) =>
      R.h(
        "table",
        {},
        list.map((p) => row([link(p.layer, R.clean(p.name))], R.h("span", { class: "mono" }, p.type))),
      );
    const costs = [
      ["parameters", R.count(model.parameters)],
      ["constants", R.bytes(model.constant_bytes)],
      [
        "MACs",
        model.macs
          ? R.count(model.macs) + (model.macs_unknown ? ` and ${model.macs_unknown} unknown layers` : "")
          : null,
      ],
      [
        "activations at the peak",
        R.data.memory.peak
          ? R.bytes(R.data.memory.peak) +
            (R.data.memory.unknown ? ` without ${R.data.memory.unknown} tensors of unknown size` : "")
          : null,
      ],
      ["time", R.totalTime ? R.seconds(R.totalTime) : null],
    ];
    panel.replaceChildren(
      ...[
        close(),
        R.h("h2", {}, document.title),
        R.h("p", { class: "name" }, R.clean(model.file ?? "")),
        section("Inputs", ports(model.inputs)),
        section("Outputs", ports(model.outputs)),
        faults(R.layers),
        section(
          "Costs",
          R.h(
            "table",
            {},
            costs.filter(([, text]) => text).map(([name, text]) => row(name, text)),
          ),
        ),
        section(
          "Operations",
          R.h(
            "table",
            { class: "counts" },
            [...counts]
              .sort((a, b) => b[1] - a[1])
              .map(([type, n]) =>
                R.h(
                  "tr",
                  {},
                  R.h("td", {}, R.h("span", { class: "dot", style: { "--tone": `var(--${R.kindOf(type)})` } }), type),
                  R.h("td", { class: "number" }, n),
                ),
              ),
          ),
        ),
      ].flat(9),
    );
    panel.hidden = false;
  };

  Object.assign(R.panel, { element: panel, row, section, close, faults });
})();
