// A grid of any number of images: only the rows in sight, and two more, are in the document.
import { at, make, on } from "/dom.js";
import { fact, facts } from "/known.js";

const GAP = 6, WANTED = 168, MORE = 2;

export function makeGrid(host, { thumbnail, words, badge, open, bare, chosen }) {
  const space = make("div", { className: "space" });
  host.append(space);
  let rows = new Uint32Array(), columns = 1, side = WANTED, now = 0, planned = false, lastTop = 0;
  const tiles = new Map(), spare = [], selected = new Set();
  let from = 0;

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
    on(node, "click", (event) => {
      const many = event.shiftKey, one = event.ctrlKey || event.metaKey || at("choose").checked;
      go(tile.index, false);
      if (many) choose(from, tile.index);
      else if (one) toggle(tile.index);
      else open(tile.index);
    });
    space.append(node);
    return tile;
  }
  function put(index, slow) {
    const tile = spare.pop() || fresh(), row = rows[index], { node } = tile;
    Object.assign(tile, { index, row });
    node.hidden = false;
    node.className = "tile" + (bare() ? " bare" : "") + (index === now ? " now" : "");
    mark(tile);
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
  function mark(tile) {
    tile.node.setAttribute("aria-selected", selected.has(tile.row));
  }
  function marked() {
    for (const tile of tiles.values()) mark(tile);
    chosen([...selected]);
  }
  function toggle(index) {
    from = index;
    if (!selected.delete(rows[index])) selected.add(rows[index]);
    marked();
  }
  function choose(one, other) {
    for (let i = Math.min(one, other); i <= Math.max(one, other); i++) selected.add(rows[i]);
    marked();
  }
  function clear() {
    selected.clear();
    marked();
  }
  function paint() {
    planned = false;
    const pitch = side + GAP, top = host.scrollTop, high = host.clientHeight;
    const slow = Math.abs(top - lastTop) > high / 2; // nobody sees what is gone in the next frame
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
    if (!rows.length || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "a") choose(0, rows.length - 1);
    else if (event.ctrlKey || event.metaKey) return;
    else if (event.key in steps) {
      const before = now;
      go(now + steps[event.key]);
      if (event.shiftKey) choose(before, now);
    } else if (event.key === "Enter") open(now);
    else if (event.key === " ") toggle(now);
    else if (event.key === "Escape" && selected.size) clear();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { if (!at("images").hidden) arrange(); }).observe(host);

  return {
    show(found, keep = false) {
      rows = found;
      from = 0;
      now = keep ? Math.min(now, Math.max(0, rows.length - 1)) : 0;
      if (!keep) selected.clear();
      if (selected.size) {
        const here = new Set(rows);
        for (const row of [...selected]) if (!here.has(row)) selected.delete(row);
      }
      if (!keep) host.scrollTop = 0;
      arrange();
      marked();
    },
    clear,
    isIdle: () => !selected.size,
    now: () => rows.length && document.activeElement === host ? [rows[now]] : [],
    rows: () => rows,
    go,
  };
}
