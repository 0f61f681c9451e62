//! Diagnostics of a definition as values, as text for people, and as JSON for tools: the error, its place, and a
//! suggestion.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::source::{SourceFile, Span};

/// Maximum number of characters of a long line that a snippet shows around the offending text.
const SNIPPET_MAX: usize = 120;

/// One error in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Path of the file, relative to the root folder.
    pub file: String,
    /// Line number, beginning with 1.
    pub line: usize,
    /// Column in characters, beginning with 1.
    pub column: usize,
    /// Kind of problem, such as `unknown-key`. The codes are stable for use in scripts.
    pub code: String,
    /// Description of the error.
    pub message: String,
    /// Description of the values that would be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Suggested correction of the file, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The line that contains the offending text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
    /// A second place that the problem involves, such as the first of two equal keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
}

/// A line of a file with one part marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snippet {
    /// The line, or an excerpt of a long line, with control characters replaced.
    pub text: String,
    /// Number of characters before the marked part.
    pub offset: usize,
    /// Number of marked characters.
    pub width: usize,
}

/// The second place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// Path of the file, relative to the root folder.
    pub file: String,
    /// Line number, beginning with 1.
    pub line: usize,
    /// Column in characters, beginning with 1.
    pub column: usize,
    /// Description of the text at this place.
    pub message: String,
    /// The line at this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
}

impl Snippet {
    /// Cuts the marked line out of a file. Returns `None` if the line is blank or does not exist.
    pub(crate) fn cut(source: &SourceFile, span: Span) -> Option<Self> {
        let line = source.line(span.start.line);
        if line.trim().is_empty() {
            return None;
        }
        let offset = (span.start.column - 1).min(line.chars().count());
        let width = span.width_on(line);
        let visible = |c: char| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        };
        if line.chars().count() <= SNIPPET_MAX {
            let text = line.chars().map(visible).collect::<String>();
            return Some(Self { text: text.trim_end().to_owned(), offset, width });
        }
        let first = offset.saturating_sub(SNIPPET_MAX / 3);
        let mut text: String = line.chars().skip(first).take(SNIPPET_MAX).map(visible).collect();
        let mut shift = 0;
        if first > 0 {
            text.insert_str(0, "... ");
            shift = 4;
        }
        if line.chars().count() > first + SNIPPET_MAX {
            text.push_str(" ...");
        }
        Some(Self { text, offset: offset - first + shift, width: width.min(SNIPPET_MAX - (offset - first)).max(1) })
    }
}

/// All problems of a definition: at least one, ordered by file, line and column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    problems: Vec<Diagnostic>,
    /// Number of further problems that were found and left out.
    #[serde(default)]
    omitted: usize,
}

impl Diagnostics {
    /// Sorts and wraps the problems. Returns `None` if there are none.
    pub(crate) fn from_problems(mut problems: Vec<Diagnostic>, omitted: usize) -> Option<Self> {
        if problems.is_empty() {
            return None;
        }
        problems.sort_by(|a, b| (&a.file, a.line, a.column, &a.message).cmp(&(&b.file, b.line, b.column, &b.message)));
        Some(Self { problems, omitted })
    }

    /// Returns the problems, sorted by place.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.problems.iter()
    }

    /// Returns the number of problems, including those that were left out. It is at least 1.
    pub fn count(&self) -> usize {
        self.problems.len() + self.omitted
    }

    /// Renders the problems as text for people.
    pub fn render(&self, style: Style<'_>) -> String {
        let mut out = String::new();
        for problem in &self.problems {
            // Writing to a string cannot fail.
            let _ = render_one(&mut out, problem, style);
            out.push('\n');
        }
        let mut files: Vec<&str> = self.problems.iter().map(|p| p.file.as_str()).collect();
        files.dedup();
        let shown =
            if self.omitted > 0 { format!(" (the first {} are shown)", self.problems.len()) } else { String::new() };
        let _ = writeln!(out, "{} in {}{shown}", count_of(self.count(), "problem"), count_of(files.len(), "file"));
        out
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Style::default()).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

fn count_of(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Options for the rendering of diagnostics.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style<'a> {
    /// Whether the text contains terminal colours.
    pub color: bool,
    /// Prefix of each file's path: the path from the reader's working directory to the root folder.
    pub prefix: &'a str,
}

impl Style<'_> {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

const RED: &str = "1;31";
const BLUE: &str = "1;34";
const BOLD: &str = "1";

fn render_one(out: &mut String, problem: &Diagnostic, style: Style<'_>) -> fmt::Result {
    let head = style.paint(RED, &format!("error[{}]", problem.code));
    writeln!(out, "{head}{}", style.paint(BOLD, &format!(": {}", problem.message)))?;
    let related_line = problem.related.as_ref().map_or(0, |r| r.line);
    let gutter = problem.line.max(related_line).to_string().len();
    render_place(
        out,
        style,
        gutter,
        "-->",
        (&problem.file, problem.line, problem.column),
        problem.snippet.as_ref(),
        '^',
    )?;
    if let Some(related) = &problem.related {
        render_place(
            out,
            style,
            gutter,
            ":::",
            (&related.file, related.line, related.column),
            related.snippet.as_ref(),
            '-',
        )?;
        note(out, style, gutter, "there", &related.message)?;
    }
    if let Some(expected) = &problem.expected {
        note(out, style, gutter, "expected", expected)?;
    }
    if let Some(suggestion) = &problem.suggestion {
        note(out, style, gutter, "help", suggestion)?;
    }
    Ok(())
}

fn note(out: &mut String, style: Style<'_>, gutter: usize, label: &str, text: &str) -> fmt::Result {
    let equals = style.paint(BLUE, "=");
    let label = style.paint(BOLD, &format!("{label}:"));
    writeln!(out, "{:gutter$} {equals} {label} {text}", "")
}

fn render_place(
    out: &mut String,
    style: Style<'_>,
    gutter: usize,
    arrow: &str,
    (file, line, column): (&str, usize, usize),
    snippet: Option<&Snippet>,
    mark: char,
) -> fmt::Result {
    let arrow = style.paint(BLUE, arrow);
    writeln!(out, "{:gutter$}{arrow} {}{file}:{line}:{column}", "", style.prefix)?;
    let bar = style.paint(BLUE, "|");
    writeln!(out, "{:gutter$} {bar}", "")?;
    if let Some(snippet) = snippet {
        let number = style.paint(BLUE, &format!("{line:>gutter$}"));
        writeln!(out, "{number} {bar} {}", snippet.text)?;
        let marks = style.paint(RED, &mark.to_string().repeat(snippet.width));
        writeln!(out, "{:gutter$} {bar} {:offset$}{marks}", "", "", offset = snippet.offset)?;
    }
    Ok(())
}
