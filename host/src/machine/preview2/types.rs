//! The types that the functions have, as WIT writes them. Those with names are written out before they are compared.

/// Types of the specification with names, and what they are.
const TYPES: [(&str, &str); 16] = [
    ("filesize", "u64"),
    ("link-count", "u64"),
    ("instant", "u64"),
    ("duration", "u64"),
    ("datetime", "record { seconds: u64, nanoseconds: u32 }"),
    ("timezone-display", "record { utc-offset: s32, name: string, in-daylight-saving-time: bool }"),
    ("stream-error", "variant { last-operation-failed(error), closed }"),
    (
        "descriptor-type",
        "enum { unknown, block-device, character-device, directory, fifo, symbolic-link, regular-file, socket }",
    ),
    (
        "descriptor-flags",
        "flags { read, write, file-integrity-sync, data-integrity-sync, requested-write-sync, mutate-directory }",
    ),
    ("path-flags", "flags { symlink-follow }"),
    ("open-flags", "flags { create, directory, exclusive, truncate }"),
    (
        "descriptor-stat",
        "record { type: descriptor-type, link-count: link-count, size: filesize, data-access-timestamp: option<datetime>, \
         data-modification-timestamp: option<datetime>, status-change-timestamp: option<datetime> }",
    ),
    ("new-timestamp", "variant { no-change, now, timestamp(datetime) }"),
    ("directory-entry", "record { type: descriptor-type, name: string }"),
    (
        "error-code",
        "enum { access, would-block, already, bad-descriptor, busy, deadlock, quota, exist, file-too-large, \
         illegal-byte-sequence, in-progress, interrupted, invalid, io, is-directory, loop, too-many-links, message-size, \
         name-too-long, no-device, no-entry, no-lock, insufficient-memory, insufficient-space, not-directory, not-empty, \
         not-recoverable, unsupported, no-tty, no-such-device, overflow, not-permitted, pipe, read-only, invalid-seek, \
         text-file-busy, cross-device }",
    ),
    ("metadata-hash-value", "record { lower: u64, upper: u64 }"),
];

/// The type with all names of types replaced by what they are. What a colon follows is the name of a field.
pub(super) fn written_out(ty: &str) -> String {
    let mut text = String::new();
    let mut rest = ty;
    while !rest.is_empty() {
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        // An arrow is no name.
        let end = if rest.starts_with("->") { 0 } else { end };
        let (name, after) = rest.split_at(end);
        let known = TYPES.iter().find(|(known, _)| *known == name && !after.starts_with(':'));
        match known {
            Some((_, meaning)) => text += &written_out(meaning),
            None => text += name,
        }
        let mark = if after.starts_with("->") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
        text += &after[..mark];
        rest = &after[mark..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::written_out;

    #[test]
    fn names_of_types_are_written_out_and_no_others() {
        let check = |ty: &str, expected: &str| assert_eq!(written_out(ty), expected);
        check("func()", "func()");
        check("func(filesize: filesize) -> result", "func(filesize: u64) -> result");
        check(
            "func(path-flags: path-flags, a: borrow<error>) -> result<_, stream-error>",
            "func(path-flags: flags { symlink-follow }, a: borrow<error>) -> result<_, variant { last-operation-failed(error), \
             closed }>",
        );
    }
}
