// Runs in a worker: a drawing much taller than wide is broken into adjacent columns, like text.
const TALL = 4000,
  SLIM = 6; // px, and height / width, above which it is folded
const LANE = 48,
  MARGIN = 14; // px between columns, where edges go up to the next one, and above and below them

function fold(graph) {
  const size = graph.graph(),
    nodes = graph.nodes().map((key) => graph.node(key));
  if (size.height < TALL || size.height < SLIM * size.width) return;
  const starts = cuts(nodes, size.height / Math.round(Math.sqrt((1.3 * size.height) / (size.width + LANE))));
  const ends = [...starts.slice(1), size.height],
    pitch = size.width + LANE;
  const column = (y) => starts.findLastIndex((start) => y >= start);
  const moved = (x, y, c) => ({ x: x + c * pitch, y: y - starts[c] + MARGIN });
  for (const edge of graph.edges()) {
    const found = graph.edge(edge);
    found.points = found.points.flatMap((p, k, all) => [...lanes(all[k - 1], p), moved(p.x, p.y, column(p.y))]);
  }
  for (const node of nodes) Object.assign(node, moved(node.x, node.y, column(node.y)));
  size.folded = true;
  size.width = starts.length * pitch - LANE;
  size.height = Math.max(...starts.map((start, c) => ends[c] - start)) + 2 * MARGIN;

  // Down to the end of each column between two points, and up to the top of the next.
  function lanes(before, { y }) {
    const found = [];
    for (let c = before ? column(before.y) : Infinity; c < column(y); c++) {
      const left = moved(before.x, ends[c], c),
        right = moved(before.x, starts[c + 1], c + 1),
        x = (c + 1) * pitch - LANE / 2;
      found.push(left, { x, y: left.y }, { x, y: right.y - MARGIN / 2 }, { x: right.x, y: right.y - MARGIN / 2 });
    }
    return found;
  }
}

// Heights at which columns begin: the first gaps between nodes beyond every `height`.
function cuts(nodes, height) {
  const found = [0];
  let end = 0;
  for (const { y, height: h } of [...nodes].sort((a, b) => a.y - a.height / 2 - b.y + b.height / 2)) {
    if (y - h / 2 > end && end - found.at(-1) >= height) found.push((end + y - h / 2) / 2);
    end = Math.max(end, y + h / 2);
  }
  return found;
}
