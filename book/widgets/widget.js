// What the three widgets share: making elements, numbers that are dragged, and following a pointer.
"use strict";

const Widget = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const FILLS = ["#cfe8fc", "#fde4c3", "#d5efd2", "#f6d4df", "#e4dcf5", "#fbf3b9", "#d9e2ec", "#c6f0ea"];

  function make(space, tag, attributes, children) {
    const e = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    e.append(...(children || []));
    return e;
  }
  const html = (tag, attributes, ...children) => make(null, tag, attributes, children);
  const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, children);

  // Calls moved(dx, dy) while the pointer is held, in pixels since it went down.
  function follow(element, begin, moved) {
    element.addEventListener("pointerdown", down => {
      down.preventDefault();
      element.focus();
      element.setPointerCapture(down.pointerId);
      const state = begin(down);
      const move = e => moved(state, e.clientX - down.clientX, e.clientY - down.clientY);
      const up = () => element.removeEventListener("pointermove", move);
      element.addEventListener("pointermove", move);
      element.addEventListener("pointerup", up, { once: true });
      element.addEventListener("pointercancel", up, { once: true });
    });
  }

  // A number that is dragged, or changed with the arrow keys. changed() is called after each change.
  function number(name, value, least, most, changed) {
    const e = html("span", { class: "number", tabindex: 0, role: "spinbutton", "aria-label": name, "data-name": name });
    const number = {
      element: e, value,
      set(v) {
        number.value = Math.max(least, Math.min(most, v));
        e.textContent = number.value;
        e.setAttribute("aria-valuenow", number.value);
      },
    };
    const change = v => { number.set(v); changed(); };
    follow(e, () => number.value, (first, dx) => change(first + Math.round(dx / 16)));
    e.addEventListener("keydown", k => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[k.key];
      if (step) { k.preventDefault(); change(number.value + step); }
    });
    number.set(value);
    return number;
  }

  const bytes = n => n.toLocaleString("en") + (n === 1 ? " byte" : " bytes");
  return { html, svg, follow, number, bytes, FILLS };
})();
