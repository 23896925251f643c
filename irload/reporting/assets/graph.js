"use strict";
// The drawing of what is visible, with zoom, selection and keys.
(() => {
  const HEIGHT = { node: 48, group: 54 };
  let worker = null, request = 0, drawn = null, zoom = null, view = null, colour = "kind";
  const elements = { nodes: new Map(), edges: [] };

  const element = R.h("div", { class: "graph" });
  const svg = R.s("svg", { tabindex: 0, role: "application", "aria-label": "Graph of the model. Arrow keys follow edges, Enter opens a group." });
  const scene = R.s("g");
  const busy = R.h("div", { class: "busy", hidden: true }, "laying out …");
  const legend = R.h("div", { class: "legend" });
  svg.append(R.s("defs", {}, R.s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto-start-reverse" }, R.s("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))), scene);

  const shape = (item) => (item.type ? (R.outputType(item) || "") : "");
  const title = (item) => (item.type ? item.type : item.label);
  const subtitle = (item) => (item.type ? R.localName(item) : item.size + " layers" + (item.block ? " in order" : ""));
  const third = (item) => (item.type ? R.short(shape(item), 34) : (item.line ??= groupLine(item)));
  const width = (item) => Math.round(Math.min(230, Math.max(110, 26 + 6.6 * Math.max(title(item).length + (item.bodies ? 3 : 0), Math.min(34, subtitle(item).length) * 0.92, Math.min(34, third(item).length) * 0.95))));

  function start() {
    zoom = d3.zoom().scaleExtent([0.02, 4]).on("zoom", (event) => { view = event.transform; scene.setAttribute("transform", view); }).filter((e) => !e.button && e.type !== "dblclick");
    d3.select(svg).call(zoom);
    const source = document.getElementById("layout").textContent;
    worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => { if (data.id === request) { busy.hidden = true; data.error ? fail(data.error) : draw(data.found); } };
    worker.onerror = (event) => fail(event.message);
    svg.addEventListener("keydown", keys);
    svg.addEventListener("click", (event) => { if (event.target === svg) R.select(null); });
    element.append(svg, bar(), legend, busy);
  }

  function fail(message) { busy.hidden = false; busy.textContent = "The graph could not be laid out: " + message; }

  let pending = null, keep = null;
  R.layout = (after = null, fixed = null) => {
    if (!worker) return;
    const found = R.visible();
    pending = { found, after };
    keep = fixed && elements.nodes.has(fixed) && drawn ? { key: fixed, at: drawn.places.nodes[fixed] } : null;
    const nodes = [...found.nodes.values()].map((n) => ({ key: n.key, parent: n.parent, width: width(n.item), height: n.item.type ? HEIGHT.node : HEIGHT.group }));
    request += 1;
    busy.hidden = false;
    const clusters = [...found.clusters.values()].map(({ key, parent }) => ({ key, parent }));
    const edges = found.edges.filter((e) => found.nodes.has(e.a) && found.nodes.has(e.b));
    found.edges = edges;
    worker.postMessage({ id: request, graph: { nodes, clusters, edges: edges.map(({ key, a, b }) => ({ key, a, b })) } });
  };

  function draw(places) {
    const first = drawn === null;
    const { found, after } = pending;
    drawn = { ...found, places };
    elements.nodes.clear();
    elements.edges = [];
    const layers = { clusters: R.s("g"), edges: R.s("g"), nodes: R.s("g") };
    for (const cluster of [...found.clusters.values()].sort((a, b) => depth(found, a) - depth(found, b))) {
      const box = places.clusters[cluster.key];
      if (box) layers.clusters.append(drawCluster(cluster, box));
    }
    for (const edge of found.edges) {
      const line = R.s("path", { class: "edge", d: curve(clipped(places.edges[edge.key], places.clusters[edge.whole])), "marker-end": "url(#arrow)" }, R.s("title", {}, edge.types.join(", ")));
      elements.edges.push({ line, edge });
      layers.edges.append(line);
    }
    for (const { a, b } of found.back) {
      const [p, q] = [places.nodes[a], places.nodes[b]];
      if (p && q) layers.edges.append(R.s("path", { class: "edge back", "marker-end": "url(#arrow)", d: `M${p[0] - 60},${p[1]}C${p[0] - 160},${p[1]} ${q[0] - 160},${q[1]} ${q[0] - 62},${q[1]}` }, R.s("title", {}, "next iteration")));
    }
    for (const node of found.nodes.values()) {
      const drawnNode = drawNode(node, places.nodes[node.key]);
      elements.nodes.set(node.key, drawnNode);
      layers.nodes.append(drawnNode);
    }
    scene.replaceChildren(layers.clusters, layers.edges, layers.nodes);
    paint();
    mark();
    if (first) fit(true);
    else if (keep && view) {
      const now = places.nodes[keep.key] ?? places.clusters[keep.key];
      if (now) d3.select(svg).call(zoom.translateBy, keep.at[0] - now[0], keep.at[1] - now[1]);
    }
    element.dataset.ready = String(request);
    after?.();
  }

  function depth(found, cluster) { let n = 0; for (let c = cluster; c?.parent; c = found.clusters.get(c.parent)) n += 1; return n; }

  // Only what is above a cluster, for what feeds it as a whole.
  function clipped(points, cluster) {
    if (!cluster) return points;
    const top = cluster[1] - cluster[3] / 2 - 10, above = points.filter(([, y]) => y < top);
    return above.length ? [...above, [above.at(-1)[0], top]] : points;
  }

  // A smooth curve through the points that the layout bends an edge at.
  function curve(points) {
    let d = `M${points[0]}`;
    for (let k = 1; k < points.length - 1; k++) {
      const [x, y] = points[k], [u, v] = points[k + 1];
      d += k < points.length - 2 ? `Q${x},${y} ${(x + u) / 2},${(y + v) / 2}` : `Q${x},${y} ${u},${v}`;
    }
    return points.length === 2 ? d + `L${points[1]}` : d;
  }

  function drawNode({ key, item }, [x, y]) {
    const w = width(item), h = item.type ? HEIGHT.node : HEIGHT.group;
    const g = R.s("g", { class: "node" + (item.type ? "" : " group") + (item.dead ? " dead" : ""), transform: `translate(${x - w / 2},${y - h / 2})`, "data-key": key });
    if (!item.type) g.append(R.s("rect", { class: "back", x: 4, y: -4, width: w, height: h, rx: 7 }));
    g.append(R.s("rect", { class: "box", width: w, height: h, rx: 7 }));
    g.append(R.s("rect", { class: "strip", x: 0.6, y: 7, width: 4, height: h - 14, rx: 2 }));
    const inside = R.short(title(item), 32) + (item.bodies ? "  ⊞" : "");
    g.append(R.s("text", { class: "type", x: 13, y: 17 }, inside));
    g.append(R.s("text", { x: 13, y: 30 }, R.tail(subtitle(item), 34)));
    g.append(R.s("text", { class: "shape", x: 13, y: 42 }, third(item)));
    const worst = worstFinding(item);
    if (worst && worst !== "note") g.append(R.s("circle", { class: "mark " + worst, cx: w - 9, cy: 10, r: 4 }));
    g.append(R.s("title", {}, item.type ? `${item.type} ${item.shown}\n${shape(item)}` : `${item.label}: ${item.size} layers; Enter or double click opens`));
    g.addEventListener("click", (event) => { event.stopPropagation(); svg.focus({ preventScroll: true }); item.type ? R.select(item.index) : selectGroup(key); });
    g.addEventListener("dblclick", (event) => { event.stopPropagation(); openItem(key); });
    return g;
  }

  function groupLine(group) {
    const counts = new Map();
    for (const k of R.layersIn(group)) if (!R.layers[k].constantOnly) counts.set(R.layers[k].type, (counts.get(R.layers[k].type) ?? 0) + 1);
    return R.short([...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([t, n]) => (n > 1 ? `${n} ${t}` : t)).join(", "), 34);
  }

  function worstFinding(item) {
    const layers = item.type ? [item] : R.layersIn(item).map((k) => R.layers[k]);
    const all = layers.flatMap((l) => l.findings.map((f) => f.severity));
    return ["error", "warning", "note"].find((s) => all.includes(s));
  }

  function drawCluster({ key, container }, [x, y, w, h]) {
    const g = R.s("g", { class: "cluster" + (container.type ? " body" : ""), "data-key": key });
    g.append(R.s("rect", { x: x - w / 2, y: y - h / 2 - 10, width: w, height: h + 10, rx: 10 }));
    const label = R.s("text", { x: x - w / 2 + 10, y: y - h / 2 + 5 }, "⊟ " + R.short(container.type ? container.type + " " + container.shown : container.label, Math.max(12, w / 7)));
    label.addEventListener("click", (event) => { event.stopPropagation(); R.toggle(container, false); R.layout(null, key); });
    g.append(label, R.s("title", {}, "Click the name to close"));
    return g;
  }

  // -- colours --------------------------------------------------------------------------------------------------------

  const layersOf = (item) => (item.type ? [item] : R.layersIn(item).map((k) => R.layers[k]).filter((l) => !l.constantOnly));

  function paint() {
    const measure = R.measures.find(([key]) => key === colour);
    const value = (item) => {
      const found = layersOf(item).map((l) => measure[2](l)).filter((v) => v !== null);
      return found.length ? (colour === "error" ? Math.max(...found) : found.reduce((a, b) => a + b, 0)) : null;
    };
    const values = measure ? [...drawn.nodes.values()].map((n) => value(n.item)).filter((v) => v > 0) : [];
    const most = values.filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0);
    for (const [key, g] of elements.nodes) {
      const { item } = drawn.nodes.get(key);
      const [box, strip] = [g.querySelector(".box"), g.querySelector(".strip")];
      box.style.fill = "";
      let tone = item.type ? `var(--${item.kind})` : `var(--${mainKind(item)})`;
      if (measure) {
        const v = value(item);
        const failed = colour === "error" && layersOf(item).some((l) => l.error && !l.error.passed);
        const share = v > 0 && most > 0 ? (Number.isFinite(v) ? Math.sqrt(v / most) : 1) : 0;
        tone = failed ? "var(--bad)" : share ? "var(--activation)" : "var(--line)";
        if (share) box.style.fill = `color-mix(in srgb, ${failed ? "var(--bad)" : "var(--activation)"} ${Math.round(8 + 52 * share)}%, var(--paper))`;
      } else if (colour === "difference") {
        const edits = layersOf(item).map((l) => l.edit?.kind).filter(Boolean);
        tone = edits.includes("removed") ? "var(--bad)" : edits.length ? "var(--activation)" : "var(--line)";
        if (edits.length) box.style.fill = `color-mix(in srgb, ${tone} 25%, var(--paper))`;
      }
      strip.style.setProperty("fill", tone);
    }
    legend.replaceChildren(...(measure || colour === "difference" ? [measure ? `${measure[1]}: none … ${measure[3](most)}` : "orange: changed, red: removed in the other model"] : R.kinds.filter(([key]) => [...drawn.nodes.values()].some(({ item }) => item.kind === key)).map(([key, name]) => R.h("span", {}, R.h("i", { style: { background: `var(--${key})` } }), name))));
  }

  function mainKind(group) {
    const kinds = layersOf(group).map((l) => l.kind);
    return R.kinds.map(([key]) => key).find((key) => kinds.includes(key) && ["compute", "flow", "norm", "pool", "activation"].includes(key)) ?? "other";
  }

  R.colourBy = (key) => { colour = key; choose.value = key; if (drawn) paint(); };

  // -- selection, keys ------------------------------------------------------------------------------------------------

  let group = null;
  function selectGroup(key) { R.select(null); group = key; mark(); R.showGroup(drawn.nodes.get(key).item); }

  function mark() {
    const layer = R.selected === null ? null : R.layers[R.selected];
    const key = group ?? (layer && drawn ? standKey(layer) : null);
    const near = new Set();
    for (const { line, edge } of elements.edges) {
      const on = key !== null && (edge.a === key || edge.b === key);
      line.classList.toggle("on", on);
      if (on) near.add(edge.a === key ? edge.b : edge.a);
    }
    for (const [k, g] of elements.nodes) { g.classList.toggle("selected", k === key); g.classList.toggle("near", near.has(k)); }
  }

  function standKey(layer) {
    const item = drawn.stand[layer.index];
    if (item) return drawn.keyOf(item);
    const taken = layer.consumers.length ? R.layers[layer.consumers[0][0]] : null; // a constant: what takes it
    return taken ? standKey(taken) : null;
  }

  R.markSelection = () => { group = null; if (drawn) mark(); };
  R.focusLayer = (index) => {
    const go = () => { mark(); const at = drawn.places.nodes[standKey(R.layers[index])]; if (at) center(at); };
    let layer = R.layers[index];
    while (layer.constantOnly && !R.showConstants && layer.consumers.length) layer = R.layers[layer.consumers[0][0]];
    const before = R.open.size;
    R.reveal(layer);
    if (R.open.size !== before || !drawn) R.layout(go); else go();
  };

  function center([x, y]) {
    const box = svg.getBoundingClientRect(), k = Math.max(view?.k ?? 1, 0.75);
    d3.select(svg).transition().duration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250).call(zoom.transform, d3.zoomIdentity.translate(box.width / 2 - k * x, box.height / 2 - k * y).scale(k));
  }

  function extent() {
    const xs = [], ys = [];
    for (const [x, y] of Object.values(drawn.places.nodes)) { xs.push(x); ys.push(y); }
    const span = (v, f) => v.reduce((a, b) => f(a, b), v[0] ?? 0);
    return [span(xs, Math.min) - 130, span(ys, Math.min) - 50, span(xs, Math.max) + 130, span(ys, Math.max) + 50];
  }

  // All of it, or where that would be too small to read, its beginning.
  function fit(beginning) {
    if (!drawn) return;
    const box = svg.getBoundingClientRect(), [x0, y0, x1, y1] = extent();
    let k = Math.min(box.width / (x1 - x0), box.height / (y1 - y0), 1.1);
    let x = (x0 + x1) / 2, y = (y0 + y1) / 2;
    if (beginning && k < 0.55) { k = Math.max(k, Math.min(0.8, box.width / (x1 - x0), 1) , 0.45); y = y0 + (box.height / 2 - 56) / k; const top = Object.values(drawn.places.nodes).reduce((a, b) => (b[1] < a[1] ? b : a)); if (box.width / (x1 - x0) < k) x = top[0]; }
    d3.select(svg).call(zoom.transform, d3.zoomIdentity.translate(box.width / 2 - k * x, box.height / 2 - k * y).scale(k));
  }

  function openItem(key) {
    const node = drawn?.nodes.get(key);
    if (!node || (node.item.type && !node.item.bodies)) return;
    R.toggle(node.item, true);
    R.layout(() => mark(), key);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !drawn) return;
    const layer = R.selected === null ? null : R.layers[R.selected];
    const key = group ?? (layer ? standKey(layer) : null);
    const at = key && drawn.places.nodes[key];
    const direction = { ArrowDown: "b", ArrowUp: "a" }[event.key];
    if (direction || event.key === "ArrowLeft" || event.key === "ArrowRight") {
      let next = null;
      if (!at) next = [...drawn.nodes.keys()].reduce((a, b) => (a === null || drawn.places.nodes[b][1] < drawn.places.nodes[a][1] ? b : a), null);
      else if (direction) next = drawn.edges.filter((e) => e[direction === "b" ? "a" : "b"] === key).map((e) => e[direction])[0];
      else {
        const side = event.key === "ArrowRight" ? 1 : -1;
        const beside = Object.entries(drawn.places.nodes).filter(([k, [x, y]]) => k !== key && Math.abs(y - at[1]) < 60 && (x - at[0]) * side > 0);
        next = beside.sort((p, q) => Math.abs(p[1][0] - at[0]) - Math.abs(q[1][0] - at[0]))[0]?.[0];
      }
      if (next) { const { item } = drawn.nodes.get(next); item.type ? R.select(item.index) : selectGroup(next); center(drawn.places.nodes[next]); }
    } else if (event.key === "Enter" && key) openItem(key);
    else if (event.key === "Backspace" && key) { const parent = drawn.nodes.get(key)?.parent; if (parent) { R.toggle(drawn.clusters.get(parent).container, false); R.layout(); } }
    else if (event.key === "f") fit(false);
    else if (event.key === "+" || event.key === "=") d3.select(svg).call(zoom.scaleBy, 1.3);
    else if (event.key === "-") d3.select(svg).call(zoom.scaleBy, 1 / 1.3);
    else return;
    event.preventDefault();
  }

  // -- the tools ------------------------------------------------------------------------------------------------------

  let choose = null;
  function bar() {
    const button = (text, tip, action) => R.h("button", { title: tip, onclick: action }, text);
    choose = R.h("select", { "aria-label": "Colour by", title: "Colour by", onchange: () => R.colourBy(choose.value) },
      R.h("option", { value: "kind" }, "colour: operation"),
      R.measures.map(([key, name]) => R.h("option", { value: key }, "colour: " + name)),
      R.data.difference ? R.h("option", { value: "difference" }, "colour: difference") : null);
    const constants = R.h("button", { "aria-pressed": "false", title: "Show constants as nodes", onclick: () => {
      R.showConstants = !R.showConstants;
      constants.setAttribute("aria-pressed", String(R.showConstants));
      R.layout();
    } }, "constants");
    return R.h("div", { class: "bar" }, button("fit", "Show all (f)", () => fit(false)),
      button("open all", "Open every group and body", () => { R.openAll(); R.layout(() => fit(false)); }),
      button("close", "Close groups again", () => { R.openSome(); R.layout(() => fit(true)); }), constants, choose);
  }

  let before = null;
  window.addEventListener("beforeprint", () => {
    if (!drawn || !element.isConnected) return;
    const [x0, y0, x1, y1] = extent();
    before = view;
    svg.setAttribute("viewBox", `${x0} ${y0} ${x1 - x0} ${y1 - y0}`);
    scene.removeAttribute("transform");
  });
  window.addEventListener("afterprint", () => { if (before) { svg.removeAttribute("viewBox"); scene.setAttribute("transform", before); before = null; } });

  R.graph = { element, start, fit, focus: () => svg.focus({ preventScroll: true }) };
})();
