"use strict";
// The panel of one layer.
(() => {
  const { element: panel, row, section, close, faults, arrays, constants } = R.panel,
    { link } = R;

  R.showLayer = (layer) => {
    panel.replaceChildren(
      ...[
        close(),
        R.h("h2", {}, layer.type),
        R.h("p", { class: "name" }, layer.shown),
        chips(layer),
        layer.findings.length ? [R.h("h3", {}, "Findings"), layer.findings.map(R.finding)] : [],
        faults(R.bodyLayers(layer)),
        difference(layer),
        error(layer),
        attributes(layer),
        inputs(layer),
        outputs(layer),
        constants(layer),
        arrays(layer),
        costs(layer),
        bodies(layer),
        consumers(layer),
      ].flat(9),
    );
    panel.hidden = false;
    panel.scrollTop = 0;
  };

  R.finding = (f) =>
    R.h(
      "div",
      { class: "finding " + f.severity, title: f.title },
      R.h("b", {}, f.code),
      " ",
      R.clean(f.message),
      f.cause ? R.h("div", { class: "quiet" }, R.clean(f.cause)) : null,
      f.line ? R.h("div", { class: "quiet" }, "line " + f.line) : null,
    );

  function chips(layer) {
    const body = R.data.graphs[layer.graph];
    const texts = [
      layer.version,
      "id " + layer.id,
      layer.line ? "line " + layer.line : null,
      layer.dead ? "no output depends on it" : null,
    ];
    return R.h(
      "div",
      { class: "chips" },
      texts.filter(Boolean).map((t) => R.h("span", { class: "chip" }, t)),
      body.owner === null ? null : R.h("span", { class: "chip" }, "in ", link(body.owner), " " + body.body),
    );
  }

  function attributes(layer) {
    const rows = layer.attributes.filter(([key]) => !(layer.type === "Const" && (key === "offset" || key === "size")));
    return section(
      "Attributes",
      rows.length
        ? R.h(
            "table",
            { class: "attributes" },
            rows.map(([key, text, stated]) =>
              row(key, [R.h("code", {}, R.clean(text)), stated ? null : R.h("span", { class: "quiet" }, " default")]),
            ),
          )
        : null,
    );
  }

  const declared = (text, differs) =>
    text ? R.h("div", { class: differs ? "differs" : "quiet" }, "declared " + text) : null;

  function inputs(layer) {
    return section(
      "Inputs",
      layer.inputs.length
        ? R.h(
            "table",
            {},
            layer.inputs.map(([source, output, name, says]) => {
              const type = R.layers[source].outputs[output]?.type ?? "?";
              const several = R.layers[source].outputs.length > 1 ? ":" + output : "";
              return row(name, [link(source), several, R.h("div", { class: "mono" }, type), declared(says, false)]);
            }),
          )
        : null,
    );
  }

  function outputs(layer) {
    return section(
      "Outputs",
      layer.outputs.length
        ? R.h(
            "table",
            {},
            layer.outputs.map((o, k) =>
              row(String(k), [
                R.h("span", { class: "mono" }, o.type),
                o.bytes ? R.h("span", { class: "quiet" }, "  " + R.bytes(o.bytes)) : null,
                declared(o.declared, o.differs),
                o.names ? R.h("div", { class: "quiet" }, o.names.map(R.clean).join(", ")) : null,
                o.value ? R.h("div", { class: "mono" }, "always " + R.clean(o.value)) : null,
              ]),
            ),
          )
        : null,
    );
  }

  function costs(layer) {
    const rows = layer.constant
      ? []
      : R.measures
          .filter(([key]) => key !== "error" && key !== "bytes")
          .map(([, name, value, text]) => [name, value(layer), text])
          .filter(([, v]) => v > 0)
          .map(([name, v, text]) => row(name, text(v)));
    const alive = R.data.memory.series.find(([k]) => k === layer.index)?.[1];
    if (alive) rows.push(row("live while it runs", R.bytes(alive)));
    if (layer.step)
      rows.push(
        row("kernel", [
          layer.step.kernel,
          layer.step.rate ? `, ${layer.step.rate}` : "",
          layer.step.layers.length > 1 ? R.h("div", { class: "quiet" }, "runs " + layer.step.operation) : null,
        ]),
      );
    if (layer.fused !== undefined) rows.push(row("runs in", link(layer.fused)));
    return section("Costs", rows.length ? R.h("table", {}, rows) : null);
  }

  function error(layer) {
    const e = layer.error;
    if (!e) return [];
    const line = (name, m) =>
      m ? row(name, `max ${R.number(m.max_abs)}, needs ${R.number(m.needed)}, cosine ${R.number(m.cosine)}`) : null;
    return section(
      "Comparison",
      R.h(
        "div",
        { class: "verdict " + (e.passed ? "good" : "bad") },
        e.passed ? "within its tolerance" : e.problem ? R.clean(e.problem) : "diverges",
      ),
      R.h("table", {}, [
        line("own error", e.own),
        line("total error", e.total),
        row("tolerance", R.number(e.tolerance)),
      ]),
    );
  }

  function difference(layer) {
    return layer.edit ? section("Difference", R.h("table", {}, R.changes(layer.edit))) : [];
  }
  R.changes = (edit) =>
    edit.changes.map((c) =>
      R.h(
        "tr",
        {},
        R.h("td", {}, R.clean(c.label)),
        c.values
          ? R.h("td", { colspan: 2 }, R.clean(c.values))
          : [
              R.h("td", { class: c.a ? "removed" : "" }, R.clean(c.a)),
              R.h("td", { class: c.b ? "added" : "" }, R.clean(c.b)),
            ],
      ),
    );

  function bodies(layer) {
    return section(
      "Bodies",
      (layer.bodies ?? []).map((b) => {
        const g = R.data.graphs[b.graph];
        return R.h(
          "div",
          {},
          R.h("button", { onclick: () => R.focusLayer(g.start) }, `open ${b.name}: ${g.count} layers`),
        );
      }),
    );
  }

  function consumers(layer) {
    const rows = layer.consumers
      .slice(0, 100)
      .map(([k, port]) =>
        row(R.layers[k].type, [link(k), R.h("span", { class: "quiet" }, " " + (R.layers[k].inputs[port]?.[2] ?? ""))]),
      );
    return section("Consumers", rows.length ? R.h("table", {}, rows) : null);
  }
})();
