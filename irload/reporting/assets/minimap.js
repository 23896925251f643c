"use strict";
// The whole drawing in a corner, with a frame around the visible part. A click or a drag moves the view.
R.minimap = (go) => {
  const canvas = R.h("canvas"),
    frame = R.h("i");
  const element = R.h(
    "div",
    { class: "minimap", title: "The whole graph: click or drag to go there", hidden: true },
    canvas,
    frame,
  );
  let extent = null,
    size = [1, 1];

  // Tall graphs are stretched horizontally to remain visible.
  function fitted([x0, y0, x1, y1], box) {
    const most = [Math.min(150, box.width * 0.28), Math.min(320, box.height * 0.45)];
    const k = Math.min(most[0] / (x1 - x0), most[1] / (y1 - y0));
    return [Math.max(48, (x1 - x0) * k), Math.max(36, (y1 - y0) * k)].map(Math.round);
  }

  // `marks`: [x, y, width, height, colour], the most important ones last.
  element.draw = (whole, marks, box) => {
    extent = whole;
    size = fitted(extent, box);
    const dots = Math.max(1, window.devicePixelRatio || 1),
      styles = getComputedStyle(document.documentElement),
      colours = new Map();
    [canvas.width, canvas.height] = size.map((n) => Math.round(n * dots));
    [element.style.width, element.style.height] = size.map((n) => n + "px");
    const pen = canvas.getContext("2d"),
      [sx, sy] = scale().map((s) => s * dots);
    for (const [x, y, w, h, tone] of marks) {
      if (!colours.has(tone)) colours.set(tone, styles.getPropertyValue(tone.replace(/^var\((.*)\)$/, "$1")));
      pen.fillStyle = colours.get(tone);
      const wide = Math.max(w * sx, 1.5 * dots),
        high = Math.max(h * sy, 1 * dots);
      pen.fillRect((x - extent[0]) * sx - wide / 2, (y - extent[1]) * sy - high / 2, wide, high);
    }
  };
  const scale = () => [size[0] / (extent[2] - extent[0]), size[1] / (extent[3] - extent[1])];

  // The frame around the visible part; hidden if everything is visible.
  element.follow = ({ k, x, y }, box) => {
    if (!extent) return;
    const [sx, sy] = scale(),
      seen = [-x / k, -y / k, (box.width - x) / k, (box.height - y) / k];
    const slack = 2 / k; // px
    element.hidden =
      seen[0] <= extent[0] + slack &&
      seen[1] <= extent[1] + slack &&
      seen[2] >= extent[2] - slack &&
      seen[3] >= extent[3] - slack;
    const clip = (v, most) => Math.min(Math.max(v, 0), most);
    const [l, t, r, b] = [
      clip((seen[0] - extent[0]) * sx, size[0] - 6),
      clip((seen[1] - extent[1]) * sy, size[1] - 6),
      clip((seen[2] - extent[0]) * sx, size[0]),
      clip((seen[3] - extent[1]) * sy, size[1]),
    ];
    Object.assign(frame.style, {
      left: l + "px",
      top: t + "px",
      width: Math.max(6, r - l) + "px",
      height: Math.max(6, b - t) + "px",
    });
  };

  const move = (event) => {
    const box = canvas.getBoundingClientRect(),
      [sx, sy] = scale();
    go([extent[0] + (event.clientX - box.left) / sx, extent[1] + (event.clientY - box.top) / sy]);
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    move(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (event.buttons) move(event);
  });
  return element;
};
