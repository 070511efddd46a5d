// Groups of images, a few dozen at a time.
import { at, counted, make, on, picture } from "/dom.js";
import { facts } from "/known.js";

const AT_ONCE = 30, SHOWN = 24;

export function makeGroups({ thumbnail, open, bare }) {
  const list = at("group-list");
  const end = make("div", { textContent: "\u00a0" });
  let groups = [], shown = 0;

  function pick(group, i) {
    const name = make("span", {});
    const button = make("button", { type: "button", className: "pick" }, bare() ? "" : picture(thumbnail(group[i]), ""), name);
    facts(group[i]).then((known) => {
      name.textContent = known.name;
      button.title = (known.folder ? known.folder + "/" : "") + known.name;
    });
    on(button, "click", () => open(group, i));
    return button;
  }
  function more() {
    const next = groups.slice(shown, shown + AT_ONCE);
    shown += next.length;
    end.before(...next.map((group) => make("div", { className: "group" },
      make("p", { className: "quiet", textContent: counted(group.length, "image") }),
      make("div", { className: "some" }, ...group.slice(0, SHOWN).map((_, i) => pick(group, i))),
      group.length > SHOWN ? make("p", { className: "quiet", textContent: "and " + counted(group.length - SHOWN, "more", "more") + ": open one and go on by the arrow keys" }) : "")));
    if (shown >= groups.length) watch.disconnect();
  }
  const watch = new IntersectionObserver((seen) => { if (seen.some((each) => each.isIntersecting)) more(); }, { rootMargin: "800px" });

  return {
    show(found) {
      [groups, shown] = [found, 0];
      list.replaceChildren(end);
      watch.disconnect();
      watch.observe(end);
    },
  };
}
