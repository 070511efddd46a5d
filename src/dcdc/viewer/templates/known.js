// What is known of images: asked for once, a few hundred at a time, when they come into sight.
import { askJson } from "/dom.js";

const MOST = 300;
const known = new Map();
const waiting = new Map();
let planned = false;

export const fact = (row) => known.get(row);
export const forget = () => known.clear();

export function facts(row) {
  if (known.has(row)) return Promise.resolve(known.get(row));
  if (!waiting.has(row)) {
    let done;
    const promise = new Promise((resolve) => { done = resolve; });
    waiting.set(row, { promise, done, asked: false });
    if (!planned) {
      planned = true;
      setTimeout(send, 30);
    }
  }
  return waiting.get(row).promise;
}

async function send() {
  planned = false;
  const rows = [...waiting].filter(([, each]) => !each.asked).map(([row]) => row);
  for (let start = 0; start < rows.length; start += MOST) {
    const some = rows.slice(start, start + MOST);
    for (const row of some) waiting.get(row).asked = true;
    let found = [];
    try {
      found = await askJson("/about", { rows: some.join(",") });
    } catch { /* a tile without words; it is asked for again when it comes back into sight */ }
    for (const each of found) known.set(each.row, each);
    for (const row of some) {
      const one = waiting.get(row);
      waiting.delete(row);
      if (known.has(row)) one.done(known.get(row));
    }
  }
}
