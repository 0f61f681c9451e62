//! Exceptions of the benchmarks' Python code.

/// An exception that the benchmark's code raises where it computes no score.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the benchmark's code raises {name}: {what}")]
pub struct Raised {
    name: &'static str,
    what: String,
}

impl Raised {
    pub(crate) fn new(name: &'static str, what: String) -> Self {
        Self { name, what }
    }

    /// Returns the name of the exception's class.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}
