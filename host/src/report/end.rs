//! How an exploration or a check ended.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{counted, unmet_json};
use crate::check::{Limit, RuleCover};
use crate::coverage::FeatureKind;
use crate::search::{Discovery, Ways};
use crate::session::{CalledRule, CheckedTarget, End, Explored, Fate, Leftover, Saved, Summary, Verdict};
use crate::text;

/// What became of traces that were saved before.
fn saved_json(saved: &[Saved]) -> Vec<Json> {
    let fate = |saved: &Saved| match saved.fate {
        Fate::StillFails(_) => "fails",
        Fate::Fixed => "fixed",
        Fate::Stale(_) | Fate::Elsewhere(_) => "stale",
        Fate::Unknown => "unknown",
    };
    saved
        .iter()
        .map(|saved| json!({ "trace": saved.path.display().to_string(), "fate": fate(saved) }))
        .collect()
}

pub(super) fn explored_json(summary: &Summary, explored: &Explored) -> Json {
    let Explored { progress, edges, seconds, seconds_telling, unmet, end, stalled_since, discovery, .. } =
        explored;
    json!({
        "runs": progress.runs, "rejected": progress.rejected, "steps": progress.steps,
        "edges_hit": progress.edges, "edges": edges, "checkpoints": progress.checkpoints,
        "findings": summary.findings.len(), "ended_by": end_name(*end), "stalled_since": stalled_since,
        "discovery": discovery_json(*discovery), "health": explored.health,
        "seconds": seconds, "seconds_telling": seconds_telling, "exit": summary.verdict.exit_code(),
        "saved": saved_json(&summary.saved), "unmet": unmet_json(unmet),
    })
}

/// How likely the next run goes through a new edge, with what holds that with a probability of 95 %.
pub(super) fn discovery_json(discovery: Option<Discovery>) -> Json {
    discovery.map_or(Json::Null, |discovery| {
        let (low, high) = discovery.interval();
        json!({
            "runs": discovery.runs, "found": discovery.found, "chance": discovery.chance(), "low": low, "high": high,
        })
    })
}

/// `about one run in 125 goes through a new edge (95 %: one in 49 to 321), as 4 of the last 500 did`
pub fn discovery_text(discovery: Discovery) -> String {
    let (low, high) = discovery.interval();
    let Discovery { runs, found } = discovery;
    let each = |chance: f64| (1.0 / chance).round();
    match found {
        0 => format!(
            "fewer than one run in {} goes through a new edge (95 %), as none of the last {runs} did",
            each(high)
        ),
        _ => format!(
            "about one run in {} goes through a new edge (95 %: one in {} to {}), as {found} of the last {runs} did",
            each(discovery.chance()),
            each(high),
            each(low)
        ),
    }
}

/// Rules that are shown.
const RULES_MAX: usize = 100;

/// A table of the rules: how often each was called, how many calls found an edge, and how likely the next one does.
pub fn rules_text(rules: &[CalledRule]) -> String {
    let mut rows = vec![["rule", "calls", "found an edge", "the next finds one"].map(str::to_string)];
    for CalledRule { name, calls, found, discovery } in rules.iter().take(RULES_MAX) {
        rows.push([
            text::line(name).to_string(),
            calls.to_string(),
            found.to_string(),
            next_text(*discovery),
        ]);
    }
    let mut out = table(&rows);
    if rules.len() > RULES_MAX {
        out += &format!("\nand {}", counted((rules.len() - RULES_MAX) as u64, "more rule"));
    }
    out
}

/// How likely the next call of a rule finds an edge: `one call in 103 (60 to 180)`.
pub fn next_text(discovery: Option<Discovery>) -> String {
    let Some(discovery) = discovery else { return "-".to_string() };
    let (low, high) = discovery.interval();
    let each = |chance: f64| (1.0 / chance).round();
    match discovery.found {
        0 => format!("fewer than one call in {}", each(high)),
        _ => format!("one call in {} ({} to {})", each(discovery.chance()), each(high), each(low)),
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::Findings => "findings",
        End::Runs => "runs",
        End::Time => "time",
        End::Interrupt => "interrupt",
        End::Before => "before",
        End::Nondeterminism => "nondeterminism",
        End::Constant => "constant",
    }
}

/// `1 finding in 323 runs and 2604 steps; 4 of 4 edges, 1 checkpoint`, and below what the user should know.
pub(super) fn explored_text(summary: &Summary, explored: &Explored) -> String {
    let Explored { progress, edges, unmet, end, stalled_since, is_kept, is_fresh, features, ways, .. } =
        explored;
    let rejected = match progress.rejected {
        0 => String::new(),
        rejected => format!(" ({rejected} rejected)"),
    };
    let mut out = format!(
        "{} in {}{rejected} and {}; {} of {}, {}",
        counted(summary.findings.len() as u64, "finding"),
        counted(progress.runs, "run"),
        counted(progress.steps, "step"),
        progress.edges,
        counted(*edges as u64, "edge"),
        counted(progress.checkpoints, "checkpoint")
    );
    for property in unmet {
        out += &format!("\nnot seen in these runs: {} {}", property.kind, text::line(&property.name));
    }
    if summary.findings.is_empty() {
        out += &news_text(features, ways);
    }
    if let Some(discovery) = explored.discovery.filter(|_| (progress.edges as usize) < *edges) {
        out += &format!("\n{}", discovery_text(discovery));
    }
    if let Some(run) = stalled_since {
        out += &format!("\nstalled: no new edge since run {run}");
    }
    if *end == End::Before {
        out += "\nall of that was before: no run was left to be executed now";
    }
    if *end == End::Interrupt {
        out += "\ninterrupted";
        if *is_kept {
            out += &format!(": the same command{} resumes it", without_fresh(*is_fresh));
        }
    }
    out
}

/// What was new beside edges, and what the runs that found something began with.
fn news_text(features: &BTreeMap<FeatureKind, u64>, ways: &Ways) -> String {
    let others = features.iter().filter(|(kind, _)| **kind != FeatureKind::Edge);
    let others: Vec<String> = others.map(|(kind, count)| counted(*count, kind.name())).collect();
    if others.is_empty() {
        return String::new();
    }
    let found = ways.taken().filter(|(_, came_to)| came_to.edges + came_to.shown > 0);
    let found: Vec<String> =
        found.map(|(way, came_to)| format!("{} {}", came_to.edges + came_to.shown, way.name())).collect();
    format!("\nalso new: {}\nfound by runs: {}", others.join(", "), found.join(", "))
}

pub(super) fn checked_json(summary: &Summary, checked: &CheckedTarget) -> Json {
    let CheckedTarget { census, limit, warning, findings, unmet, compared, seconds, is_kept, .. } = checked;
    let rules = checked.rules.iter().map(|(name, rule)| {
        let RuleCover { enabled, taken, states, depth } = rule;
        json!({ "rule": name, "states": enabled, "calls": taken, "new": states, "depth": depth })
    });
    let first = checked.first.iter().map(|((kind, name), (reached, held))| {
        json!({ "kind": kind, "name": name, "reached": reached, "held": held })
    });
    json!({
        "rules": rules.collect::<Vec<_>>(), "properties": first.collect::<Vec<_>>(),
        "verdict": verdict_name(summary), "limit": limit.as_ref().map(|(limit, _)| limit.to_string()),
        "exit": summary.verdict.exit_code(), "findings": summary.findings.len().max(*findings), "unmet": unmet_json(unmet),
        "left_out": checked.left_out, "saved": saved_json(&summary.saved), "runs": census.runs, "rejected": census.rejected,
        "states": census.states, "pruned": census.pruned, "steps": census.steps, "depth": census.depth,
        "choices": census.choices, "compared": compared, "seconds": seconds, "warning": warning, "kept": is_kept,
        "leftover": checked.leftover.as_ref().map(|Leftover { factor, states, variables, unnamed }| json!({
            "factor": factor, "states": states, "variables": variables, "unnamed_bytes": unnamed,
        })),
    })
}

/// What a check established, whatever its exit code says beside.
fn verdict_name(summary: &Summary) -> &'static str {
    match summary.verdict {
        Verdict::Passed => "holds",
        _ if !summary.findings.is_empty() => "fails",
        Verdict::Found => "fails",
        Verdict::Unknown | Verdict::Nondeterministic | Verdict::Interrupted => "unknown",
    }
}

/// `holds: 36 runs, 20 states, 11 pruned, 6 steps deep, 58 choices (states compared by 128-bit hash)`, with why it
/// is no other verdict before, and what was not seen below.
pub(super) fn checked_text(summary: &Summary, checked: &CheckedTarget) -> String {
    let CheckedTarget { limit, warning, census, findings, unmet, compared, is_kept, is_fresh, .. } = checked;
    let name = verdict_name(summary);
    let mut why = Vec::new();
    match (*findings, summary.findings.len()) {
        (0, 0) => {}
        // What was found before still fails, and this check did not come to it.
        (0, saved) => why.push(counted(saved as u64, "saved finding")),
        (found, told) => why.push(counted(told.max(found) as u64, "finding")),
    }
    why.extend(limit.iter().map(|(_, text)| text.clone()));
    why.extend(warning.map(str::to_string));
    let mut counts = Vec::new();
    // Where every path leads to a known state none ends.
    if census.runs > 0 || compared.is_none() {
        counts.push(counted(census.runs, "run"));
    }
    if compared.is_some() {
        counts.push(counted(census.states, "state"));
        counts.push(format!("{} pruned", census.pruned));
    }
    counts.push(format!("{} deep", counted(census.depth.into(), "step")));
    counts.push(counted(census.choices, "choice"));
    why.push(counts.join(", "));
    let mut out = format!("{name}: {}", why.join("; "));
    if let Some(compared) = compared {
        out += &format!(" (states compared by {compared})");
    }
    for property in unmet {
        let seen = match limit {
            Some((Limit::Reduction, _)) => "not seen with --reduce",
            Some(_) => "not seen so far",
            None if name == "unknown" => "not seen so far",
            None => "never seen",
        };
        out += &format!("\n{seen}: {} {}", property.kind, text::line(&property.name));
    }
    if warning.is_none() {
        out += &covered_text(checked, name == "holds");
    }
    if !checked.left_out.is_empty() {
        out += &format!(
            "\nnever called, since neither names nor signatures make them rules: {}",
            text::Few(&checked.left_out)
        );
    }
    out += &checked.leftover.as_ref().map(leftover_text).unwrap_or_default();
    out += &checked.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    if *is_kept {
        let without = without_fresh(*is_fresh);
        let more = if matches!(limit, Some((Limit::Memory, _))) { " with a larger --memory" } else { "" };
        out += &format!("\nthe same command{without}{more} goes on from here");
    }
    out
}

/// What the command is to leave out that goes on with a campaign.
fn without_fresh(is_fresh: bool) -> &'static str {
    if is_fresh { " without --fresh" } else { "" }
}

/// Variables that are named in a hint.
const VARIABLES_MAX: usize = 4;

/// What makes more states than there need be, and what to do.
fn leftover_text(leftover: &Leftover) -> String {
    let Leftover { factor, states, variables, unnamed } = leftover;
    let mut places: Vec<String> =
        variables.iter().take(VARIABLES_MAX).map(|name| format!("`{}`", text::line(name))).collect();
    if variables.len() > VARIABLES_MAX {
        places.push(counted((variables.len() - VARIABLES_MAX) as u64, "more variable"));
    }
    if *unnamed > 0 {
        places.push(format!("{unnamed} bytes of no variable, as on the heap"));
    }
    format!(
        "\nhint: many states differ only in what is left over in memory: of the first {states}, {factor:.1} times as many as otherwise. \
         It is in {}.\n      To compare states by what they hold, derive `State` or `Hash` for the harness, or export `state`.",
        places.join(", ")
    )
}

/// The rules that were never called, or a table of all, and of properties.
fn covered_text(checked: &CheckedTarget, is_complete: bool) -> String {
    let mut out = String::new();
    if !checked.shows_coverage {
        for (name, rule) in checked.rules.iter().filter(|(_, rule)| rule.taken == 0) {
            let what = match (rule.enabled, is_complete) {
                (0, true) => "never called",
                (0, false) => "not called so far",
                (_, true) => "always rejected",
                (_, false) => "rejected so far",
            };
            out += &format!("\n{what}: {}", text::line(name));
        }
        return out;
    }
    let depth = |depth: Option<u32>| depth.map_or("-".to_string(), |depth| depth.to_string());
    let mut rows = vec![["rule", "states", "calls", "new states", "depth"].map(str::to_string)];
    for (name, RuleCover { enabled, taken, states, depth: first }) in &checked.rules {
        let counts = [*enabled, *taken, *states].map(|count| count.to_string());
        let [enabled, taken, states] = counts;
        rows.push([text::line(name).to_string(), enabled, taken, states, depth(*first)]);
    }
    out += &table(&rows);
    if !checked.first.is_empty() {
        let mut rows = vec![["property", "reached at", "held at"].map(str::to_string)];
        for ((kind, name), (reached, held)) in &checked.first {
            rows.push([format!("{kind} {}", text::line(name)), reached.to_string(), depth(*held)]);
        }
        out += &table(&rows);
    }
    out
}

/// Characters that the first column is wide, at most: what stands right of a name that is longer is further right.
const NAME_WIDTH_MAX: usize = 60;

/// Rows below one another, the first column left and the others right, after an empty line.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = "\n".to_string();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<0$}", (*width).min(NAME_WIDTH_MAX)),
            _ => format!("{cell:>width$}"),
        });
        out += &format!("\n{}", cells.collect::<Vec<_>>().join("  "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Census, First};
    use crate::property::{Property, PropertyKind};
    use crate::session::JobResult;

    fn check(verdict: Verdict, checked: &CheckedTarget, expected: &str) {
        let result = JobResult::Checked(Box::new(checked.clone()));
        let summary = Summary { verdict, findings: Vec::new(), saved: Vec::new(), result };
        assert_eq!(checked_text(&summary, checked), expected);
    }

    #[test]
    fn of_each_rule_is_said_what_its_next_call_may_find() {
        let rule = |name: &str, calls, found, discovery| CalledRule {
            name: name.to_string(),
            calls,
            found,
            discovery,
        };
        let discovery = |runs, found| Some(Discovery { runs, found });
        let rules = [
            rule("open\u{202e}", 50, 1, None),
            rule("close", 200, 9, discovery(100, 0)),
            rule("transfer", 1000, 40, discovery(500, 4)),
        ];
        let expected = "\n\n\
            rule          calls  found an edge           the next finds one\n\
            open\\u{202e}     50              1                            -\n\
            close           200              9    fewer than one call in 27\n\
            transfer       1000             40  one call in 125 (49 to 321)";
        assert_eq!(rules_text(&rules), expected);
        let many = vec![rule("a", 0, 0, None); 102];
        assert!(rules_text(&many).ends_with("\nand 2 more rules"));
    }

    #[test]
    fn a_verdict_says_what_was_counted_and_why_it_is_no_other() {
        let census =
            Census { runs: 36, rejected: 0, states: 20, pruned: 11, steps: 30, choices: 58, depth: 6 };
        let holds = CheckedTarget {
            census,
            limit: None,
            warning: None,
            findings: 0,
            unmet: Vec::new(),
            compared: Some("128-bit hash".to_string()),
            seconds: 0.0,
            is_kept: false,
            is_fresh: false,
            rules: Vec::new(),
            left_out: Vec::new(),
            first: First::new(),
            shows_coverage: false,
            leftover: None,
            hint: None,
        };
        let counts =
            "36 runs, 20 states, 11 pruned, 6 steps deep, 58 choices (states compared by 128-bit hash)";
        check(Verdict::Passed, &holds, &format!("holds: {counts}"));
        let variables = (1..=5).map(|number| format!("v.{number}")).collect();
        let leftover = Some(Leftover { factor: 2.345, states: 1024, variables, unnamed: 8 });
        let hint = format!(
            "holds: {counts}\nhint: many states differ only in what is left over in memory: of the first 1024, 2.3 times as many \
             as otherwise. It is in `v.1`, `v.2`, `v.3`, `v.4`, 1 more variable, 8 bytes of no variable, as on the heap.\n      \
             To compare states by what they hold, derive `State` or `Hash` for the harness, or export `state`."
        );
        check(Verdict::Passed, &CheckedTarget { leftover, ..holds.clone() }, &hint);
        let hinted = CheckedTarget { hint: Some("do it"), ..holds.clone() };
        check(Verdict::Passed, &hinted, &format!("holds: {counts}\nhint: do it"));
        let left_out: Vec<String> = ["a\x1b", "b", "c", "d", "e"].map(String::from).into();
        let told = format!(
            "holds: {counts}\nnever called, since neither names nor signatures make them rules: `a\\u{{1b}}`, `b`, `c`, `d` and 1 more"
        );
        check(Verdict::Passed, &CheckedTarget { left_out, ..holds.clone() }, &told);
        let vacuous = CheckedTarget { warning: Some("nothing was checked"), compared: None, ..holds.clone() };
        check(Verdict::Passed, &vacuous, "holds: nothing was checked; 36 runs, 6 steps deep, 58 choices");
        let property =
            Property { kind: PropertyKind::Sometimes, name: "full\x1b".into(), reached: 1, held: 0 };
        let limit = Some((Limit::Steps, "the bound of 5 steps was reached".to_string()));
        let unknown = CheckedTarget { limit, unmet: vec![property], compared: None, ..holds };
        check(
            Verdict::Unknown,
            &unknown,
            "unknown: the bound of 5 steps was reached; 36 runs, 6 steps deep, 58 choices\n\
             not seen so far: sometimes full\\u{1b}",
        );
    }
}
