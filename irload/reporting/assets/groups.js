"use strict";
// The visible part of the graph: scopes of names are groups that open and close, bodies open in their layer.
(() => {
  const START = 110; // upper bound of the items in the initial view
  R.showConstants = false;
  R.open = new Set();

  function hidden(layer) {
    return layer.constantOnly && !R.showConstants;
  }

  // The layers that a node of the drawing represents, with and without closed bodies.
  const kept = new Map();
  R.layersOf = (item) =>
    item.type
      ? [item]
      : R.layersIn(item)
          .map((k) => R.layers[k])
          .filter((l) => !l.constantOnly);
  R.within = (item) => {
    if (!kept.has(item))
      kept.set(
        item,
        (item.type ? [item] : R.layersIn(item).map((k) => R.layers[k])).flatMap((l) => [l, ...R.bodyLayers(l)]),
      );
    return kept.get(item);
  };

  // The groups, layers with bodies and groups in bodies that contain a layer, outermost first.
  function containers(layer) {
    const found = [];
    for (let group = layer.group; group; group = group.parent) if (group.parent) found.unshift(group);
    const root = R.data.graphs[layer.graph];
    if (root.owner !== null) found.unshift(...containers(R.layers[root.owner]), R.layers[root.owner]);
    return found;
  }
  const keyOf = (container) => (container.type ? "l" + container.index : container.id);
  R.isOpen = (container) => R.open.has(keyOf(container));
  R.toggle = (container, open = !R.isOpen(container)) => {
    R.open[open ? "add" : "delete"](keyOf(container));
  };
  R.reveal = (layer) => containers(layer).forEach((c) => R.toggle(c, true));
  R.openAll = (groupsOnly) =>
    R.layers.forEach((l) =>
      containers(l).forEach((c) => {
        if (!groupsOnly || !c.type) R.toggle(c, true);
      }),
    );

  // The initial view: opens the largest groups until START items are visible.
  R.openSome = () => {
    R.open.clear();
    let shown = R.roots[0].items.filter(R.counts).length;
    const queue = R.roots[0].items.filter((i) => typeof i !== "number");
    while (queue.length) {
      queue.sort((a, b) => b.size - a.size);
      const group = queue.shift();
      const inside = group.items.filter(R.counts).length;
      if (shown - 1 + inside > START) continue;
      shown += inside - 1;
      R.toggle(group, true);
      queue.push(...group.items.filter((i) => typeof i !== "number"));
    }
  };

  // The node that represents a layer: its outermost closed container, or the layer.
  function standIn(layer) {
    for (const container of containers(layer)) if (!R.isOpen(container)) return container;
    return layer;
  }

  R.visible = () => {
    const nodes = new Map(),
      clusters = new Map(),
      edges = new Map(),
      back = [];
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
      // An open layer with bodies: the Parameters or Results of the bodies that correspond to the port.
      const own = stand[layer.index];
      if (own !== layer || !isCluster(layer)) return own ? [own] : [];
      return layer.bodies.flatMap((b) =>
        b[side]
          .filter(([p]) => p === port)
          .map(([, k]) => stand[k])
          .filter(Boolean),
      );
    };
    for (const layer of R.layers) {
      if (hidden(layer)) continue;
      layer.inputs.forEach(([source, output], port) => {
        if (hidden(R.layers[source])) return;
        const targets = ends(layer, port, "inputs");
        if (!targets.length && stand[layer.index] === layer) targets.push(layer); // trip counts, conditions: the whole body
        for (const a of ends(R.layers[source], output, "outputs"))
          for (const b of targets) {
            if (a === b) continue;
            const key = keyOf(a) + ">" + keyOf(b);
            if (!edges.has(key)) edges.set(key, { key, a: keyOf(a), b: keyOf(b), types: [] });
            const type = R.layers[source].outputs[output]?.type;
            if (type && !edges.get(key).types.includes(type)) edges.get(key).types.push(type);
          }
      });
      for (const body of isCluster(layer) ? (layer.bodies ?? []) : [])
        for (const [result, parameter] of body.back) {
          const [a, b] = [stand[result], stand[parameter]];
          if (a && b && a !== b) back.push({ a: keyOf(a), b: keyOf(b) });
        }
    }
    return { nodes, clusters, edges: [...edges.values()], back, stand, keyOf };
  };
})();
