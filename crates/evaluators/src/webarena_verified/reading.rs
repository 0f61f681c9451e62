//! How a value is read: whose value it is, by which profile, and with which sites and options.

use serde_json::Value;

use super::failure::ReadingFailure;
use super::sites::Environments;
use crate::text::dates::{self, Day};
use crate::text::patterns::Patterns;
use arenad_verdict::Profile;

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The task. A value that does not fit its type is an error.
    Expected,
    /// The agent or the browser. A value that does not fit its type is kept unchanged and equals nothing.
    Actual,
}

/// Options for reading URLs.
#[derive(Debug, Clone, Copy, Default)]
pub struct UrlOptions<'a> {
    /// Whether segments of the path may be queries in Base64.
    pub decode_base64_query: bool,
    /// Names of query parameters that are ignored.
    pub ignored: &'a [String],
    /// Patterns of the names of query parameters that are ignored.
    pub ignored_patterns: &'a [String],
    /// The query that replaces the URL's own.
    pub query: Option<&'a Value>,
    /// The schema of the query's values.
    pub query_schema: Option<&'a Value>,
}

/// Options for reading a value.
#[derive(Debug, Clone, Copy)]
pub struct ReadingOptions<'a> {
    /// The origin of the value.
    pub side: ValueOrigin,
    /// The profile whose rules apply.
    pub profile: Profile,
    /// The sites whose addresses in texts are replaced by placeholders.
    pub sites: Option<&'a Environments>,
    /// The sites whose placeholders in URLs are replaced by addresses.
    pub rendered: Option<&'a Environments>,
    /// Options that concern URLs only.
    pub url: UrlOptions<'a>,
    /// The cache of compiled patterns.
    pub patterns: &'a Patterns,
    /// The day of the evaluation, from which the benchmark completes dates.
    pub today: Day,
}

impl<'a> ReadingOptions<'a> {
    /// Creates a reading without sites, for the current day.
    #[must_use]
    pub fn new(side: ValueOrigin, profile: Profile, patterns: &'a Patterns) -> Self {
        Self { side, profile, sites: None, rendered: None, url: UrlOptions::default(), patterns, today: dates::today() }
    }

    /// Whether an error is the task's own.
    pub(super) fn is_strict(&self) -> bool {
        self.side == ValueOrigin::Expected
    }

    /// Whether texts and lists are literals instead of patterns and alternatives. The benchmark honours patterns and
    /// alternatives on both sides; the strict profile only on the task's.
    pub(super) fn is_literal(&self) -> bool {
        self.side == ValueOrigin::Actual && self.profile == Profile::Strict
    }

    /// Whether a text is a pattern.
    pub(super) fn is_pattern(&self, text: &str) -> bool {
        !self.is_literal() && is_pattern(text)
    }

    /// Replaces the addresses of the sites in a URL by placeholders.
    pub(super) fn derender(&self, url: &str) -> Result<String, ReadingFailure> {
        match self.sites {
            Some(sites) => sites.derender(url, self.is_strict(), self.profile),
            None => Ok(url.to_owned()),
        }
    }

    /// Replaces the addresses of the sites in a text by placeholders. A text without an address stays unchanged.
    pub(super) fn derender_text(&self, text: &str) -> String {
        let derendered = self.sites.map(|sites| sites.derender(text, false, self.profile));
        derendered.and_then(Result::ok).unwrap_or_else(|| text.to_owned())
    }

    /// Replaces a placeholder by the address of its site.
    pub(super) fn render(&self, template: &str) -> Result<String, ReadingFailure> {
        match self.rendered {
            Some(sites) => sites.render(template, self.is_strict()),
            None => Ok(template.to_owned()),
        }
    }
}

/// Whether a text has the form of a pattern: `^…$`.
pub(super) fn is_pattern(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('^') && text.ends_with('$')
}
