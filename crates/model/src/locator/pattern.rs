//! Patterns in which `*` stands for any text.

/// Whether a text matches the pattern.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    // The earliest match of each piece leaves the most room for the pieces after it.
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text) in [
            ("/a", "/a"),
            ("*", ""),
            ("/a/*", "/a/"),
            ("/a/*/c", "/a/b/x/c"),
            ("*ab*ab", "xababab"),
            ("/*?q=*&r=1", "/s?q=2&r=1"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("/a", "/ab"), ("/a/*", "/a"), ("*ab*ab", "ab"), ("a*a", "a"), ("", "x")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
