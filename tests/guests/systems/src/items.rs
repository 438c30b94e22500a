//! Lists of numbers and texts, written as text.

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Number(f64),
    Text(String),
}

/// Numbers as they are, large ones with an exponent; texts in quotes, which they do not contain.
pub(crate) fn encode(items: &[Item]) -> String {
    let items = items.iter().map(|item| match item {
        Item::Number(number) if number.abs() >= 1e6 => format!("{number:e}"),
        Item::Number(number) => format!("{number}"),
        Item::Text(text) => format!("\"{text}\""),
    });
    items.collect::<Vec<_>>().join(",")
}

/// The items, if this is a list of them.
pub(crate) fn decode(mut text: &str) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut has_exponent = false;
    while !text.is_empty() {
        let end = match text.strip_prefix('"') {
            // The bug: after a number with an exponent, a text ends as numbers do.
            Some(quoted) if !has_exponent => quoted.find('"')? + 2,
            _ => text.find(',').unwrap_or(text.len()),
        };
        let (item, rest) = text.split_at(end);
        has_exponent = item.contains('e') && !item.starts_with('"');
        items.push(match item.strip_prefix('"') {
            Some(quoted) => Item::Text(quoted.strip_suffix('"')?.into()),
            None => Item::Number(item.parse().ok()?),
        });
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(items)
}
