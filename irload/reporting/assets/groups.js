"use strict";
// What of the graph is visible: scopes of names are groups that open and close, bodies open in their layer.
(() => {
  const START = 110; // items that the first view may show
  const MOST = 90; // direct items of a group, beyond which they are put into blocks
  const BLOCK = 40;
  R.showConstants = false;
  const roots = R.data.graphs.map(build);
  R.open = new Set();

  function hidden(layer) { return layer.constantOnly && !R.showConstants; }

  function build(graph, number) {
    const root = { id: "g" + number, label: "", items: [], parent: null, graph: number, owner: graph.owner };
    const groups = new Map();
    for (let k = graph.start; k < graph.start + graph.count; k++) {
      let group = root, path = root.id;
      for (const part of R.scopeOf(R.layers[k].shown)) {
        path += "/" + part;
        if (!groups.has(path)) {
          const made = { id: path, label: part, items: [], parent: group, graph: number };
          groups.set(path, made);
          group.items.push(made);
        }
        group = groups.get(path);
      }
      group.items.push(k);
    }
    simplify(root);
    return root;
  }

  // Scopes of one visible layer dissolve, chains of scopes become one, long lists are cut into blocks.
  function simplify(group) {
    const items = [];
    for (let item of group.items) {
      if (typeof item !== "number") {
        simplify(item);
        if (item.size <= 1) { items.push(...item.items.map((i) => { if (typeof i !== "number") i.parent = group; return i; })); continue; }
        while (item.items.length === 1 && typeof item.items[0] !== "number") {
          const inner = item.items[0];
          inner.label = item.label + "/" + inner.label;
          inner.parent = group;
          item = inner;
        }
      }
      items.push(item);
    }
    group.items = items.sort((a, b) => first(a) - first(b));
    const visible = group.items.filter(counts);
    if (visible.length > MOST) {
      const blocks = [];
      for (let k = 0; k < group.items.length; k += BLOCK) {
        const part = group.items.slice(k, k + BLOCK);
        const block = { id: group.id + "//" + k, label: "", items: part, parent: group, graph: group.graph, block: true };
        for (const item of part) if (typeof item !== "number") item.parent = block;
        measure(block);
        block.label = blockLabel(part);
        blocks.push(block);
      }
      group.items = blocks;
    }
    measure(group);
  }

  function counts(item) { return typeof item !== "number" ? item.size > 0 : !R.layers[item].constantOnly; }
  function first(item) { return typeof item === "number" ? item : item.items.length ? first(item.items[0]) : 0; }
  function last(item) { return typeof item === "number" ? item : last(item.items.at(-1)); }
  function measure(group) {
    group.size = group.items.reduce((sum, i) => sum + (typeof i === "number" ? (R.layers[i].constantOnly ? 0 : 1) : i.size), 0);
    for (const item of group.items) if (typeof item === "number") R.layers[item].group = group;
  }
  function blockLabel(items) {
    const names = items.filter(counts);
    const [a, b] = [names[0], names.at(-1)].map((i) => (i === undefined ? "" : typeof i === "number" ? R.layers[i].shown : i.label));
    return R.short(a, 22) + " … " + R.short(b, 22);
  }
  // The name without the scopes of the group that the layer is drawn in.
  R.localName = (layer) => {
    let name = layer.shown;
    for (const part of (layer.group?.id ?? "").split("//")[0].split("/").slice(1)) {
      if (name.startsWith("__module.")) name = name.slice(9);
      name = name.slice(name.indexOf(part) === 0 ? part.length : 0).replace(/^[/.]/, "");
    }
    return name || layer.shown;
  };
  R.layersIn = (group) => group.items.flatMap((item) => (typeof item === "number" ? [item] : R.layersIn(item)));

  // From the outside in: the groups, layers with bodies and groups of bodies that hold a layer.
  function containers(layer) {
    const found = [];
    for (let group = layer.group; group; group = group.parent) if (group.parent) found.unshift(group);
    const root = R.data.graphs[layer.graph];
    if (root.owner !== null) found.unshift(...containers(R.layers[root.owner]), R.layers[root.owner]);
    return found;
  }
  const keyOf = (container) => (container.type ? "l" + container.index : container.id);
  R.isOpen = (container) => R.open.has(keyOf(container));
  R.toggle = (container, open = !R.isOpen(container)) => { R.open[open ? "add" : "delete"](keyOf(container)); };
  R.reveal = (layer) => containers(layer).forEach((c) => R.toggle(c, true));
  R.openAll = (groupsOnly) => R.layers.forEach((l) => containers(l).forEach((c) => { if (!groupsOnly || !c.type) R.toggle(c, true); }));
  R.closeAll = () => R.open.clear();

  // The first view: the largest groups open as long as there is room.
  R.openSome = () => {
    R.open.clear();
    let shown = roots[0].items.filter(counts).length;
    const queue = roots[0].items.filter((i) => typeof i !== "number");
    while (queue.length) {
      queue.sort((a, b) => b.size - a.size);
      const group = queue.shift();
      const inside = group.items.filter(counts).length;
      if (shown - 1 + inside > START) continue;
      shown += inside - 1;
      R.toggle(group, true);
      queue.push(...group.items.filter((i) => typeof i !== "number"));
    }
  };

  // What stands for a layer: the outermost closed container, or the layer itself.
  function standIn(layer) {
    for (const container of containers(layer)) if (!R.isOpen(container)) return container;
    return layer;
  }

  R.visible = () => {
    const nodes = new Map(), clusters = new Map(), edges = new Map(), back = [];
    const stand = R.layers.map((layer) => (hidden(layer) ? null : standIn(layer)));
    const isCluster = (item) => (item.type ? item.bodies && R.isOpen(item) : R.isOpen(item));
    const cluster = (container) => {
      const key = keyOf(container);
      if (!clusters.has(key)) clusters.set(key, { key, container, parent: parentOf(container) });
      return key;
    };
    const parentOf = (item) => {
      const around = item.type ? containers(item) : around_(item);
      return around.length ? cluster(around.at(-1)) : null;
    };
    const around_ = (group) => {
      const found = [];
      for (let up = group.parent; up; up = up.parent) if (up.parent) found.unshift(up);
      const owner = R.data.graphs[group.graph].owner;
      return owner === null ? found : [...containers(R.layers[owner]), R.layers[owner], ...found];
    };
    for (const item of stand) {
      if (!item || nodes.has(keyOf(item)) || isCluster(item)) continue;
      nodes.set(keyOf(item), { key: keyOf(item), item, parent: parentOf(item) });
    }
    const ends = (layer, port, side) => {
      // An open layer with bodies: the Parameters or Results of the bodies that stand for the port.
      const own = stand[layer.index];
      if (own !== layer || !isCluster(layer)) return own ? [own] : [];
      return layer.bodies.flatMap((b) => b[side].filter(([p]) => p === port).map(([, k]) => stand[k]).filter(Boolean));
    };
    for (const layer of R.layers) {
      if (hidden(layer)) continue;
      layer.inputs.forEach(([source, output], port) => {
        if (hidden(R.layers[source])) return;
        let targets = ends(layer, port, "inputs"), whole = null;
        if (!targets.length) { // no layer of the body takes it: trip counts, conditions
          targets = (layer.bodies ?? []).slice(0, 1).map((b) => stand[R.data.graphs[b.graph].start]).filter(Boolean);
          whole = keyOf(layer);
        }
        for (const a of ends(R.layers[source], output, "outputs"))
          for (const b of targets) {
            if (a === b) continue;
            const key = keyOf(a) + ">" + keyOf(b);
            if (!edges.has(key)) edges.set(key, { key, a: keyOf(a), b: keyOf(b), types: [], whole });
            const type = R.layers[source].outputs[output]?.type;
            if (type && !edges.get(key).types.includes(type)) edges.get(key).types.push(type);
          }
      });
      for (const body of isCluster(layer) ? layer.bodies ?? [] : [])
        for (const [result, parameter] of body.back) {
          const [a, b] = [stand[result], stand[parameter]];
          if (a && b && a !== b) back.push({ a: keyOf(a), b: keyOf(b) });
        }
    }
    return { nodes, clusters, edges: [...edges.values()], back, stand, keyOf };
  };
})();
