//! `markdown`: normalises line ends, blanks, markers and broken links. Upper and lower case are kept.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};
use serde_json::Value;

use super::Normal;
use crate::text::python;
use crate::webarena_verified::failure::ReadingFailure;

pub(super) fn normalise(value: &Value) -> Result<Normal, ReadingFailure> {
    static STEPS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"(?m)[ \t]+$", ""),
            (r"\n{3,}", "\n\n"),
            (r"(?m)^(\s*)(#{1,6})[ \t]+", "${1}${2} "),
            (r"(?m)^(\s*)[*+][ \t]+", "${1}- "),
            (r"(?m)^[ \t]+(-)", "  ${1}"),
            (r"\[([^\]]*?)\n\s*([^\]]*?)\](\([^)]+\))", "[${1} ${2}]${3}"),
        ]
        .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern of ours"), with))
        .into()
    });
    static LINK_TEXT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]+)\]").expect("a pattern of ours"));
    static LINK_URL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\(\s*([^)]+?)\s*\)").expect("a pattern of ours"));
    let text = value.as_str().map(python::strip).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| ReadingFailure::raised(format!("{value} is not Markdown")))?;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = STEPS.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned());
    let text = LINK_TEXT.replace_all(&text, |found: &Captures<'_, str>| {
        format!("[{}]", found[1].split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let text = LINK_URL.replace_all(&text, "(${1})");
    Ok(Normal::Text(python::strip(&text).to_owned()))
}
