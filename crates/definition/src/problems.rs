//! Collects the problems of a definition while it is read, so that a person sees all of them at once.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::diagnostic::{Diagnostic, Diagnostics, Related, Snippet};
use super::source::{Position, SourceFile, Span};

/// How many problems are kept. Nobody reads more, and a hostile file must not make the list long.
const PROBLEMS_MAX: usize = 100;

/// The problems found so far. Shared by reference: finding one never stops the search for others.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: RefCell<Vec<Diagnostic>>,
    omitted: Cell<usize>,
    /// Values whose variables could not be replaced: what they say now is not what their author meant.
    unreplaced: RefCell<HashSet<(String, Position)>>,
}

impl Problems {
    /// Lets no further problem be reported at a place.
    pub(crate) fn silence(&self, source: &SourceFile, place: Position) {
        self.unreplaced.borrow_mut().insert((source.shown_path(), place));
    }

    /// Begins a problem at a place of a file; it counts once [`Draft::report`] is called.
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
                // Finding the line costs a walk through the file, which a problem that will be left out is not worth.
                snippet: if self.is_full() { None } else { Snippet::cut(source, span) },
                related: None,
            },
        }
    }

    /// Whether further problems would be left out, so that a long search for them can end.
    pub(crate) fn is_full(&self) -> bool {
        self.found.borrow().len() >= PROBLEMS_MAX
    }

    /// How many problems there are.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().len() + self.omitted.get()
    }

    /// Takes over the problems of a part; what is known already is not said again.
    pub(crate) fn absorb(&self, part: Self) {
        self.omitted.set(self.omitted.get() + part.omitted.get());
        part.found.into_inner().into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// `Err` with all problems if there are any.
    pub(crate) fn into_result(self) -> Result<(), Diagnostics> {
        Diagnostics::from_problems(self.found.into_inner(), self.omitted.get()).map_or(Ok(()), Err)
    }

    fn push(&self, diagnostic: Diagnostic) {
        let place = Position { line: diagnostic.line, column: diagnostic.column };
        if self.unreplaced.borrow().contains(&(diagnostic.file.clone(), place)) {
            return;
        }
        let mut found = self.found.borrow_mut();
        // An aliased node is visited once per alias; what is wrong with it is said once. And of a value that its schema
        // has refused, the validation need not say again in other words that it is malformed.
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

/// A problem being described.
#[must_use = "a problem counts once it is reported"]
pub(crate) struct Draft<'a> {
    problems: &'a Problems,
    diagnostic: Diagnostic,
}

impl Draft<'_> {
    /// Says what would have been accepted.
    pub(crate) fn expected(mut self, text: impl Into<String>) -> Self {
        self.diagnostic.expected = Some(shortened(text.into()));
        self
    }

    /// Says what to do about it.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.diagnostic.suggestion = Some(shortened(text.into()));
        self
    }

    /// Says what to do about it, if anything is known.
    pub(crate) fn maybe_help(mut self, text: Option<String>) -> Self {
        self.diagnostic.suggestion = text.map(shortened);
        self
    }

    /// Names a second place.
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

    /// Adds the problem to the list.
    pub(crate) fn report(self) {
        self.problems.push(self.diagnostic);
    }
}

/// Messages quote what the file says, which may be long.
const MESSAGE_MAX: usize = 500;

fn shortened(text: String) -> String {
    let visible: String = text.chars().take(MESSAGE_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MESSAGE_MAX).is_some() { visible + "..." } else { visible }
}

/// The longest text that is compared with the known ones; longer ones are no typing errors.
const SIMILAR_MAX: usize = 60;

/// The known text that `text` was probably meant to be.
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

/// "did you mean `x`?", if some known text is close.
pub(crate) fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(text, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Words in back quotes, separated by commas.
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
