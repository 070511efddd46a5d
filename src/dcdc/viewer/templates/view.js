// The page: a front with every cluster, a grid of images, groups, and the map, chosen by the address.
import { ask, askJson, at, counted, isTyping, make, number, on, picture, text } from "/dom.js";
import { forget } from "/known.js";
import { makeEdits } from "/edits.js";
import { makeExport } from "/export.js";
import { makeGrid } from "/grid.js";
import { makeGroups } from "/groups.js";
import { makeImageView } from "/image.js";
import { makeMap } from "/map.js";
import { makePicker } from "/picker.js";
import { makeSplit } from "/split.js";

history.replaceState(null, "", "/" + location.hash); // the token stays in no address

const ORDERS = {
  random: "at random", confidence: "by softmax share", centre: "by distance from the centre",
  odd: "out of distribution first", folder: "by folder", name: "by name", date: "by date",
};
const SECTIONS = ["front", "images", "parts", "groups", "map", "export"];
const run = await askJson("/overview");

const thumbnail = (row) => `/thumbnail/${row}?v=${run.stamp}`;
const original = (row) => `/original/${row}?v=${run.stamp}`;
const bare = () => !run.has_images;
const cluster = (n) => run.clusters.find((each) => each.number === n);
const called = (n) => {
  if (n < 0) return "belongs to none";
  const name = cluster(n)?.name;
  return name ? n + " · " + name : "cluster " + n;
};

const view = makeImageView({
  original, thumbnail, called, says: run,
  closed: (rows, index) => {
    if (rows === grid.rows()) grid.go(index);
    if (!at("images").hidden) at("grid").focus();
  },
});
const open = (rows, index) => view.open(rows, index);
const grid = makeGrid(at("grid"), {
  thumbnail, bare,
  words: (known) => {
    const order = at("order").value;
    if (order === "centre") return known.centre === undefined ? "not known" : known.centre.toFixed(3);
    if (order === "odd") return known.odd === undefined ? "not known" : known.odd.toFixed(2);
    if (order === "name" || order === "folder") return known.name;
    if (order === "date") return known.date === undefined ? "no date" : new Date(known.date * 1000).toISOString().slice(0, 10);
    return known.confidence.toFixed(2);
  },
  badge: (known) => known.alike && standsForAll() ? "×" + known.alike : "",
  open: (index) => open(grid.rows(), index),
  chosen: (rows) => edits.choose(rows),
});
const clusterNow = () => {
  const query = wanted();
  return query.get("view") === "cluster" ? Number(query.get("cluster")) : null;
};
// Whether a tile stands for its duplicates, too: what is done to it is done to them.
const standsForAll = () => !at("of-once").hidden && at("once").checked;
const edits = makeEdits({
  run, clusterNow, standsForAll, image: () => view.row(),
  pick: makePicker({ run, called, thumbnail, bare }),
  shown: { clear: () => grid.clear(), now: () => at("images").hidden ? [] : grid.now() },
  changed: async () => {
    Object.assign(run, await askJson("/overview"));
    forget();
    await show(true);
    view.refresh();
  },
});
const groups = makeGroups({ thumbnail, open, bare });
const split = makeSplit({
  thumbnail, open, bare, called, send: edits.send,
  leave: (cluster) => { location.hash = new URLSearchParams({ view: "cluster", cluster }); },
});
const exports = makeExport({ bare });
at("split-n").replaceChildren(...[2, 3, 4, 5, 6, 7, 8].map((n) => make("option", { textContent: n })));
let lassoed = [];
const map = makeMap({
  thumbnail, called, open, says: run,
  chosen: (rows) => { lassoed = rows; location.hash = "view=lasso"; if (wanted().get("view") === "lasso") show(); },
});

// What is chosen by the address

const wanted = () => new URLSearchParams(location.hash.slice(1));
function go(changes) {
  const next = wanted();
  for (const [key, value] of Object.entries(changes)) value === null ? next.delete(key) : next.set(key, value);
  location.hash = next;
}

async function show(keep = false) {
  const query = wanted(), kind = query.get("view") || "front";
  const section = { copies: "groups", near: "groups", map: "map", front: "front", split: "parts", export: "export" }[kind] || "images";
  for (const each of SECTIONS) at(each).hidden = each !== section;
  showViews(kind);
  edits.show();
  if (document.activeElement !== at("find")) at("find").value = query.get("find") || "";
  if (section === "front") return showFront();
  if (section === "export") return keep || exports.show();
  if (section === "parts") return keep || split.show(Number(query.get("cluster")), query.get("n") || 0, run.n_clusters);
  if (section === "map") return map.show(await askJson("/map"));
  if (section === "groups") return showGroups(kind);
  await showImages(kind, query, keep);
}

async function showImages(kind, query, keep) {
  const number_ = kind === "cluster" ? Number(query.get("cluster")) : kind === "outside" ? -1 : null;
  const usual = kind === "odd" ? "odd" : kind === "find" ? "folder" : "random";
  const order = query.get("order") in ORDERS ? query.get("order") : usual;
  const orders = Object.keys(ORDERS).filter((each) => each !== "date" || run.has_dates)
    .filter((each) => run.n_with_features || !["centre", "odd"].includes(each));
  at("order").replaceChildren(...orders.map((each) => make("option", { value: each, textContent: ORDERS[each] })));
  at("order").value = order;
  at("backwards").checked = query.get("backwards") === "1";
  at("of-order").hidden = at("of-backwards").hidden = kind === "lasso";
  at("of-once").hidden = kind === "lasso" || kind === "find" || !(run.copies?.groups || run.near_duplicates?.groups);
  at("once").checked = query.get("once") !== "0";
  const titles = {
    all: "All " + run.things, odd: "What does not belong", outside: "Belongs to none", lasso: "From the map",
    find: "Found by name",
  };
  at("title").replaceChildren(kind === "cluster" ? text(called(number_)) : titles[kind] ?? "Images");
  const partly = run.n_with_features < run.n_images
    ? `Known of the ${number(run.n_with_features)} images whose features the run has kept. ` : "";
  at("says").textContent = kind === "odd" ? "How unlike all others an image is; above 1, as 1 in 100 are. " + partly
    : order === "centre" || order === "odd" ? partly : "";
  if (kind === "lasso") return settle(Uint32Array.from(lassoed), keep);
  const mine = location.hash;
  const asked = { order, find: query.get("find") || "" };
  if (number_ !== null) asked.cluster = number_;
  if (at("backwards").checked) asked.backwards = 1;
  if (!at("once").checked) asked.once = 0;
  const answer = await ask("/rows", asked);
  const rows = new Uint32Array(await answer.arrayBuffer());
  if (mine === location.hash) settle(rows, keep);
}
function settle(rows, keep) {
  at("count").textContent = counted(rows.length, run.things.slice(0, -1), run.things);
  grid.show(rows, keep);
}

async function showGroups(kind) {
  const near = kind === "near";
  at("groups-title").textContent = near ? "Near-duplicates" : "Exact copies";
  const found = await askJson("/groups", { kind });
  const partly = near && run.n_with_features < run.n_images
    ? ` Looked for among the ${number(run.n_with_features)} images whose features the run has kept.` : "";
  at("groups-says").textContent = (run.is_surveying ? "Still looking. " : "")
    + (found.length ? counted(found.length, "group") : "No groups") + " of images " + (near
    ? "that lie much nearer to each other, by their features, than images usually do." + partly
    : "with the same content. In a cluster one of each is shown.");
  groups.show(found);
}

// The front

function showViews(now) {
  const views = [
    ["front", "Clusters", ""], ["all", "All", number(run.n_images)],
    ...(run.n_with_features ? [["odd", "Does not belong", run.n_odd === null ? "" : number(run.n_odd)]] : []),
    ...(run.n_outside ? [["outside", "Belongs to none", number(run.n_outside)]] : []),
    ...(run.copies ? [["copies", "Copies", number(run.copies.groups)]] : []),
    ...(run.near_duplicates ? [["near", "Near-duplicates", number(run.near_duplicates.groups)]] : []),
    ...(run.layouts.length ? [["map", "Map", ""]] : []), ["export", "Export", ""],
  ];
  at("views").replaceChildren(...views.map(([kind, title, n]) => {
    const link = make("a", { href: kind === "front" ? "#" : "#view=" + kind, textContent: title + (n ? " " + n : "") });
    if (kind === now || (kind === "front" && ["cluster", "split"].includes(now))) link.setAttribute("aria-current", "page");
    return link;
  }));
}

function showFront() {
  at("notes").replaceChildren(...run.notes.map((note) => make("p", {}, text(note))));
  const waits = run.is_surveying ? "looking …" : "not known";
  const grouped = (found) => !found ? waits : !found.groups ? "none" : [number(found.groups),
    make("small", { textContent: counted(found.groups, " group").replace(/^[\d,]+ /, "") + " of " + counted(found.images, "image") })];
  const tiles = [
    [run.things, number(run.n_images)], ["clusters", number(run.clusters.filter((each) => each.size).length)],
    ["exact copies", grouped(run.copies)], ["near-duplicates", grouped(run.near_duplicates)],
    ["out of distribution", run.n_odd === null ? waits : number(run.n_odd)],
    ["softmax share", run.share.toFixed(2)], ["neighbours agree", run.agreement === null ? waits : run.agreement.toFixed(2)],
  ];
  at("trust").hidden = !run.overstates;
  at("trust").textContent = run.overstates ? `The share overstates: only ${run.agreement.toFixed(2)} of neighbours agree where it says ${run.share.toFixed(2)}. Expect that fewer are right than either figure.` : "";
  at("headline").replaceChildren(...tiles.map(([name, value]) =>
    make("div", {}, make("dt", { textContent: name }), make("dd", {}, ...[value].flat()))));
  const by = at("sort-clusters").value;
  const rank = { size: (each) => -each.size, confidence: (each) => -each.confidence, agreement: (each) => each.agreement ?? 2, number: (each) => each.number };
  const shown = run.clusters.filter((each) => each.size);
  shown.sort(by === "name" ? (a, b) => (!a.name - !b.name) || a.name.localeCompare(b.name) || a.number - b.number
    : (a, b) => rank[by](a) - rank[by](b) || a.number - b.number);
  at("clusters").replaceChildren(...shown.map(card));
}
function card(each) {
  const bar = make("i", {});
  bar.style.width = 100 * (each.agreement ?? each.confidence) + "%";
  return make("li", {}, make("a", { className: "cluster", href: "#view=cluster&cluster=" + each.number },
    make("span", { className: "about" }, make("b", {}, text(called(each.number))),
      make("span", { className: "quiet", textContent: number(each.size) + " · share " + each.confidence.toFixed(2)
        + (each.agreement === null ? "" : " · neighbours " + each.agreement.toFixed(2)) })),
    make("div", { className: "bar" }, bar),
    bare() ? "" : make("div", { className: "some" }, ...each.some.map((row) => picture(thumbnail(row), "")))));
}

// Controls

on(at("sort-clusters"), "change", showFront);
on(at("order"), "change", (event) => go({ order: event.target.value, backwards: null }));
on(at("backwards"), "change", (event) => go({ backwards: event.target.checked ? 1 : null }));
on(at("once"), "change", (event) => go({ once: event.target.checked ? null : 0 }));
let typed;
on(at("find"), "input", (event) => {
  clearTimeout(typed);
  const find = event.target.value;
  typed = setTimeout(() => { location.hash = find ? new URLSearchParams({ view: "find", find }) : ""; }, 200);
});
on(at("search"), "submit", (event) => { event.preventDefault(); at("grid").focus(); });
on(at("split"), "click", () => { location.hash = new URLSearchParams({ view: "split", cluster: clusterNow() }); });
on(at("split-n"), "change", (event) => go({ n: event.target.value }));
on(at("keys"), "click", () => at("help").showModal());
on(at("help-close"), "click", () => at("help").close());
on(document, "keydown", (event) => {
  if (isTyping(event) || event.target.closest("dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") at("find").focus();
  else if (event.key === "?") at("help").showModal();
  else if (event.key === "c") location.hash = "";
  else if (event.key === "e") location.hash = "view=export";
  else return;
  event.preventDefault();
});
on(window, "hashchange", () => show());

// What takes a while to find out comes later.
async function follow() {
  while (run.is_surveying) {
    await new Promise((done) => setTimeout(done, 1000));
    const before = JSON.stringify(run), duplicates = JSON.stringify([run.copies, run.near_duplicates]);
    try {
      Object.assign(run, await askJson("/overview"));
    } catch { return; }
    if (JSON.stringify(run) === before) continue;
    forget();
    showViews(wanted().get("view") || "front");
    if (!at("front").hidden) showFront();
    else if (!at("groups").hidden) show(true);
    // Who goes through images is not disturbed for what changes none of them.
    else if (!at("images").hidden && grid.isIdle() && (["centre", "odd", "date"].includes(at("order").value)
      || JSON.stringify([run.copies, run.near_duplicates]) !== duplicates)) show(true);
  }
}

at("run").textContent = run.run;
document.title = run.run + " · dcdc view";
document.body.classList.toggle("coarse", run.is_coarse);
await show();
follow();
