"use strict";
// Files from the page: the view as SVG and PNG, arrays as .npy.
(() => {
  const STYLES = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "opacity",
    "font-family",
    "font-size",
    "font-weight",
  ];

  R.download = (name, blob) => {
    const url = URL.createObjectURL(blob);
    R.h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  const fileName = (name, ending) => (name.replace(/[^\w.-]+/g, "_").slice(-80) || "model") + ending;

  // A copy with inline styles, without hidden elements and elements beyond the border.
  function copied(element, box) {
    const style = getComputedStyle(element);
    if (style.display === "none") return null;
    const copy = element.cloneNode(false);
    copy.removeAttribute("class");
    copy.removeAttribute("style");
    if (element.tagName !== "g")
      for (const name of STYLES) {
        const value = style.getPropertyValue(name);
        if (value) copy.setAttribute(name, value);
      }
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) {
        copy.append(child.cloneNode());
        continue;
      }
      const rect = child.getBoundingClientRect?.();
      const drawnOne =
        child.tagName === "title" ||
        child.closest("defs") ||
        (rect.right >= box.left && rect.left <= box.right && rect.bottom >= box.top && rect.top <= box.bottom);
      const inner = drawnOne ? copied(child, box) : null;
      if (inner) copy.append(inner);
    }
    return copy;
  }

  R.svgOfView = () => {
    const { svg } = R.graph,
      box = svg.getBoundingClientRect(),
      [w, h] = [Math.round(box.width), Math.round(box.height)];
    const root = R.s(
      "svg",
      { xmlns: "http://www.w3.org/2000/svg", width: w, height: h, viewBox: `0 0 ${w} ${h}` },
      R.s("rect", { width: w, height: h, fill: getComputedStyle(document.body).backgroundColor }),
    );
    for (const part of svg.children) {
      const copy = copied(part, box);
      if (copy) root.append(copy);
    }
    return { text: new XMLSerializer().serializeToString(root), width: w, height: h };
  };

  R.saveSvg = () =>
    R.download(fileName(document.title, ".svg"), new Blob([R.svgOfView().text], { type: "image/svg+xml" }));

  R.savePng = async () => {
    const { text, width, height } = R.svgOfView(),
      dots = Math.max(2, window.devicePixelRatio || 1);
    const picture = new Image(),
      canvas = R.h("canvas", { width: width * dots, height: height * dots });
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    await picture.decode();
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => R.download(fileName(document.title, ".png"), blob), "image/png");
  };

  // A button for an array in the page: `npy` is a complete .npy file in base64.
  R.saveArray = (name, npy) =>
    npy &&
    R.h(
      "button",
      {
        class: "save",
        title: "Save the values as a .npy file",
        onclick: () => {
          R.download(
            fileName(name, ".npy"),
            new Blob([Uint8Array.from(atob(npy), (c) => c.charCodeAt(0))], { type: "application/octet-stream" }),
          );
        },
      },
      ".npy",
    );
})();
