// What a person changes: sent at once, shown when the server has written it.
import { at, isTyping, on } from "/dom.js";

export function makeEdits({ run, pick, changed, shown, image, clusterNow, standsForAll }) {
  let chosen = [], quiet;

  function say(message) {
    at("said").textContent = message;
    at("said").hidden = !message;
    clearTimeout(quiet);
    quiet = setTimeout(() => { at("said").hidden = true; }, 8000);
  }
  // One after the other: each has seen what the one before it left. Whether it was written.
  let last = Promise.resolve();
  const send = (edit) => { last = last.then(() => sendNow(edit)); return last; };
  async function sendNow(edit) {
    let isWritten = false;
    try {
      const answer = await fetch("/edits", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ version: run.version, edit }),
      });
      isWritten = answer.ok;
      if (isWritten && edit?.rows) shown.clear();
      say(isWritten ? "" : "Not saved: " + (await answer.text()).trim());
    } catch {
      say("Not saved: the server has ended. Start dcdc view again.");
      return false;
    }
    await changed();
    return isWritten;
  }

  // What an edit is of: the open image, or those that are selected, or the one that the keys are at.
  const rows = () => image() !== null ? [image()] : chosen.length ? chosen : shown.now();
  const all = () => image() === null && standsForAll();
  const what = () => rows().length === 1 ? "this image" : rows().length.toLocaleString("en") + " images";

  async function move() {
    const some = rows(), duplicates = all();
    if (!some.length) return;
    const to = await pick("Move " + what() + " to", { but: image() === null ? clusterNow() : null, fresh: true });
    if (to !== null) await send({ kind: "move", rows: some, to, duplicates });
  }
  async function merge() {
    const now = clusterNow();
    if (now === null) return;
    const into = await pick("Merge this cluster into", { but: now });
    if (into !== null) await send({ kind: "merge", clusters: [now], into });
  }
  const outside = () => { if (rows().length) send({ kind: "outside", rows: rows(), duplicates: all() }); };
  const pair = (kind) => { if (chosen.length > 1) send({ kind, rows: chosen }); };
  const undo = () => { if (run.n_edits) return send(null); };

  function show() {
    const now = clusterNow();
    at("undo").hidden = !run.n_edits;
    at("undo").textContent = "undo: " + run.last_edit;
    at("of-cluster").hidden = now === null;
    at("split").hidden = !run.n_with_features;
    if (document.activeElement !== at("rename")) at("rename").value = run.clusters.find((each) => each.number === now)?.name ?? "";
  }

  on(at("undo"), "click", undo);
  on(at("rename"), "change", () => send({ kind: "name", cluster: clusterNow(), name: at("rename").value }));
  on(at("rename"), "keydown", (event) => {
    if (event.key === "Enter") at("grid").focus(); // which tells of the change
  });
  on(at("merge"), "click", merge);
  for (const id of ["move", "move-one"]) on(at(id), "click", move);
  for (const id of ["outside", "outside-one"]) on(at(id), "click", outside);
  for (const kind of ["together", "apart"]) on(at(kind), "click", () => pair(kind));
  on(at("unchoose"), "click", shown.clear);

  const keys = {
    m: move, x: outside, g: merge, u: undo, t: () => pair("together"), a: () => pair("apart"),
    n: () => { if (clusterNow() !== null) at("rename").focus(); },
    s: () => { if (clusterNow() !== null && !at("split").hidden) at("split").click(); },
  };
  on(document, "keydown", (event) => {
    if (isTyping(event)) return;
    const held = event.ctrlKey || event.metaKey;
    const act = held ? (event.key === "z" ? undo : null) : event.altKey ? null : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  return {
    show, send, say,
    choose(some) {
      chosen = some;
      at("chosen").hidden = !some.length;
      at("n-chosen").textContent = some.length.toLocaleString("en") + " selected";
      at("together").disabled = at("apart").disabled = some.length < 2;
    },
  };
}
