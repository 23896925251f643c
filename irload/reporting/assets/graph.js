"use strict";
// The drawing of the visible graph: layout, selection, and navigation to a layer.
(() => {
  let worker = null,
    request = 0,
    pending = null,
    drawn = null,
    opened = false,
    colour = "kind",
    group = null,
    camera = null,
    tones = new Map();
  const elements = { nodes: new Map(), edges: [] };

  const svg = R.s("svg", {
    tabindex: 0,
    role: "application",
    "aria-label": "Graph of the model. Arrow keys follow edges, Enter opens a group.",
  });
  const scene = R.s("g", { class: "scene" }),
    labels = R.s("g", { class: "labels" });
  const busy = R.h("div", { class: "busy", hidden: true }, "laying out …");
  const legend = R.h("div", { class: "legend" });
  const minimap = R.minimap((at) => camera.move(at));
  const element = R.h("div", { class: "graph" }, svg, legend, minimap, busy);
  svg.append(R.draw.arrow(), scene, labels);

  function start() {
    camera = R.camera(svg, look);
    const source = document.getElementById("layout").textContent;
    worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => {
      if (data.id === request) {
        busy.hidden = true;
        data.error ? fail(data.error) : draw(data.found);
      }
    };
    worker.onerror = (event) => fail(event.message);
    svg.addEventListener("click", (event) => {
      if (event.target === svg) R.select(null);
    });
    new ResizeObserver(() => {
      if (drawn && element.isConnected) {
        camera.bounds(drawn.extent);
        showMap();
        opened ? look() : openCamera();
      }
    }).observe(svg);
    element.prepend(R.bar());
  }

  function fail(message) {
    busy.hidden = false;
    busy.textContent = "The graph could not be laid out: " + message;
  }

  // Lays out the visible graph; `fixed`: the key of the node that does not move on the screen, `after` is called once drawn.
  R.layout = (after = null, fixed = null) => {
    const found = R.visible(),
      at = fixed === null || !drawn ? null : placeOf(fixed);
    found.edges = found.edges.filter((e) => found.nodes.has(e.a) && (found.nodes.has(e.b) || found.clusters.has(e.b)));
    pending = { found, after, keep: at && { key: fixed, at } };
    request += 1;
    busy.hidden = false;
    const nodes = [...found.nodes.values()].map((n) => ({ key: n.key, parent: n.parent, ...R.draw.size(n.item) }));
    const clusters = [...found.clusters.values()].map(({ key, parent, container }) => ({
      key,
      parent,
      least: Math.min(220, 6.6 * R.draw.clusterLabel(container).length),
    }));
    worker.postMessage({
      id: request,
      graph: { nodes, clusters, edges: found.edges.map(({ key, a, b }) => ({ key, a, b })) },
    });
  };

  function draw(places) {
    const { found, after, keep } = pending;
    drawn = { ...found, places, extent: R.extentOf(places), frames: R.framesOf(found, places) };
    const clusters = drawn.frames
      .filter((f) => f.container)
      .map((f) => R.draw.cluster(found.clusters.get(f.key), f.box));
    elements.edges = found.edges.map((edge) => ({ edge, line: R.draw.edge(edge, places.edges[edge.key]) }));
    const backs = found.back
      .map(({ a, b }) => [places.nodes[a], places.nodes[b]])
      .filter(([p, q]) => p && q)
      .map(([p, q]) => R.draw.back(p, q));
    elements.nodes = new Map(
      [...found.nodes.values()].map((node) => [node.key, R.draw.node(node, places.nodes[node.key], choose, open)]),
    );
    scene.replaceChildren(
      R.s("g", {}, clusters),
      R.s(
        "g",
        {},
        elements.edges.map((e) => e.line),
        backs,
      ),
      R.s("g", {}, [...elements.nodes.values()]),
    );
    paint();
    mark();
    camera.bounds(drawn.extent);
    const now = keep && placeOf(keep.key);
    if (!opened) openCamera();
    else if (now) camera.shift(keep.at[0] - now[0], keep.at[1] - now[1]);
    else look();
    element.dataset.ready = String(request);
    after?.();
  }

  // Sets the initial view. Deferred while the drawing has no size: in another tab, or in a hidden frame.
  function openCamera() {
    const { width, height } = svg.getBoundingClientRect();
    if (!width || !height) return;
    opened = true;
    camera.open(drawn.extent, beginning(), R.selected !== null);
  }

  const placeOf = (key) => drawn.places.nodes[key] ?? drawn.places.clusters[key];

  // The initial position: the selected layer, else the first input.
  function beginning() {
    const layer = R.selected === null ? R.layers[R.data.model.inputs[0]?.layer] : R.layers[R.selected];
    const at = layer && placeOf(standKey(layer));
    return at ?? Object.values(drawn.places.nodes).reduce((a, b) => (b[1] < a[1] ? b : a), [0, 0]);
  }

  // -- the view -------------------------------------------------------------------------------------------------------

  function look(view = camera.view()) {
    scene.setAttribute("transform", view);
    svg.dataset.detail = R.levelOf(view.k);
    if (!drawn) return;
    showLabels(view, R.boxOf(svg));
    minimap.follow(view, R.boxOf(svg));
  }

  function showLabels(view, box) {
    const frames = R.levelOf(view.k) === "far" ? drawn.frames : drawn.frames.filter((f) => f.container);
    labels.replaceChildren(
      ...R.labels(frames, view, box, (container, key) => {
        R.toggle(container, false);
        R.layout(null, key);
      }),
    );
  }

  function paint() {
    const painted = R.paint(drawn.nodes, elements.nodes, colour);
    tones = painted.tones;
    legend.replaceChildren(...painted.legend);
    showMap();
  }

  function showMap() {
    const marks = [...drawn.nodes.values()].map(({ key, item }) => [
      ...drawn.places.nodes[key],
      R.draw.size(item).width,
      R.draw.size(item).height,
      R.within(item).some(R.faulty) ? "var(--bad)" : tones.get(key),
    ]);
    minimap.draw(
      drawn.extent,
      marks.sort((a, b) => (a[4] === "var(--bad)") - (b[4] === "var(--bad)")),
      R.boxOf(svg),
    );
  }
  R.colourBy = (key) => {
    colour = key;
    R.bar.chosen(key);
    if (drawn) paint();
  };
  R.repaint = () => {
    if (drawn) paint();
  };

  // -- selection ------------------------------------------------------------------------------------------------------

  function choose(key, item) {
    svg.focus({ preventScroll: true });
    if (item.type) return R.select(item.index);
    R.select(null);
    group = key;
    mark();
    R.showGroup(item);
  }

  function open(key) {
    const node = drawn?.nodes.get(key);
    if (!node || (node.item.type && !node.item.bodies)) return;
    R.toggle(node.item, true);
    R.layout(() => mark(), key);
  }

  const current = () => group ?? (R.selected === null ? null : standKey(R.layers[R.selected]));

  function mark() {
    const key = current(),
      near = new Set();
    for (const { line, edge } of elements.edges) {
      const on = key !== null && (edge.a === key || edge.b === key);
      line.classList.toggle("on", on);
      if (on) near.add(edge.a === key ? edge.b : edge.a);
    }
    for (const [k, g] of elements.nodes) {
      g.classList.toggle("selected", k === key);
      g.classList.toggle("near", near.has(k));
    }
  }

  function standKey(layer) {
    const item = drawn.stand[layer.index];
    if (item) return drawn.keyOf(item);
    return layer.consumers.length ? standKey(R.layers[layer.consumers[0][0]]) : null; // a constant: its reader
  }

  // A hidden constant is represented by its reader.
  R.shownFor = (layer) =>
    layer.constantOnly && !R.showConstants && layer.consumers.length
      ? R.shownFor(R.layers[layer.consumers[0][0]])
      : layer;
  R.markSelection = () => {
    group = null;
    if (drawn) mark();
  };
  R.focusLayer = (index, glide = true) => {
    const go = () => {
      mark();
      const at = placeOf(standKey(R.layers[index]));
      if (at) camera.center(at, glide);
    };
    const before = R.open.size;
    R.reveal(R.shownFor(R.layers[index]));
    if (R.open.size !== before || !drawn) R.layout(go);
    else go();
  };

  R.graph = {
    element,
    svg,
    scene,
    start,
    choose,
    open,
    current,
    look,
    showLabels,
    drawn: () => drawn,
    camera: () => camera,
    focus: () => svg.focus({ preventScroll: true }),
    all: () => {
      if (drawn) camera.all(drawn.extent);
    },
    begin: () => {
      if (drawn) camera.open(drawn.extent, beginning(), R.selected !== null);
    },
  };
})();
