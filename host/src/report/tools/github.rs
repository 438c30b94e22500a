//! Annotations, as a workflow of GitHub reads them from what a command prints.

use super::title;
use crate::session::Finding;
use crate::text;

/// `::error file=…,line=…,title=…::message`, without a line break.
pub fn annotation(finding: &Finding) -> String {
    let mut properties = Vec::new();
    if let Some(excerpt) = &finding.excerpt {
        let file = excerpt.file.display().to_string();
        properties.push(format!("file={}", property(&file)));
        properties.push(format!("line={}", excerpt.line));
        properties.extend(excerpt.column.map(|column| format!("col={column}")));
    }
    properties.push(format!("title={}", property(&title(finding))));
    format!("::error {}::{}", properties.join(","), data(&finding.to_string()))
}

/// The text of a command: what ends it is escaped.
fn data(text: &str) -> String {
    text::printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which more ends.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
