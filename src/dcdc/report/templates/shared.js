// Everything shown was built as HTML or is set as text: no name or label is ever read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const on = (node, event, act) => node && node.addEventListener(event, act);
const make = (tag, props, ...inside) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...inside);
  return node;
};
const text = (value) => make("bdi", { textContent: value });
const counted = (n) => n.toLocaleString("en") + (n === 1 ? " image" : " images");
document.documentElement.classList.add("live");

// Images from a sheet

function open(pile) {
  if (!pile?.sheet) return pile;
  pile.picture = make("img", { src: pile.sheet.uri });
  pile.ready = pile.picture.decode();
  return pile;
}
function tile(pile, i) {
  const { side, pitch, columns } = pile.sheet;
  return [pile.picture, (i % columns) * pitch, Math.floor(i / columns) * pitch, side, side];
}
