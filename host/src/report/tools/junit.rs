//! JUnit's XML: a suite for the session, with a test for the search as such, one for each finding, and one for each saved trace that
//! passes now.

use anyhow::Result;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Heard, title};
use crate::report::end;
use crate::session::{Fate, Finding, JobResult, Saved, Summary, Verdict};
use crate::text;

/// The file.
pub(super) fn text(heard: &Heard) -> Result<String> {
    let target = text::line(&heard.target);
    let target = text::printable(&target);
    let mut suite = TestSuite::new(format!("{} {target}", heard.verb()));
    let mut add = |name: &str, status: TestCaseStatus, output: Option<&str>| {
        let mut case = TestCase::new(text::printable(name).as_ref(), status);
        case.set_classname(&*target);
        if let Some(output) = output {
            case.set_system_out(output);
        }
        suite.add_test_case(case);
    };
    add(heard.verb(), whole(heard), heard.summary.as_ref().map(summary).as_deref());
    for finding in &heard.findings {
        add(&format!("{} ({})", title(finding), finding.failure.id()), failed(finding), None);
    }
    for why in &heard.flaky {
        add("flaky", failure(NonSuccessKind::Error, "nondeterminism", why), None);
    }
    for saved in heard.summary.iter().flat_map(|summary| &summary.saved).filter(|saved| is_fixed(saved)) {
        let path = saved.path.display().to_string();
        add(&format!("saved {}", text::line(&path)), TestCaseStatus::success(), None);
    }
    let mut report = Report::new("spelunk");
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}

fn is_fixed(saved: &Saved) -> bool {
    matches!(saved.fate, Fate::Fixed)
}

/// What the summary on the terminal says.
fn summary(summary: &Summary) -> String {
    let text = match &summary.result {
        JobResult::Explored(explored) => end::explored_text(summary, explored),
        JobResult::Checked(checked) => end::checked_text(summary, checked),
        JobResult::NotRepeated { step, name, why } => {
            format!("step {step} ({}) did not do what it did before: {why}", text::line(name))
        }
    };
    text::printable(&text).into_owned()
}

/// Of the search as such: findings are tests of their own, so it fails only where there is something else to say.
fn whole(heard: &Heard) -> TestCaseStatus {
    if let Some(error) = &heard.error {
        return failure(NonSuccessKind::Error, "error", error);
    }
    let Some(summary) = &heard.summary else {
        return failure(NonSuccessKind::Error, "error", "it did not come to its end");
    };
    let text = self::summary(summary);
    match summary.verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Found if heard.findings.is_empty() => failure(NonSuccessKind::Failure, "unmet", &text),
        Verdict::Found => TestCaseStatus::success(),
        Verdict::Unknown => failure(NonSuccessKind::Error, "unknown", &text),
        Verdict::Nondeterministic => failure(NonSuccessKind::Error, "nondeterminism", &text),
        Verdict::Interrupted => failure(NonSuccessKind::Error, "interrupted", &text),
    }
}

fn failed(finding: &Finding) -> TestCaseStatus {
    let mut status =
        failure(NonSuccessKind::Failure, &finding.failure.kind.to_string(), &finding.failure.to_string());
    status.set_description(finding.to_string());
    status
}

/// A test that did not pass: why, the first line in short.
fn failure(kind: NonSuccessKind, of: &str, why: &str) -> TestCaseStatus {
    let why = text::printable(why);
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(of);
    status.set_message(why.lines().next().unwrap_or_default());
    status.set_description(&*why);
    status
}
