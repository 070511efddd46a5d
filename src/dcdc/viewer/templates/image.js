// One image at its full size, with what is known of it and its nearest images.
import { askJson, at, make, number, on, picture, text } from "/dom.js";
import { facts } from "/known.js";

const ENLARGED = 4; // times, at most: more of a small photo is only blur
const DATE = { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" };

export function makeImageView({ original, thumbnail, called, says, closed }) {
  const dialog = at("image"), stage = dialog.querySelector(".stage");
  let rows = [], index = 0, asked = 0;

  function lines(known) {
    const found = [
      ["folder", known.folder ? text(known.folder) : null],
      ["cluster", text(called(known.cluster) + (known.was === undefined ? "" : ", was " + called(known.was)))],
      ["softmax share", known.confidence.toFixed(3)],
      ["second choice", known.runner_up === undefined ? null
        : text(called(known.runner_up) + ", " + known.runner_up_confidence.toFixed(3))],
      [says.class_word, known.class === undefined ? null : text(known.class)],
      ["from the centre", known.centre?.toFixed(3)],
      ["out of distribution", known.odd === undefined ? null
        : known.odd.toFixed(2) + (known.odd > 1 ? ": does not belong" : "")],
      ["same content", known.copies ? number(known.copies) + " images" : null],
      ["duplicates here", known.alike ? number(known.alike) + " images" : null],
      ["taken", known.date === undefined ? null : new Intl.DateTimeFormat("en", DATE).format(known.date * 1000)],
    ];
    return found.filter(([, value]) => value).flatMap(([name, value]) =>
      [make("dt", { textContent: name }), make("dd", {}, value)]);
  }

  async function show() {
    const row = rows[index], mine = ++asked;
    stage.classList.remove("whole");
    at("unreadable").hidden = true;
    at("full").hidden = false;
    at("full").alt = at("size").textContent = "";
    at("full").removeAttribute("src");
    at("place").textContent = number(index + 1) + " of " + number(rows.length);
    at("before").disabled = index === 0;
    at("after").disabled = index === rows.length - 1;
    at("near").replaceChildren();
    at("near-title").hidden = true;
    if (says.has_images) at("full").src = original(row);
    else unreadable("There is no image to show.");
    const known = await facts(row);
    if (mine !== asked) return;
    at("name").textContent = known.name;
    at("full").alt = known.name;
    at("facts").replaceChildren(...lines(known));
    const near = await askJson("/nearest", { row });
    if (mine !== asked) return;
    at("near-title").hidden = false;
    at("near-title").textContent = near.length ? "Nearest images" : "Nearest images: not known, the run kept no features of it";
    const order = near.map(([other]) => other);
    at("near").replaceChildren(...near.map(([other, cosine], i) => {
      const button = make("button", { type: "button", className: "pick" },
        says.has_images ? picture(thumbnail(other), "") : "", make("span", { textContent: cosine.toFixed(3) }));
      facts(other).then((about) => {
        button.title = about.name;
        button.setAttribute("aria-label", about.name + ", cosine " + cosine.toFixed(3));
        if (!says.has_images) button.firstElementChild.textContent = about.name;
      });
      on(button, "click", () => open([row, ...order], i + 1));
      return button;
    }));
  }
  function unreadable(why) {
    at("full").hidden = true;
    at("unreadable").hidden = false;
    at("unreadable").textContent = why;
  }
  async function whyNot() {
    const source = at("full").getAttribute("src");
    if (!source) return;
    let why = "It cannot be shown.";
    try {
      const answer = await fetch(source);
      if (!answer.ok) why = await answer.text();
    } catch { why = "The server has ended: start dcdc view again."; }
    if (at("full").getAttribute("src") === source) unreadable(why);
  }
  // Whole and as large as it is, if there is room; a small one larger, by a whole number.
  function fit() {
    const { naturalWidth: wide, naturalHeight: high } = at("full");
    const room = Math.floor(Math.min(stage.clientWidth / wide, stage.clientHeight / high));
    const times = says.is_coarse ? room : Math.min(room, ENLARGED);
    at("full").style.width = times > 1 ? wide * times + "px" : "";
    at("size").textContent = `${number(wide)} × ${number(high)} pixels` + (times > 1 ? `, shown ${times} times as large` : "");
  }
  function step(by) {
    const next = index + by;
    if (next < 0 || next >= rows.length) return;
    index = next;
    show();
  }
  function open(given, first) {
    [rows, index] = [given, first];
    if (!dialog.open) dialog.showModal();
    show();
  }

  on(at("full"), "load", fit);
  on(at("full"), "error", whyNot);
  on(at("full"), "click", () => stage.classList.toggle("whole"));
  on(at("before"), "click", () => step(-1));
  on(at("after"), "click", () => step(1));
  on(at("close"), "click", () => dialog.close());
  on(dialog, "close", () => {
    if (dialog.open) return; // told later: it is open again
    asked++;
    at("full").removeAttribute("src");
    closed(rows, index);
  });
  // Of the document: a button that was pressed and is disabled at the last image has lost the focus.
  on(document, "keydown", (event) => {
    if (!dialog.open || event.target.closest?.("#picker")) return;
    if (event.key === "Escape") dialog.close();
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.target.closest?.("input, select")) return;
    event.preventDefault();
    step(by);
  });
  return { open, row: () => dialog.open ? rows[index] : null, refresh: () => { if (dialog.open) show(); } };
}
