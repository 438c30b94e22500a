//! A campaign as one page of HTML: what was found, how the search went, and what it reached.
//!
//! The page is one file that opens from disk. Its markup, style and script never change; what is known stands in it as JSON, which
//! the script shows as text and never as markup. What a guest says is escaped twice, as a terminal needs it, so that it is seen, and so
//! that no JSON ends the element it stands in. The page may load nothing and run no other script.

mod data;
mod lineage;
mod source;
mod told;

use serde_json::Value as Json;

pub use source::{Source, is_there, reached};

use crate::budget::Budget;
use crate::campaign::Campaign;
use crate::machine::{Machine, Snapshot};
use crate::search::Knowledge;
use crate::session::Guest;
use crate::text;

const MARKUP: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 4] =
    [include_str!("page.js"), include_str!("tree.js"), include_str!("source.js"), include_str!("start.js")];

/// Bytes that a page has, at most, where what is known beside the source leaves room for any of that.
const BYTES_MAX: usize = 10 << 20;

/// The page of a campaign of this guest, as far as the budget lasts: what there is no time for is told in fewer words.
///
/// # Errors
/// The campaign's file is gone.
pub fn page(
    guest: &Guest<'_>,
    campaign: &Campaign,
    machine: &mut Machine,
    known: &Knowledge<Snapshot>,
    source: &Source<'_>,
    budget: &Budget,
) -> anyhow::Result<String> {
    let mut data = data::of(guest, campaign, machine, known, budget)?;
    let places: Vec<String> = places(&data).map(str::to_string).collect();
    let own: usize = MARKUP.len() + STYLE.len() + SCRIPTS.map(str::len).iter().sum::<usize>();
    let room = BYTES_MAX.saturating_sub(own + embedded(&data).len());
    data["source"] = source::of(source, (&places, budget), room);
    Ok(assembled(&data))
}

/// Where the findings are that are shown.
fn places(data: &Json) -> impl Iterator<Item = &str> {
    data["findings"].as_array().into_iter().flatten().filter_map(|finding| finding["place"].as_str())
}

/// The page with this data.
fn assembled(data: &Json) -> String {
    let data = embedded(data);
    // Nobody can write it into the page before, since it follows from all that is in it.
    let nonce = blake3::hash(data.as_bytes()).to_hex()[..32].to_string();
    let (before, after) = MARKUP.split_once("@DATA@").expect("the markup has a place for the data");
    let page = |text: &str| {
        let text = text.replace("@NONCE@", &nonce).replace("@STYLE@", STYLE);
        text.replace("@SCRIPT@", &SCRIPTS.concat())
    };
    format!("{}{data}{}", page(before), page(after))
}

/// JSON that may stand in an element of a script.
fn embedded(data: &Json) -> String {
    let text = data.to_string();
    let mut escaped = String::with_capacity(text.len());
    for c in text::json(&text).chars() {
        match c {
            '<' | '>' | '&' => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_text_ends_the_data_or_begins_markup() {
        let hostile =
            "</script><script>alert(1)</script><!-- &amp; @STYLE@ @SCRIPT@ @NONCE@ \u{2028}\u{202e}";
        let data = json!({ hostile: [hostile] });
        let page = assembled(&data);
        let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
        let (held, after) = rest.split_once("</script>").unwrap();
        assert!(!held.contains(['<', '>', '&', '\u{2028}', '\u{202e}']));
        assert_eq!(serde_json::from_str::<Json>(held).unwrap(), data);
        assert!(held.contains("@STYLE@ @SCRIPT@ @NONCE@"), "what a guest says is no place of ours");
        assert!(!page.contains("alert(1)</script>") && !after.contains("@SCRIPT@"));
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = assembled(&json!({}));
        assert!(page.contains("default-src 'none'; style-src 'nonce-"));
        for word in
            ["http:", "src=\"", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
        {
            // The namespace of SVG is no address that is loaded.
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(word), "{word}");
        }
    }
}
