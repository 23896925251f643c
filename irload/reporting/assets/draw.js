"use strict";
// The elements of the drawing: nodes, the frames of clusters, edges.
(() => {
  const HEIGHT = { node: 48, group: 54 };
  const FONT = { type: "650 12px", name: "11px", brief: "600 20px" }; // as in style.css
  const MONOSPACED = 6.3; // px per character of a shape
  R.draw = {};

  const shape = (item) => (item.type ? R.outputType(item) || "" : "");
  const title = (item) => (item.type ? item.type : item.label);
  const subtitle = (item) => (item.type ? R.localName(item) : item.size + " layers" + (item.block ? " in order" : ""));
  const more = (item) => (item.bodies ? "  ⊞" : "");
  const third = (item) => (item.type ? R.short(shape(item), 34) : (item.line ??= groupLine(item)));

  R.draw.size = (item) => {
    const widest = Math.max(
      R.textWidth(R.short(title(item), 34) + more(item), FONT.type),
      R.textWidth(R.tail(subtitle(item), 34), FONT.name),
      MONOSPACED * Math.min(34, third(item).length),
    );
    return {
      width: Math.round(Math.min(240, Math.max(110, 26 + widest))),
      height: item.type ? HEIGHT.node : HEIGHT.group,
    };
  };

  function groupLine(group) {
    const counts = new Map();
    for (const layer of R.layersOf(group)) counts.set(layer.type, (counts.get(layer.type) ?? 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3);
    return R.short(most.map(([t, n]) => (n > 1 ? `${n} ${t}` : t)).join(", "), 34);
  }

  // Three lines at full zoom, one large line farther out, none farthest out: graph.js sets the level of detail.
  R.draw.node = ({ key, item }, [x, y], choose, open) => {
    const { width: w, height: h } = R.draw.size(item),
      all = R.within(item);
    const names = ["node", item.type ? null : "group", item.dead ? "dead" : null, all.some(R.faulty) ? "fault" : null];
    const g = R.s("g", {
      class: names.filter(Boolean).join(" "),
      transform: `translate(${x - w / 2},${y - h / 2})`,
      "data-key": key,
    });
    if (!item.type) g.append(R.s("rect", { class: "back", x: 4, y: -4, width: w, height: h, rx: 7 }));
    g.append(
      R.s("rect", { class: "box", width: w, height: h, rx: 7 }),
      R.s("rect", { class: "strip", x: 0.6, y: 7, width: 4, height: h - 14, rx: 2 }),
      R.s("text", { class: "type", x: 13, y: 17 }, R.fit(title(item), w - (item.bodies ? 40 : 18), FONT.type) + more(item)),
      R.s("text", { x: 13, y: 30 }, R.fit(subtitle(item), w - 18, FONT.name, R.tail)),
      R.s("text", { class: "shape", x: 13, y: 42 }, third(item)),
      R.s("text", { class: "brief", x: 11, y: h / 2 + 7 }, R.fit(title(item), w - 16, FONT.brief)),
    );
    const worst = ["error", "warning"].find((s) => all.some((l) => l.findings.some((f) => f.severity === s)));
    if (worst) g.append(R.s("circle", { class: "mark " + worst, cx: w - 2, cy: 2, r: 4 }));
    g.append(
      R.s(
        "title",
        {},
        item.type
          ? `${item.type} ${item.shown}\n${shape(item)}`
          : `${item.label}: ${item.size} layers; Enter or double click opens`,
      ),
    );
    g.addEventListener("click", (event) => {
      event.stopPropagation();
      choose(key, item);
    });
    g.addEventListener("dblclick", (event) => {
      event.stopPropagation();
      open(key);
    });
    return g;
  };

  R.draw.clusterLabel = (container) =>
    "⊟ " + (container.type ? container.type + " " + container.shown : container.label);

  R.draw.cluster = ({ key, container }, [x, y, w, h]) => {
    const names = ["cluster", container.type ? "body" : null, R.within(container).some(R.faulty) ? "fault" : null];
    return R.s(
      "g",
      { class: names.filter(Boolean).join(" "), "data-key": key },
      R.s("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 10 }),
    );
  };

  R.draw.edge = (edge, points) =>
    R.s(
      "path",
      { class: "edge", d: curve(points), "marker-end": "url(#arrow)" },
      R.s("title", {}, edge.types.join(", ")),
    );

  // From a Result of a body to the Parameter that receives it in the next iteration.
  R.draw.back = ([x, y], [u, v]) =>
    R.s(
      "path",
      {
        class: "edge back",
        "marker-end": "url(#arrow)",
        d: `M${x - 60},${y}C${x - 160},${y} ${u - 160},${v} ${u - 62},${v}`,
      },
      R.s("title", {}, "next iteration"),
    );

  R.draw.arrow = () =>
    R.s(
      "defs",
      {},
      R.s(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 8 8",
          refX: 7,
          refY: 4,
          markerWidth: 7,
          markerHeight: 7,
          markerUnits: "userSpaceOnUse",
          orient: "auto-start-reverse",
        },
        R.s("path", { d: "M0 0L8 4L0 8z", class: "arrow" }),
      ),
    );

  // Lines with round corners through the bend points of an edge.
  function curve(points) {
    const toward = ([x, y], [u, v]) => {
      const length = Math.hypot(u - x, v - y),
        t = length ? Math.min(0.5, 40 / length) : 0;
      return [x + t * (u - x), y + t * (v - y)];
    };
    const corners = points.slice(1, -1).map((p, k) => `L${toward(p, points[k])}Q${p} ${toward(p, points[k + 2])}`);
    return `M${points[0]}${corners.join("")}L${points.at(-1)}`;
  }
})();
