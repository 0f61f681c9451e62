//! Where in a file the validation stands: a path of keys and indices, and the place it leads to.

use super::problems::{Draft, Problems, closest};
use super::source::{SourceFile, Span};
use super::tree::{Node, Scalar, Value};

/// A document that has been read.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) source: &'a SourceFile,
    pub(crate) root: Node,
}

/// A place in a document, for problems found after parsing.
///
/// Steps to what the file does not have stay at the nearest place that it has, so that a default can be blamed too.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    source: &'a SourceFile,
    problems: &'a Problems,
    node: &'a Node,
    key: Option<Span>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(document: &'a Document<'a>, problems: &'a Problems) -> Self {
        Self { source: document.source, problems, node: &document.root, key: None }
    }

    /// The value under a key.
    pub(crate) fn key(self, key: &str) -> Self {
        match self.node.entry(key) {
            Some(entry) => Self { node: &entry.value, key: Some(entry.key_span), ..self },
            None => self,
        }
    }

    /// The entry of a list, counted from 0; of a value that stands for a list of one, the value itself.
    pub(crate) fn index(self, index: usize) -> Self {
        match &self.node.value {
            Value::Sequence(items) => items.get(index).map_or(self, |node| Self { node, key: None, ..self }),
            _ => self,
        }
    }

    /// Whether a mapping has a key.
    pub(crate) fn has(self, key: &str) -> bool {
        self.node.entry(key).is_some()
    }

    /// Whether a mapping has, instead of a key, one that was probably meant to be it.
    pub(crate) fn is_misspelt(self, key: &str) -> bool {
        match &self.node.value {
            Value::Mapping(entries) => {
                entries.iter().any(|entry| entry.key != key && closest(&entry.key, [key]).is_some())
            }
            _ => false,
        }
    }

    /// The value's scalar, if it is one.
    pub(crate) fn scalar(self) -> Option<&'a Scalar> {
        self.node.scalar()
    }

    /// The place of the value; for mappings and what spans lines, that of the key.
    pub(crate) fn span(self) -> Span {
        match (&self.node.value, self.key) {
            (Value::Scalar(scalar), Some(key)) if scalar.text.is_empty() && !scalar.is_text => key,
            (Value::Scalar(_), _) | (_, None) => self.node.span,
            (_, Some(key)) => key,
        }
    }

    pub(crate) fn source(self) -> &'a SourceFile {
        self.source
    }

    pub(crate) fn problems(self) -> &'a Problems {
        self.problems
    }

    /// Begins a problem with the value.
    pub(crate) fn error(self, code: &str, message: impl Into<String>) -> Draft<'a> {
        self.problems.at(self.source, self.span(), code, message)
    }

    /// Begins a problem with the value's key.
    pub(crate) fn key_error(self, code: &str, message: impl Into<String>) -> Draft<'a> {
        self.problems.at(self.source, self.key.unwrap_or(self.node.span), code, message)
    }

    /// The place of the key.
    pub(crate) fn key_span(self) -> Span {
        self.key.unwrap_or(self.node.span)
    }
}
