"use strict";
// The panel beside the graph: everything about one layer.
(() => {
  const panel = document.getElementById("panel");
  const link = (index, text) => R.h("a", { href: "#layer-" + index, onclick: (event) => { event.preventDefault(); R.select(index, true); } }, text ?? R.layers[index].shown);
  R.link = link;
  const row = (...cells) => R.h("tr", {}, cells.map((c) => R.h("td", {}, c)));
  const section = (title, ...content) => (content.flat().some((c) => c) ? [R.h("h3", {}, title), content] : []);
  const close = () => R.h("button", { class: "close", title: "Close (Esc)", "aria-label": "Close", onclick: () => R.select(null) }, "✕");

  R.showGroup = (group) => {
    const layers = R.layersIn(group).map((k) => R.layers[k]);
    const shown = layers.filter((l) => !l.constantOnly);
    const sums = R.measures.filter(([key]) => key !== "error").map(([, name, value, text]) => row(name, text(layers.reduce((sum, l) => sum + (value(l) ?? 0), 0))));
    panel.replaceChildren(close(), R.h("h2", {}, group.label), R.h("p", { class: "quiet" }, `${shown.length} layers. Enter, or a double click, opens them in place.`),
      ...section("Together", R.h("table", {}, sums)).flat(9), R.h("h3", {}, "Layers"),
      R.h("table", {}, shown.slice(0, 200).map((l) => row(l.type, link(l.index)))));
    panel.hidden = false;
  };

  R.showModel = () => {
    const { model } = R.data, counts = new Map();
    for (const l of R.layers) if (!l.constant) counts.set(l.type, (counts.get(l.type) ?? 0) + 1);
    const ports = (list) => R.h("table", {}, list.map((p) => row([link(p.layer, R.clean(p.name))], R.h("span", { class: "mono" }, p.type))));
    const costs = [["parameters", R.count(model.parameters)], ["constants", R.bytes(model.constant_bytes)], ["MACs", model.macs ? R.count(model.macs) + (model.macs_unknown ? ` and ${model.macs_unknown} layers unknown` : "") : null],
      ["activations at the peak", R.data.memory.peak ? R.bytes(R.data.memory.peak) + (R.data.memory.unknown ? ` without ${R.data.memory.unknown} tensors of unknown size` : "") : null], ["time", R.totalTime ? R.seconds(R.totalTime) : null]];
    panel.replaceChildren(...[close(), R.h("h2", {}, R.clean(model.name) || "Model"), R.h("p", { class: "name" }, R.clean(model.file ?? "")), section("Inputs", ports(model.inputs)), section("Outputs", ports(model.outputs)),
      section("Costs", R.h("table", {}, costs.filter(([, text]) => text).map(([name, text]) => row(name, text)))),
      section("Operations", R.h("table", { class: "counts" }, [...counts].sort((a, b) => b[1] - a[1]).map(([type, n]) => R.h("tr", {}, R.h("td", {}, R.h("span", { class: "dot", style: { "--tone": `var(--${R.kindOf(type)})` } }), type), R.h("td", { class: "number" }, n)))))].flat(9));
    panel.hidden = false;
  };

  R.showLayer = (layer) => {
    panel.replaceChildren(...[close(), R.h("h2", {}, layer.type), R.h("p", { class: "name" }, layer.shown), chips(layer),
      layer.findings.length ? [R.h("h3", {}, "Findings"), layer.findings.map(R.finding)] : [],
      difference(layer), error(layer), attributes(layer), inputs(layer), outputs(layer), constants(layer), costs(layer), bodies(layer), consumers(layer)].flat(9));
    panel.hidden = false;
    panel.scrollTop = 0;
  };

  R.finding = (f) => R.h("div", { class: "finding " + f.severity }, R.h("b", {}, f.code), " ", R.clean(f.message), f.cause ? R.h("div", { class: "quiet" }, R.clean(f.cause)) : null, f.line ? R.h("div", { class: "quiet" }, "line " + f.line) : null);

  function chips(layer) {
    const body = R.data.graphs[layer.graph];
    const texts = [layer.version, "id " + layer.id, layer.line ? "line " + layer.line : null, layer.dead ? "no output depends on it" : null];
    return R.h("div", { class: "chips" }, texts.filter(Boolean).map((t) => R.h("span", { class: "chip" }, t)),
      body.owner === null ? null : R.h("span", { class: "chip" }, "in ", link(body.owner), " " + body.body));
  }

  function attributes(layer) {
    const rows = layer.attributes.filter(([key]) => !(layer.type === "Const" && (key === "offset" || key === "size")));
    return section("Attributes", rows.length ? R.h("table", { class: "attributes" }, rows.map(([key, text, stated]) => row(key, [R.h("code", {}, R.clean(text)), stated ? null : R.h("span", { class: "quiet" }, " default")]))) : null);
  }

  const declared = (text, differs) => text ? R.h("div", { class: differs ? "differs" : "quiet" }, "declared " + text) : null;

  function inputs(layer) {
    return section("Inputs", layer.inputs.length ? R.h("table", {}, layer.inputs.map(([source, output, name, says]) => {
      const type = R.layers[source].outputs[output]?.type ?? "?";
      const several = R.layers[source].outputs.length > 1 ? ":" + output : "";
      return row(name, [link(source), several, R.h("div", { class: "mono" }, type), declared(says, false)]);
    })) : null);
  }

  function outputs(layer) {
    return section("Outputs", layer.outputs.length ? R.h("table", {}, layer.outputs.map((o, k) => row(String(k), [
      R.h("span", { class: "mono" }, o.type), o.bytes ? R.h("span", { class: "quiet" }, "  " + R.bytes(o.bytes)) : null, declared(o.declared, o.differs),
      o.names ? R.h("div", { class: "quiet" }, o.names.map(R.clean).join(", ")) : null, o.value ? R.h("div", { class: "mono" }, "always " + R.clean(o.value)) : null]))) : null);
  }

  // The layer's own data, or those that it takes through layers of constants only.
  function constants(layer) {
    const found = new Set();
    const visit = (l, depth) => { if (l.constant) found.add(l); else if (depth < 6 && (l === layer || l.constantOnly)) for (const [k] of l.inputs) visit(R.layers[k], depth + 1); };
    visit(layer, 0);
    return section("Constants", [...found].map((l) => constant(l, l !== layer)));
  }

  function constant(layer, named) {
    const s = layer.constant.statistics;
    const head = [named ? link(layer.index) : null, R.h("div", { class: "mono" }, layer.outputs[0]?.type ?? "", R.h("span", { class: "quiet" }, "  " + R.bytes(layer.constant.bytes)))];
    if (!s) return R.h("div", {}, head);
    const numbers = s.min === undefined || layer.constant.size <= 8 ? null : `${R.number(s.min)} … ${R.number(s.max)}, mean ${R.number(s.mean)} ± ${R.number(s.std)}`;
    const odd = [s.zeros > 0 ? (s.zeros * 100).toPrecision(3) + " % zeros" : null, s.nonfinite ? s.nonfinite.toLocaleString("en") + " not finite" : null].filter(Boolean).join(", ");
    return R.h("div", { style: { "margin-bottom": "10px" } }, head, numbers ? R.h("div", {}, numbers) : null, odd ? R.h("div", { class: s.nonfinite ? "differs" : "quiet" }, odd) : null,
      s.histogram?.length > 1 && layer.constant.size > 8 ? histogram(s) : R.h("div", { class: "mono quiet" }, s.first));
  }

  function histogram(s) {
    const most = Math.max(...s.histogram), w = 340 / s.histogram.length;
    const label = `Histogram from ${R.number(s.min)} to ${R.number(s.max)}`;
    return R.s("svg", { class: "chart", viewBox: "0 0 350 66", role: "img", "aria-label": label }, s.histogram.map((n, k) => {
      const height = n ? Math.max(1, (52 * n) / most) : 0;
      return R.s("rect", { class: "bar", x: 5 + k * w, y: 58 - height, width: Math.max(w - 1, 1), height }, R.s("title", {}, `${n.toLocaleString("en")} from ${R.number(s.min + ((s.max - s.min) * k) / s.histogram.length)}`));
    }), R.s("line", { class: "axis", x1: 5, x2: 345, y1: 58.5, y2: 58.5 }));
  }

  function costs(layer) {
    const rows = layer.constant ? [] : R.measures.filter(([key]) => key !== "error" && key !== "bytes").map(([, name, value, text]) => [name, value(layer), text]).filter(([, v]) => v > 0).map(([name, v, text]) => row(name, text(v)));
    const alive = R.data.memory.series.find(([k]) => k === layer.index)?.[1];
    if (alive) rows.push(row("alive while it runs", R.bytes(alive)));
    if (layer.step) rows.push(row("kernel", [layer.step.kernel, layer.step.rate ? `, ${layer.step.rate}` : "", layer.step.layers.length > 1 ? R.h("div", { class: "quiet" }, "runs " + layer.step.operation) : null]));
    if (layer.fused !== undefined) rows.push(row("runs in", link(layer.fused)));
    return section("Costs", rows.length ? R.h("table", {}, rows) : null);
  }

  function error(layer) {
    const e = layer.error;
    if (!e) return [];
    const line = (name, m) => (m ? row(name, `max ${R.number(m.max_abs)}, needs ${R.number(m.needed)}, cosine ${R.number(m.cosine)}`) : null);
    return section("Comparison", R.h("div", { class: "verdict " + (e.passed ? "good" : "bad") }, e.passed ? "within its tolerance" : e.problem ? R.clean(e.problem) : "diverges"),
      R.h("table", {}, [line("own error", e.own), line("total error", e.total), row("tolerance", R.number(e.tolerance))]));
  }

  function difference(layer) {
    return layer.edit ? section("Difference", R.h("table", {}, R.changes(layer.edit))) : [];
  }
  R.changes = (edit) => edit.changes.map((c) => R.h("tr", {}, R.h("td", {}, R.clean(c.label)), c.values ? R.h("td", { colspan: 2 }, R.clean(c.values)) : [R.h("td", { class: c.a ? "removed" : "" }, R.clean(c.a)), R.h("td", { class: c.b ? "added" : "" }, R.clean(c.b))]));

  function bodies(layer) {
    return section("Bodies", (layer.bodies ?? []).map((b) => {
      const g = R.data.graphs[b.graph];
      return R.h("div", {}, R.h("button", { onclick: () => R.focusLayer(g.start) }, `open ${b.name}: ${g.count} layers`));
    }));
  }

  function consumers(layer) {
    const rows = layer.consumers.slice(0, 100).map(([k, port]) => row(R.layers[k].type, [link(k), R.h("span", { class: "quiet" }, " " + (R.layers[k].inputs[port]?.[2] ?? ""))]));
    return section("Consumers", rows.length ? R.h("table", {}, rows) : null);
  }
})();
