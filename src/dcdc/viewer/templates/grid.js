// A grid of any number of images: only the rows in sight, and two more, are in the document.
import { at, make, on } from "/dom.js";
import { fact, facts } from "/known.js";

const GAP = 6, WANTED = 168, MORE = 2;

export function makeGrid(host, { thumbnail, words, badge, open, bare }) {
  const space = make("div", { className: "space" });
  host.append(space);
  let rows = new Uint32Array(), columns = 1, side = WANTED, now = 0, planned = false, lastTop = 0;
  const tiles = new Map(), spare = [];

  function arrange() {
    const style = getComputedStyle(host);
    const wide = host.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const first = Math.floor(host.scrollTop / (side + GAP)) * columns;
    columns = Math.max(3, Math.floor((wide + GAP) / (WANTED + GAP)));
    side = Math.floor((wide + GAP) / columns) - GAP;
    space.style.height = Math.ceil(rows.length / columns) * (side + GAP) + "px";
    for (const index of [...tiles.keys()]) drop(index);
    host.scrollTop = Math.floor(first / columns) * (side + GAP);
    paint();
  }
  function drop(index) {
    const tile = tiles.get(index);
    tiles.delete(index);
    clearTimeout(tile.wait);
    tile.node.hidden = true;
    tile.image.removeAttribute("src");
    tile.node.removeAttribute("id");
    spare.push(tile);
  }
  function fresh() {
    const image = make("img", { alt: "", decoding: "async", draggable: false });
    const label = make("bdi", { className: "words" }), mark = make("span", { className: "badge" });
    const node = make("div", { className: "tile" }, image, label, mark);
    node.setAttribute("role", "option");
    const tile = { node, image, label, mark, index: -1 };
    on(image, "error", () => { if (image.getAttribute("src")) node.classList.add("bad"); });
    on(node, "click", (event) => { go(tile.index, false); open(tile.index, event); });
    space.append(node);
    return tile;
  }
  function put(index, slow) {
    const tile = spare.pop() || fresh(), row = rows[index], { node } = tile;
    Object.assign(tile, { index, row });
    node.hidden = false;
    node.className = "tile" + (bare() ? " bare" : "") + (index === now ? " now" : "");
    node.id = "tile-" + index;
    node.style.width = node.style.height = side + "px";
    node.style.transform = `translate(${(index % columns) * (side + GAP)}px, ${Math.floor(index / columns) * (side + GAP)}px)`;
    node.setAttribute("aria-posinset", index + 1);
    node.setAttribute("aria-setsize", rows.length);
    const load = () => { tile.image.src = thumbnail(row); };
    if (!bare()) slow ? tile.wait = setTimeout(load, 120) : load();
    tiles.set(index, tile);
    tell(tile, fact(row));
    if (!fact(row)) facts(row).then((known) => { if (tile.row === row && tiles.get(index) === tile) tell(tile, known); });
  }
  function tell(tile, known) {
    tile.label.textContent = known ? words(known) : "";
    const mark = known ? badge(known) : "";
    tile.mark.textContent = mark;
    tile.mark.hidden = !mark;
    tile.node.dataset.says = known ? known.name : "";
    tile.node.title = known ? (known.folder ? known.folder + "/" : "") + known.name : "";
    tile.node.setAttribute("aria-label", known ? known.name + ", " + words(known) : "image " + tile.row);
  }
  function paint() {
    planned = false;
    const pitch = side + GAP, top = host.scrollTop, high = host.clientHeight;
    const slow = Math.abs(top - lastTop) > high;
    lastTop = top;
    const first = Math.max(0, Math.floor(top / pitch) - MORE) * columns;
    const last = Math.min(rows.length, (Math.ceil((top + high) / pitch) + MORE) * columns);
    for (const index of [...tiles.keys()]) if (index < first || index >= last) drop(index);
    for (let index = first; index < last; index++) if (!tiles.has(index)) put(index, slow);
  }
  const plan = () => { if (!planned) { planned = true; requestAnimationFrame(paint); } };

  function go(index, scroll = true) {
    tiles.get(now)?.node.classList.remove("now");
    now = Math.max(0, Math.min(rows.length - 1, index));
    if (scroll) {
      const pitch = side + GAP, top = Math.floor(now / columns) * pitch;
      if (top < host.scrollTop) host.scrollTop = top;
      if (top + pitch > host.scrollTop + host.clientHeight) host.scrollTop = top + pitch - host.clientHeight;
      paint();
    }
    tiles.get(now)?.node.classList.add("now");
    host.setAttribute("aria-activedescendant", "tile-" + now);
  }

  on(host, "scroll", plan);
  on(host, "keydown", (event) => {
    const screen = Math.max(1, Math.floor(host.clientHeight / (side + GAP))) * columns;
    const steps = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, PageUp: -screen, PageDown: screen,
      Home: -rows.length, End: rows.length,
    };
    if (!rows.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) go(now + steps[event.key]);
    else if (event.key === "Enter") open(now, event);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { if (!at("images").hidden) arrange(); }).observe(host);

  return {
    show(found) {
      rows = found;
      now = 0;
      host.scrollTop = 0;
      arrange();
    },
    rows: () => rows,
    go,
    again() { for (const tile of tiles.values()) facts(tile.row).then((known) => tell(tile, known)); },
  };
}
