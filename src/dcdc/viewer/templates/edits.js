// What a person changes: sent at once, shown when the server has written it.
import { at, make, on } from "/dom.js";

export function makeEdits({ run, called, changed, shown, image, clusterNow }) {
  let chosen = [], quiet;

  function say(message) {
    at("said").textContent = message;
    at("said").hidden = !message;
    clearTimeout(quiet);
    quiet = setTimeout(() => { at("said").hidden = true; }, 8000);
  }
  async function send(edit) {
    try {
      const answer = await fetch("/edits", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ version: run.version, edit }),
      });
      if (answer.ok && edit?.rows) shown.clear();
      say(answer.ok ? "" : "Not saved: " + (await answer.text()).trim());
    } catch {
      return say("Not saved: the server has ended. Start dcdc view again.");
    }
    await changed();
  }

  function clusters(select, title, others) {
    const some = run.clusters.filter((each) => each.size && each.number !== others.but)
      .map((each) => make("option", { value: each.number, textContent: called(each.number), dir: "auto" }));
    const fresh = others.fresh ? [make("option", { value: run.n_clusters, textContent: "a new cluster" })] : [];
    select.replaceChildren(make("option", { value: "", textContent: title }), ...fresh, ...some);
  }
  function show() {
    const now = clusterNow();
    at("undo").hidden = !run.n_edits;
    at("undo").textContent = "undo: " + run.last_edit;
    at("of-cluster").hidden = now === null;
    if (document.activeElement !== at("rename")) at("rename").value = run.clusters.find((each) => each.number === now)?.name ?? "";
    clusters(at("merge"), "merge into …", { but: now });
    clusters(at("move"), "move to …", { but: now, fresh: true });
    clusters(at("move-one"), "move to …", { fresh: true });
  }

  on(at("undo"), "click", () => send(null));
  on(at("rename"), "change", () => send({ kind: "name", cluster: clusterNow(), name: at("rename").value }));
  on(at("merge"), "change", () => {
    if (at("merge").value) send({ kind: "merge", clusters: [clusterNow()], into: Number(at("merge").value) });
  });
  const move = (rows, select) => { if (select.value) send({ kind: "move", rows, to: Number(select.value) }); };
  on(at("move"), "change", () => move(chosen, at("move")));
  on(at("move-one"), "change", () => move([image()], at("move-one")));
  on(at("outside"), "click", () => send({ kind: "outside", rows: chosen }));
  on(at("outside-one"), "click", () => send({ kind: "outside", rows: [image()] }));
  for (const kind of ["together", "apart"]) on(at(kind), "click", () => send({ kind, rows: chosen }));
  on(at("unchoose"), "click", shown.clear);
  on(document, "keydown", (event) => {
    const typing = event.target.closest?.("input[type=text], input[type=search]");
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing && run.n_edits) {
      event.preventDefault();
      send(null);
    }
  });

  return {
    show,
    choose(rows) {
      chosen = rows;
      at("chosen").hidden = !rows.length;
      at("n-chosen").textContent = rows.length.toLocaleString("en") + " selected";
      at("together").disabled = at("apart").disabled = rows.length < 2;
    },
  };
}
