"use strict";
// The search for layers: by name and operation, by tensor (name, type, shape), by attribute (key=value).
(() => {
  const MOST = 60;
  const box = document.getElementById("search"),
    hits = document.getElementById("hits");
  let found = [],
    at = 0;

  // The searchable texts of a layer, most likely first; built on the first search.
  const texts = (layer) =>
    (layer.texts ??= [
      [`${layer.shown} ${layer.type} ${layer.id}`],
      layer.outputs.flatMap((o) => [...(o.names ?? []).map(R.clean), o.type]),
      layer.inputs.map(([source, output]) => R.layers[source].outputs[output]?.type ?? ""),
      layer.type === "Const" ? [] : layer.attributes.map(([key, text]) => `${key}=${R.clean(text)}`),
    ].map((list) => list.map((text) => [text, text.toLowerCase()])));

  // For each word its match, [rank, text]; null if a word does not match.
  function match(layer, words) {
    const places = words.map((word) => {
      for (const [rank, list] of texts(layer).entries()) {
        const hit = list.find(([, text]) => text.includes(word));
        if (hit) return [rank, hit[0]];
      }
      return null;
    });
    return places.includes(null)
      ? null
      : {
          layer,
          rank: Math.max(...places.map(([rank]) => rank)),
          why: [...new Set(places.filter(([rank]) => rank > 0).map(([, text]) => text))],
        };
  }
  R.search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean),
      exact = text.trim().toLowerCase();
    const all = words.length ? R.layers.map((l) => match(l, words)).filter(Boolean) : [];
    const isExact = ({ layer }) => layer.shown.toLowerCase() === exact;
    return all.sort(
      (a, b) => isExact(b) - isExact(a) || a.rank - b.rank || a.layer.constantOnly - b.layer.constantOnly,
    );
  };

  function search() {
    found = R.search(box.value);
    at = 0;
    list();
  }
  function list() {
    hits.hidden = !box.value.trim();
    box.setAttribute("aria-expanded", String(!hits.hidden));
    const rows = found.slice(0, MOST).map(({ layer, why }, k) =>
      R.h(
        "li",
        {
          role: "option",
          "aria-selected": String(k === at),
          onmousedown: (event) => {
            event.preventDefault();
            take(k);
          },
        },
        R.h("b", {}, layer.type),
        " ",
        layer.shown,
        R.h("small", {}, " " + (layer.outputs[0]?.type ?? "")),
        why.length ? R.h("small", { class: "why" }, why.join(", ")) : null,
      ),
    );
    if (found.length > MOST) rows.push(R.h("li", {}, `and ${found.length - MOST} more`));
    hits.replaceChildren(...(rows.length ? rows : [R.h("li", {}, "no matches")]));
    hits.children[at]?.scrollIntoView({ block: "nearest" });
  }
  function take(k) {
    if (!found[k]) return;
    hits.hidden = true;
    box.setAttribute("aria-expanded", "false");
    R.select(found[k].layer.index, true);
  }
  box.addEventListener("input", search);
  box.addEventListener("focus", () => {
    if (box.value) search();
  });
  box.addEventListener("blur", () => {
    hits.hidden = true;
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key],
      many = Math.min(found.length, MOST);
    if (step && many) {
      at = (at + step + many) % many;
      list();
      event.preventDefault();
    } else if (event.key === "Enter") take(at);
    else if (event.key === "Escape") {
      box.value = "";
      search();
      box.blur();
      R.graph.focus();
      event.stopPropagation();
    }
  });
})();
