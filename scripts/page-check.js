// Put at the end of a page by check-pages.sh: what a reader would stumble over once a browser has laid it out. The
// verdict goes to the page around it.
(() => {
  const faults = [];
  let labels = 0;
  const look = () => {
    labels = 0;
    // Labels of pictures: inside, apart from each other, and not tiny.
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
        const matrix = text.getScreenCTM();
        const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
        if (size < 10.5) faults.push(`${name} is ${size.toFixed(1)} px high`);
        // Leaning ones lie beside each other, though the boxes around them do not.
        const leans = Math.abs(matrix.b) > 0.01 && Math.abs(matrix.a) > 0.01;
        for (const other of leans ? [] : seen) {
          // Boxes are a little larger than the glyphs in them.
          if (Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left) > 1 &&
              Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top) > 4) {
            faults.push(`${name} lies on ${other.name}`);
          }
        }
        if (!leans) seen.push({box, name});
        ++labels;
      }
    }
    if (labels === 0 && document.querySelector("svg")) faults.push("no picture has a label");
    for (const figure of document.querySelectorAll("figure.chart")) {
      if (!figure.querySelector("svg, canvas")) faults.push(`the chart "${figure.dataset.kind}" is not drawn`);
    }

    // Every chart is explained: by a legend, or by a heading or caption of its own.
    for (const figure of document.querySelectorAll("figure.chart")) {
      const before = figure.previousElementSibling;
      const explained = figure.querySelector("figcaption, .keys") ||
                        (before && before.matches("h1, h2, h3, .keys, .note"));
      if (!explained) faults.push(`the chart "${figure.dataset.kind}" has neither legend nor heading`);
    }
    // Every axis has a name with a unit, "time, ms". Axes of names have none: their marks say what they are.
    for (const picture of document.querySelectorAll("svg")) {
      const axes = picture.querySelectorAll("g.axis").length;
      const names = [...picture.querySelectorAll("text.axis-name")].map((name) => name.textContent);
      if (names.length < axes) faults.push(`a picture has ${axes} axes and ${names.length} names of axes`);
      if (axes > 0) {
        for (const name of names) if (!/^.+, .+/.test(name)) faults.push(`the axis "${name}" has no unit`);
      }
      if (picture.matches(".map") && names.length === 0) faults.push("a map says nothing of its colours, rows and columns");
    }

    // The page is no wider than the window.
    const page = document.documentElement;
    if (page.scrollWidth > window.innerWidth + 1) {
      faults.push(`the page is ${page.scrollWidth} px wide in a window of ${window.innerWidth}`);
    }

    // What is wider than its place says so.
    for (const box of document.querySelectorAll(".scroll")) {
      const wider = box.scrollWidth > box.clientWidth + 1;
      if (wider && !box.matches(".more-left, .more-right")) faults.push("a part that scrolls does not say so");
    }

    // Text stands out from what is behind it: 4.5 to 1 (WCAG 2.1, level AA).
    const luminance = ([r, g, b]) => {
      const linear = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const parsed = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      // In a picture, what was drawn before the text and lies under its middle.
      if (at instanceof SVGSVGElement) {
        const box = element.getBoundingClientRect();
        const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const under = [...at.querySelectorAll("rect")].filter((rect) => {
          const around = rect.getBoundingClientRect();
          return around.left <= x && around.right >= x && around.top <= y && around.bottom >= y &&
                 (rect.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING);
        }).pop();
        if (under) return parsed(getComputedStyle(under).fill);
      }
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const pale = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
    if (!own || /^(SCRIPT|STYLE|TITLE|OPTION)$/i.test(element.tagName) || element.getClientRects().length === 0) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parsed(element instanceof SVGElement ? style.fill : style.color)),
                    luminance(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) pale.add(`"${element.textContent.trim().slice(0, 30)}" has a contrast of ${contrast.toFixed(1)}`);
  }
  faults.push(...[...pale].slice(0, 3));
  };
  look();

  // Once more when everything was pressed, chosen and pointed at; errors of scripts end in the browser's log.
  if (faults.length === 0) {
    for (const button of document.querySelectorAll("button")) button.click();
    for (const select of document.querySelectorAll("select")) {
      select.selectedIndex = select.options.length - 1;
      select.dispatchEvent(new Event("change"));
    }
    for (const place of document.querySelectorAll("[tabindex]")) {
      const box = place.getBoundingClientRect();
      for (const share of [0.1, 0.5, 0.9]) {
        place.dispatchEvent(new PointerEvent("pointermove", {
          clientX: box.left + share * box.width, clientY: box.top + share * box.height}));
      }
      for (const key of ["+", "ArrowRight", "ArrowLeft", "-"]) {
        place.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
      }
    }
    look();
  }

  // Whatever takes the focus has a name.
  for (const element of document.querySelectorAll("button, select, [tabindex]")) {
    const name = element.getAttribute("aria-label") || element.textContent || (element.labels || [])[0];
    if (!name) faults.push(`a ${element.tagName} has no name`);
  }
  // Nothing is asked for from elsewhere.
  for (const asked of performance.getEntriesByType("resource")) faults.push(`the page asks for ${asked.name}`);

  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  parent.postMessage(faults.length === 0
      ? `laid out well: ${labels} labels, ${scheme}, ${window.innerWidth} px`
      : `faults: ${faults.slice(0, 10).join("; ")}`, "*");
})();
