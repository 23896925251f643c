"use strict";
// Tabs, search, selection, theme.
(() => {
  const { model } = R.data, view = document.getElementById("view"), panel = document.getElementById("panel");
  R.selected = null;
  let tab = "graph";

  const findings = R.data.findings ?? [];
  const bad = findings.filter((f) => f.severity === "error").length;
  const tabs = [
    ["graph", "Graph"], ["layers", "Layers"], ["memory", "Memory"],
    R.data.profile ? ["profile", "Profile"] : null,
    R.data.findings ? ["findings", "Findings", findings.filter((f) => f.severity !== "note").length, bad > 0] : null,
    R.data.comparison ? ["comparison", "Comparison", R.data.comparison.layers.filter((l) => !l.passed).length, !R.data.comparison.passed] : null,
    R.data.difference ? ["difference", "Difference", R.data.difference.edits.length, false] : null,
  ].filter(Boolean);

  const nav = document.getElementById("tabs");
  for (const [key, name, count, alarming] of tabs)
    nav.append(R.h("button", { role: "tab", id: "tab-" + key, "aria-controls": "view", onclick: () => show(key) }, name, count ? R.h("span", { class: "badge" + (alarming ? " bad" : "") }, count) : null));

  function show(key) {
    tab = key;
    for (const button of nav.children) { const on = button.id === "tab-" + key; button.setAttribute("aria-selected", String(on)); button.tabIndex = on ? 0 : -1; }
    view.replaceChildren(key === "graph" ? R.graph.element : R.views[key]());
    view.scrollTop = 0;
    if (key === "graph") { R.markSelection(); if (R.selected !== null) R.focusLayer(R.selected); }
  }
  R.show = show;
  nav.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (tabs.findIndex(([key]) => key === tab) + step + tabs.length) % tabs.length;
    show(tabs[at][0]);
    nav.children[at].focus();
  });

  // Selects a layer, or none; with `go` the graph shows it.
  R.select = (index, go = false) => {
    R.selected = index;
    R.markSelection();
    for (const row of view.querySelectorAll("tr.selected")) row.classList.remove("selected");
    if (index === null) { panel.hidden = true; return; }
    R.showLayer(R.layers[index]);
    view.querySelector(`tr[data-layer="${index}"]`)?.classList.add("selected");
    if (go && tab === "graph") R.focusLayer(index);
    else if (go) show("graph");
  };

  const facts = [`${model.layers.toLocaleString("en")} layers`, `${R.count(model.parameters)} parameters`, model.macs ? `${R.count(model.macs)} MACs` : null, R.bytes(model.constant_bytes), `IR v${model.ir_version}`];
  const ports = (list) => list.map((p) => `${R.clean(p.name)} ${p.type}`).join(", ");
  const line = document.getElementById("facts");
  line.textContent = facts.filter(Boolean).join(" · ");
  line.title = `inputs: ${ports(model.inputs)}\noutputs: ${ports(model.outputs)}`;

  // -- search ---------------------------------------------------------------------------------------------------------

  const box = document.getElementById("search"), hits = document.getElementById("hits");
  let found = [], at = 0;
  function search() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? R.layers.filter((l) => words.every((w) => (l.shown + " " + l.type + " " + l.id).toLowerCase().includes(w))) : [];
    const exact = box.value.trim().toLowerCase();
    found.sort((a, b) => (b.shown.toLowerCase() === exact) - (a.shown.toLowerCase() === exact) || a.constantOnly - b.constantOnly);
    at = 0;
    list();
  }
  function list() {
    hits.hidden = !box.value.trim();
    box.setAttribute("aria-expanded", String(!hits.hidden));
    hits.replaceChildren(...found.slice(0, 60).map((l, k) => R.h("li", { role: "option", "aria-selected": String(k === at), onmousedown: (event) => { event.preventDefault(); take(k); } }, R.h("b", {}, l.type), " ", l.shown, R.h("small", {}, " " + (l.outputs[0]?.type ?? "")))),
      ...(found.length ? (found.length > 60 ? [R.h("li", {}, `and ${found.length - 60} more`)] : []) : [R.h("li", {}, "no layer")]));
    hits.children[at]?.scrollIntoView({ block: "nearest" });
  }
  function take(k) { if (found[k]) { hits.hidden = true; box.setAttribute("aria-expanded", "false"); R.select(found[k].index, true); } }
  box.addEventListener("input", search);
  box.addEventListener("focus", () => { if (box.value) search(); });
  box.addEventListener("blur", () => { hits.hidden = true; });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) { at = (at + step + Math.min(found.length, 60)) % Math.min(found.length, 60); list(); event.preventDefault(); }
    else if (event.key === "Enter") take(at);
    else if (event.key === "Escape") { box.value = ""; search(); box.blur(); R.graph.focus(); event.stopPropagation(); }
  });

  // -- theme, keys ----------------------------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = (isDark) => { document.documentElement.dataset.theme = isDark ? "dark" : "light"; };
  theme(dark.matches);
  dark.addEventListener("change", () => theme(dark.matches));
  document.getElementById("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));

  const keys = document.getElementById("keys");
  keys.append(R.h("h2", {}, "Keys"), R.h("table", {}, [["/", "search"], ["↑ ↓", "follow edges"], ["← →", "go to the neighbour"], ["Enter", "open a group or the bodies of a layer"], ["Backspace", "close the group around"], ["f", "show all"], ["+ −", "zoom"], ["Esc", "close what is open"], ["1 … " + tabs.length, "views"], ["?", "this list"]].map(([k, what]) => R.h("tr", {}, R.h("td", {}, R.h("kbd", {}, k)), R.h("td", {}, what)))), R.h("form", { method: "dialog" }, R.h("button", {}, "Close")));
  document.getElementById("help").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT)$/.test(event.target.tagName) || keys.open) return;
    if (event.key === "/") box.focus();
    else if (event.key === "?") keys.showModal();
    else if (event.key === "Escape") R.select(null);
    else if (tabs[Number(event.key) - 1]) show(tabs[Number(event.key) - 1][0]);
    else return;
    event.preventDefault();
  });

  R.graph.start();
  R.openSome();
  show("graph");
  R.layout();
  if (R.data.comparison && !R.data.comparison.passed) R.colourBy("error");
  else if (R.data.difference?.edits.length) R.colourBy("difference");
  R.showModel();
  const first = /^#layer-(\d+)$/.exec(location.hash);
  if (first && R.layers[Number(first[1])]) R.select(Number(first[1]), true);
})();
