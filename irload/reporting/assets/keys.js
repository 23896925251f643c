"use strict";
// Keys of the graph. They work with any focus, except on elements that handle the key.
R.graphKey = (event) => {
  const { graph } = R,
    drawn = graph.drawn();
  if (!drawn) return false;
  const zoom = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
  if (zoom) {
    graph.camera().scale(zoom);
    return true;
  }
  if (event.key === "f") {
    graph.all();
    return true;
  }
  if (event.target !== document.body && !graph.svg.contains(event.target)) return false;
  const key = graph.current(),
    at = key && drawn.places.nodes[key];
  if (event.key === "Enter" && key) {
    graph.open(key);
    return true;
  }
  if (event.key === "Backspace" && drawn.nodes.get(key)?.parent) {
    R.toggle(drawn.clusters.get(drawn.nodes.get(key).parent).container, false);
    R.layout();
    return true;
  }
  if (!event.key.startsWith("Arrow")) return false;
  const next = at ? R.neighbour(drawn, key, at, event.key) : R.topmost(drawn);
  if (next) {
    graph.choose(next, drawn.nodes.get(next).item);
    graph.camera().center(drawn.places.nodes[next]);
  }
  return true;
};

R.topmost = (drawn) =>
  [...drawn.nodes.keys()].reduce(
    (a, b) => (a === null || drawn.places.nodes[b][1] < drawn.places.nodes[a][1] ? b : a),
    null,
  );

// Moves along an edge, or to the nearest node in that direction.
R.neighbour = (drawn, key, [x, y], arrow) => {
  const end = { ArrowDown: "b", ArrowUp: "a" }[arrow];
  if (end)
    return drawn.edges
      .filter((e) => e[end === "b" ? "a" : "b"] === key && drawn.nodes.has(e[end]))
      .map((e) => e[end])[0];
  const side = arrow === "ArrowRight" ? 1 : -1;
  const beside = Object.entries(drawn.places.nodes).filter(
    ([k, [u, v]]) => k !== key && Math.abs(v - y) < 60 && (u - x) * side > 0,
  );
  return beside.sort((p, q) => Math.abs(p[1][0] - x) - Math.abs(q[1][0] - x))[0]?.[0];
};
