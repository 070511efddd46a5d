// Learn from the corrections: the server starts dcdc refine, the page shows its last line.
import { askJson, at, make, on, text } from "/dom.js";

function tell(...inside) {
  at("refine-says").replaceChildren(...inside);
  at("refine-says").hidden = !inside.length;
}
function show(told) {
  at("refine").disabled = told.is_at_work;
  if (told.is_at_work) tell("Refining … ", text(told.says));
  else if (told.failed) tell("Not refined: ", text(told.says));
  else if (told.run) tell("Refined: ", text(told.run), ". Look at it with ", make("code", {}, text(told.look)));
}
async function follow() {
  for (;;) {
    const told = await askJson("/refine");
    show(told);
    if (!told.is_at_work) return;
    await new Promise((done) => setTimeout(done, 300));
  }
}

on(at("refine"), "click", async () => {
  at("refine").disabled = true;
  try {
    const answer = await fetch("/refine", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    await follow();
  } catch (error) {
    at("refine").disabled = false;
    tell("Not refined: ", text(error.message));
  }
});
await follow(); // one that another page started
