"use strict";
// All that a guest said is set as text. Nothing here makes markup of it.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");

// An element with properties and children; a text is a child too.
function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value; else element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function drawn(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const number = value => value.toLocaleString("en-US");
const counted = (count, name) => `${number(count)} ${name}${count === 1 ? "" : "s"}`;

function section(id, title) {
  const heading = make("h2", { id }, title);
  document.getElementById("sections").append(make("a", { href: `#${id}` }, title));
  main.append(heading);
  return heading;
}

function note(text) {
  main.append(make("p", { className: "soft" }, text));
}

function command(text) {
  const code = make("code", {}, text);
  const copy = make("button", { type: "button" }, "Copy");
  copy.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => { copy.textContent = "Copied"; }, () => {});
  });
  return make("div", { className: "command" }, code, copy);
}

function table(heads, rows) {
  const cell = (name, value, at) => {
    const isNumber = typeof value === "number";
    const shown = isNumber ? number(value) : value;
    return make(name, { className: isNumber || heads[at].startsWith("#") ? "number" : "" }, shown);
  };
  const head = heads.map((text, at) => make("th", { className: text.startsWith("#") ? "number" : "" }, text.replace("#", "")));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((value, at) => cell("td", value, at))))));
}

function bar(share) {
  const inner = make("i");
  inner.style.width = `${Math.round(share * 100)}%`;
  return make("span", { className: "bar" }, inner);
}

function summary() {
  const share = data.edges ? ` of ${number(data.edges)}` : "";
  const cards = [
    [data.findings.length + data.findings_left_out, "findings"], [number(data.edges_hit) + share, "edges"],
    [number(data.runs), data.rejected ? `runs, ${number(data.rejected)} of them rejected` : "runs"],
    [number(data.steps), "steps"], [number(data.checkpoints.kept), `checkpoints of ${number(data.checkpoints.saved)} saved`],
  ];
  main.append(make("div", { className: "cards" }, ...cards.map(([value, name]) =>
    make("div", { className: "card" }, make("b", {}, String(value)), name))));
  if (data.discovery && data.edges_hit < data.edges) note(`How much is left: ${data.discovery}.`);
  if (data.is_cut) note("The time was up before all was told: some steps are named only, and some findings are not run again.");
}

function step(line) {
  let text = line.name;
  for (const [name, value] of line.args) text += `  ${name}=${value}`;
  if (line.chosen.length) text += `  chose ${line.chosen.join(", ")}`;
  const item = make("li", { className: "code" }, text);
  const remarks = [];
  if (line.free.length) remarks.push(`or any other value: ${line.free.join(", ")}`);
  if (line.droppable) remarks.push("without this step it fails the same kind of way");
  if (remarks.length) item.append(make("span", { className: "soft" }, `   # ${remarks.join("; ")}`));
  for (const change of line.changes) item.append(make("div", { className: "soft" }, `now ${change}`));
  if (line.changes_left_out) item.append(make("div", { className: "soft" }, `and ${counted(line.changes_left_out, "more change")}`));
  for (const text of line.notes) item.append(make("div", {}, text));
  return item;
}

function excerpt(lines) {
  if (!lines.lines.length) return null;
  const width = String(lines.first + lines.lines.length).length;
  const line = (text, at) => make("span", { className: lines.first + at === lines.at ? "at" : "" },
    `${String(lines.first + at).padStart(width)}  ${text}`);
  return make("div", {}, make("div", { className: "soft" }, lines.file), make("pre", { className: "source" }, ...lines.lines.map(line)));
}

function finding(found, isFirst) {
  const shrunk = found.minimal
    ? `shrunk: ${found.steps_before} → ${counted(found.steps.length, "step")}` : "perhaps not shrunk all the way";
  const own = found.stack.filter(frame => frame.role !== "library");
  const box = make("details", { className: "finding", id: `finding-${found.id}`, open: isFirst },
    make("summary", {}, found.failure),
    make("p", { className: "soft" }, `found in run ${number(found.run)}; ${shrunk}`),
    found.remark ? make("p", { className: "bad" }, found.remark) : null,
    make("ol", { className: "steps" }, ...found.steps.map(step)),
    found.steps_left_out ? make("p", { className: "soft" }, `and ${counted(found.steps_left_out, "more step")}, which the trace has`) : null,
    found.place ? make("p", {}, "at ", make("code", {}, found.place)) : null,
    excerpt(found.source),
    inSource(found.source),
    found.cause ? make("p", {}, `with sanitizers: ${found.cause}`) : null);
  if (own.length > 1) {
    box.append(make("details", {}, make("summary", {}, `Stack: ${counted(own.length, "frame")}`),
      make("ol", {}, ...own.map(frame => make("li", { className: "code" }, frame.text))),
      found.stack_left_out ? make("p", { className: "soft" }, `and ${counted(found.stack_left_out, "more frame")}`) : ""));
  }
  box.append(make("div", {}, "Reproduce:"), command(found.reproduce));
  return box;
}

function findings() {
  section("findings", "Findings");
  if (!data.findings.length) return note("Nothing was found so far.");
  main.append(...data.findings.map((found, at) => finding(found, at === 0)));
  if (data.findings_left_out) note(`${counted(data.findings_left_out, "more finding")}: \`spelunk status\` lists all.`);
}

// What is wrong with the search, and what to do.
function health() {
  section("health", "Health");
  if (!data.health.length) return note("Nothing looks wrong with the search.");
  main.append(make("ul", {}, ...data.health.map(text => make("li", { className: "bad" }, text))));
}

// How many edges had been seen after how many runs.
function timeline() {
  if (!data.curve.length) return;
  section("timeline", "Edges over runs");
  const [width, height, left, below] = [1000, 240, 60, 24];
  const last = Math.max(data.runs, data.curve[data.curve.length - 1][0], 1);
  const most = data.curve[data.curve.length - 1][1];
  const scale = make("select", { ariaLabel: "scale of runs" }, make("option", {}, "logarithmic"), make("option", {}, "linear"));
  const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "edges over runs" });
  const draw = () => {
    const isLog = scale.selectedIndex === 0;
    const place = run => left + (width - left - 10) * (isLog ? Math.log(Math.max(run, 1)) / Math.max(Math.log(last), 1e-9) : run / last);
    const up = edges => height - below - (height - below - 14) * edges / most;
    let path = `M ${place(0)} ${up(0)}`;
    for (const [run, edges] of data.curve) path += ` H ${place(run).toFixed(1)} V ${up(edges).toFixed(1)}`;
    path += ` H ${place(last)}`;
    const found = data.findings.map(found => drawn("line", { class: "found", x1: place(found.run), x2: place(found.run), y1: 10, y2: height - below },
      drawn("title", {}, `run ${number(found.run)}: ${found.failure}`)));
    picture.replaceChildren(
      drawn("line", { class: "axis", x1: left, x2: width - 10, y1: height - below, y2: height - below }),
      drawn("line", { class: "axis", x1: left, x2: left, y1: 10, y2: height - below }),
      drawn("text", { x: left - 6, y: 18, "text-anchor": "end" }, number(most)),
      drawn("text", { x: left - 6, y: height - below, "text-anchor": "end" }, "0"),
      drawn("text", { x: width - 10, y: height - 6, "text-anchor": "end" }, counted(last, "run")),
      ...found, drawn("path", { class: "curve", d: path }));
  };
  scale.addEventListener("change", draw);
  draw();
  main.append(make("div", { className: "tools" }, scale, make("span", { className: "soft" }, "dashed: a finding")), picture);
}

function rules() {
  if (!data.called.rules.length) return;
  section("rules", "Rules and faults");
  const told = data.called.rules[0].cells.length;
  const faults = data.called.faults.slice(0, told - 1);
  const leftOut = [[data.called.rules_left_out, "more rule"], [data.called.faults_left_out, "more fault"]].filter(([count]) => count);
  const rows = data.called.rules.map(rule => [rule.name, ...rule.cells.slice(0, 1).flat(), rule.next, ...rule.cells.slice(1).flat()]);
  const heads = ["rule", "#calls", "#found an edge", "the next finds one", ...faults.flatMap(fault => [`#while ${fault}`, "#found an edge"])];
  main.append(make("div", { className: "scroll" }, table(heads, rows)));
  if (leftOut.length) note(`Not shown: ${leftOut.map(([count, name]) => counted(count, name)).join(", ")}.`);
  if (faults.length < data.called.faults.length) note("There are too many rules and faults to tell faults apart.");
  const never = data.called.rules.filter(rule => rule.cells[0][0] === 0).map(rule => rule.name);
  if (never.length) note(`Never called: ${never.join(", ")}.`);
}

function properties() {
  if (!data.properties.length) return;
  section("properties", "Properties");
  const state = property => property.unmet ? make("span", { className: "bad" }, "not seen") : make("span", { className: "good" }, "seen");
  main.append(make("div", { className: "scroll" }, table(["property", "kind", "", "#reached", "#held"],
    data.properties.map(p => [p.name, p.kind, state(p), p.reached, p.held]))));
  if (data.properties_left_out) note(`And ${number(data.properties_left_out)} more.`);
}

function coverage() {
  if (!data.functions.length) return;
  section("coverage", "Functions");
  const wanted = make("input", { type: "search", placeholder: "function", ariaLabel: "function" });
  const box = make("div", { className: "scroll" });
  const draw = () => {
    const chosen = data.functions.filter(([name]) => name.includes(wanted.value));
    const rows = chosen.slice(0, 1000).map(([name, edges, hit]) => [make("span", { className: "code" }, name), hit, edges, bar(hit / edges)]);
    box.replaceChildren(table(["function", "#edges seen", "#of", ""], rows));
    if (chosen.length > 1000) box.append(make("p", { className: "soft" }, `and ${number(chosen.length - 1000)} more`));
  };
  wanted.addEventListener("input", draw);
  draw();
  main.append(make("div", { className: "tools" }, wanted, make("span", { className: "soft" }, "those that lack most come first")), box);
  if (data.functions_left_out) note(`Not shown: ${counted(data.functions_left_out, "more function")}, none of which lacks more edges.`);
}

function about() {
  section("about", "This campaign");
  const rows = [["folder", data.folder], ["target", data.target], ["module", data.module], ...Object.entries(data.settings),
    ["size on disk", `${(data.bytes / 1048576).toFixed(1)} MiB`], ["Spelunk", data.version]];
  main.append(table(["", ""], rows.map(([name, value]) => [name, make("span", { className: "code" }, String(value))])));
}
