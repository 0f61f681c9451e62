//! How a value is read: as the task's or as the agent's, by whose rules, and what it may refer to.

use serde_json::Value;

use super::sites::Environments;
use super::trouble::Trouble;
use crate::text::dates::{self, Day};
use crate::text::patterns::Patterns;
use arenad_verdict::Profile;

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The task's: one that is not of its type is an error.
    Expected,
    /// The agent's, or the browser's: one that is not of its type is kept as it is, and equals nothing.
    Actual,
}

/// How URLs are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct UrlOptions<'a> {
    /// Whether segments of the path may be queries in Base64.
    pub decode_base64_query: bool,
    /// Parameters that do not count, by name.
    pub ignored: &'a [String],
    /// Parameters that do not count, by pattern.
    pub ignored_patterns: &'a [String],
    /// What stands for the URL's own query.
    pub query: Option<&'a Value>,
    /// A schema for the query's values.
    pub query_schema: Option<&'a Value>,
}

/// How a value is read.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Whose it is.
    pub side: Side,
    /// Whose rules.
    pub profile: Profile,
    /// The sites whose addresses are replaced by their placeholders in texts.
    pub sites: Option<&'a Environments>,
    /// The sites whose placeholders are replaced by their addresses in URLs.
    pub rendered: Option<&'a Environments>,
    /// For URLs.
    pub url: UrlOptions<'a>,
    /// The patterns met so far.
    pub patterns: &'a Patterns,
    /// The day on which it is judged. The benchmark completes dates with it.
    pub today: Day,
}

impl<'a> Reading<'a> {
    /// Reads by itself, without sites, on the present day.
    #[must_use]
    pub fn new(side: Side, profile: Profile, patterns: &'a Patterns) -> Self {
        Self { side, profile, sites: None, rendered: None, url: UrlOptions::default(), patterns, today: dates::today() }
    }

    /// Whether an error is one of the task.
    pub(super) fn is_strict(&self) -> bool {
        self.side == Side::Expected
    }

    /// Whether patterns and lists of alternatives are what they look like. The benchmark honours them on both sides;
    /// strictly they are a privilege of the task.
    pub(super) fn is_literal(&self) -> bool {
        self.side == Side::Actual && self.profile == Profile::Strict
    }

    /// Whether a text is a pattern.
    pub(super) fn is_pattern(&self, text: &str) -> bool {
        !self.is_literal() && is_pattern(text)
    }

    /// Replaces the addresses of the sites in a URL.
    pub(super) fn derender(&self, url: &str) -> Result<String, Trouble> {
        match self.sites {
            Some(sites) => sites.derender(url, self.is_strict(), self.profile),
            None => Ok(url.to_owned()),
        }
    }

    /// Replaces the addresses of the sites in a text, if there are any.
    pub(super) fn derender_text(&self, text: &str) -> String {
        let derendered = self.sites.map(|sites| sites.derender(text, false, self.profile));
        derendered.and_then(Result::ok).unwrap_or_else(|| text.to_owned())
    }

    /// Replaces a placeholder by the address of its site.
    pub(super) fn render(&self, template: &str) -> Result<String, Trouble> {
        match self.rendered {
            Some(sites) => sites.render(template, self.is_strict()),
            None => Ok(template.to_owned()),
        }
    }
}

/// Whether a text is a pattern: `^…$`.
pub(super) fn is_pattern(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('^') && text.ends_with('$')
}
