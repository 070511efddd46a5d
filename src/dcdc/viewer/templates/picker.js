// Which cluster: a list to choose from by mouse, by arrow keys, or by typing a part of its name.
import { at, make, number, on, picture, text } from "/dom.js";

export function makePicker({ run, called, thumbnail, bare }) {
  const dialog = at("picker"), list = at("picker-list"), typed = at("picker-find");
  let options = [], now = 0, done = () => {};

  function show() {
    const wanted = typed.value.trim().toLowerCase();
    const left = options.filter((each) => !wanted || String(each.number) === wanted || each.says.toLowerCase().includes(wanted));
    now = Math.max(0, Math.min(now, left.length - 1));
    list.replaceChildren(...left.map((each, i) => {
      const node = make("div", { className: "option", id: "option-" + i },
        bare() || each.some === undefined ? make("span", { className: "thumb" }) : picture(thumbnail(each.some), ""),
        make("span", {}, text(each.says)), make("span", { className: "quiet", textContent: each.size === undefined ? "" : number(each.size) }));
      node.setAttribute("role", "option");
      node.setAttribute("aria-selected", i === now);
      on(node, "click", () => finish(each.number));
      return node;
    }));
    typed.setAttribute("aria-activedescendant", left.length ? "option-" + now : "");
    at("option-" + now)?.scrollIntoView({ block: "nearest" });
    return left;
  }
  function finish(chosen) {
    const tell = done;
    done = () => {};
    dialog.close();
    tell(chosen);
  }
  on(typed, "input", () => { now = 0; show(); });
  on(dialog, "keydown", (event) => {
    event.stopPropagation();
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) { now += by; show(); }
    else if (event.key === "Enter") { const left = show(); if (left.length) finish(left[now].number); }
    else if (event.key === "Escape") finish(null);
    else return;
    event.preventDefault();
  });
  on(dialog, "close", () => { if (!dialog.open) finish(null); }); // told later: it may be open again
  on(at("picker-close"), "click", () => finish(null));

  return (title, { but = null, fresh = false } = {}) => new Promise((resolve) => {
    done = resolve;
    at("picker-title").textContent = title;
    options = run.clusters.filter((each) => each.size && each.number !== but)
      .map((each) => ({ number: each.number, says: called(each.number), some: each.some[0], size: each.size }));
    if (fresh) options.unshift({ number: run.n_clusters, says: "a new cluster" });
    typed.value = "";
    now = 0;
    dialog.showModal();
    show();
    typed.focus();
  });
}
