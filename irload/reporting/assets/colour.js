"use strict";
// The colours of nodes: by kind of operation, by a measure, or by edit.
(() => {
  const MAIN = ["compute", "flow", "norm", "pool", "activation"];
  const mainKind = (group) => {
    const kinds = R.layersOf(group).map((l) => l.kind);
    return R.kinds.map(([key]) => key).find((key) => kinds.includes(key) && MAIN.includes(key)) ?? "other";
  };
  const plain = (item) => ({ tone: `var(--${item.type ? item.kind : mainKind(item)})`, share: 0 });

  // The error of a node is the worst error of its layers, in closed bodies too; times and counts include bodies.
  function valueOf(item, [key, , value]) {
    const found = (key === "error" ? R.within(item) : R.layersOf(item)).map(value).filter((v) => v !== null);
    return found.length ? (key === "error" ? Math.max(...found) : found.reduce((a, b) => a + b, 0)) : null;
  }

  function measured(item, measure, most) {
    const v = valueOf(item, measure);
    const failed = measure[0] === "error" && R.within(item).some((l) => l.error && !l.error.passed);
    const share = v > 0 && most > 0 ? (Number.isFinite(v) ? Math.sqrt(v / most) : 1) : 0;
    return {
      tone: failed ? "var(--bad)" : share ? "var(--activation)" : "var(--line)",
      share: failed || share ? 8 + 52 * share : 0,
    };
  }

  function edited(item) {
    const edits = R.within(item)
      .map((l) => l.edit?.kind)
      .filter(Boolean);
    return {
      tone: edits.includes("removed") ? "var(--bad)" : edits.length ? "var(--activation)" : "var(--line)",
      share: edits.length ? 25 : 0,
    };
  }

  // Colours the elements of nodes by key. Returns the tones, for the minimap, and the children of the legend.
  R.paint = (nodes, elements, colour) => {
    const measure = R.measures.find(([key]) => key === colour);
    const items = [...nodes.values()].map((n) => n.item);
    const most = measure
      ? items
          .map((item) => valueOf(item, measure))
          .filter(Number.isFinite)
          .reduce((a, b) => Math.max(a, b), 0)
      : 0;
    const tones = new Map();
    for (const [key, g] of elements) {
      const { item } = nodes.get(key);
      const { tone, share } = measure
        ? measured(item, measure, most)
        : colour === "difference"
          ? edited(item)
          : plain(item);
      g.style.setProperty("--tone", tone);
      g.querySelector(".box").style.fill = share
        ? `color-mix(in srgb, ${tone} ${Math.round(share)}%, var(--paper))`
        : "";
      tones.set(key, tone);
    }
    const legend = measure
      ? [`${measure[1]}: none … ${measure[3](most)}`]
      : colour === "difference"
        ? ["orange: changed, red: removed in the other model"]
        : R.kinds
            .filter(([key]) => [...tones.values()].includes(`var(--${key})`))
            .map(([key, name]) => R.h("span", {}, R.h("i", { style: { background: `var(--${key})` } }), name));
    return { tones, legend };
  };
})();
