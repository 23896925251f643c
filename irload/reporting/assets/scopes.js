"use strict";
// The tree of groups of each graph: scopes of names, cut into blocks where they are long.
(() => {
  const MOST = 90; // direct items of a group; larger groups are cut into blocks
  const BLOCK = 40;
  R.layersIn = (group) => group.items.flatMap((item) => (typeof item === "number" ? [item] : R.layersIn(item)));

  function build(graph, number) {
    const root = { id: "g" + number, label: "", items: [], parent: null, graph: number, owner: graph.owner };
    const groups = new Map(),
      scopes = scopesOf(graph);
    for (let k = graph.start; k < graph.start + graph.count; k++) {
      let group = root,
        path = root.id;
      for (const part of scopes.get(k)) {
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

  // The scopes of a layer by its name. A layer without scope joins its readers if they share one scope. Names of
  // Results repeat names of layers.
  function scopesOf({ start, count }) {
    const found = new Map();
    // readers follow their layer
    for (let k = start + count - 1; k >= start; k--) {
      const layer = R.layers[k],
        own = layer.type === "Result" ? [] : R.scopeOf(layer.shown);
      const takers = own.length || layer.type === "Parameter" ? [] : layer.consumers;
      found.set(k, takers.length ? takers.map(([taker]) => found.get(taker) ?? []).reduce(common) : own);
    }
    return found;
  }
  function common(a, b) {
    let n = 0;
    while (n < a.length && a[n] === b[n]) n += 1;
    return a.slice(0, n);
  }

  // Whether values leave a group and return to it through other layers, which prevents a layered drawing.
  function isCrossed(group) {
    const inside = new Set(R.layersIn(group).filter((k) => !R.layers[k].constantOnly)),
      last = Math.max(...inside),
      seen = new Set();
    const pending = [...inside];
    while (pending.length) {
      const k = pending.pop();
      for (const [taker] of R.layers[k].consumers) {
        if (inside.has(taker)) {
          if (!inside.has(k)) return true;
          continue;
        }
        if (taker < last && !seen.has(taker)) {
          seen.add(taker);
          pending.push(taker);
        }
      }
    }
    return false;
  }

  // Dissolves scopes of one visible layer and crossed scopes, joins chains of scopes, cuts long lists into blocks.
  function simplify(group) {
    const items = [];
    for (let item of group.items) {
      if (typeof item !== "number") {
        simplify(item);
        if (item.size <= 1 || isCrossed(item)) {
          items.push(...dissolved(item, group));
          continue;
        }
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
        const block = {
          id: group.id + "//" + k,
          label: "",
          items: part,
          parent: group,
          graph: group.graph,
          block: true,
        };
        for (const item of part) if (typeof item !== "number") item.parent = block;
        measure(block);
        block.label = blockLabel(part);
        blocks.push(block);
      }
      group.items = blocks;
    }
    measure(group);
  }

  // The items that a group adds to the enclosing group.
  function dissolved(group, around) {
    for (const item of group.items)
      if (typeof item !== "number") {
        item.parent = around;
        if (!item.block) item.label = group.label + "/" + item.label;
      }
    return group.items.flatMap((item) => (item.block ? dissolved(item, around) : [item]));
  }

  function counts(item) {
    return typeof item !== "number" ? item.size > 0 : !R.layers[item].constantOnly;
  }
  function first(item) {
    return typeof item === "number" ? item : item.items.length ? first(item.items[0]) : 0;
  }
  function measure(group) {
    group.size = group.items.reduce(
      (sum, i) => sum + (typeof i === "number" ? (R.layers[i].constantOnly ? 0 : 1) : i.size),
      0,
    );
    for (const item of group.items) if (typeof item === "number") R.layers[item].group = group;
  }
  function blockLabel(items) {
    const names = items.filter(counts);
    const [a, b] = [names[0], names.at(-1)].map((i) =>
      i === undefined ? "" : typeof i === "number" ? R.layers[i].shown : i.label,
    );
    return R.short(a, 22) + " … " + R.short(b, 22);
  }
  // The name without the scopes of the enclosing group.
  R.localName = (layer) => {
    let name = layer.shown;
    for (const part of (layer.group?.id ?? "").split("//")[0].split("/").slice(1)) {
      if (name.startsWith("__module.")) name = name.slice(9);
      name = name.slice(name.indexOf(part) === 0 ? part.length : 0).replace(/^[/.]/, "");
    }
    return name || layer.shown;
  };
  R.counts = counts;
  R.roots = R.data.graphs.map(build);
})();
