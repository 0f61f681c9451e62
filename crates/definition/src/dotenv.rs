//! Files of variables as Compose reads them: `.env` and `env_file`.
//!
//! `NAME=value`, with comments (`#` at the start of a line or after white space), an optional `export`, single quotes
//! (nothing inside is special), double quotes (escapes and variables), and variables in unquoted values.

use super::interpolate::interpolate;
use super::problems::Problems;
use super::source::{Position, SOURCE_MAX_BYTES, SourceFile, Span};
use super::variables::DefinitionVariables;

/// Maximum number of variables that one file may set.
const VARIABLES_MAX: usize = 2_000;

/// Limit on the total length of the values of one file, in bytes. Without it, values that refer to earlier ones could
/// double at every line.
const VALUES_MAX_BYTES: usize = 1024 * 1024;

/// Reads a file of variables into `variables`, from top to bottom, so that later lines may use earlier variables.
pub(crate) fn read_into(variables: &DefinitionVariables<'_>, source: &SourceFile, problems: &Problems) {
    parse(source, variables, problems, true);
    variables.forget_uses();
}

/// Reads an `env_file`. Returns its names and values in file order.
pub(crate) fn read(
    source: &SourceFile,
    variables: &DefinitionVariables<'_>,
    problems: &Problems,
) -> Vec<(String, String)> {
    parse(source, variables, problems, false)
}

fn parse(
    source: &SourceFile,
    variables: &DefinitionVariables<'_>,
    problems: &Problems,
    defines: bool,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut bytes = 0;
    if source.text.len() > SOURCE_MAX_BYTES {
        problems
            .at(source, Span::START, "too-large", "the file is too large")
            .expected(format!("at most {SOURCE_MAX_BYTES} bytes"))
            .report();
        return found;
    }
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let mut reader = DotenvReader { text, at: 0 };
    while let Some(start) = reader.next_entry() {
        let place = |offset: usize| Span::at(Position::of_offset(text.as_bytes(), offset));
        match reader.entry(variables) {
            Ok((name, value)) => {
                if defines {
                    variables.define(name.clone(), value.clone());
                }
                bytes += value.len();
                found.push((name, value));
            }
            Err((offset, message, help)) => {
                problems.at(source, place(offset.max(start)), "dotenv", message).maybe_help(help).report();
                reader.skip_line();
                if problems.is_full() {
                    break;
                }
            }
        }
        if found.len() > VARIABLES_MAX || bytes > VALUES_MAX_BYTES {
            let message = format!("the file sets more than {VARIABLES_MAX} variables or {VALUES_MAX_BYTES} bytes");
            problems.at(source, place(start), "too-large", message).report();
            break;
        }
    }
    found
}

type DotenvRefusal = (usize, String, Option<String>);

struct DotenvReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> DotenvReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Advances to the next line that is neither blank nor a comment, and returns its offset.
    fn next_entry(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if self.rest().is_empty() {
                return None;
            }
            if !self.rest().starts_with('#') {
                return Some(self.at);
            }
            self.skip_line();
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').map_or(self.rest().len(), |end| end + 1);
    }

    fn entry(&mut self, variables: &DefinitionVariables<'_>) -> Result<(String, String), DotenvRefusal> {
        if let Some(after) = self.rest().strip_prefix("export")
            && after.starts_with([' ', '\t'])
        {
            self.at += self.rest().len() - after.trim_start_matches([' ', '\t']).len();
        }
        let start = self.at;
        let line_length = self.rest().find('\n').unwrap_or(self.rest().len());
        let line = &self.rest()[..line_length];
        let name_length =
            line.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-')).unwrap_or(line.len());
        let name = &line[..name_length];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let help = "write `NAME=value`; names begin with a letter or `_`".to_owned();
            return Err((start, "a variable's name is expected here".to_owned(), Some(help)));
        }
        let after = line[name_length..].trim_start_matches([' ', '\t']);
        let Some(value) = after.strip_prefix('=') else {
            if after.trim().is_empty() || after.starts_with('#') {
                self.at += line_length;
                let missing = || {
                    let help = format!("write `{name}=value`, or set it in the shell");
                    (start, format!("the variable `{name}` is named without a value and is not set"), Some(help))
                };
                return variables.look_up(name).map(|value| (name.to_owned(), value)).ok_or_else(missing);
            }
            let help = format!("write `{name}=value`");
            return Err((start + name_length, format!("`=` is missing after `{name}`"), Some(help)));
        };
        let value = value.trim_start_matches([' ', '\t']);
        self.at += line_length - value.len();
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote, variables)?,
            _ => self.unquoted(value, variables)?,
        };
        Ok((name.to_owned(), value))
    }

    fn unquoted(&mut self, line: &str, variables: &DefinitionVariables<'_>) -> Result<String, DotenvRefusal> {
        let start = self.at;
        self.at += line.len();
        let comment = line
            .char_indices()
            .find(|(index, c)| *c == '#' && line[..*index].chars().last().is_none_or(char::is_whitespace))
            .map_or(line.len(), |(index, _)| index);
        let value = line[..comment].trim_end();
        interpolate(value, variables).map_err(|failure| (start + failure.offset, failure.message, failure.help))
    }

    fn quoted(&mut self, quote: char, variables: &DefinitionVariables<'_>) -> Result<String, DotenvRefusal> {
        let start = self.at;
        let body = &self.rest()[1..];
        let mut raw = String::new();
        let mut characters = body.char_indices();
        let end = loop {
            match characters.next() {
                None => {
                    let help = format!("add the closing {quote}");
                    return Err((start, "the quotes are never closed".to_owned(), Some(help)));
                }
                Some((index, c)) if c == quote => break index,
                Some((_, '\\')) if quote == '"' => match characters.next() {
                    Some((_, 'n')) => raw.push('\n'),
                    Some((_, 'r')) => raw.push('\r'),
                    Some((_, 't')) => raw.push('\t'),
                    Some((_, '$')) => raw.push_str("$$"),
                    Some((_, c @ ('"' | '\\'))) => raw.push(c),
                    Some((_, c)) => raw.extend(['\\', c]),
                    None => {}
                },
                Some((_, c)) => raw.push(c),
            }
        };
        let after = &body[end + 1..];
        let tail = &after[..after.find('\n').unwrap_or(after.len())];
        if !tail.trim().is_empty() && !tail.trim_start().starts_with('#') {
            let help = "put the whole value in quotes".to_owned();
            return Err((start + end + 2, "text follows the closing quotes".to_owned(), Some(help)));
        }
        self.at = start + 1 + end + 1 + tail.len();
        if quote == '\'' {
            return Ok(raw);
        }
        interpolate(&raw, variables).map_err(|failure| (start, failure.message, failure.help))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(text: &str) -> (Vec<(String, String)>, Vec<String>) {
        let given = BTreeMap::from([("SHELL_ONLY".to_owned(), "s".to_owned())]);
        let variables = DefinitionVariables::new(&given, BTreeMap::new());
        let problems = Problems::default();
        let source = SourceFile::new(".env", text);
        let found = parse(&source, &variables, &problems, true);
        let messages = match problems.into_result() {
            Ok(()) => Vec::new(),
            Err(diagnostics) => diagnostics.iter().map(|d| format!("{}:{} {}", d.line, d.column, d.message)).collect(),
        };
        (found, messages)
    }

    #[test]
    fn the_forms_of_compose_are_understood() {
        let text = "# comment\n\nA=1\nexport B = two words  # comment\nC='$A # no comment'\nD=\"$A\\n\\$A\"\n\
                    E=${A}x#y\nF=\nG=\"two\nlines\" # comment\nH=${NONE:-d}\nSHELL_ONLY\n";
        let (found, messages) = run(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(messages, Vec::<String>::new());
        assert_eq!(
            found,
            [
                ("A", "1"),
                ("B", "two words"),
                ("C", "$A # no comment"),
                ("D", "1\n$A"),
                ("E", "1x#y"),
                ("F", ""),
                ("G", "two\nlines"),
                ("H", "d"),
                ("SHELL_ONLY", "s"),
            ]
        );
    }

    #[test]
    fn problems_are_collected_with_their_places() {
        let (found, messages) = run("A=1\n=2\nB 3\nC='open\nD=ok");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            messages,
            [
                "2:1 a variable's name is expected here",
                "3:2 `=` is missing after `B`",
                "4:3 the quotes are never closed",
            ]
        );
    }

    #[test]
    fn doubling_values_stay_bounded() {
        let mut text = "A0=xxxxxxxxxxxxxxxx\n".to_owned();
        for i in 1..40 {
            text += &format!("A{i}=$A{}$A{}\n", i - 1, i - 1);
        }
        let (found, messages) = run(&text);
        assert!(found.iter().all(|(_, value)| value.len() <= 128 * 1024));
        assert!(!messages.is_empty());
    }
}
