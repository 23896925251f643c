"use strict";
// The other views: tables of layers, findings, comparison and difference; charts of memory and time.
(() => {
  R.views = {};
  const empty = (text) => R.h("p", { class: "quiet" }, text);
  const dot = (layer) => R.h("span", { class: "dot", style: { "--tone": `var(--${layer.kind})` } });
  const pick = (index) => ({ onclick: (event) => { if (event.target.tagName !== "A") R.select(index, false); }, "data-layer": index });

  // -- the table of layers --------------------------------------------------------------------------------------------

  R.views.layers = () => {
    const columns = [
      ["#", (l) => l.index, (l) => String(l.index), true],
      ["operation", (l) => l.type, (l) => [dot(l), l.type]],
      ["name", (l) => l.shown, (l) => R.link(l.index)],
      ["output", (l) => R.outputBytes(l), (l) => R.h("code", {}, R.outputType(l))],
      ...R.measures.filter(([key]) => key !== "bytes").map(([key, name, value, text]) => [name, (l) => value(l) ?? -1, (l) => meter(value(l), tops[key], text), true]),
      ["findings", (l) => l.findings.length, (l) => (l.findings.length ? [...new Set(l.findings.map((f) => f.code))].join(" ") : "")],
    ];
    const tops = Object.fromEntries(R.measures.map(([key, , value]) => [key, Math.max(...R.layers.map((l) => (Number.isFinite(value(l)) ? value(l) : 0)))]));
    let order = [0, 1];
    const all = R.layers.filter((l) => !l.constantOnly);
    const body = R.h("tbody");
    const filter = R.h("input", { type: "search", placeholder: "Filter by name or operation", "aria-label": "Filter", style: { padding: "6px 10px", "margin-bottom": "10px", width: "300px" }, oninput: () => fillRows() });
    const heads = columns.map(([name, , , number], k) => R.h("th", { class: number ? "number" : null, scope: "col" }, R.h("button", { onclick: () => { order = [k, order[0] === k ? -order[1] : k > 3 ? -1 : 1]; fillRows(); } }, name)));
    function fillRows() {
      const word = filter.value.trim().toLowerCase();
      const [by, sign] = order, key = columns[by][1];
      const rows = all.filter((l) => !word || (l.type + " " + l.shown).toLowerCase().includes(word)).sort((a, b) => sign * (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.index - b.index));
      heads.forEach((th, k) => th.setAttribute("aria-sort", k === by ? (sign > 0 ? "ascending" : "descending") : "none"));
      body.replaceChildren(...rows.map((l) => R.h("tr", { ...pick(l.index), class: l.index === R.selected ? "selected" : null }, columns.map(([, , text, number]) => R.h("td", { class: number ? "number" : null }, text(l))))));
    }
    fillRows();
    return R.h("div", { class: "sheet" }, filter, R.h("div", { class: "rows" }, R.h("table", {}, R.h("thead", {}, R.h("tr", {}, heads)), body)));
  };

  function meter(value, most, text) {
    if (value === null || value === undefined || value === 0) return "";
    const width = most > 0 && value > 0 ? Math.round(46 * Math.min(1, value / most)) : 0;
    return [R.h("span", { class: "meter", style: { width: width + "px", "margin-right": "7px" } }), text(value)];
  }

  const NUMBERS = new Set(["own max", "own needs", "total max", "total needs", "tolerance", "cosine", "alive", "time", "rate"]);
  const table = (heads, rows) => R.h("div", { class: "rows" }, R.h("table", {}, R.h("thead", {}, R.h("tr", {}, heads.map((t) => R.h("th", { scope: "col", class: NUMBERS.has(t) ? "number" : null }, t)))), R.h("tbody", {}, rows)));

  // -- findings -------------------------------------------------------------------------------------------------------

  R.views.findings = () => {
    const all = R.data.findings;
    if (!all.length) return R.h("div", { class: "sheet" }, R.h("p", { class: "verdict good" }, "irrun check finds nothing."));
    const groups = ["error", "warning", "note"].map((s) => [s, all.filter((f) => f.severity === s)]).filter(([, f]) => f.length);
    return R.h("div", { class: "sheet" }, R.h("p", { class: "intro" }, "What irrun check says of the file; irrun check --explain CODE says more."), groups.map(([severity, list]) => [
      R.h("h2", {}, `${list.length} ${severity}${list.length === 1 ? "" : "s"}`), list.slice(0, 500).map((f) => R.h("div", {}, f.layer === null ? null : R.link(f.layer), R.finding(f)))]));
  };

  // -- comparison, difference -----------------------------------------------------------------------------------------

  R.views.comparison = () => {
    const found = R.data.comparison;
    const number = (m, key) => R.h("td", { class: "number" }, m ? R.number(m[key]) : "–");
    const rows = [...found.layers].sort((a, b) => a.passed - b.passed).map((e) => R.h("tr", e.layer === null ? {} : pick(e.layer), R.h("td", { class: e.passed ? "" : "differs" }, e.passed ? "✓" : "≠"),
      R.h("td", {}, e.layer === null ? R.clean(e.name) : R.link(e.layer, R.clean(e.name)), e.problem ? R.h("div", { class: "differs" }, R.clean(e.problem)) : null), R.h("td", {}, e.operation),
      number(e.own, "max_abs"), number(e.own, "needed"), number(e.total, "max_abs"), number(e.total, "needed"), R.h("td", { class: "number" }, R.number(e.tolerance)), number(e.own ?? e.total, "cosine")));
    return R.h("div", { class: "sheet" }, R.h("p", { class: "verdict " + (found.passed ? "good" : "bad") }, R.clean(found.verdict)),
      R.h("p", { class: "intro" }, "Own error: what a layer makes of the same inputs. Total error: with all that came before it. Needs: the smallest tolerance that would pass."),
      table(["", "layer", "operation", "own max", "own needs", "total max", "total needs", "tolerance", "cosine"], rows));
  };

  R.views.difference = () => {
    const found = R.data.difference;
    const rows = found.edits.flatMap((e) => {
      const sides = e.kind === "changed" ? R.changes(e) : [R.h("tr", {}, R.h("td", {}, e.place ? R.clean(e.place) : ""), R.h("td", { class: e.kind === "removed" ? "removed" : "" }, e.kind === "removed" ? e.operation : ""), R.h("td", { class: e.kind === "added" ? "added" : "" }, e.kind === "added" ? e.operation : "")), ...R.changes(e)];
      return [R.h("tr", e.layer === null ? {} : pick(e.layer), R.h("td", { colspan: 3 }, R.h("b", {}, `${e.kind} `), e.layer === null ? R.clean(e.name) : R.link(e.layer, R.clean(e.name)), R.h("span", { class: "quiet" }, ` ${e.operation}`))), ...sides];
    });
    return R.h("div", { class: "sheet" }, R.h("p", { class: "verdict" }, R.clean(found.summary)), found.edits.length ? table(["", "A: " + R.clean(found.a), "B: " + R.clean(found.b)], rows) : null,
      found.follows.length ? [R.h("h2", {}, `What follows: ${found.follows.length} outputs have another type or shape`), table(["layer", "A", "B"], found.follows.slice(0, 500).map((f) => R.h("tr", {}, [R.clean(f.name), f.a, f.b].map((t) => R.h("td", {}, t)))))] : null);
  };

  // -- memory over time -----------------------------------------------------------------------------------------------

  R.views.memory = () => {
    const { series, peak, at, unknown } = R.data.memory;
    if (!series.length || !peak) return R.h("div", { class: "sheet" }, empty("No sizes are known: the model has dynamic inputs. irrun report --shape gives them."));
    const W = 1000, H = 320, left = 70, bottom = 26, n = series.length;
    const x = (k) => left + ((W - left - 10) * k) / n, y = (v) => H - bottom - ((H - bottom - 16) * v) / peak;
    let d = `M${x(0)},${y(0)}`;
    series.forEach(([, v], k) => { d += `L${x(k)},${y(v)}L${x(k + 1)},${y(v)}`; });
    const hair = R.s("line", { class: "axis", y1: 10, y2: H - bottom, x1: -9, x2: -9 });
    const chart = R.s("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Memory of activations over time, ${R.bytes(peak)} at the peak` },
      [0, 0.25, 0.5, 0.75, 1].map((s) => [R.s("line", { class: "axis", x1: left, x2: W - 10, y1: y(peak * s), y2: y(peak * s) }), R.s("text", { x: left - 8, y: y(peak * s) + 4, "text-anchor": "end" }, R.bytes(Math.round(peak * s)))]),
      R.s("path", { class: "area", d: d + `L${x(n)},${y(0)}Z` }), R.s("text", { x: (W + left) / 2, y: H - 7, "text-anchor": "middle" }, "layers in order of execution"), hair);
    const note = R.h("p", {}, "\u00a0");
    const indexAt = (event) => { const box = chart.getBoundingClientRect(); return Math.max(0, Math.min(n - 1, Math.floor((((event.clientX - box.left) * W) / box.width - left) / ((W - left - 10) / n)))); };
    chart.addEventListener("mousemove", (event) => { const k = indexAt(event), l = R.layers[series[k][0]]; hair.setAttribute("x1", x(k + 0.5)); hair.setAttribute("x2", x(k + 0.5)); note.replaceChildren(R.h("b", {}, R.bytes(series[k][1])), ` while ${l.type} ${l.shown} runs`); });
    chart.addEventListener("click", (event) => R.select(series[indexAt(event)][0], false));
    const top = [...series].filter(([k]) => !R.layers[k].constantOnly).sort((a, b) => b[1] - a[1]).slice(0, 12);
    return R.h("div", { class: "sheet" }, R.h("p", { class: "intro" }, `Activations that are alive while each layer runs, ${R.bytes(peak)} at the peak`, at === null ? "." : [", at ", R.link(at), "."], ` Constants take ${R.bytes(R.data.model.constant_bytes)} more. An estimate: plans share more memory, and need some for their kernels.`, unknown ? ` ${unknown} tensors of unknown size are left out.` : ""),
      chart, note, R.h("h2", {}, "Where most is alive"), table(["layer", "operation", "alive", "its output"], top.map(([k, v]) => R.h("tr", pick(k), R.h("td", {}, R.link(k)), R.h("td", {}, R.layers[k].type), R.h("td", { class: "number" }, R.bytes(v)), R.h("td", {}, R.h("code", {}, R.outputType(R.layers[k])))))));
  };

  // -- profile --------------------------------------------------------------------------------------------------------

  R.views.profile = () => {
    const steps = R.data.profile, total = steps.reduce((sum, s) => sum + s.seconds, 0) || 1;
    const rows = [...steps].sort((a, b) => b.seconds - a.seconds).slice(0, 100).map((s) => {
      const k = s.layers.at(-1);
      return R.h("tr", k === undefined ? {} : pick(k), R.h("td", { class: "number" }, R.seconds(s.seconds)), R.h("td", {}, R.h("span", { class: "meter", style: { width: Math.max(1, (180 * s.seconds) / rows0) + "px" } }), ` ${((100 * s.seconds) / total).toFixed(1)} %`), R.h("td", {}, s.operation), R.h("td", {}, k === undefined ? "" : R.link(k)), R.h("td", {}, s.kernel), R.h("td", { class: "number" }, s.rate));
    });
    return R.h("div", { class: "sheet" }, R.h("p", { class: "intro" }, `${R.seconds(total)} in ${steps.length} steps; medians. By scope, from the whole model down:`), flame(), R.h("h2", {}, "Steps"), table(["time", "share", "operation", "layer", "kernel", "rate"], rows));
  };
  const rows0 = Math.max(...(R.data.profile ?? []).map((s) => s.seconds), 1e-12);

  // A flame chart: each scope as wide as its time, what is in it below.
  function flame() {
    const W = 1000, height = 22, blocks = [];
    const tree = (layers, depth, x, width, label) => {
      blocks.push({ depth, x, width, label, time: layers.reduce((s, l) => s + l.time, 0), layer: layers.length === 1 ? layers[0].index : null });
      const parts = new Map();
      for (const l of layers) { const key = R.scopeOf(l.shown)[depth] ?? (depth > R.scopeOf(l.shown).length ? null : "\0" + l.index); if (key !== null) parts.set(key, [...(parts.get(key) ?? []), l]); }
      let at = x;
      for (const [key, inside] of parts) {
        const time = inside.reduce((s, l) => s + l.time, 0), w = (width * time) / (blocks_time(layers) || 1);
        if (w > 1.5) tree(inside, depth + 1, at, w, key.startsWith("\0") ? inside[0].type + " " + R.tail(inside[0].shown, 30) : key);
        at += w;
      }
    };
    const blocks_time = (layers) => layers.reduce((s, l) => s + l.time, 0);
    tree(R.layers.filter((l) => l.time > 0), 0, 0, W, "the model");
    const rows = Math.max(...blocks.map((b) => b.depth)) + 1;
    return R.s("svg", { class: "chart flame", viewBox: `0 0 ${W} ${rows * height + 2}`, role: "img", "aria-label": "Time by scope" }, blocks.map((b) => R.s("g", { onclick: () => { if (b.layer !== null) R.select(b.layer, false); } },
      R.s("rect", { class: "block", x: b.x, y: b.depth * height + 1, width: Math.max(b.width - 0.5, 0.5), height: height - 1, rx: 2, style: { fill: b.layer === null ? "var(--move)" : `var(--${R.layers[b.layer].kind})` } }, R.s("title", {}, `${b.label}: ${R.seconds(b.time)}, ${((100 * b.time) / (R.totalTime || 1)).toFixed(1)} %`)),
      b.width > 40 ? R.s("text", { class: "label", x: b.x + 5, y: b.depth * height + 15 }, R.short(b.label, Math.floor(b.width / 6.6))) : null)));
  }
})();
