"use strict";
// Derived from the layout: the extent of the drawing, and the named frames.
(() => {
  R.extentOf = (places) => {
    const boxes = [
      ...Object.entries(places.nodes).map(([, [x, y]]) => [x, y, 240, 60]),
      ...Object.values(places.clusters),
    ];
    const span = (end, f) => boxes.map(end).reduce((a, b) => f(a, b));
    return boxes.length
      ? [
          span(([x, , w]) => x - w / 2, Math.min) - 20,
          span(([, y, , h]) => y - h / 2, Math.min) - 20,
          span(([x, , w]) => x + w / 2, Math.max) + 20,
          span(([, y, , h]) => y + h / 2, Math.max) + 20,
        ]
      : [0, 0, 1, 1];
  };

  // Open clusters, outermost first, then closed groups, whose names are shown when zoomed out.
  R.framesOf = (found, places) => {
    const depth = (cluster) => {
      let n = 0;
      for (let c = cluster; c?.parent; c = found.clusters.get(c.parent)) n += 1;
      return n;
    };
    const open = [...found.clusters.values()].filter((c) => places.clusters[c.key]).sort((a, b) => depth(a) - depth(b));
    return [
      ...open.map(({ key, container }) => ({
        key,
        container,
        text: R.draw.clusterLabel(container),
        box: places.clusters[key],
      })),
      ...[...found.nodes.values()]
        .filter((n) => !n.item.type)
        .map(({ key, item }) => ({
          key,
          container: null,
          text: item.label,
          box: [...places.nodes[key], R.draw.size(item).width, R.draw.size(item).height],
        })),
    ];
  };
})();
