"use strict";
// Tabs, selection, theme, and the initial view.
(() => {
  const { model } = R.data,
    view = document.getElementById("view"),
    panel = document.getElementById("panel");
  R.selected = null;
  let tab = "graph";

  const findings = R.data.findings ?? [];
  const bad = findings.filter((f) => f.severity === "error").length;
  const tabs = [
    ["graph", "Graph"],
    ["layers", "Layers"],
    ["memory", "Memory"],
    R.data.profile ? ["profile", "Profile"] : null,
    R.data.findings ? ["findings", "Findings", findings.filter((f) => f.severity !== "note").length, bad > 0] : null,
    R.data.comparison
      ? [
          "comparison",
          "Comparison",
          R.data.comparison.layers.filter((l) => !l.passed).length,
          !R.data.comparison.passed,
        ]
      : null,
    R.data.difference ? ["difference", "Difference", R.data.difference.edits.length, false] : null,
  ].filter(Boolean);

  const nav = document.getElementById("tabs");
  for (const [key, name, count, alarming] of tabs)
    nav.append(
      R.h(
        "button",
        { role: "tab", id: "tab-" + key, "aria-controls": "view", onclick: () => show(key) },
        name,
        count ? R.h("span", { class: "badge" + (alarming ? " bad" : "") }, count) : null,
      ),
    );

  function show(key) {
    tab = key;
    for (const button of nav.children) {
      const on = button.id === "tab-" + key;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    view.replaceChildren(key === "graph" ? R.graph.element : R.views[key]());
    view.scrollTop = 0;
    if (key === "graph") {
      R.markSelection();
      if (R.selected !== null && R.graph.drawn()) R.focusLayer(R.selected);
    }
    R.writeLink(tab);
  }
  R.show = show;
  R.reshow = () => {
    const top = view.scrollTop;
    if (view.querySelector(".sheet .chart")) view.replaceChildren(R.views[tab]());
    view.scrollTop = top;
  };
  let wide = view.clientWidth;
  new ResizeObserver(() => {
    if (view.clientWidth !== wide) {
      wide = view.clientWidth;
      R.reshow();
    }
  }).observe(view); // charts are as wide as the view
  nav.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (tabs.findIndex(([key]) => key === tab) + step + tabs.length) % tabs.length;
    show(tabs[at][0]);
    nav.children[at].focus();
  });

  // Selects a layer, or null; with `go` the graph moves to it.
  R.select = (index, go = false) => {
    R.selected = index;
    R.markSelection();
    for (const row of view.querySelectorAll("tr.selected")) row.classList.remove("selected");
    R.writeLink(tab);
    if (index === null) {
      panel.hidden = true;
      return;
    }
    R.showLayer(R.layers[index]);
    view.querySelector(`tr[data-layer="${index}"]`)?.classList.add("selected");
    if (go && tab === "graph") R.focusLayer(index);
    else if (go) show("graph"); // moves to the selection
  };

  const facts = [
    `${model.layers.toLocaleString("en")} layers`,
    `${R.count(model.parameters)} parameters`,
    model.macs ? `${R.count(model.macs)} MACs` : null,
    R.bytes(model.constant_bytes),
    `IR v${model.ir_version}`,
  ];
  const ports = (list) => list.map((p) => `${R.clean(p.name)} ${p.type}`).join(", ");
  const line = document.getElementById("facts");
  line.textContent = facts.filter(Boolean).join(" · ");
  line.title = `inputs: ${ports(model.inputs)}\noutputs: ${ports(model.outputs)}`;

  // -- theme, keys ----------------------------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    R.repaint();
  };
  theme(dark.matches);
  dark.addEventListener("change", () => theme(dark.matches));
  document
    .getElementById("theme")
    .addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));

  const keys = document.getElementById("keys");
  keys.append(
    R.h("h2", {}, "Keys"),
    R.h(
      "table",
      {},
      [
        ["/", "search"],
        ["↑ ↓", "follow edges"],
        ["← →", "select the neighbour"],
        ["Enter", "open a group or the bodies of a layer"],
        ["Backspace", "close the enclosing group"],
        ["f", "show all"],
        ["+ -", "zoom"],
        ["Esc", "close the open panel"],
        ["1 … " + tabs.length, "views"],
        ["?", "this list"],
      ].map(([k, what]) => R.h("tr", {}, R.h("td", {}, R.h("kbd", {}, k)), R.h("td", {}, what))),
    ),
    R.h("form", { method: "dialog" }, R.h("button", {}, "Close")),
  );
  document.getElementById("help").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName) || keys.open)
      return;
    if (tab === "graph" && R.graphKey(event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "/") document.getElementById("search").focus();
    else if (event.key === "?") keys.showModal();
    else if (event.key === "Escape") R.select(null);
    else if (tabs[Number(event.key) - 1]) show(tabs[Number(event.key) - 1][0]);
    else return;
    event.preventDefault();
  });

  // -- the initial view: the target of the address, else the first fault, else the first edit, else the inputs ---------

  // Follows the address. Returns whether it has a target.
  function follow() {
    const link = R.readLink(tabs.map(([key]) => key));
    const to = link.tab ?? "graph";
    if (link.layer && link.layer.index !== R.selected) R.select(link.layer.index);
    if (to !== tab) show(to);
    else if (link.layer && to === "graph" && R.graph.drawn()) R.focusLayer(link.layer.index);
    return Boolean(link.tab || link.layer);
  }
  window.addEventListener("hashchange", follow);

  R.graph.start();
  R.openSome();
  if (R.data.comparison && !R.data.comparison.passed) R.colourBy("error");
  else if (R.data.difference?.edits.length) R.colourBy("difference");
  const named = location.hash.length > 1;
  view.replaceChildren(R.graph.element);
  R.showModel();
  if (innerWidth < 760) panel.hidden = true; // it would cover half of the graph
  if (!named || !follow()) {
    const first = R.firstFault() ?? R.layers.find((l) => l.edit);
    if (first) R.select(first.index);
    show("graph");
  }
  if (R.selected !== null) R.reveal(R.shownFor(R.layers[R.selected]));
  R.layout();
})();
