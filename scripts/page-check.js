// Appended to a page by check-pages.sh: what a reader would stumble over once a browser has laid it out.
(() => {
  const faults = [];
  let labels = 0;
  for (const picture of document.querySelectorAll("svg")) {
    const frame = picture.getBoundingClientRect();
    const seen = [];
    for (const text of picture.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.width === 0 || box.height === 0) continue;
      const name = `"${text.textContent}"`;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
          box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        faults.push(`${name} sticks out of its picture`);
      }
      for (const other of seen) {
        // Boxes are a little larger than the glyphs in them.
        if (Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left) > 1 &&
            Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top) > 4) {
          faults.push(`${name} lies on ${other.name}`);
        }
      }
      seen.push({box, name});
      ++labels;
    }
  }
  if (labels === 0) faults.push("no picture has a label");
  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth + 1) {
    faults.push(`the page is ${page.scrollWidth} px wide in a window of ${window.innerWidth}`);
  }
  document.title = faults.length === 0 ? `laid out well: ${labels} labels`
                                       : `faults: ${faults.slice(0, 10).join("; ")}`;
})();
