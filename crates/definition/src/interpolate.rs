//! Compose's variables in values: `$VAR`, `${VAR}`, `${VAR:-default}`, `${VAR-default}`, `${VAR:?error}`,
//! `${VAR?error}`, `${VAR:+replacement}`, `${VAR+replacement}` and `$$` for a dollar sign.
//!
//! Values are replaced after the YAML has been parsed, so that a variable can never change a file's structure. Unlike
//! Compose, which warns and inserts an empty text, a variable without value and default is an error.

use super::problems::Problems;
use super::source::{Position, SourceFile, Span};
use super::tree::{DocumentNode, DocumentValue, Scalar};
use super::variables::DefinitionVariables;

/// Maximum nesting depth of defaults within defaults.
const DEPTH_MAX: usize = 10;

/// Maximum length of one interpolated value, in bytes.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// The reason why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterpolationFailure {
    /// Offset of the offending part within the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Replaces the variables in a text.
pub(crate) fn interpolate(text: &str, variables: &DefinitionVariables<'_>) -> Result<String, InterpolationFailure> {
    expand(text, 0, variables, 0)
}

/// Replaces the variables in all values of a document. Keys and top-level extensions stay unchanged.
pub(crate) fn interpolate_document(
    root: &mut DocumentNode,
    source: &SourceFile,
    variables: &DefinitionVariables<'_>,
    problems: &Problems,
) {
    if let DocumentValue::Mapping(entries) = &mut root.value {
        for entry in entries.iter_mut().filter(|entry| !entry.key.starts_with("x-")) {
            walk(&mut entry.value, source, variables, problems);
        }
    } else {
        walk(root, source, variables, problems);
    }
}

fn walk(node: &mut DocumentNode, source: &SourceFile, variables: &DefinitionVariables<'_>, problems: &Problems) {
    let span = node.span;
    match &mut node.value {
        DocumentValue::Sequence(items) => items.iter_mut().for_each(|item| walk(item, source, variables, problems)),
        DocumentValue::Mapping(entries) => {
            entries.iter_mut().for_each(|entry| walk(&mut entry.value, source, variables, problems))
        }
        DocumentValue::Scalar(scalar) if scalar.text.contains('$') => match interpolate(&scalar.text, variables) {
            Ok(text) => {
                // An empty variable yields an empty text, not a missing value.
                scalar.is_text |= text.is_empty();
                scalar.written = Some(std::mem::replace(&mut scalar.text, text));
            }
            Err(failure) => {
                let place = pinpoint(source, span, scalar, failure.offset);
                let draft = problems.at(source, place, failure.code, failure.message);
                draft.maybe_help(failure.help).report();
                problems.silence(source, span.start);
            }
        },
        DocumentValue::Scalar(_) => {}
    }
}

/// Returns the place of a `$` within a value if the file contains the value verbatim; otherwise the place of the value.
fn pinpoint(source: &SourceFile, span: Span, scalar: &Scalar, offset: usize) -> Span {
    let line = source.line(span.start.line);
    let in_line: String = line.chars().skip(span.start.column - 1).collect();
    let quote = usize::from(in_line.starts_with(['"', '\'']));
    if span.start.line != span.end.line || !in_line[quote..].starts_with(scalar.text.as_str()) {
        return span;
    }
    let before = scalar.text[..offset].chars().count();
    Span {
        start: Position { line: span.start.line, column: span.start.column + quote + before },
        end: Position { line: span.end.line, column: span.end.column - quote },
    }
}

fn expand(
    text: &str,
    base: usize,
    variables: &DefinitionVariables<'_>,
    depth: usize,
) -> Result<String, InterpolationFailure> {
    let fail = |offset: usize, code, message: String, help: Option<&str>| InterpolationFailure {
        offset: base + offset,
        code,
        message,
        help: help.map(str::to_owned),
    };
    if depth > DEPTH_MAX {
        let message = format!("defaults nest more than {DEPTH_MAX} levels deep");
        return Err(fail(0, "variable-syntax", message, None));
    }
    let mut out = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        out.push_str(&text[at..dollar]);
        let rest = &text[dollar + 1..];
        if rest.starts_with('$') {
            out.push('$');
            at = dollar + 2;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let Some(length) = closing_brace(inner) else {
                let message = "a `${` is never closed".to_owned();
                return Err(fail(dollar, "variable-syntax", message, Some("add the missing `}`")));
            };
            let expression = Expression { inner: &inner[..length], offset: base + dollar };
            out.push_str(&expression.evaluate(variables, depth)?);
            at = dollar + 2 + length + 1;
        } else {
            let length = name_length(rest);
            if length == 0 {
                let message = "a `$` must begin a variable, such as `$NAME` or `${NAME:-default}`".to_owned();
                let help = "write `$$` for a dollar sign";
                return Err(fail(dollar, "variable-syntax", message, Some(help)));
            }
            out.push_str(&value_of(&rest[..length], base + dollar, variables)?);
            at = dollar + 1 + length;
        }
        if out.len() > TEXT_MAX_BYTES {
            let message = format!("the value becomes longer than {TEXT_MAX_BYTES} bytes");
            return Err(fail(dollar, "too-large", message, None));
        }
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// The text between `${` and `}`.
struct Expression<'a> {
    inner: &'a str,
    /// Offset of the expression's `$` within the whole text.
    offset: usize,
}

impl Expression<'_> {
    fn evaluate(&self, variables: &DefinitionVariables<'_>, depth: usize) -> Result<String, InterpolationFailure> {
        let length = name_length(self.inner);
        let (name, operation) = self.inner.split_at(length);
        if name.is_empty() {
            return Err(self.fail(format!("`${{{}}}` names no variable", self.inner)));
        }
        if operation.is_empty() {
            return value_of(name, self.offset, variables);
        }
        // With a colon, an empty value counts as unset.
        let (empty_counts_as_unset, operation) = match operation.strip_prefix(':') {
            Some(operation) => (true, operation),
            None => (false, operation),
        };
        let mut characters = operation.chars();
        let operator = characters.next();
        let word = characters.as_str();
        let word_offset = self.offset + 2 + (self.inner.len() - word.len());
        let usable = |value: &String| !(empty_counts_as_unset && value.is_empty());
        match operator {
            Some('-') => match variables.look_up(name).filter(usable) {
                Some(value) => Ok(value),
                None => {
                    let value = expand(word, word_offset, variables, depth + 1)?;
                    variables.record_default(name, &value);
                    Ok(value)
                }
            },
            Some('?') => match variables.look_up(name).filter(usable) {
                Some(value) => Ok(value),
                None => {
                    let reason = expand(word, word_offset, variables, depth + 1)?;
                    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    Err(InterpolationFailure {
                        offset: self.offset,
                        code: "unset-variable",
                        message: format!("the variable `{name}` is required{reason}"),
                        help: Some(format!("set `{name}` in the shell or in `.env`")),
                    })
                }
            },
            Some('+') => match variables.look_up(name).filter(usable) {
                Some(_) => expand(word, word_offset, variables, depth + 1),
                None => Ok(String::new()),
            },
            _ => Err(self.fail(format!("invalid expression `${{{}}}`", self.inner))),
        }
    }

    fn fail(&self, message: String) -> InterpolationFailure {
        InterpolationFailure {
            offset: self.offset,
            code: "variable-syntax",
            message,
            help: Some("use `${NAME}`, `${NAME:-default}`, `${NAME:?error}` or `${NAME:+replacement}`".to_owned()),
        }
    }
}

fn value_of(name: &str, offset: usize, variables: &DefinitionVariables<'_>) -> Result<String, InterpolationFailure> {
    variables.look_up(name).ok_or_else(|| InterpolationFailure {
        offset,
        code: "unset-variable",
        message: format!("the variable `{name}` is not set"),
        help: Some(format!("set it in the shell or in `.env`, or write `${{{name}:-}}` if nothing is a good value")),
    })
}

/// Returns the length in bytes of the variable name at the beginning of a text.
fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Finds the brace that closes an expression, given the text after its `${`.
fn closing_brace(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (0, 1);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'$', Some(b'$')) => at += 1,
            (b'$', Some(b'{')) => {
                open += 1;
                at += 1;
            }
            (b'}', _) => {
                open -= 1;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(text: &str) -> Result<String, InterpolationFailure> {
        let given = BTreeMap::from([("SET".to_owned(), "value".to_owned()), ("EMPTY".to_owned(), String::new())]);
        interpolate(text, &DefinitionVariables::new(&given, BTreeMap::new()))
    }

    #[test]
    fn every_form_of_compose_is_understood() {
        let cases = [
            ("plain", "plain"),
            ("$SET!", "value!"),
            ("a${SET}b", "avalueb"),
            ("$$SET $${SET}", "$SET ${SET}"),
            ("${SET:-x}", "value"),
            ("${NONE:-x}", "x"),
            ("${NONE-x}", "x"),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY-x}", ""),
            ("${NONE:-}", ""),
            ("${SET:?boom}", "value"),
            ("${EMPTY?boom}", ""),
            ("${SET:+yes}", "yes"),
            ("${EMPTY:+yes}", ""),
            ("${EMPTY+yes}", "yes"),
            ("${NONE+yes}", ""),
            ("${NONE:-${SET}}", "value"),
            ("${NONE:-a${NONE:-${NONE:-b}}c}d", "abcd"),
            ("${NONE:-$$}", "$"),
            ("http://${SET}:80/${NONE:-}", "http://value:80/"),
            ("ü$SET ü", "üvalue ü"),
        ];
        for (text, wanted) in cases {
            assert_eq!(run(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_unset_or_malformed_is_refused_at_its_place() {
        let cases = [
            ("a $NONE", "unset-variable", 2),
            ("${NONE}", "unset-variable", 0),
            ("${NONE:?say why}", "unset-variable", 0),
            ("${EMPTY:?}", "unset-variable", 0),
            ("x${NONE:-${OTHER}}", "unset-variable", 9),
            ("^ready$", "variable-syntax", 6),
            ("$1", "variable-syntax", 0),
            ("${SET", "variable-syntax", 0),
            ("${}", "variable-syntax", 0),
            ("${SET/x/y}", "variable-syntax", 0),
            ("${SET:x}", "variable-syntax", 0),
        ];
        for (text, code, offset) in cases {
            let failure = run(text).expect_err(text);
            assert_eq!((failure.code, failure.offset), (code, offset), "{text}");
        }
        assert_eq!(run("${NONE:?say why}").expect_err("unset").message, "the variable `NONE` is required: say why");
    }

    #[test]
    fn deep_nesting_ends_in_an_error() {
        let text = "${A:-".repeat(1000) + &"}".repeat(1000);
        assert_eq!(run(&text).expect_err("too deep").code, "variable-syntax");
    }

    #[test]
    fn an_unused_default_is_not_evaluated() {
        assert_eq!(run("${SET:-${NONE:?never}}").as_deref(), Ok("value"));
    }
}
