"use strict";
// The names of open groups, and when zoomed out of closed ones: of constant size, without overlap.
(() => {
  const LINE = 16,
    CHARACTER = 6.6,
    NARROW = 36; // px

  // `frames`, outermost first: {key, text, box: [x, y, w, h], container or null}. `close` takes a container and its key.
  R.labels = (frames, { k, x, y }, { width, height }, close) => {
    const found = [],
      taken = [];
    for (const frame of frames) {
      const [cx, cy, w, h] = frame.box,
        left = (cx - w / 2) * k + x,
        top = (cy - h / 2) * k + y;
      const right = left + w * k,
        bottom = top + h * k;
      if (right < 60 || left > width - 20 || bottom < LINE || top > height || h * k < LINE || w * k < NARROW) continue;
      const at = [Math.max(left + 8 * Math.min(k, 1), 8), Math.min(Math.max(top, 0), bottom - LINE)];
      const text = R.short(frame.text, Math.max(14, Math.floor((Math.min(right, width) - at[0] - 8) / CHARACTER)));
      const rect = [at[0], at[1], at[0] + text.length * CHARACTER, at[1] + LINE];
      if (taken.some(([a, b, c, d]) => rect[0] < c && rect[2] > a && rect[1] < d && rect[3] > b)) continue;
      taken.push(rect);
      const label = R.s("text", { class: "label", x: at[0], y: at[1] + 12, "data-key": frame.key }, text);
      if (frame.container)
        label.addEventListener("click", (event) => {
          event.stopPropagation();
          close(frame.container, frame.key);
        });
      found.push(label);
    }
    return found;
  };
})();
