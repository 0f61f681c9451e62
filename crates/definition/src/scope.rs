//! The position of the validation in a file, reached by keys and indices, and the place that its problems point to.

use super::problems::{Draft, Problems, closest};
use super::source::{SourceFile, Span};
use super::tree::{DocumentNode, DocumentValue, Scalar};

/// A document that has been read.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) source: &'a SourceFile,
    pub(crate) root: DocumentNode,
}

/// A place in a document, for problems found after parsing.
///
/// A step to a part that the file does not have stays at the nearest existing place, so that a problem with a default
/// also has a place.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    source: &'a SourceFile,
    problems: &'a Problems,
    node: &'a DocumentNode,
    key: Option<Span>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(document: &'a Document<'a>, problems: &'a Problems) -> Self {
        Self { source: document.source, problems, node: &document.root, key: None }
    }

    /// Returns the value under a key.
    pub(crate) fn key(self, key: &str) -> Self {
        match self.node.entry(key) {
            Some(entry) => Self { node: &entry.value, key: Some(entry.key_span), ..self },
            None => self,
        }
    }

    /// Returns the entry of a list by its index, which begins with 0. A value in the place of a list of one entry
    /// returns itself.
    pub(crate) fn index(self, index: usize) -> Self {
        match &self.node.value {
            DocumentValue::Sequence(items) => items.get(index).map_or(self, |node| Self { node, key: None, ..self }),
            _ => self,
        }
    }

    /// Returns whether a mapping has a key.
    pub(crate) fn has(self, key: &str) -> bool {
        self.node.entry(key).is_some()
    }

    /// Returns whether a mapping has a key that is probably a misspelling of the given one.
    pub(crate) fn is_misspelt(self, key: &str) -> bool {
        match &self.node.value {
            DocumentValue::Mapping(entries) => {
                entries.iter().any(|entry| entry.key != key && closest(&entry.key, [key]).is_some())
            }
            _ => false,
        }
    }

    /// Returns the value as a scalar, if it is one.
    pub(crate) fn scalar(self) -> Option<&'a Scalar> {
        self.node.scalar()
    }

    /// Returns the place of the value. For lists, mappings and missing values, it is the place of the key.
    pub(crate) fn span(self) -> Span {
        match (&self.node.value, self.key) {
            (DocumentValue::Scalar(scalar), Some(key)) if scalar.text.is_empty() && !scalar.is_text => key,
            (DocumentValue::Scalar(_), _) | (_, None) => self.node.span,
            (_, Some(key)) => key,
        }
    }

    pub(crate) fn source(self) -> &'a SourceFile {
        self.source
    }

    pub(crate) fn problems(self) -> &'a Problems {
        self.problems
    }

    /// Starts a problem at the value.
    pub(crate) fn error(self, code: &str, message: impl Into<String>) -> Draft<'a> {
        self.problems.at(self.source, self.span(), code, message)
    }

    /// Starts a problem at the value's key.
    pub(crate) fn key_error(self, code: &str, message: impl Into<String>) -> Draft<'a> {
        self.problems.at(self.source, self.key.unwrap_or(self.node.span), code, message)
    }

    /// Returns the place of the key, or that of the value if it has no key.
    pub(crate) fn key_span(self) -> Span {
        self.key.unwrap_or(self.node.span)
    }
}
