// The page's own words: whatever comes from a run is set as text, never read as markup.
export const at = (id) => document.getElementById(id);
export const on = (node, event, act) => node.addEventListener(event, act);
export const make = (tag, props, ...inside) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...inside);
  return node;
};
export const text = (value) => make("bdi", { textContent: value });
export const number = (n) => n.toLocaleString("en");
export const counted = (n, one, many = one + "s") => number(n) + " " + (n === 1 ? one : many);

export async function ask(path, query = {}) {
  const answer = await fetch(path + "?" + new URLSearchParams(query));
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer;
}
export const askJson = async (path, query) => (await ask(path, query)).json();

// Whether a key is for what a person writes, or for a list that is open over the page.
export const isTyping = (event) => Boolean(event.target.closest?.("input:not([type=checkbox]), select, textarea, #picker[open], #help[open]"));

// An image that cannot be shown leaves its name.
export function picture(source, says) {
  const image = make("img", { className: "thumb", loading: "lazy", decoding: "async", alt: says, src: source });
  on(image, "error", () => image.classList.add("bad"));
  return image;
}
