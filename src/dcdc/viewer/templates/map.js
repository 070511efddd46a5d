// The map: images placed by their features, with zoom, pan and a lasso.
import { at, make, on, picture, text } from "/dom.js";
import { facts } from "/known.js";

export function makeMap({ thumbnail, called, open, chosen, says }) {
  const plane = at("plane"), pen = plane.getContext("2d");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let rows = [], clusters = [], layouts = {}, xs = [], ys = [];
  let zoom = 1, middle = [.5, .5], wide = 1, high = 1, hovered = -1, drag = null, lasso = null, planned = false;

  const colour = (group) => {
    const few = says.colours[dark.matches ? "dark" : "light"];
    if (group < 0) return "gray";
    return says.n_clusters <= few.length ? few[group]
      : `hsl(${(group * 137.5) % 360} ${60 + (group % 2) * 20}% ${[50, 38, 62][group % 3]}%)`;
  };
  const size = () => Math.min(wide, high) * .94 * zoom;
  const place = (i) => [
    wide / 2 + (xs[i] / 4095 - middle[0]) * size(), high / 2 - (ys[i] / 4095 - middle[1]) * size(),
  ];
  function draw() {
    planned = false;
    const scale = window.devicePixelRatio || 1;
    wide = plane.clientWidth; high = plane.clientHeight;
    plane.width = Math.round(wide * scale);
    plane.height = Math.round(high * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const radius = (rows.length > 2000 ? 2.4 : 3.6) * Math.sqrt(zoom);
    pen.globalAlpha = .85;
    for (let i = 0; i < rows.length; i++) {
      const [x, y] = place(i);
      if (x < -20 || y < -20 || x > wide + 20 || y > high + 20) continue;
      pen.fillStyle = colour(clusters[i]);
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = getComputedStyle(plane).color;
    pen.lineWidth = 2;
    if (hovered >= 0) {
      pen.beginPath();
      pen.arc(...place(hovered), radius + 4, 0, 7);
      pen.stroke();
    }
    if (lasso?.length > 1) {
      pen.beginPath();
      for (const [x, y] of lasso) pen.lineTo(x, y);
      pen.closePath();
      pen.stroke();
    }
  }
  const plan = () => { if (!planned) { planned = true; requestAnimationFrame(draw); } };

  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let i = 0; i < rows.length; i++) {
      const [a, b] = place(i), far = (a - x) ** 2 + (b - y) ** 2;
      if (far < least) [least, best] = [far, i];
    }
    return best;
  }
  function hover(i) {
    if (i === hovered) return;
    hovered = i;
    plan();
    at("pointed").replaceChildren();
    if (i < 0) return;
    facts(rows[i]).then((known) => {
      if (hovered !== i) return;
      at("pointed").replaceChildren(says.has_images ? picture(thumbnail(rows[i]), "") : "",
        make("div", {}, text(known.name)), make("div", {}, text(called(known.cluster))));
    });
  }
  function step(dx, dy) {
    if (hovered < 0) return hover(nearest(wide / 2, high / 2, Infinity));
    const [x, y] = place(hovered);
    let best = hovered, least = Infinity;
    for (let i = 0; i < rows.length; i++) {
      const [a, b] = place(i), along = (a - x) * dx + (b - y) * dy;
      const across = Math.abs((a - x) * dy + (b - y) * dx);
      if (i !== hovered && along > 0 && across <= along && along + across < least) [least, best] = [along + across, i];
    }
    hover(best);
  }
  function look(factor, x = wide / 2, y = high / 2) {
    const before = size();
    zoom = Math.min(60, Math.max(1, zoom * factor));
    if (zoom === 1) middle = [.5, .5];
    else {
      middle[0] += (x - wide / 2) * (1 / before - 1 / size());
      middle[1] -= (y - high / 2) * (1 / before - 1 / size());
    }
    plan();
  }
  function inside([x, y], loop) {
    let is = false;
    for (let i = 0, j = loop.length - 1; i < loop.length; j = i++) {
      const [[a, b], [c, d]] = [loop[i], loop[j]];
      if ((b > y) !== (d > y) && x < (c - a) * (y - b) / (d - b) + a) is = !is;
    }
    return is;
  }

  on(plane, "pointerdown", (event) => {
    plane.setPointerCapture(event.pointerId);
    const here = [event.offsetX, event.offsetY];
    if (at("lasso").checked || event.shiftKey) lasso = [here];
    else drag = { here, from: [...middle], moved: false };
  });
  on(plane, "pointermove", (event) => {
    const here = [event.offsetX, event.offsetY];
    if (lasso) { lasso.push(here); return plan(); }
    if (drag) {
      const [dx, dy] = [here[0] - drag.here[0], here[1] - drag.here[1]];
      if (Math.hypot(dx, dy) > 4) drag.moved = true;
      if (drag.moved) middle = [drag.from[0] - dx / size(), drag.from[1] + dy / size()];
      return plan();
    }
    hover(nearest(...here, 20));
  });
  on(plane, "pointerup", (event) => {
    if (lasso) {
      const loop = lasso, found = rows.filter((_, i) => inside(place(i), loop));
      lasso = null;
      plan();
      if (found.length) chosen(found);
    } else if (drag && !drag.moved) {
      const i = nearest(event.offsetX, event.offsetY, 20);
      if (i >= 0) { hover(i); open([rows[i]], 0); }
    }
    drag = null;
  });
  on(plane, "pointercancel", () => { drag = lasso = null; plan(); });
  on(plane, "wheel", (event) => {
    event.preventDefault();
    look(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.offsetX, event.offsetY);
  });
  on(plane, "keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way) step(...way);
    else if (event.key === "Enter" && hovered >= 0) open([rows[hovered]], 0);
    else if (event.key === "+") look(1.5);
    else if (event.key === "-") look(1 / 1.5);
    else return;
    event.preventDefault();
  });
  on(at("layout"), "change", (event) => { [xs, ys] = layouts[event.target.value]; hover(-1); plan(); });
  on(at("closer"), "click", () => look(1.5));
  on(at("farther"), "click", () => look(1 / 1.5));
  on(at("whole"), "click", () => look(0));
  on(dark, "change", plan);
  new ResizeObserver(plan).observe(plane);

  return {
    show(found) {
      ({ rows, layouts, cluster: clusters } = found);
      const names = Object.keys(layouts);
      at("layout").replaceChildren(...names.map((name) => make("option", { textContent: name })));
      if (names.length) [xs, ys] = layouts[names[0]];
      plan();
    },
  };
}
