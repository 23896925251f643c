"use strict";
// The tools above the graph.
(() => {
  const button = (text, tip, action) => R.h("button", { title: tip, "aria-label": tip, onclick: action }, text);
  let choose = null;

  R.bar = () => {
    const zoom = (factor) => () => R.graph.camera().scale(factor);
    choose = R.h(
      "select",
      { "aria-label": "Colour by", title: "Colour by", onchange: () => R.colourBy(choose.value) },
      R.h("option", { value: "kind" }, "colour: operation"),
      R.measures.map(([key, name]) => R.h("option", { value: key }, "colour: " + name)),
      R.data.difference ? R.h("option", { value: "difference" }, "colour: difference") : null,
    );
    const constants = R.h(
      "button",
      {
        "aria-pressed": "false",
        title: "Show constants as nodes",
        onclick: () => {
          R.showConstants = !R.showConstants;
          constants.setAttribute("aria-pressed", String(R.showConstants));
          R.layout(R.graph.begin);
        },
      },
      "constants",
    );
    return R.h(
      "div",
      { class: "bar" },
      button("+", "Zoom in (+)", zoom(1.3)),
      button("−", "Zoom out (-)", zoom(1 / 1.3)),
      button("fit", "Show all (f)", () => R.graph.all()),
      button("open all", "Open every group and body", () => {
        R.openAll();
        R.layout(R.graph.begin);
      }),
      button("close", "Close all groups", () => {
        R.openSome();
        R.layout(R.graph.begin);
      }),
      constants,
      choose,
      button("SVG", "Save the view as an SVG file", () => R.saveSvg()),
      button("PNG", "Save the view as a PNG file", () => R.savePng()),
    );
  };
  R.bar.chosen = (key) => {
    choose.value = key;
  };
})();
