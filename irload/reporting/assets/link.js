"use strict";
// Deep links: the address contains the open view and the selected layer, #profile/layer=encoder/MatMul.
(() => {
  const PATTERN = /^#(\w*)\/?(?:layer=(.*))?$/;
  R.href = (index, tab = "graph") =>
    "#" + tab + (index === null ? "" : "/layer=" + encodeURIComponent(R.pathOf(R.layers[index])));

  // Writes the view and the layer to the address, without a history entry per selected layer.
  R.writeLink = (tab) => {
    const link = tab === "graph" && R.selected === null ? "#" : R.href(R.selected, tab);
    if (link === (location.hash || "#")) return;
    try {
      history.replaceState(null, "", link);
    } catch {
      /* a frame of a notebook has no address of its own */
    }
  };

  // The target of an address: {tab, layer}, each null if missing or unknown.
  R.readLink = (tabs) => {
    const [, tab, name] = PATTERN.exec(location.hash) ?? [];
    const path = name === undefined ? null : decode(name);
    return {
      tab: tabs.includes(tab) ? tab : null,
      layer: path === null ? null : (R.layers.find((l) => R.pathOf(l) === path) ?? null),
    };
  };
  function decode(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return null;
    }
  }
})();
