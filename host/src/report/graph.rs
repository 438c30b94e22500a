//! The graph of states that a check met, for other tools.

use std::fmt::Write as _;

use serde_json::json;

use crate::check::{Picture, Step, To};
use crate::text;
use crate::trace::Action;

/// As Graphviz reads it. A step is named by `name`; where it fails it leads to a node of its own.
pub fn dot(picture: &Picture, name: impl Fn(Action) -> String) -> String {
    let mut out = "digraph states {\n  node [shape=circle];\n".to_string();
    for state in 0..picture.depths.len() as u32 {
        let look = match (state, fails(picture, state)) {
            (_, true) => " [color=red]",
            (0, _) => " [shape=doublecircle]",
            _ => "",
        };
        _ = writeln!(out, "  {state}{look};");
    }
    for (number, step) in picture.steps.iter().enumerate() {
        let to = match step.to {
            To::State(state) => state.to_string(),
            To::End => format!("end{number}"),
            To::Failure => format!("failure{number}"),
        };
        match step.to {
            To::State(_) => {}
            To::End => _ = writeln!(out, "  {to} [shape=point];"),
            To::Failure => _ = writeln!(out, "  {to} [shape=octagon, color=red, label=\"fails\"];"),
        }
        _ = writeln!(out, "  {} -> {to} [label=\"{}\"];", step.from, escaped(&label(step, &name)));
    }
    out + "}\n"
}

/// `{"states": [{"depth": 0, "fails": false}, …], "steps": [{"from": 0, "to": 1, "step": "rule inc", "values": []}, …]}`; a step
/// that leads to no state leads to `"end"` or `"failure"`.
pub fn json(picture: &Picture, name: impl Fn(Action) -> String) -> String {
    let states = (0..).zip(&picture.depths);
    let states: Vec<_> =
        states.map(|(state, depth)| json!({ "depth": depth, "fails": fails(picture, state) })).collect();
    let to = |to| match to {
        To::State(state) => json!(state),
        To::End => json!("end"),
        To::Failure => json!("failure"),
    };
    let steps = picture.steps.iter().map(|step| {
        let values: Vec<String> = step.values.iter().map(ToString::to_string).collect();
        json!({ "from": step.from, "to": to(step.to), "step": name(step.action), "values": values })
    });
    let graph = json!({ "states": states, "steps": steps.collect::<Vec<_>>() }).to_string();
    text::json(&graph).into_owned() + "\n"
}

fn fails(picture: &Picture, state: u32) -> bool {
    picture.failing.binary_search(&state).is_ok()
}

/// `withdraw 3, true`.
fn label(step: &Step, name: impl Fn(Action) -> String) -> String {
    let name = name(step.action);
    let name = name.strip_prefix("rule ").unwrap_or(&name);
    let values: Vec<String> = step.values.iter().map(ToString::to_string).collect();
    format!("{name} {}", values.join(", ")).trim_end().to_string()
}

/// Between quotes of a dot file.
fn escaped(label: &str) -> String {
    text::line(label).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Value;

    #[test]
    fn names_of_a_guest_stay_between_their_quotes() {
        let step = |to| Step { from: 0, to, action: Action::Rule(0), values: vec![Value::Integer(-1)] };
        let steps = vec![step(To::State(1)), step(To::End), step(To::Failure)];
        let picture = Picture { depths: vec![0, 1], steps, failing: vec![1] };
        let name = |_| "rule a\"];\n\\\x1b\u{202e}".to_string();
        let expected = r#"digraph states {
  node [shape=circle];
  0 [shape=doublecircle];
  1 [color=red];
  0 -> 1 [label="a\"];\\n\\\\u{1b}\\u{202e} -1"];
  end1 [shape=point];
  0 -> end1 [label="a\"];\\n\\\\u{1b}\\u{202e} -1"];
  failure2 [shape=octagon, color=red, label="fails"];
  0 -> failure2 [label="a\"];\\n\\\\u{1b}\\u{202e} -1"];
}
"#;
        assert_eq!(dot(&picture, name), expected);
        let text = json(&picture, name);
        assert!(text.is_ascii());
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read["steps"][2],
            json!({ "from": 0, "to": "failure", "step": name(Action::Setup), "values": ["-1"] })
        );
        assert_eq!(read["states"], json!([{ "depth": 0, "fails": false }, { "depth": 1, "fails": true }]));
    }
}
