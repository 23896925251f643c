"use strict";
// The camera: zoom, centre, and the level of detail.
(() => {
  const READ = 9; // px, below which no text is shown
  const BAR = 48; // px covered by the tools at the top
  const LEVELS = [
    ["full", READ / 10],
    ["brief", READ / 20],
    ["far", 0],
  ]; // by the smallest letters of each
  const quick = matchMedia("(prefers-reduced-motion: reduce)");

  R.levelOf = (k) => LEVELS.find(([, least]) => k >= least - 1e-9)[0];

  // `moved` is called with each new transform.
  R.camera = (svg, moved) => {
    const target = d3.select(svg),
      size = () => svg.getBoundingClientRect();
    const zoom = d3
      .zoom()
      .on("zoom", (event) => moved(event.transform))
      .filter((e) => !e.button && e.type !== "dblclick");
    target.call(zoom);
    const put = (x, y, k, box = size()) =>
      d3.zoomIdentity.translate(box.width / 2 - k * x, box.height / 2 - k * y).scale(k);
    const whole = ([x0, y0, x1, y1], box = size(), above = BAR) => {
      const k = Math.min(box.width / (x1 - x0), (box.height - above) / (y1 - y0), 1.1);
      return { x: (x0 + x1) / 2, y: (y0 + y1) / 2 - above / 2 / k, k };
    };
    const jump = (at) => target.interrupt().call(zoom.transform, at);
    const camera = { put, whole, view: () => d3.zoomTransform(svg) };

    // Zoomed out until everything is visible, with a margin.
    camera.bounds = (extent) => zoom.scaleExtent([Math.min(0.4, 0.8 * whole(extent).k), 4]);
    camera.shift = (dx, dy) => target.interrupt().call(zoom.translateBy, dx, dy);
    camera.scale = (factor) => target.interrupt().call(zoom.scaleBy, factor);
    camera.all = (extent) => {
      const { x, y, k } = whole(extent);
      jump(put(x, y, k));
    };
    camera.center = ([x, y], glide = true) => {
      const at = put(x, y, Math.max(camera.view().k, READ / 10));
      if (glide && !quick.matches) target.transition().duration(250).call(zoom.transform, at);
      else jump(at);
    };
    camera.move = ([x, y]) => jump(put(x, y, camera.view().k));
    // The whole drawing if it is readable, else a part at readable size: the middle, or the inputs near the top.
    camera.open = (extent, [x, y], middle) => {
      const box = size(),
        all = whole(extent, box);
      if (all.k >= READ / 10) return jump(put(all.x, all.y, all.k));
      const wide = box.width >= extent[2] - extent[0];
      jump(put(wide ? all.x : x, middle ? y : y + box.height / 2 - Math.min(120, box.height / 3), 1));
    };
    return camera;
  };
})();
