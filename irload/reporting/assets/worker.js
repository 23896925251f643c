// Runs in a worker, behind dagre: places nodes and bends edges.
const LARGE = 500; // nodes beyond which dagre takes too long

function place({ nodes, edges, clusters }) {
  const graph = new dagre.graphlib.Graph({ compound: clusters.length > 0 });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, edgesep: 8, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const c of clusters) graph.setNode(c.key, {});
  for (const n of nodes) graph.setNode(n.key, { width: n.width, height: n.height });
  for (const n of [...clusters, ...nodes]) if (n.parent) graph.setParent(n.key, n.parent);
  for (const e of edges) graph.setEdge(e.a, e.b);
  dagre.layout(graph);
  const found = { nodes: {}, edges: {}, clusters: {} };
  for (const n of nodes) { const { x, y } = graph.node(n.key); found.nodes[n.key] = [x, y]; }
  for (const c of clusters) { const { x, y, width, height } = graph.node(c.key); found.clusters[c.key] = [x, y, width, height]; }
  for (const e of edges) found.edges[e.key] = graph.edge(e.a, e.b).points.map((p) => [p.x, p.y]);
  return found;
}

// One row for each step from the inputs; each node under those that feed it, as far as there is room.
function placeLarge({ nodes, edges }) {
  const order = new Map(nodes.map((n, k) => [n.key, k]));
  const sources = nodes.map(() => []);
  for (const e of edges) if (order.get(e.a) < order.get(e.b)) sources[order.get(e.b)].push(order.get(e.a));
  const rank = [], rows = [], x = [], gap = 18, pitch = 84;
  nodes.forEach((_, k) => {
    rank[k] = sources[k].reduce((most, s) => Math.max(most, rank[s] + 1), 0);
    (rows[rank[k]] ??= []).push(k);
  });
  for (const row of rows) {
    const wanted = (k) => (sources[k].length ? sources[k].reduce((sum, s) => sum + x[s], 0) / sources[k].length : 0);
    const wishes = new Map(row.map((k) => [k, wanted(k)]));
    row.sort((a, b) => wishes.get(a) - wishes.get(b) || a - b);
    let end = -Infinity, off = 0;
    for (const k of row) {
      x[k] = Math.max(wishes.get(k), end + nodes[k].width / 2 + gap);
      end = x[k] + nodes[k].width / 2;
      off += x[k] - wishes.get(k);
    }
    for (const k of row) x[k] -= off / row.length;
  }
  const found = { nodes: {}, edges: {}, clusters: {} };
  nodes.forEach((n, k) => { found.nodes[n.key] = [x[k], rank[k] * pitch]; });
  edges.forEach((e, n) => {
    const [p, q] = [found.nodes[e.a], found.nodes[e.b]], [a, b] = [nodes[order.get(e.a)], nodes[order.get(e.b)]];
    const start = [p[0], p[1] + a.height / 2], end = [q[0], q[1] - b.height / 2];
    const side = Math.max(p[0] + a.width / 2, q[0] + b.width / 2) + 14 + (n % 7) * 7; // past the rows between
    const far = Math.abs(q[1] - p[1]) > pitch + 1;
    found.edges[e.key] = far ? [start, [side, start[1] + 24], [side, end[1] - 24], end] : [start, end];
  });
  return found;
}

onmessage = ({ data: { id, graph } }) => {
  try { postMessage({ id, found: graph.nodes.length > LARGE ? placeLarge(graph) : place(graph) }); }
  catch (error) { postMessage({ id, error: String(error) }); }
};
