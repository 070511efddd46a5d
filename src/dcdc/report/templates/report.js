// Names of clusters

const names = new Map(Object.entries(data.names));
const cards = [...document.querySelectorAll(".cluster")];
const numberOf = (card) => card.dataset.cluster;
const called = (number) => {
  const name = names.get("" + number);
  return text(number < 0 ? "none" : name ? number + " · " + name : "" + number);
};
const say = (message) => { at("said").textContent = message; };
let unsaved = false;

function showNames() {
  for (const card of cards) {
    const name = names.get(numberOf(card)) || "";
    const input = card.querySelector("input");
    if (document.activeElement !== input) input.value = name;
    card.querySelector(".given").textContent = name;
  }
  for (const head of document.querySelectorAll("[data-heads]")) {
    const name = names.get(head.dataset.heads);
    head.querySelector("bdi")?.remove();
    if (name) head.append(text(name));
  }
  showMerges();
  arrange();
  if (map) map.names();
}
on(at("clusters"), "change", (event) => { if (event.target.matches("input")) showNames(); });

// Order and choice of clusters

function arrange() {
  const by = at("sort").value;
  const wanted = at("find").value.trim().toLowerCase();
  const rank = (card) => {
    const number = numberOf(card);
    return by === "number" ? -number : data.clusters[number][by] ?? -1;
  };
  const sorted = [...cards].sort((a, b) => rank(b) - rank(a) || numberOf(a) - numberOf(b));
  if (sorted.some((card, i) => at("clusters").children[i] !== card)) at("clusters").append(...sorted);
  for (const card of cards) {
    const number = numberOf(card);
    const words = [names.get(number), data.clusters[number].main_class];
    const numbers = ["", number, "cluster " + number];
    card.hidden = !numbers.includes(wanted) && !card.contains(document.activeElement)
      && !words.some((word) => word?.toLowerCase().includes(wanted));
  }
  if (wanted) {
    say(cards.filter((card) => !card.hidden).length + " of " + cards.length + " clusters");
  }
}
on(at("sort"), "change", arrange);
on(at("find"), "input", () => { say(""); arrange(); });

function facts(pile, i) {
  const lines = [["cluster ", called(pile.cluster[i]), ", share " + pile.confidence[i].toFixed(2)]];
  if (pile.class) lines.push([data.class_word + " ", text(data.classes[pile.class[i]])]);
  if (pile.runner_up) {
    lines.push(["next ", called(pile.runner_up[i]), ", " + pile.runner_up_confidence[i].toFixed(2)]);
  }
  return lines;
}
function thumbnail(pile, i) {
  const says = [pile.name[i], ...facts(pile, i).map((line) => make("p", {}, ...line).textContent)].join(", ");
  const { side } = pile.sheet;
  const className = data.coarse ? "coarse" : "";
  const canvas = make("canvas", { width: side, height: side, title: says, className });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", says);
  pile.ready.then(() => canvas.getContext("2d").drawImage(...tile(pile, i), 0, 0, side, side));
  return canvas;
}
const thumbnails = (pile, some) =>
  make("div", { className: "thumbnails" }, ...some.map((i) => thumbnail(pile, i)));

// Clusters beyond the first get their images when they come into sight.
const later = open(data.later);
if (later?.sheet) {
  const watch = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      const groups = later.cards[numberOf(target)].map((some, kind) => some.length
        ? make("div", { className: "group" },
          make("h4", { textContent: data.kinds[kind] }), thumbnails(later, some))
        : "");
      target.append(make("div", { className: "samples" }, ...groups));
    }
  }, { rootMargin: "600px" });
  for (const card of cards) if (later.cards[numberOf(card)]) watch.observe(card);
}

// Map

const map = data.map && drawMap(open(data.map));

function drawMap(pile) {
  const plane = at("plane");
  const pen = plane.getContext("2d");
  const n = pile.name.length;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const few = () => data.colours[dark.matches ? "dark" : "light"];
  const colour = (group) => group < 0 ? "#888" : count() <= few().length ? few()[group]
    : `hsl(${(group * 137.5) % 360} ${60 + (group % 2) * 20}% ${[50, 38, 62][group % 3]}%)`;
  const pins = new Set();
  let by = "cluster", alone = null, hovered = -1, zoom = 1, middle = [.5, .5], wide = 1, high = 1;
  let [xs, ys] = Object.values(pile.layouts)[0];
  let planned = false, drag = null;

  const groups = () => pile[by];
  const count = () => by === "class" ? data.classes.length : data.n_clusters;
  const size = () => Math.min(wide, high) * .95 * zoom;
  const place = (i) => [
    wide / 2 + (xs[i] / 4095 - middle[0]) * size(), high / 2 - (ys[i] / 4095 - middle[1]) * size(),
  ];
  const visible = (i) => alone === null || groups()[i] === alone;
  const pictures = () => at("pictures")?.checked;

  function draw() {
    planned = false;
    const scale = window.devicePixelRatio || 1;
    wide = plane.clientWidth; high = plane.clientHeight;
    plane.width = Math.round(wide * scale);  // clears it, too
    plane.height = Math.round(high * scale);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const base = n > 2000 ? 2.4 : n > 400 ? 3.2 : 5;
    const radius = base * Math.sqrt(zoom);
    const side = Math.min(48, Math.max(14, 5 * base) * Math.sqrt(zoom));
    const dot = (x, y, r) => { pen.beginPath(); pen.arc(x, y, r, 0, 7); };
    pen.imageSmoothingEnabled = !data.coarse;
    for (const shown of [false, true]) {
      for (let i = 0; i < n; i++) {
        if (visible(i) !== shown) continue;
        const [x, y] = place(i);
        if (x < -50 || y < -50 || x > wide + 50 || y > high + 50) continue;
        pen.globalAlpha = shown ? .85 : .07;
        pen.fillStyle = colour(groups()[i]);
        if (shown && pictures()) {
          pen.fillRect(x - side / 2 - 2, y - side / 2 - 2, side + 4, side + 4);
          pen.globalAlpha = 1;
          pen.drawImage(...tile(pile, i), x - side / 2, y - side / 2, side, side);
        } else {
          dot(x, y, radius);
          pen.fill();
        }
      }
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 2;
    pen.strokeStyle = getComputedStyle(plane).color;
    for (const i of new Set([...pins, hovered])) {
      if (i < 0) continue;
      dot(...place(i), pictures() ? side * .8 : radius + 3);
      pen.stroke();
    }
  }
  const plan = () => { if (!planned) { planned = true; requestAnimationFrame(draw); } };

  function about(i, ...more) {
    const what = make("div", { className: "what" }, text(pile.name[i]));
    for (const line of facts(pile, i)) what.append(make("div", {}, ...line));
    what.append(...more);
    return [pile.picture ? thumbnail(pile, i) : "", what];
  }
  function hover(i) {
    if (i === hovered) return;
    hovered = i;
    at("hovered").replaceChildren(...(i < 0 ? [] : about(i)));
    plan();
  }
  function showPins() {
    at("pins").replaceChildren(...[...pins].map((i) => {
      const button = make("button", { type: "button", textContent: "unpin" });
      on(button, "click", () => pin(i));
      return make("div", { className: "about" }, ...about(i, button));
    }));
    plan();
  }
  function pin(i) {
    if (!pins.delete(i)) pins.add(i);
    showPins();
  }
  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let i = 0; i < n; i++) {
      if (!visible(i)) continue;
      const [a, b] = place(i);
      const far = (a - x) ** 2 + (b - y) ** 2;
      if (far < least) { least = far; best = i; }
    }
    return best;
  }
  function step(dx, dy) {
    if (hovered < 0) return hover(nearest(wide / 2, high / 2, Infinity));
    const [x, y] = place(hovered);
    let best = hovered, least = Infinity;
    for (let i = 0; i < n; i++) {
      if (i === hovered || !visible(i)) continue;
      const [a, b] = place(i);
      const along = (a - x) * dx + (b - y) * dy, across = Math.abs((a - x) * dy + (b - y) * dx);
      if (along > 0 && across <= along && along + across < least) { least = along + across; best = i; }
    }
    hover(best);
  }
  function look(factor) {
    zoom = Math.min(40, Math.max(1, zoom * factor));
    if (zoom === 1) middle = [.5, .5];
    plane.style.touchAction = zoom > 1 ? "none" : "";
    plan();
  }

  function legend() {
    const sizes = new Map();
    for (const group of groups()) sizes.set(group, (sizes.get(group) || 0) + 1);
    at("legend").replaceChildren(...[...sizes.keys()].sort((a, b) => a - b).map((group) => {
      const mark = make("i", {});
      mark.style.background = colour(group);
      const button = make("button", { type: "button" }, mark,
        by === "class" ? text(data.classes[group]) : called(group),
        make("span", { className: "n", textContent: sizes.get(group) }));
      button.setAttribute("aria-pressed", alone === group);
      on(button, "click", () => {
        alone = alone === group ? null : group;
        for (const other of at("legend").children) {
          other.setAttribute("aria-pressed", other === button && alone !== null);
        }
        hover(-1);
        plan();
      });
      return button;
    }));
  }

  on(plane, "pointerdown", (event) => { drag = { x: event.offsetX, y: event.offsetY, from: middle }; });
  on(plane, "pointermove", (event) => {
    if (drag && event.buttons) {
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (Math.hypot(dx, dy) > 4) drag.moved = true;
      if (drag.moved && zoom > 1) {
        plane.classList.add("grabbed");
        middle = [drag.from[0] - dx / size(), drag.from[1] + dy / size()];
        return plan();
      }
    }
    hover(nearest(event.offsetX, event.offsetY, 24));
  });
  const drop = () => plane.classList.remove("grabbed");
  on(plane, "pointerup", drop);
  on(plane, "pointerleave", () => { drop(); drag = null; hover(-1); });
  on(plane, "click", (event) => {
    if (drag?.moved && zoom > 1) return;
    const i = nearest(event.offsetX, event.offsetY, 24);
    if (i >= 0) { hover(i); pin(i); }
  });
  on(plane, "wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    look(event.deltaY < 0 ? 1.25 : .8);
  });
  on(plane, "keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way) step(...way);
    else if (event.key === "Enter" && hovered >= 0) pin(hovered);
    else if (event.key === "Escape") { pins.clear(); hover(-1); showPins(); }
    else return;
    event.preventDefault();
  });
  on(at("layout"), "change", (event) => { [xs, ys] = pile.layouts[event.target.value]; hover(-1); plan(); });
  on(at("colour"), "change", (event) => { by = event.target.value; alone = null; legend(); plan(); });
  on(at("pictures"), "change", plan);
  on(at("closer"), "click", () => look(1.5));
  on(at("farther"), "click", () => look(1 / 1.5));
  on(at("whole"), "click", () => look(0));
  on(dark, "change", () => { legend(); plan(); });
  new ResizeObserver(plan).observe(plane);
  pile.ready?.then(plan);
  legend();
  return { names: () => { legend(); showPins(); }, pile };
}

// Cells of the table

let pressed = null;
on(document.querySelector(".confusion"), "click", (event) => {
  const button = event.target.closest("[data-cell]");
  if (!button || !map) return;
  pressed?.setAttribute("aria-pressed", false);
  (pressed = button).setAttribute("aria-pressed", true);
  const [row, column] = button.dataset.cell.split(",");
  const { classes, clusters } = data.confusion;
  const group = classes[row], cluster = clusters[column], { pile } = map;
  const inside = pile.name.map((_, i) => i).filter((i) => pile.class[i] === group
    && (cluster === null ? !clusters.includes(pile.cluster[i]) : pile.cluster[i] === cluster));
  const total = Number(button.textContent);
  const says = make("p", {}, "Class ", text(data.classes[group]), " in ",
    ...(cluster === null ? ["the other clusters"] : ["cluster ", called(cluster)]), ": ", counted(total), ". ",
    inside.length === 0 ? "None of them is in the sample on the map."
      : inside.length > 48 ? "48 of the " + inside.length + " in the sample:"
        : inside.length < total ? inside.length + " of them in the sample:" : "");
  at("cell").replaceChildren(says, thumbnails(pile, inside.slice(0, 48)));
});
