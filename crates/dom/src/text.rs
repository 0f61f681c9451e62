//! Characters as Python's `re` and `str` class them.

/// `\s` of a pattern for texts.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Lowers ASCII letters only.
pub(crate) fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}
