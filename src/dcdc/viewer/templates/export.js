// Answers for other programs: the server writes them into a folder that the person names.
import { askJson, at, make, on, text } from "/dom.js";

export function makeExport({ bare }) {
  let followed = Promise.resolve();

  function tell(lines, isFault = false) {
    at("export-says").replaceChildren(...lines.map((line) => make("p", { className: isFault ? "trust" : "" }, text(line))));
  }
  async function untilDone() {
    for (;;) {
      const told = await askJson("/export");
      at("export-start").disabled = told.is_at_work;
      if (told.error !== null) tell([told.error], true);
      else if (told.says.length) tell(told.says);
      if (!told.is_at_work) return;
      await new Promise((done) => setTimeout(done, 300));
    }
  }
  // One after the other: an answer that is still on its way may be of before the export began.
  const follow = () => (followed = followed.then(untilDone, untilDone));
  on(at("export-form"), "submit", async (event) => {
    event.preventDefault();
    const isChecked = (name) => at("export-" + name).checked;
    const wish = { where: at("export-where").value, folders: at("export-folders").value };
    for (const name of ["table", "xmp", "lightroom", "fiftyone"]) wish[name] = isChecked(name);
    tell([]);
    try {
      const answer = await fetch("/export", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish),
      });
      if (!answer.ok) return tell([(await answer.text()).trim()], true);
    } catch { return tell(["The server has ended: start dcdc view again."], true); }
    await follow();
  });

  return {
    async show() {
      const told = await askJson("/export");
      if (!at("export-where").value) at("export-where").value = told.usual;
      if (bare()) at("export-folders").value = "";
      await follow();
    },
  };
}
