"use strict";
// The view of findings: by severity, then by rule; one message with all of its layers.
(() => {
  const MOST = 100; // layers of one message that are listed

  const grouped = (list, key) => {
    const found = new Map();
    for (const f of list) found.set(key(f), [...(found.get(key(f)) ?? []), f]);
    return [...found.values()];
  };
  // Names of layers and numbers are removed for grouping: each link shows them already.
  const alike = (f) => R.clean(f.message) + "\0" + R.clean(f.cause ?? "");
  const times = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

  R.views.findings = () => {
    const all = R.data.findings;
    if (!all.length)
      return R.h("div", { class: "sheet" }, R.h("p", { class: "verdict good" }, "irrun check reports no findings."));
    return R.h(
      "div",
      { class: "sheet" },
      R.h("p", { class: "intro" }, "Findings of irrun check for the file; irrun check --explain CODE explains a rule."),
      ["error", "warning", "note"].map((severity) =>
        section(
          severity,
          all.filter((f) => f.severity === severity),
        ),
      ),
    );
  };

  function section(severity, list) {
    if (!list.length) return null;
    const rules = grouped(list, (f) => f.code).sort((a, b) => b.length - a.length);
    return [
      R.h("h2", {}, times(list.length, severity)),
      rules.map((found) => rule(found, severity !== "note" || rules.length === 1)),
    ];
  }

  function rule(found, open) {
    const [{ code, title, severity }] = found;
    return R.h(
      "details",
      { class: "finding " + severity, open },
      R.h("summary", {}, R.h("b", {}, code), " ", title, R.h("span", { class: "badge" }, found.length)),
      grouped(found, alike).map(message),
    );
  }

  function message(found) {
    const [{ message: text, cause }] = found;
    const places = found
      .slice(0, MOST)
      .map((f) =>
        R.h(
          "li",
          {},
          f.layer === null ? "the file" : R.link(f.layer),
          f.line ? R.h("span", { class: "quiet" }, ` line ${f.line}`) : null,
        ),
      );
    return R.h(
      "div",
      { class: "message" },
      R.clean(text),
      cause ? R.h("div", { class: "quiet" }, R.clean(cause)) : null,
      R.h("ul", {}, places, found.length > MOST ? R.h("li", {}, `and ${found.length - MOST} more`) : null),
    );
  }
})();
