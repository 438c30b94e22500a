// The source: a table of files, each of which is made when it is opened.
const files = data.source.files;

const share = ([hit, all]) => all ? `${number(hit)} of ${number(all)}` : "";

// A line: its number, how many reached it, its text, and branches of which not every way was taken.
function sourceLine([line, hits, text, branches = []], widths) {
  const count = hits < 0 ? "" : number(hits);
  const row = make("span", { className: hits < 0 ? "line" : hits ? "line hit" : "line missed" },
    make("i", { className: "soft" }, `${String(line).padStart(widths[0])} ${count.padStart(widths[1])}  `), text);
  const told = branches.map(([taken, all]) => `${taken} of ${all} ways`).join(", ");
  if (told) row.append(make("span", { className: "ways", title: "a branch of which not every way was taken" }, `  ${told}`));
  return row;
}

function fill(box, file) {
  if (box.dataset.made) return;
  box.dataset.made = "yes";
  const last = file.text.length ? file.text[file.text.length - 1][0] : 0;
  const widths = [String(last).length, file.text.reduce((most, [, hits]) => Math.max(most, number(hits).length), 1)];
  const listing = make("pre", { className: "source" });
  let before = 0;
  for (const line of file.text) {
    if (line[0] > before + 1) listing.append(make("span", { className: "line soft" }, "…"));
    before = line[0];
    const row = sourceLine(line, widths);
    row.dataset.line = line[0];
    listing.append(row);
  }
  box.append(listing);
  if (file.lines_left_out) box.append(make("p", { className: "soft" }, `${counted(file.lines_left_out, "line")} of this file are not shown: there is no room for all.`));
}

function sources() {
  const known = data.source;
  section("source", "Source");
  if (known.remark) return note(`No source is shown: ${known.remark}.`);
  note("Beside each line stands how many of the checkpoints and findings that are kept came there, 0 where none did, and nothing where a line has no code of its own. " +
    "Marked in the end: branches of which not every way was taken.");
  files.forEach((file, at) => {
    const told = ` lines ${share(file.lines)}, functions ${share(file.functions)}` + (file.ways[1] ? `, ways of branches ${share(file.ways)}` : "");
    const name = [make("span", { className: "code" }, file.path), make("span", { className: "soft" }, told), " ", bar(file.lines[0] / (file.lines[1] || 1))];
    if (!file.text) {
      const why = file.file ? "there is no room for it" : "its text is not in a folder that is read";
      return main.append(make("p", { className: "file soft" }, ...name, ` ${why}`));
    }
    const box = make("details", { className: "file", id: `file-${at}` }, make("summary", {}, ...name));
    box.addEventListener("toggle", () => { if (box.open) fill(box, file); });
    main.append(box);
  });
  const left = known.files_left_out;
  if (left) note(`Not shown: ${counted(left, "more file")}.`);
  if (known.is_cut) note("Some lines are not known: not all of the debug information can be read.");
  if (known.is_stopped) note("The time was up before all steps were executed: what is shown is what was reached until then.");
  if (known.differing) note(`The steps to ${number(known.differing)} of the checkpoints and findings did not go as before.`);
}

// What leads from a finding to its line.
function inSource(place) {
  const at = files.findIndex(file => file.text && place.file !== null && file.file === place.file && file.text.some(([line]) => line === place.at));
  if (at < 0) return null;
  const link = make("a", { href: `#file-${at}`, className: "to-source" }, `${files[at].path}:${place.at} in the source`);
  link.addEventListener("click", event => {
    event.preventDefault();
    const box = document.getElementById(`file-${at}`);
    box.open = true;
    fill(box, files[at]);
    box.querySelectorAll(".at").forEach(line => line.classList.remove("at"));
    const line = box.querySelector(`[data-line="${Number(place.at)}"]`);
    line.classList.add("at");
    line.scrollIntoView({ block: "center" });
  });
  return link;
}
