//! A trace, as `spelunk explore` saves it.

use super::Misfit;
use super::host::Value;
use super::json::Json;

/// The newest format that is read.
const VERSION: u32 = 1;

pub(super) struct Trace {
    /// Whether it ends with a failure.
    pub(super) fails: bool,
    pub(super) steps: Vec<Step>,
}

pub(super) struct Step {
    pub(super) name: String,
    pub(super) choices: Vec<Value>,
}

impl Trace {
    /// # Errors
    /// A text that is no trace, or one of what only Spelunk can replay.
    pub(super) fn parse(text: &str) -> Result<Trace, Misfit> {
        let json = Json::parse(text).map_err(|why| Misfit(format!("this is no trace: {why}")))?;
        let version: Option<u32> = json.get("spelunk").and_then(Json::number);
        match version {
            Some(1..=VERSION) => {}
            Some(version) => {
                return Err(Misfit(format!(
                    "the trace has version {version} of the format, and this SDK reads up to {VERSION}: use a newer one"
                )));
            }
            None => return Err(Misfit("this is no trace: it has no `spelunk` with a version".into())),
        }
        refuse_what_is_not_native(&json)?;
        let steps = json.get("steps").and_then(Json::list);
        let steps = steps.ok_or_else(|| Misfit("this is no trace: it has no `steps`".into()))?;
        let fails = !matches!(json.get("failure"), None | Some(Json::Null));
        let steps: Result<Vec<Step>, Misfit> =
            (1..).zip(steps).map(|(number, step)| read(number, step)).collect();
        Ok(Trace { fails, steps: steps? })
    }
}

/// What Spelunk gives a guest beside the answers to its questions.
fn refuse_what_is_not_native(json: &Json) -> Result<(), Misfit> {
    let environment = json.get("environment");
    for (member, what) in [
        ("args", "arguments (--arg)"),
        ("args_drawn_max", "drawn arguments (--draw-args)"),
        ("vars", "variables (--env)"),
        ("stdin", "standard input (--stdin)"),
        ("faults", "faults in calls to the system (--faults)"),
        ("entry", "an entry (--entry)"),
        ("errors_that_fail", "functions of a component (--error-is-failure)"),
    ] {
        if environment.and_then(|environment| environment.get(member)).is_some() {
            return Err(Misfit(format!(
                "the trace was recorded with {what}, which only `spelunk replay` has: replay it there"
            )));
        }
    }
    let stubs = json.get("limits").and_then(|limits| limits.get("stub_imports"));
    if stubs.and_then(Json::text) == Some("drawn") {
        return Err(Misfit(
            "the trace was recorded with imports that return drawn values (--stub-imports), which only `spelunk replay` \
             has: replay it there"
                .into(),
        ));
    }
    Ok(())
}

fn read(number: usize, step: &Json) -> Result<Step, Misfit> {
    let name = step.get("step").and_then(Json::text);
    let name = name.ok_or_else(|| Misfit(format!("step {number} of the trace has no `step`")))?;
    let choices = step.get("choices").and_then(Json::list).unwrap_or_default();
    let choices: Option<Vec<Value>> = choices.iter().map(choice).collect();
    let choices = choices.ok_or_else(|| Misfit::at(number, name, "a choice of it cannot be read"))?;
    Ok(Step { name: name.to_string(), choices })
}

fn choice(json: &Json) -> Option<Value> {
    let Json::Object(members) = json else { return None };
    let [(kind, choice)] = members.as_slice() else { return None };
    let value = choice.get("value")?;
    Some(match (kind.as_str(), value) {
        ("boolean", Json::Boolean(value)) => Value::Boolean(*value),
        ("index", value) => Value::Index(value.number()?),
        ("integer", value) => Value::Integer(value.number()?),
        ("unsigned", value) => Value::Unsigned(value.number()?),
        ("float", value) => {
            Value::Float(f64::from_bits(u64::from_str_radix(digits(value, Some(16))?, 16).ok()?))
        }
        ("bytes", value) => {
            let digits = digits(value, None)?;
            let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            Value::Bytes((0..digits.len()).step_by(2).map(byte).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Hexadecimal digits, so many.
fn digits(json: &Json, len: Option<usize>) -> Option<&str> {
    let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    json.text().filter(is_hex).filter(|text| len.is_none_or(|len| text.len() == len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Trace::parse(text).err().expect("it is refused").to_string()
    }

    #[test]
    fn each_kind_of_choice_is_read() {
        let text = r#"{ "spelunk": 1, "module": "0", "failure": null, "steps": [
            { "step": "setup", "seed": 18446744073709551615 },
            { "step": "rule a", "seed": 0, "choices": [
                {"boolean":{"value":true,"probability":0.5}}, {"index":{"value":2,"of":3}},
                {"integer":{"value":-7,"min":-9,"max":9,"simplest":0}},
                {"unsigned":{"value":18446744073709551615,"min":0,"max":18446744073709551615,"simplest":0}},
                {"float":{"value":"3fe0000000000000","min":"0000000000000000","max":"3ff0000000000000","nan":false,"infinite":false}},
                {"bytes":{"value":"00ff","min":0,"max":4}}
            ], "state": "0" } ] }"#;
        let trace = Trace::parse(text).unwrap();
        assert!(!trace.fails && trace.steps[0].choices.is_empty());
        let expected = [
            Value::Boolean(true),
            Value::Index(2),
            Value::Integer(-7),
            Value::Unsigned(u64::MAX),
            Value::Float(0.5),
            Value::Bytes(vec![0, 255]),
        ];
        assert_eq!(trace.steps[1].choices, expected);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(refused("{"), "this is no trace: line 1: a string is missing");
        assert_eq!(refused("[]"), "this is no trace: it has no `spelunk` with a version");
        assert_eq!(refused(r#"{"spelunk":1}"#), "this is no trace: it has no `steps`");
        assert_eq!(
            refused(r#"{"spelunk":2}"#),
            "the trace has version 2 of the format, and this SDK reads up to 1: use a newer one"
        );
        for choice in [
            "1",
            r#"{"index":{"value":-1,"of":3}}"#,
            r#"{"float":{"value":"3f"}}"#,
            r#"{"bytes":{"value":"0"}}"#,
            r#"{"bytes":{"value":"+1"}}"#,
            r#"{"boolean":{"value":1}}"#,
            r#"{"word":{"value":1}}"#,
        ] {
            let text = format!(r#"{{"spelunk":1,"steps":[{{"step":"rule a","choices":[{choice}]}}]}}"#);
            assert_eq!(
                refused(&text),
                "the trace does not fit: step 1 (`rule a`): a choice of it cannot be read"
            );
        }
    }

    #[test]
    fn what_only_spelunk_has_is_refused() {
        for (member, expected) in [
            (r#""environment":{"faults":["fs"]}"#, "faults in calls to the system (--faults)"),
            (r#""environment":{"stdin":"drawn"}"#, "standard input (--stdin)"),
            (r#""limits":{"stub_imports":"drawn"}"#, "imports that return drawn values (--stub-imports)"),
        ] {
            assert_eq!(
                refused(&format!(r#"{{"spelunk":1,{member},"steps":[]}}"#)),
                format!(
                    "the trace was recorded with {expected}, which only `spelunk replay` has: replay it there"
                )
            );
        }
    }
}
