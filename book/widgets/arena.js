// Buffers of a plan as rectangles over the steps; dragged up and down, they find their places in the arena.
"use strict";

(() => {
  const { html, svg, follow, bytes, FILLS } = Widget, plan = window.ARENA;
  const WIDTH = 660, LEFT = 64, BOTTOM = 30, TOP = 12;
  const home = document.getElementById("arena");
  const sum = plan.buffers.reduce((all, b) => all + b.bytes, 0), steps = plan.steps.length;
  const scale = 520 / sum, column = WIDTH / steps;           // pixels of a byte, of a step
  const y = at => TOP + (sum - at) * scale;                  // offset 0 is at the bottom

  const places = {
    "one upon the other": stacked(),
    "as they are born, in the lowest gap": fitted(plan.buffers.map((_, i) => i)),
    "as the library": plan.buffers.map(b => b.offset),
  };
  let offsets = places["one upon the other"].slice();

  function stacked() {
    let at = 0;
    return plan.buffers.map(b => (at += b.bytes) - b.bytes);
  }

  // Each buffer of `order` as low as those before it permit.
  function fitted(order) {
    const found = [];
    for (const i of order) {
      const b = plan.buffers[i];
      const near = order.slice(0, order.indexOf(i)).filter(j => together(plan.buffers[j], b));
      near.sort((p, q) => found[p] - found[q]);
      let at = 0;
      for (const j of near) {
        if (at + b.bytes <= found[j]) break;
        at = Math.max(at, found[j] + plan.buffers[j].bytes);
      }
      found[i] = at;
    }
    return found;
  }

  function together(a, b) { return a.first <= b.last && b.first <= a.last; }

  // Pairs that live at one step and share memory.
  function clashes() {
    const found = [];
    plan.buffers.forEach((a, i) => plan.buffers.slice(0, i).forEach((b, j) => {
      const apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
      if (together(a, b) && !apart) found.push([i, j]);
    }));
    return found;
  }

  const menu = html("select", { "aria-label": "places" }, ...Object.keys(places).map(p => html("option", {}, p)));
  menu.addEventListener("change", () => { offsets = places[menu.value].slice(); draw(); });
  const said = html("p", { class: "said", role: "status" });
  const picture = svg("svg", { width: LEFT + WIDTH + 10, height: TOP + 520 + BOTTOM, role: "img", "aria-label": "the arena",
                               viewBox: `0 0 ${LEFT + WIDTH + 10} ${TOP + 520 + BOTTOM}` });
  home.append(html("div", { class: "rows" }, html("span", {}, "start from: ", menu)), said, picture);

  const line = (at, text, color) => [
    svg("line", { x1: LEFT, x2: LEFT + WIDTH, y1: y(at), y2: y(at), stroke: color, "stroke-dasharray": "6 4" }),
    svg("text", { x: LEFT - 4, y: y(at) + 4, "text-anchor": "end", "font-size": 11, class: text }, text)];
  const peakLine = svg("g", { class: "peak" }), rects = plan.buffers.map((b, i) => {
    const r = svg("rect", { x: LEFT + b.first * column + 1, width: (b.last + 1 - b.first) * column - 2,
                            height: b.bytes * scale, rx: 2, tabindex: 0, "data-buffer": i, "aria-label": b.name });
    r.style.cursor = "ns-resize";
    r.append(svg("title", {}, `${b.name}: ${bytes(b.bytes)}, steps ${b.first} to ${b.last}`));
    const put = at => {
      const lowest = Math.round(at / plan.align) * plan.align;
      offsets[i] = Math.max(0, Math.min(sum - b.bytes, lowest));
      draw();
    };
    const enlarged = () => picture.getBoundingClientRect().height / (TOP + 520 + BOTTOM);   // the page may shrink it
    follow(r, () => offsets[i], (first, dx, dy) => put(first - dy / scale / enlarged()));
    r.addEventListener("keydown", k => {
      const step = { ArrowUp: 1, ArrowDown: -1 }[k.key];
      if (step) { k.preventDefault(); put(offsets[i] + step * plan.align); }
    });
    return r;
  });
  picture.append(...rects, ...line(plan.bound, "bound", "#2f7d4f"), peakLine);
  for (let s = 0; s < steps; s += 5) {
    picture.append(svg("text", { x: LEFT + s * column, y: TOP + 520 + 18, "font-size": 11 }, `step ${s}`));
  }

  function draw() {
    const found = clashes(), bad = new Set(found.flat());
    rects.forEach((r, i) => {
      r.setAttribute("y", y(offsets[i] + plan.buffers[i].bytes));
      r.setAttribute("fill", FILLS[i % FILLS.length]);
      r.setAttribute("stroke", bad.has(i) ? "#c02f1d" : "#616e7c");
      r.setAttribute("stroke-width", bad.has(i) ? 2.5 : 1);
    });
    const peak = Math.max(0, ...plan.buffers.map((b, i) => offsets[i] + b.bytes));
    peakLine.replaceChildren(...line(peak, "peak", "#1f2933"));
    const ratio = peak / plan.bound, [a, c] = (found[0] || []).map(i => plan.buffers[i].name);
    said.className = found.length ? "said bad" : ratio <= 1.03 ? "said good" : "said";
    said.textContent = `the arena needs ${bytes(peak)}, ${ratio.toFixed(2)} of the bound of ${bytes(plan.bound)}` +
      (found.length ? `; but ${a} and ${c} live together and overlap` : `; without sharing ${bytes(sum)}`);
  }

  draw();
})();
