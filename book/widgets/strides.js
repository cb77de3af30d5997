// A block of 24 cells, and a view of it: shape, strides and an offset that are dragged.
"use strict";

(() => {
  const { html, svg, number, FILLS } = Widget;
  const CELLS = 24, SIZE = 34, GAP = 3, ROW = 6;
  const home = document.getElementById("strides");

  const views = {
    "4 x 6, row by row": [4, 6, 6, 1, 0],
    "its transpose": [6, 4, 1, 6, 0],
    "every second column": [4, 3, 6, 2, 0],
    "rows backwards": [4, 6, -6, 1, 18],
    "one row, four times": [4, 6, 0, 1, 0],
  };
  const n = {};
  for (const [name, value, least, most] of [["rows", 4, 0, 6], ["columns", 6, 0, 6], ["row stride", 6, -12, 12],
                                            ["column stride", 1, -12, 12], ["offset", 0, 0, CELLS - 1]]) {
    n[name] = number(name, value, least, most, draw);
  }
  const menu = html("select", { "aria-label": "a view" }, ...Object.keys(views).map(v => html("option", {}, v)));
  menu.addEventListener("change", () => {
    Object.values(n).forEach((x, i) => x.set(views[menu.value][i]));
    draw();
  });
  const code = html("code", { class: "code" }), said = html("p", { class: "said", role: "status" });
  const block = svg("svg", { class: "block", role: "img", "aria-label": "the block" });
  const view = svg("svg", { class: "view", role: "img", "aria-label": "the view" });
  home.append(
    html("div", { class: "rows" }, menu,
         html("span", {}, "shape (", n.rows.element, ", ", n.columns.element, ")"),
         html("span", {}, "strides (", n["row stride"].element, ", ", n["column stride"].element, ")"),
         html("span", {}, "offset ", n.offset.element)),
    html("p", {}, "the block: cells as they lie in memory"), block, html("p", {}, "the view: ", code), view, said);

  // The cell of each element, by rows.
  function cells() {
    const [rows, columns, down, right, offset] = Object.values(n).map(x => x.value);
    return Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => offset + i * down + j * right));
  }

  function cell(picture, x, y, text, fill, bad) {
    picture.append(
      svg("rect", { x, y, width: SIZE - GAP, height: SIZE - GAP, rx: 3, fill, stroke: bad ? "#c02f1d" : "#616e7c",
                    "stroke-width": bad ? 3 : 1 }),
      svg("text", { x: x + (SIZE - GAP) / 2, y: y + SIZE / 2 + 3, "text-anchor": "middle", "font-size": 13 },
          String(text)));
  }

  function resize(picture, width, height) {
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
  }

  const color = c => FILLS[Math.floor(c / ROW) % FILLS.length];
  const outside = c => c < 0 || c >= CELLS;

  function draw() {
    const found = cells(), flat = found.flat(), seen = new Set(flat);
    resize(block, CELLS * SIZE + GAP, SIZE + GAP);
    for (let c = 0; c < CELLS; c++) cell(block, 2 + c * SIZE, 2, c, seen.has(c) ? color(c) : "#ffffff", false);
    resize(view, Math.max(1, n.columns.value) * SIZE + GAP + 4, Math.max(1, n.rows.value) * SIZE + GAP);
    found.forEach((row, i) => row.forEach((c, j) => cell(view, 2 + j * SIZE, 2 + i * SIZE, c,
                                                         outside(c) ? "#ffffff" : color(c), outside(c))));
    const [down, right] = [n["row stride"].value, n["column stride"].value];
    code.textContent = `cell of [i, j] = ${n.offset.value} + i * ${down} + j * ${right}`;
    const wrong = flat.filter(outside);
    said.className = wrong.length ? "said bad" : "said";
    said.textContent = wrong.length ? `cell ${wrong[0]} lies outside of the block: such a view is refused`
      : `${flat.length} elements, ${seen.size} cells` + tell(flat, seen);
  }

  function tell(flat, seen) {
    if (!flat.length) return ": an axis of size 0, nothing is shown";
    const inOrder = flat.every((c, i) => c === flat[0] + i);
    return (seen.size < flat.length ? "; several elements share a cell: writing to one writes to all" : "")
      + (inOrder ? "; contiguous: they lie one behind the other, and reshape needs no copy" : "; not contiguous");
  }

  draw();
})();
