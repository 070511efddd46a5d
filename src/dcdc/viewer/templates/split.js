// A cluster in parts, as its features suggest: each a gallery, until the person takes or leaves it.
import { askJson, at, counted, make, number, on, picture } from "/dom.js";
import { facts } from "/known.js";

const SHOWN = 24, MORE = 240;

export function makeSplit({ thumbnail, open, bare, called, send, say, leave }) {
  let cluster = null, parts = [], asked = 0;
  const chosen = new Set();

  function tile(part, row, i) {
    const name = make("span", {});
    const button = make("button", { type: "button", className: "pick" }, bare() ? "" : picture(thumbnail(row), ""), name);
    button.dataset.row = row;
    button.setAttribute("aria-pressed", chosen.has(row));
    facts(row).then((known) => {
      button.title = (known.folder ? known.folder + "/" : "") + known.name;
      button.setAttribute("aria-label", known.name);
      if (bare()) name.textContent = known.name;
    });
    on(button, "click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || at("split-choose").checked) toggle(button, row);
      else open(part.rows, i);
    });
    on(button, "keydown", (event) => {
      if (event.key === " ") { event.preventDefault(); toggle(button, row); }
      const by = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key];
      if (by && button[by]) { event.preventDefault(); button[by].focus(); }
    });
    return button;
  }
  function toggle(button, row) {
    if (!chosen.delete(row)) chosen.add(row);
    button.setAttribute("aria-pressed", chosen.has(row));
    showChosen();
  }
  function showChosen() {
    at("split-chosen").hidden = !chosen.size;
    at("split-n-chosen").textContent = number(chosen.size) + " selected, move to";
  }
  function gallery(part, i) {
    const own = make("input", { type: "checkbox", checked: part.isOwn, autocomplete: "off" });
    const name = make("input", { type: "text", maxLength: 100, placeholder: "name it", value: part.name, hidden: !part.isOwn, autocomplete: "off", dir: "auto" });
    name.setAttribute("aria-label", "Name of part " + (i + 1));
    on(own, "change", () => { part.isOwn = own.checked; name.hidden = !own.checked; showAccept(); });
    on(name, "input", () => { part.name = name.value; });
    const some = make("div", { className: "some" }, ...part.rows.slice(0, part.shown).map((row, at_) => tile(part, row, at_)));
    const left = part.rows.length - part.shown;
    const more = make("button", { type: "button", textContent: "show " + counted(Math.min(left, MORE), "more", "more") });
    on(more, "click", () => { part.shown += MORE; show(); });
    const node = make("article", { className: "group" },
      make("div", { className: "controls" }, make("h3", { textContent: "Part " + (i + 1) }),
        make("span", { className: "quiet", textContent: counted(part.rows.length, "image") }),
        make("label", {}, own, " a cluster of its own"), name),
      some, left > 0 ? more : "");
    node.dataset.part = i;
    return node;
  }
  function showAccept() {
    const n = parts.filter((part) => part.isOwn && part.rows.length).length;
    at("split-accept").disabled = !n;
    at("split-accept").textContent = "make " + counted(n, "new cluster");
  }
  function show() {
    at("split-parts").replaceChildren(...parts.map(gallery));
    const keep = at("split-to").value;
    at("split-to").replaceChildren(...parts.map((_, i) => make("option", { value: i, textContent: "part " + (i + 1) })));
    at("split-to").value = keep || "0";
    showAccept();
    showChosen();
  }

  on(at("split-move"), "click", () => {
    const to = parts[Number(at("split-to").value)];
    for (const part of parts) part.rows = part.rows.filter((row) => !chosen.has(row));
    to.rows = [...chosen, ...to.rows];
    chosen.clear();
    show();
  });
  on(at("split-unchoose"), "click", () => { chosen.clear(); show(); });
  on(at("split-accept"), "click", async () => {
    const own = parts.filter((part) => part.isOwn && part.rows.length);
    const first = await send({ kind: "split", cluster, parts: own.map((part) => part.rows) });
    if (!first) return;
    const base = at("split-accept").base;
    for (const [i, part] of own.entries()) {
      if (part.name.trim() && !await send({ kind: "name", cluster: base + i, name: part.name })) return;
    }
    leave(cluster);
  });
  on(at("split-drop"), "click", () => leave(cluster));

  return {
    async show(of, n, base) {
      const mine = ++asked;
      cluster = of;
      at("split-accept").base = base;
      chosen.clear();
      parts = [];
      show();
      at("split-title").textContent = "Split " + called(of);
      at("split-says").textContent = "Looking for parts …";
      let found;
      try {
        found = await askJson("/parts", { cluster: of, n });
      } catch (error) {
        if (mine === asked) at("split-says").textContent = error.message;
        return;
      }
      if (mine !== asked) return;
      parts = found.parts.map((rows, i) => ({ rows, isOwn: i > 0, name: "", shown: SHOWN }));
      at("split-n").value = found.parts.length;
      at("split-says").textContent = "By the features of its images; random ones of each part. Nothing is changed before you say so."
        + (found.n_suggested ? ` ${found.n_suggested} parts are the most distinct.` : "")
        + (found.n_left ? ` ${counted(found.n_left, "image")} whose features are not known stay.` : "");
      show();
    },
  };
}
