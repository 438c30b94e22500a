// The tree of checkpoints: a picture, an outline, and the steps that lead to the chosen one.
const tree = data.tree;
const count = tree.id.length;
const children = Array.from({ length: count }, () => []);
const roots = [];

// Where each stands: leaves one beside the other, others above the middle of their children.
function layout() {
  const [x, level] = [new Float64Array(count), new Float64Array(count)];
  // A parent comes before its children.
  for (let at = 0; at < count; at += 1) {
    const parent = tree.parent[at];
    if (parent < 0) roots.push(at); else { children[parent].push(at); level[at] = level[parent] + 1; }
  }
  let [leaves, deepest] = [0, 0];
  const stack = roots.map(at => [at, 0]).reverse();
  while (stack.length) {
    const top = stack[stack.length - 1];
    const below = children[top[0]];
    if (top[1] < below.length) {
      stack.push([below[top[1]], 0]);
      top[1] += 1;
      continue;
    }
    x[top[0]] = below.length ? (x[below[0]] + x[below[below.length - 1]]) / 2 : leaves++;
    deepest = Math.max(deepest, level[top[0]]);
    stack.pop();
  }
  return { x, level, leaves: Math.max(leaves, 1), deepest: Math.max(deepest, 1) };
}

// What the steps from the start to a checkpoint are called; null stands for those that the page has no room for.
function stepsTo(at) {
  const chain = [];
  for (let next = at; next >= 0; next = data.is_function ? -1 : tree.parent[next]) chain.push(tree.steps[next]);
  return chain.reverse().flatMap(steps => steps === null ? [null] : steps.map(step => tree.texts[step]));
}

function shade(kind, at) {
  const highest = shade.highest[kind] ??= tree[kind].reduce((a, b) => Math.max(a, b), 1e-9);
  const share = Math.log1p(tree[kind][at]) / Math.log1p(highest);
  return `hsl(${Math.round(220 - 200 * share)} 75% ${Math.round(52 + 8 * share)}%)`;
}
shade.highest = {};

function picture(canvas, places, choose, state) {
  const pen = canvas.getContext("2d");
  const view = { x: 0, y: 0, zoom: 1 };
  const at = node => {
    const [width, height] = [canvas.clientWidth - 30, canvas.clientHeight - 30];
    return [(15 + width * (places.x[node] + .5) / places.leaves) * view.zoom + view.x,
      (15 + height * places.level[node] / places.deepest) * view.zoom + view.y];
  };
  const draw = () => {
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    pen.strokeStyle = style.getPropertyValue("--soft");
    pen.globalAlpha = .4;
    pen.beginPath();
    for (let node = 0; node < count; node += 1) {
      if (tree.parent[node] < 0) continue;
      pen.moveTo(...at(tree.parent[node]));
      pen.lineTo(...at(node));
    }
    pen.stroke();
    pen.globalAlpha = 1;
    const size = Math.min(6, Math.max(1.5, 60 / Math.sqrt(count)) * Math.sqrt(view.zoom));
    for (let node = 0; node < count; node += 1) {
      const [x, y] = at(node);
      pen.fillStyle = shade(state.kind, node);
      pen.beginPath();
      pen.arc(x, y, node === state.chosen ? size + 3 : size, 0, 7);
      pen.fill();
    }
  };
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const zoom = Math.min(200, Math.max(1, view.zoom * (event.deltaY < 0 ? 1.25 : .8)));
    view.x = event.offsetX - (event.offsetX - view.x) * zoom / view.zoom;
    view.y = event.offsetY - (event.offsetY - view.y) * zoom / view.zoom;
    view.zoom = zoom;
    draw();
  }, { passive: false });
  let from = null;
  canvas.addEventListener("pointerdown", event => { from = [event.offsetX, event.offsetY, false]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", event => {
    if (!from) return;
    const [dx, dy] = [event.offsetX - from[0], event.offsetY - from[1]];
    if (!from[2] && Math.hypot(dx, dy) < 4) return;
    from = [event.offsetX, event.offsetY, true];
    view.x += dx;
    view.y += dy;
    draw();
  });
  canvas.addEventListener("pointerup", event => {
    const wasMoved = from && from[2];
    from = null;
    if (wasMoved) return;
    let [best, distance] = [-1, 20];
    for (let node = 0; node < count; node += 1) {
      const [x, y] = at(node);
      const away = Math.hypot(x - event.offsetX, y - event.offsetY);
      if (away < distance) [best, distance] = [node, away];
    }
    if (best >= 0) choose(best);
  });
  new ResizeObserver(draw).observe(canvas);
  return { draw, whole: () => { [view.x, view.y, view.zoom] = [0, 0, 1]; draw(); } };
}

// A list whose parts are made when they are opened, some at a time.
function outline(nodes, choose) {
  const list = make("ul", { className: "outline" });
  const more = from => {
    for (const node of nodes.slice(from, from + 100)) {
      const item = make("li");
      const name = make("a", { href: "#tree" }, `checkpoint ${tree.id[node]}`, make("span", { className: "soft" }, `  ${counted(tree.new[node], "new edge")}`));
      name.addEventListener("click", event => { event.preventDefault(); choose(node); });
      if (children[node].length) {
        const open = make("button", { type: "button", ariaExpanded: "false" }, "+");
        open.addEventListener("click", () => {
          const isOpen = open.ariaExpanded === "true";
          open.ariaExpanded = String(!isOpen);
          open.textContent = isOpen ? "+" : "−";
          if (isOpen) item.lastChild.remove(); else item.append(outline(children[node], choose));
        });
        item.append(open);
      }
      item.append(name);
      list.append(item);
    }
    if (from + 100 < nodes.length) {
      const button = make("button", { type: "button" }, `${number(nodes.length - from - 100)} more`);
      button.addEventListener("click", () => { button.parentElement.remove(); more(from + 100); });
      list.append(make("li", {}, button));
    }
  };
  more(0);
  return list;
}

function checkpoints() {
  if (!count) return null;
  section("tree", data.is_function ? "Inputs" : "Checkpoints");
  const places = layout();
  const panel = make("div", { className: "panel", id: "checkpoint" });
  const state = { kind: "energy", chosen: -1 };
  const kinds = { energy: "energy", new: "new edges", selected: "times selected", run: "age" };
  const kind = make("select", { ariaLabel: "colour" }, ...Object.entries(kinds).map(([value, text]) => make("option", { value }, text)));
  const whole = make("button", { type: "button" }, "Whole tree");
  const canvas = make("canvas", { ariaLabel: "tree of checkpoints" });
  const choose = node => {
    state.chosen = node;
    const steps = stepsTo(node).map(text => make("li", { className: text === null ? "soft" : "code" },
      text === null ? "steps that this page has no room for" : text));
    panel.replaceChildren(make("h3", {}, `Checkpoint ${tree.id[node]}`),
      make("p", { className: "soft" }, `run ${number(tree.run[node])}, step ${number(tree.depth[node])}; ${counted(tree.new[node], "new edge")}; ` +
        `energy ${tree.energy[node]}, selected ${counted(tree.selected[node], "time")}`),
      make("ol", { className: "steps" }, ...steps));
    image.draw();
  };
  const image = picture(canvas, places, choose, state);
  kind.addEventListener("change", () => { state.kind = kind.value; image.draw(); });
  whole.addEventListener("click", image.whole);
  main.append(make("div", { className: "tools" }, "Colour: ", kind, whole, make("span", { className: "soft" }, "wheel: zoom; drag: move; click: the steps that lead there")),
    make("div", { className: "tree" }, canvas, panel));
  if (tree.left_out) note(`${counted(tree.left_out, "checkpoint")} of less energy are not shown.`);
  main.append(outline(roots, choose));
  choose(roots[0]);
  return image;
}
