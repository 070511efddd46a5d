// Two methods that a person picks: where they answer otherwise, and what each makes of the classes.

const MOST = 32;  // images of a group
const pile = open(data.shown);
const first = at("first"), second = at("second");
const places = pile.name.map((_, i) => i);
const isSample = places.length < data.n_images;
const numbers = (n) => n.toLocaleString("en");
const things = (n) => numbers(n) + " " + (n === 1 ? data.things.slice(0, -1) : data.things);

for (const select of [first, second]) {
  select.append(...data.methods.map((name, i) => make("option", { value: i, textContent: name })));
}

// What the cluster of image i stands for.
const answer = (method, i) => data.stands_for[method][data.clusters[method][i]];
const clusterOf = (method, i) => data.clusters[method][i];

function says(method, i) {
  const number = clusterOf(method, i);
  if (!data.classes) return "cluster " + number;
  const stands = answer(method, i);
  return stands < 0 ? "cluster " + number + ", of no class" : data.classes[stands];
}

function picture(i, lines) {
  const told = [pile.name[i], ...lines].join(", ");
  const caption = make("figcaption", {}, ...lines.map((line) => make("div", {}, text(line))));
  if (!pile.sheet) return make("li", {}, text(told));
  const { side } = pile.sheet;
  const className = data.coarse ? "coarse" : "";
  const canvas = make("canvas", { width: side, height: side, title: told, className });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", told);
  pile.ready.then(() => canvas.getContext("2d").drawImage(...tile(pile, i), 0, 0, side, side));
  return make("figure", {}, canvas, caption);
}

function group(title, total, inside, lines) {
  if (!total) return "";
  const some = inside.slice(0, MOST);
  const which = total > some.length ? ", " + (some.length || "none") + " of them here" : "";
  const head = make("h3", {}, text(title), ": " + things(total) + which);
  const shown = some.map((i) => picture(i, lines(i)));
  return make("div", {}, head, make(pile.sheet ? "div" : "ul", { className: pile.sheet ? "thumbnails" : "names" }, ...shown));
}

function byClasses(a, b) {
  const right = (method, i) => answer(method, i) === pile.class[i];
  const alike = (i) => answer(a, i) === answer(b, i) && answer(a, i) >= 0;
  const lines = (i) => ["is " + data.classes[pile.class[i]], data.methods[a] + ": " + says(a, i), data.methods[b] + ": " + says(b, i)];
  const both = data.n_images - data.same[a][b] - data.only[a][b] - data.only[b][a];
  const [one, other] = [data.methods[a], data.methods[b]];
  return [
    group(one + " is right, " + other + " is not", data.only[a][b],
      places.filter((i) => right(a, i) && !right(b, i)), lines),
    group(other + " is right, " + one + " is not", data.only[b][a],
      places.filter((i) => right(b, i) && !right(a, i)), lines),
    group("Both are wrong, each in its way", both,
      places.filter((i) => !right(a, i) && !right(b, i) && !alike(i)), lines),
  ];
}

function byClusters(a, b) {
  const match = data.matches[a + "," + b];
  const differ = places.filter((i) => match[clusterOf(a, i)] !== clusterOf(b, i));
  const cells = new Map();
  for (const i of differ) {
    const cell = clusterOf(a, i) + "," + clusterOf(b, i);
    cells.set(cell, [...(cells.get(cell) || []), i]);
  }
  const largest = [...cells.values()].sort((one, other) => other.length - one.length).slice(0, 12);
  return largest.map((inside) => {
    const [i] = inside;
    const title = data.methods[a] + " has them in cluster " + clusterOf(a, i) + ", "
      + data.methods[b] + " in cluster " + clusterOf(b, i) + (isSample ? ", of those looked at" : "");
    return group(title, inside.length, inside, () => []);
  });
}

function table(method) {
  const { classes, clusters, counts } = data.tables[method];
  const head = make("tr", {}, make("th", { scope: "col", textContent: "class" }),
    ...clusters.map((number) => make("th", { scope: "col", textContent: number })));
  const rows = counts.map((row, at) => {
    const total = row.reduce((sum, n) => sum + n, 0);
    return make("tr", {}, make("th", { scope: "row" }, text(classes[at])), ...row.map((n) => {
      const cell = make("td", { textContent: n || "", className: n > total / 2 ? "deep" : "" });
      cell.style.setProperty("--share", (n / total).toFixed(3));
      return cell;
    }));
  });
  const many = clusters.length > 20 ? " many" : "";
  const whole = make("table", { className: "confusion" + many }, make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", {}, make("h3", {}, text(data.methods[method]), ": clusters against classes"),
    make("div", { className: "scroll", tabIndex: 0 }, whole));
}

function show() {
  const [a, b] = [Number(first.value), Number(second.value)];
  if (a === b) {
    at("said").textContent = "Pick two that differ.";
    at("differ").replaceChildren();
    at("tables").replaceChildren();
    return;
  }
  const same = data.same[a][b];
  at("said").textContent = "They answer alike for " + numbers(same) + " of " + things(data.n_images) + ", "
    + (100 * same / data.n_images).toFixed(1) + " %." + (isSample
      ? " Looked at are " + numbers(places.length) + ", spread evenly over all." : "");
  at("differ").replaceChildren(...(data.classes ? byClasses(a, b) : byClusters(a, b)));
  at("tables").replaceChildren(...(data.tables ? [table(a), table(b)] : []));
}

// The two that have most right come first.
const order = data.methods.map((_, i) => i);
if (data.only) order.sort((a, b) => data.only[b][a] - data.only[a][b]);
first.value = order[0];
second.value = order[1];
for (const select of [first, second]) on(select, "change", show);
on(at("swap"), "click", () => { [first.value, second.value] = [second.value, first.value]; show(); });
show();
