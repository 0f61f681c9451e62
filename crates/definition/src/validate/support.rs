//! Checks of single values that many keys share.

use std::time::Duration;

use crate::raw::values::{Period, Size, text_of};
use crate::scope::Scope;
use crate::values::{self, PERIOD_MAX};

/// Reads a period, or returns the default if it is missing.
pub(super) fn period(scope: Scope<'_>, raw: Option<&Period>, default: Duration) -> Duration {
    let Some(raw) = raw else {
        return default;
    };
    values::period(&text_of(&raw.0)).unwrap_or_else(|| {
        scope
            .error("value", format!("invalid duration `{}`", text_of(&raw.0)))
            .expected(format!("a duration of at most {}", values::period_text(PERIOD_MAX)))
            .report();
        default
    })
}

/// Reads a period, which must be longer than zero.
pub(super) fn positive_period(scope: Scope<'_>, raw: Option<&Period>, default: Duration) -> Duration {
    let found = period(scope, raw, default);
    if found.is_zero() {
        scope
            .error("value", "a period of zero would never let anything happen")
            .expected("a duration longer than 0")
            .report();
    }
    found
}

/// Reads a size, in bytes.
pub(crate) fn size(scope: Scope<'_>, raw: Option<&Size>) -> Option<u64> {
    let text = text_of(&raw?.0);
    let found = values::size(&text);
    if found.is_none() {
        scope
            .error("value", format!("invalid size `{text}`"))
            .expected("a size such as `512m`, of at most 64 TiB")
            .report();
    }
    found
}

/// Reads a size in bytes, which must not be zero.
pub(super) fn positive_size(scope: Scope<'_>, raw: Option<&Size>) -> Option<u64> {
    let found = size(scope, raw);
    if found == Some(0) {
        scope.error("value", "nothing is 0 bytes large").expected("a size such as `72g`").report();
    }
    found
}

/// Reports a text that is empty or consists of white space.
pub(super) fn filled(scope: Scope<'_>, text: &str, what: &str) {
    if text.trim().is_empty() {
        scope.error("value", format!("{what} is empty")).report();
    }
}

/// Maximum length of a title or name, in characters.
const SHOWN_MAX: usize = 200;

/// Checks a text that tables show on one line.
pub(super) fn one_line(scope: Scope<'_>, text: &str, what: &str) {
    if text.chars().any(char::is_control) || text.chars().count() > SHOWN_MAX {
        scope
            .error("value", format!("{what} does not fit one line"))
            .expected(format!("at most {SHOWN_MAX} characters without line breaks"))
            .report();
    }
}

/// Checks a key that becomes a name in the API, such as that of an account or a database.
pub(super) fn key_name(scope: Scope<'_>, name: &str, what: &str) {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_fine) {
        scope
            .key_error("name", format!("invalid name `{}` for {what}", crate::tree::excerpt(name)))
            .expected("1 to 40 letters, digits, `-`, `_` and `.`")
            .report();
    }
}

/// Checks that a command names its program and has no NUL characters.
pub(super) fn command(scope: Scope<'_>, words: &[String]) {
    if words.first().is_some_and(|program| program.is_empty()) {
        scope.index(0).error("value", "the command names no program").report();
    }
    for (index, word) in words.iter().enumerate() {
        if word.contains('\0') {
            scope.index(index).error("value", "a command cannot carry a NUL character").report();
        }
    }
}
