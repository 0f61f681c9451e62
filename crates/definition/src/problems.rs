//! Collects the problems of a definition while it is read, so that all of them are reported at once.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::diagnostic::{Diagnostic, Diagnostics, Related, Snippet};
use super::source::{Position, SourceFile, Span};

/// Maximum number of problems that are kept. A longer list is not useful, and a hostile file must not make it long.
const PROBLEMS_MAX: usize = 100;

/// The problems found so far. The collection is shared by reference, so that the search continues after each problem.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: RefCell<Vec<Diagnostic>>,
    omitted: Cell<usize>,
    /// Places of values whose variables could not be replaced. Later checks would judge texts that their author did not
    /// write.
    unreplaced: RefCell<HashSet<(String, Position)>>,
}

impl Problems {
    /// Suppresses all further problems at a place.
    pub(crate) fn silence(&self, source: &SourceFile, place: Position) {
        self.unreplaced.borrow_mut().insert((source.shown_path(), place));
    }

    /// Starts a problem at a place in a file. The problem counts once [`Draft::report`] is called.
    pub(crate) fn at<'a>(
        &'a self,
        source: &'a SourceFile,
        span: Span,
        code: &str,
        message: impl Into<String>,
    ) -> Draft<'a> {
        Draft {
            problems: self,
            diagnostic: Diagnostic {
                file: source.shown_path(),
                line: span.start.line,
                column: span.start.column,
                code: code.to_owned(),
                message: shortened(message.into()),
                expected: None,
                suggestion: None,
                // The search for the line walks through the file, so it is skipped for a problem that will be left out.
                snippet: if self.is_full() { None } else { Snippet::cut(source, span) },
                related: None,
            },
        }
    }

    /// Returns whether further problems would be left out, so that a long search for them can end.
    pub(crate) fn is_full(&self) -> bool {
        self.found.borrow().len() >= PROBLEMS_MAX
    }

    /// Returns the number of problems.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().len() + self.omitted.get()
    }

    /// Takes over the problems of a part, without duplicates.
    pub(crate) fn absorb(&self, part: Self) {
        self.omitted.set(self.omitted.get() + part.omitted.get());
        part.found.into_inner().into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// Returns `Err` with all problems if there are any.
    pub(crate) fn into_result(self) -> Result<(), Diagnostics> {
        Diagnostics::from_problems(self.found.into_inner(), self.omitted.get()).map_or(Ok(()), Err)
    }

    fn push(&self, diagnostic: Diagnostic) {
        let place = Position { line: diagnostic.line, column: diagnostic.column };
        if self.unreplaced.borrow().contains(&(diagnostic.file.clone(), place)) {
            return;
        }
        let mut found = self.found.borrow_mut();
        // An aliased node is visited once per alias, so equal problems are reported once. If the schema check has
        // refused a value, validation does not report the same value as malformed again.
        let said = |known: &Diagnostic| {
            (&known.file, known.line, known.column, &known.code)
                == (&diagnostic.file, diagnostic.line, diagnostic.column, &diagnostic.code)
                && (known.code == "value" || known.message == diagnostic.message)
        };
        if found.iter().any(said) {
            return;
        }
        if found.len() < PROBLEMS_MAX {
            found.push(diagnostic);
        } else {
            self.omitted.set(self.omitted.get() + 1);
        }
    }
}

/// A problem under construction.
#[must_use = "a problem counts once it is reported"]
pub(crate) struct Draft<'a> {
    problems: &'a Problems,
    diagnostic: Diagnostic,
}

impl Draft<'_> {
    /// Sets the description of the values that would be accepted.
    pub(crate) fn expected(mut self, text: impl Into<String>) -> Self {
        self.diagnostic.expected = Some(shortened(text.into()));
        self
    }

    /// Sets the suggested correction.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.diagnostic.suggestion = Some(shortened(text.into()));
        self
    }

    /// Sets the suggested correction, if there is one.
    pub(crate) fn maybe_help(mut self, text: Option<String>) -> Self {
        self.diagnostic.suggestion = text.map(shortened);
        self
    }

    /// Adds a second place.
    pub(crate) fn related(mut self, source: &SourceFile, span: Span, message: impl Into<String>) -> Self {
        self.diagnostic.related = Some(Related {
            file: source.shown_path(),
            line: span.start.line,
            column: span.start.column,
            message: shortened(message.into()),
            snippet: Snippet::cut(source, span),
        });
        self
    }

    /// Adds the problem to the collection.
    pub(crate) fn report(self) {
        self.problems.push(self.diagnostic);
    }
}

/// Maximum length of a message. Messages quote the file's text, which may be long.
const MESSAGE_MAX: usize = 500;

fn shortened(text: String) -> String {
    let visible: String = text.chars().take(MESSAGE_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MESSAGE_MAX).is_some() { visible + "..." } else { visible }
}

/// Maximum length in bytes of a text that is compared with the known ones. A longer text is not a typing error.
const SIMILAR_MAX: usize = 60;

/// Returns the known text that `text` was probably meant to be.
pub(crate) fn closest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > SIMILAR_MAX {
        return None;
    }
    let lower = text.to_lowercase();
    let allowed = (text.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= allowed || (lower.len() >= 4 && candidate.to_lowercase().starts_with(&lower))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns "did you mean `x`?" if a known text is close.
pub(crate) fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(text, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Formats words in back quotes, separated by commas.
pub(crate) fn quoted_list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["services", "public", "entry"];
        assert_eq!(closest("servises", known), Some("services"));
        assert_eq!(closest("Entry", known), Some("entry"));
        assert_eq!(closest("quux", known), None);
        assert_eq!(closest("", known), None);
    }
}
