// From one layout to another: source and target are picked, and the library's own route is shown.
"use strict";

(() => {
  const { html, bytes } = Widget, table = window.BOXING;
  const home = document.getElementById("boxing");

  const choices = {};
  function choose(name, options, value) {
    const menu = html("select", { "aria-label": name, "data-name": name },
                      ...options.map(o => html("option", { value: o }, String(o))));
    menu.value = value;
    menu.addEventListener("change", draw);
    choices[name] = menu;
    return menu;
  }

  const said = html("p", { class: "said", role: "status" }), picture = html("div", { class: "picture" });
  const others = html("table", { class: "others" });
  home.append(
    html("div", { class: "rows" },
         html("span", {}, "it lies as ", choose("source", table.layouts, "P"), " on ",
              choose("from devices", table.devices, 2), " devices"),
         html("span", {}, "it should lie as ", choose("target", table.layouts, "B"), " on ",
              choose("to devices", table.devices, 2), " devices")),
    said, picture, html("p", {}, "from here to the others:"), others);

  const route = (target, devices) =>
    table.routes[`${choices["from devices"].value} ${choices.source.value} ${devices} ${target}`];

  function draw() {
    const target = choices.target.value, devices = choices["to devices"].value, found = route(target, devices);
    const hops = found.hops.map(h => `${h.name} (${bytes(h.bytes)})`).join(", then ");
    said.textContent = found.hops.length
      ? `${bytes(found.bytes)}, ${(found.bytes / table.bytes).toFixed(2)} times the value's ${bytes(table.bytes)}: ${hops}`
      : `0 bytes: every device has what it needs`;
    picture.innerHTML = found.picture;                     // made by the library when the book was
    others.replaceChildren(
      html("tr", {}, html("th", {}, "devices"), ...table.layouts.map(l => html("th", {}, l))),
      ...table.devices.map(d => html("tr", {}, html("th", {}, String(d)), ...table.layouts.map(l => {
        const chosen = l === target && String(d) === devices;
        const at = html("td", { "data-to": `${d} ${l}` }, chosen ? html("b", {}, String(route(l, d).bytes))
          : String(route(l, d).bytes));
        at.style.cursor = "pointer";
        at.addEventListener("click", () => { choices.target.value = l; choices["to devices"].value = d; draw(); });
        return at;
      }))));
  }

  draw();
})();
