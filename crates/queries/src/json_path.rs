//! JSONPaths of task files and clients. Their size is bounded before they are parsed, because the parser recurses into
//! brackets and tries several interpretations of each.

use serde_json_path::JsonPath;

use super::QueryError;

/// The maximum length of a path, in bytes.
const LENGTH_MAX: usize = 4096;

/// The maximum nesting depth of brackets of both kinds. Each level triples the parser's work.
const DEPTH_MAX: usize = 8;

/// Parses a path (RFC 9535).
///
/// Errors: the path is too long, nested too deep, or malformed.
pub fn parse(path: &str) -> Result<JsonPath, QueryError> {
    if path.len() > LENGTH_MAX {
        return Err(format!("it has {} bytes, and at most {LENGTH_MAX} are read", path.len()).into());
    }
    if depth(path) > DEPTH_MAX {
        return Err(format!("its brackets are nested more than {DEPTH_MAX} deep").into());
    }
    JsonPath::parse(path).map_err(|error| error.to_string().into())
}

/// Returns the nesting depth of the brackets outside of string literals.
fn depth(path: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                while chars.next().is_some_and(|inner| {
                    if inner == '\\' {
                        chars.next();
                    }
                    inner != c
                }) {}
            }
            '(' | '[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn paths_of_tasks_are_read() {
        let many = format!("${}", "['a']".repeat(200));
        for path in
            ["$.items[?@.id == 2].name", "$['((((((((((']", "$[?((@.a > 1 && @.b) || match(@.c, '[a-z]*'))]", &many]
        {
            parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        assert!(parse("$.[").is_err());
    }

    #[test]
    fn paths_that_are_nested_or_long_reach_no_parser() {
        let nested = |open: &str, close: &str, count: usize| {
            let text = format!("$[?{}@.a{}]", open.repeat(count), close.repeat(count));
            (parse(&text), text)
        };
        for (open, close) in
            [("(", ")"), ("!(", ")"), ("@[?", "]"), ("length(", ")"), ("(')'==", ")"), ("(", ""), ("count(@[?", "])")]
        {
            for count in 1..=DEPTH_MAX {
                let begun = Instant::now();
                let (_, text) = nested(open, close, count);
                assert!(begun.elapsed() < Duration::from_secs(5), "{text}");
            }
            let (refused, _) = nested(open, close, 1000);
            refused.expect_err("it is nested too deep");
        }
        assert!(parse(&format!("${}", "[".repeat(80_000))).is_err_and(|error| error.to_string().contains("at most")));
    }
}
