// What a person corrects on the page: a form, whose state becomes edits when it is saved.

const merged = new Map(); // cluster -> the one it goes into
const moved = new Map(); // row -> cluster, or null where the image belongs to none
const given = new Map(Object.entries(data.names));
const nameOf = (row) => data.shown[row].name;

function rename(number, name) {
  const line = name.replace(/[\s\p{Cc}\p{Cs}]+/gu, " ").trim();
  if (line) names.set(number, line);
  else names.delete(number);
}
function tell(message) {
  unsaved = true;
  say(message ?? "not saved yet");
}

function edits() {
  const found = [], rows = new Map();
  for (const [row, to] of [...moved].sort(([a], [b]) => a - b)) rows.set(to, [...(rows.get(to) ?? []), [row, nameOf(row)]]);
  for (const [to, images] of rows) found.push(to === null ? { kind: "outside", images } : { kind: "move", images, to });
  for (const [cluster, into] of merged) found.push({ kind: "merge", clusters: [cluster], into });
  for (let n = 0; n < data.n_clusters; n++) {
    const name = names.get(String(n)) ?? "";
    if (name !== (given.get(String(n)) ?? "")) found.push({ kind: "name", cluster: n, name });
  }
  return found;
}

// Of each cluster: which other it is one with.

function showMerges() {
  for (const card of cards) {
    const own = Number(numberOf(card)), select = card.querySelector("select");
    const others = cards.map((other) => Number(numberOf(other))).filter((n) => n !== own).sort((a, b) => a - b);
    select.replaceChildren(make("option", { value: "", textContent: "stays a cluster" }), ...others.map((n) =>
      make("option", { value: n, textContent: "is one with " + called(n).textContent })));
    select.value = merged.get(own) ?? "";
    card.classList.toggle("merged", merged.has(own));
  }
}
on(at("clusters"), "change", (event) => {
  if (!event.target.matches("select")) return;
  const own = Number(numberOf(event.target.closest(".cluster")));
  if (event.target.value) merged.set(own, Number(event.target.value));
  else merged.delete(own);
  event.target.closest(".cluster").classList.toggle("merged", merged.has(own));
  tell();
});

// Of an image: where it belongs.

let looked = null;
function showMoved() {
  for (const node of document.querySelectorAll("[data-row]")) node.classList.toggle("moved", moved.has(Number(node.dataset.row)));
}
function look(row, picture) {
  looked = row;
  const about = data.shown[row], own = about.cluster;
  at("one-frame").replaceChildren(make("img", { src: picture.src, alt: "" }));
  at("one-name").textContent = about.name;
  at("one-says").textContent = picture.title;
  const others = cards.map((card) => Number(numberOf(card))).filter((n) => n !== own).sort((a, b) => a - b);
  at("one-to").replaceChildren(
    make("option", { value: "", textContent: "belongs to cluster " + called(own).textContent }),
    make("option", { value: "none", textContent: "belongs to no cluster" }),
    ...others.map((n) => make("option", { value: n, textContent: "belongs to " + called(n).textContent })));
  at("one-to").value = !moved.has(row) ? "" : moved.get(row) ?? "none";
  at("one").showModal();
}
for (const node of document.querySelectorAll(".thumbnails [data-row]")) {
  node.tabIndex = 0;
  node.setAttribute("role", "button");
  const act = () => look(Number(node.dataset.row), node);
  on(node, "click", act);
  on(node, "keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
}
on(at("one-to"), "change", (event) => {
  const to = event.target.value;
  if (to === "") moved.delete(looked);
  else moved.set(looked, to === "none" ? null : Number(to));
  showMoved();
  tell();
});
on(at("one-close"), "click", () => at("one").close());
on(at("one"), "keydown", (event) => { if (event.key === "Escape") at("one").close(); });

// The file

on(at("save"), "click", () => {
  const found = edits();
  const lines = found.map((edit) => "  " + JSON.stringify(edit)).join(",\n");
  const content = `{\n "format": 1,\n "answers": ${JSON.stringify(data.answers)},\n "edits": [\n${lines}\n ]\n}\n`;
  const link = make("a", {
    href: URL.createObjectURL(new Blob([content], { type: "application/json" })),
    download: "edits.json",
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  unsaved = false;
  say(found.length + (found.length === 1 ? " correction" : " corrections")
    + " saved as edits.json; dcdc report RUN --edits edits.json keeps them in the run folder");
});

// Names of an older page, too.
function read(content) {
  const isCluster = (n) => Number.isInteger(n) && n >= 0 && n < data.n_clusters;
  const isName = (name) => typeof name === "string" && [...name].length <= 100;
  const found = { names: new Map(given), merged: new Map(), moved: new Map() };
  if (content?.format !== 1) throw 0;
  if (content.clusters && !Array.isArray(content.clusters)) {
    found.names.clear();
    for (const [key, name] of Object.entries(content.clusters)) {
      if (!/^\d+$/.test(key) || !isCluster(Number(key)) || !isName(name)) throw 0;
      found.names.set(String(Number(key)), name);
    }
    return found;
  }
  if (content.answers !== data.answers || !Array.isArray(content.edits)) throw 0;
  for (const edit of content.edits) {
    const isHere = ([row, name]) => data.shown[row]?.name === name;
    if (edit.kind === "name" && isCluster(edit.cluster) && isName(edit.name)) found.names.set(String(edit.cluster), edit.name);
    else if (edit.kind === "merge" && isCluster(edit.into) && edit.clusters.every(isCluster)) {
      for (const cluster of edit.clusters) found.merged.set(cluster, edit.into);
    } else if ((edit.kind === "outside" || (edit.kind === "move" && isCluster(edit.to))) && edit.images.every(isHere)) {
      for (const [row] of edit.images) found.moved.set(row, edit.kind === "move" ? edit.to : null);
    } else throw 1;
  }
  return found;
}
on(at("load"), "change", async (event) => {
  const file = event.target.files[0];
  if (!file) return;
  try {
    const found = read(JSON.parse(await file.text()));
    names.clear();
    for (const [key, name] of found.names) rename(key, name);
    for (const [mine, theirs] of [[merged, found.merged], [moved, found.moved]]) {
      mine.clear();
      for (const each of theirs) mine.set(...each);
    }
    unsaved = false;
    say(edits().length + " corrections loaded");
    showNames();
    showMoved();
  } catch (error) {
    say(error === 1 ? "that file holds corrections of images that are not on this page" : "that is no file of corrections of this run");
  }
  event.target.value = "";
});

on(at("clusters"), "input", (event) => {
  if (!event.target.matches("input")) return;
  rename(numberOf(event.target.closest(".cluster")), event.target.value);
  tell();
  showNames();
});
on(window, "beforeunload", (event) => { if (unsaved) event.preventDefault(); });
showNames();
