// Runs in a worker, after dagre and fold.js: positions nodes and edges. Each cluster is laid out separately, then becomes a node of
// its size in the enclosing cluster, which makes the time linear in the number of clusters instead of quadratic.
const SIDE = 14,
  LABEL = 26,
  PORT = 2; // px within the border of a cluster: at the sides, for the label, for crossing edges
const ENTRY = "\0in",
  EXIT = "\0out"; // the point at which edges cross the border of a cluster

function place({ nodes, edges, clusters }) {
  const items = new Map([
    ...clusters.map((c) => [c.key, { ...c, inside: [], edges: [], enters: new Set(), leaves: new Set() }]),
    ...nodes.map((n) => [n.key, n]),
  ]);
  const root = { key: null, parent: null, inside: [], edges: [], enters: new Set(), leaves: new Set() };
  const around = (item) => (item.parent === null ? root : items.get(item.parent));
  for (const item of items.values()) around(item).inside.push(item);
  const routes = edges.map((e) => route(items.get(e.a), items.get(e.b), around));
  layOut(root);
  const found = { nodes: {}, edges: {}, clusters: {} };
  settle(root, 0, 0, found);
  edges.forEach((e, k) => {
    found.edges[e.key] = bends(routes[k]);
  });
  return found;
}

// The clusters that an edge leaves, the one that holds both of its ends, the clusters that it enters.
function route(a, b, around) {
  const up = (item) => {
    const found = [item];
    while (found.at(-1).key !== null) found.push(around(found.at(-1)));
    return found;
  };
  const [left, right] = [up(a), up(b)];
  while (left.length > 1 && right.length > 1 && left.at(-2) === right.at(-2)) {
    left.pop();
    right.pop();
  }
  const top = left.at(-1),
    [from, to] = [left.at(-2), right.at(-2)];
  left.slice(1, -1).forEach((cluster, k) => cluster.leaves.add(left[k].key));
  right.slice(1, -1).forEach((cluster, k) => cluster.enters.add(right[k].key));
  if (from && to) top.edges.push([from.key, to.key]);
  return { left, right, top, from, to };
}

function layOut(cluster) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, edgesep: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const item of cluster.inside) {
    if (item.inside) layOut(item);
    graph.setNode(item.key, { width: item.width, height: item.height });
  }
  const before = new Set(),
    after = new Set();
  for (const [a, b] of cluster.edges) {
    graph.setEdge(a, b, { weight: 1 });
    after.add(a);
    before.add(b);
  }
  const border = (name, linked, taken, edge) => {
    if (!linked.size) return;
    graph.setNode(name, { width: 1, height: 1 });
    for (const key of linked) edge(key, 1);
    for (const item of cluster.inside) if (!taken.has(item.key) && !linked.has(item.key)) edge(item.key, 0);
  };
  border(ENTRY, cluster.enters, before, (key, weight) => graph.setEdge(ENTRY, key, { weight }));
  border(EXIT, cluster.leaves, after, (key, weight) => graph.setEdge(key, EXIT, { weight }));
  dagre.layout(graph);
  fold(graph);
  for (const folded of cluster.inside.filter((item) => item.folded)) align(graph, folded);
  cluster.folded = graph.graph().folded;
  cluster.graph = graph;
  const { width, height } = graph.graph(),
    least = cluster.least ?? 0; // as wide as its label
  const top = cluster.enters.size ? PORT : LABEL,
    bottom = cluster.leaves.size ? PORT : SIDE;
  cluster.offset = [SIDE + Math.max(0, (least - width) / 2), top];
  cluster.width = Math.max(width, least) + 2 * SIDE;
  cluster.height = height + top + bottom;
}

// Moves nodes that only lead to a folded cluster above its first column.
function align(graph, folded) {
  const above = new Set(),
    pending = [folded.key];
  while (pending.length)
    for (const key of graph.predecessors(pending.pop()))
      if (!above.has(key)) {
        above.add(key);
        pending.push(key);
      }
  const feeding = graph.predecessors(folded.key),
    keys = [...above];
  if (
    feeding.length !== 1 ||
    above.has(ENTRY) ||
    keys.some((key) => graph.successors(key).some((k) => k !== folded.key && !above.has(k)))
  )
    return;
  const port = graph.node(folded.key).x - folded.width / 2 + portOf(folded, ENTRY);
  const least = Math.min(...keys.map((key) => graph.node(key).x - graph.node(key).width / 2));
  const dx = Math.max(port - graph.node(feeding[0]).x, -least);
  const others = graph
    .nodes()
    .filter((key) => !above.has(key))
    .map((key) => graph.node(key));
  const meets = (a, b) =>
    Math.abs(a.x + dx - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;
  if (keys.some((key) => others.some((other) => meets(graph.node(key), other)))) return;
  for (const key of keys) graph.node(key).x += dx;
  for (const edge of graph.edges()) if (above.has(edge.w)) for (const point of graph.edge(edge).points) point.x += dx;
  const { x, y, height } = graph.node(feeding[0]);
  graph.edge(feeding[0], folded.key).points = [
    { x, y: y + height / 2 },
    { x: port, y: graph.node(folded.key).y - folded.height / 2 },
  ];
}
// From the left border of a cluster to the entry or exit of its edges.
function portOf(cluster, name) {
  return cluster.offset[0] + cluster.graph.node(name).x;
}

// Converts positions in a cluster to positions in the drawing.
function settle(cluster, left, top, found) {
  cluster.at = [left + cluster.offset[0], top + cluster.offset[1]];
  cluster.box = [left, top];
  if (cluster.key !== null)
    found.clusters[cluster.key] = [left + cluster.width / 2, top + cluster.height / 2, cluster.width, cluster.height];
  for (const item of cluster.inside) {
    const { x, y } = cluster.graph.node(item.key),
      at = [x + cluster.at[0], y + cluster.at[1]];
    if (item.inside) settle(item, at[0] - item.width / 2, at[1] - item.height / 2, found);
    else found.nodes[item.key] = at;
  }
}

function bends({ left, right, top, from, to }) {
  const points = [];
  const add = (cluster, a, b) =>
    points.push(...cluster.graph.edge(a, b).points.map((p) => [p.x + cluster.at[0], p.y + cluster.at[1]]));
  const port = (cluster, name) => cluster.box[0] + portOf(cluster, name);
  left.slice(1, -1).forEach((cluster, k) => {
    add(cluster, left[k].key, EXIT);
    points.push([port(cluster, EXIT), cluster.box[1] + cluster.height]);
  });
  const entered = right
    .slice(1, -1)
    .map((cluster, k) => [cluster, right[k].key])
    .reverse();
  if (from && to) {
    const [first, ...rest] = top.graph.edge(from.key, to.key).points.map((p) => [p.x + top.at[0], p.y + top.at[1]]);
    points.push(
      ...(from.inside ? [] : [first]),
      ...rest.slice(0, -1),
      ...(to.inside && entered.length ? [] : rest.slice(-1)),
    );
  }
  for (const [cluster, key] of entered) {
    points.push([port(cluster, ENTRY), cluster.box[1]]);
    add(cluster, ENTRY, key);
  }
  return points;
}

onmessage = ({ data: { id, graph } }) => {
  try {
    postMessage({ id, found: place(graph) });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
};
