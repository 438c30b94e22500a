//! Draws a picture on a screen of any size.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Row as Cells, Table, Wrap};

use super::picture::Picture;
use crate::report::{discovery_text, next_text};
use crate::session::{Node, Row, View};
use crate::text;

/// A screen with fewer cells shows that it is too small.
const WIDTH_MIN: u16 = 24;
const HEIGHT_MIN: u16 = 7;
/// One as wide has two columns.
const WIDE: u16 = 80;
/// One as wide shows how far it is in one line.
const WIDER: u16 = 160;
/// One as high has the curve.
const HIGH: u16 = 20;
/// A column as high has the findings, or what is wrong too.
const FINDINGS_MIN: u16 = 9;
const HEALTH_MIN: u16 = 14;
/// Cells that a part of a table takes, at most, and that a name is given even where others have no room then.
const CELL_MAX: usize = 28;
const NAME_MIN: usize = 8;
/// Levels of the tree that are indented.
const LEVELS_MAX: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, picture: &mut Picture) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        frame.render_widget(Paragraph::new("too small to explore").wrap(Wrap { trim: true }), area);
        return;
    }
    let ink = Ink { colors: picture.colors };
    let head = if area.width < WIDER { 4 } else { 3 };
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(head), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    draw_head(frame, head, picture, ink);
    let keys = "q: stop and report   up, down, page up, page down: checkpoints";
    frame.render_widget(Paragraph::new(keys).style(ink.soft()), foot);
    let (left, right) = match area.width >= WIDE {
        true => {
            let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(body);
            (left, right)
        }
        false => {
            let [left, right] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(body);
            (left, right)
        }
    };
    draw_left(frame, left, (&*picture, area.height), ink);
    draw_right(frame, right, picture, ink);
}

/// How things are told apart: without colours, by weight alone.
#[derive(Clone, Copy)]
struct Ink {
    colors: bool,
}

impl Ink {
    fn of(self, color: Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }

    fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn soft(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn warns(self) -> Style {
        self.of(Color::Yellow)
    }
}

/// A frame with a title; the area in it.
fn framed(frame: &mut Frame<'_>, area: Rect, title: String) -> Rect {
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn line(text: &str) -> String {
    text::line(text).into_owned()
}

/// What is explored, how far it is, and how much is left.
fn draw_head(frame: &mut Frame<'_>, area: Rect, picture: &Picture, ink: Ink) {
    let View { discovery, progress, edges, .. } = &picture.view;
    let left = match discovery {
        _ if picture.view.edges > 0 && progress.edges as usize >= *edges => "all edges were seen".to_string(),
        Some(discovery) => discovery_text(*discovery),
        None => "too few runs to say how much is left".to_string(),
    };
    let title = Line::from(vec![
        Span::styled("Spelunk  ", ink.strong()),
        Span::raw(line(&picture.target)),
        Span::styled(format!("  {}", line(&picture.phase)), ink.warns()),
    ]);
    let [above, middle, below] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    frame.render_widget(Paragraph::new(title), above);
    frame.render_widget(Paragraph::new(line(&picture.progress)).wrap(Wrap { trim: true }), middle);
    frame.render_widget(Paragraph::new(left), below);
}

fn draw_left(frame: &mut Frame<'_>, area: Rect, (picture, height): (&Picture, u16), ink: Ink) {
    let curve = if height >= HIGH { area.height / 2 } else { 0 };
    let [above, below] = Layout::vertical([Constraint::Length(curve), Constraint::Fill(1)]).areas(area);
    if curve > 2 {
        draw_curve(frame, above, &picture.view, ink);
    }
    draw_rules(frame, below, &picture.view, ink);
}

/// How many edges were seen after how many runs.
fn draw_curve(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let inside = framed(frame, area, "edges over runs".to_string());
    let points: Vec<(f64, f64)> =
        view.curve.iter().map(|(run, edges)| (*run as f64, f64::from(*edges))).collect();
    let (runs, edges) = view.curve.last().copied().unwrap_or_default();
    let data =
        Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(ink.of(Color::Green));
    let axis = |most: u64| {
        let labels = vec!["0".to_string(), most.to_string()];
        Axis::default().bounds([0.0, (most.max(1)) as f64]).labels(labels)
    };
    let chart = Chart::new(vec![data.data(&points)])
        .x_axis(axis(runs))
        .y_axis(axis(edges.into()))
        .legend_position(None);
    frame.render_widget(chart, inside);
}

/// How often each rule was called and found an edge, in all and while faults were on: as many columns as there is room for.
fn draw_rules(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let head = ["rule", "calls/found", "the next finds one"].map(str::to_string);
    let head: Vec<String> = head.into_iter().chain(view.faults.iter().map(|fault| line(fault))).collect();
    let rows: Vec<Vec<String>> = view.rules.iter().map(row_cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).min(CELL_MAX) as u16
    };
    let room = usize::from(area.width.saturating_sub(2));
    let mut widths: Vec<u16> = (0..head.len()).map(width).collect();
    // A name is cut where there is no room for it and for what follows.
    let after_name = usize::from(widths[1]) + 1;
    widths[0] = widths[0].min(room.saturating_sub(after_name).max(NAME_MIN) as u16);
    let mut end = 0;
    let shown = widths.iter().take_while(|width| {
        end += usize::from(**width) + usize::from(end > 0);
        end <= room
    });
    let shown = shown.count();
    let mut title = "rules and faults: calls/found an edge".to_string();
    for (count, what) in [(view.rules_left_out, "rules"), (head.len() - shown, "columns")] {
        if count > 0 {
            title += &format!(", {count} more {what}");
        }
    }
    let inside = framed(frame, area, title);
    let row = |(row, cells): (&Row, Vec<String>)| {
        let style = if row.rule.calls == 0 { ink.warns() } else { Style::new() };
        Cells::new(cells.into_iter().take(shown)).style(style)
    };
    let head = Cells::new(head.into_iter().take(shown)).style(ink.strong());
    let widths = widths.into_iter().take(shown).map(Constraint::Length);
    frame.render_widget(Table::new(view.rules.iter().zip(rows).map(row), widths).header(head), inside);
}

fn row_cells(row: &Row) -> Vec<String> {
    let rule = &row.rule;
    let pair = |[calls, found]: [u64; 2]| format!("{calls}/{found}");
    let cells = [line(&rule.name), pair([rule.calls, rule.found]), next_text(rule.discovery)];
    cells.into_iter().chain(row.faults.iter().map(|cell| pair(*cell))).collect()
}

fn draw_right(frame: &mut Frame<'_>, area: Rect, picture: &mut Picture, ink: Ink) {
    let lines: Vec<String> = picture.view.health.iter().map(|symptom| line(&symptom.text)).collect();
    // Words are not broken, so that a line is not filled to its end.
    let width = usize::from(area.width.saturating_sub(10)).max(1);
    let high: usize = lines.iter().map(|line| line.chars().count().div_ceil(width)).sum();
    let health = if area.height >= HEALTH_MIN { 2 + (high.max(1) as u16).min(area.height / 3) } else { 0 };
    let found = if area.height >= FINDINGS_MIN { area.height / 3 } else { 0 };
    let [above, middle, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(found), Constraint::Length(health)])
            .areas(area);
    draw_tree(frame, above, picture, ink);
    if found > 0 {
        draw_findings(frame, middle, picture, ink);
    }
    if health > 0 {
        let inside = framed(frame, below, "health".to_string());
        let lines: Vec<Line<'_>> = match lines.is_empty() {
            true => vec![Line::from("nothing is wrong")],
            false => lines.into_iter().map(|line| Line::styled(line, ink.warns())).collect(),
        };
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), inside);
    }
}

/// The checkpoints from the chosen one on.
fn draw_tree(frame: &mut Frame<'_>, area: Rect, picture: &mut Picture, ink: Ink) {
    let View { nodes, nodes_left_out, .. } = &picture.view;
    let most = nodes.iter().map(|node| node.energy).fold(0.0, f64::max);
    let more = match nodes_left_out {
        0 => String::new(),
        more => format!(", {more} older ones"),
    };
    let first = picture.first.min(nodes.len().saturating_sub(1));
    let from = if nodes.is_empty() { 0 } else { first + 1 };
    let title = format!("checkpoints {from} to {}{more}: energy, tries, edges, steps", nodes.len());
    let inside = framed(frame, area, title);
    let shown = nodes.iter().skip(first).take(usize::from(inside.height));
    let lines: Vec<Line<'_>> = shown.map(|node| node_line(node, most, ink)).collect();
    frame.render_widget(Paragraph::new(lines), inside);
    picture.first = first;
}

fn node_line(node: &Node, most: f64, ink: Ink) -> Line<'static> {
    let Node { id, level, energy, selected, new_edges, step, run } = node;
    let indent = "  ".repeat((*level).min(LEVELS_MAX));
    let deeper = if *level > LEVELS_MAX { format!("({level}) ") } else { String::new() };
    let is_high = *energy * 2.0 >= most;
    let style = if is_high { ink.of(Color::Green) } else { Style::new() };
    let rest = format!("  {selected} tries, {new_edges} new, step {step} of run {run}");
    Line::from(vec![
        Span::raw(format!("{indent}{deeper}{id}  ")),
        Span::styled(format!("{energy:.2}"), style.add_modifier(Modifier::BOLD)),
        Span::raw(rest),
    ])
}

/// The latest findings, and what was said last.
fn draw_findings(frame: &mut Frame<'_>, area: Rect, picture: &Picture, ink: Ink) {
    let View { findings, progress, .. } = &picture.view;
    let inside = framed(frame, area, format!("findings: {}", progress.findings));
    let found = findings
        .iter()
        .map(|(run, failure)| Line::styled(format!("run {run}  {}", line(failure)), ink.bad()));
    // The latest first, as the findings.
    let said = picture.said.iter().rev().map(|said| Line::styled(line(said.trim_start()), ink.soft()));
    let lines: Vec<Line<'_>> = found.chain(said).take(usize::from(inside.height)).collect();
    frame.render_widget(Paragraph::new(lines), inside);
}
