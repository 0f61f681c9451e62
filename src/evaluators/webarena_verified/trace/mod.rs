//! Recorded traffic: HAR files, and the traces that Playwright writes.

mod body;
mod event;
mod playwright;

use serde::Deserialize;
use serde_json::Value;

pub use event::Event;

use super::trouble::Trouble;
use crate::har::{Coverage, Own};

/// The requests of an episode, in order.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    events: Vec<Event>,
    warnings: Vec<String>,
    /// Why one of the requests could not be read.
    malformed: Option<String>,
    /// What a recording of arenad's own says that it has of each site.
    coverage: Vec<Coverage>,
}

/// Why recorded traffic cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is none.
    #[error("no traffic was recorded")]
    Missing,
    /// The bytes are no HAR.
    #[error("the file is no HAR: it has no log.entries with a request and a response each")]
    Har(#[source] serde_json::Error),
    /// The HAR is empty.
    #[error("the HAR has no entries")]
    Empty,
    /// The bytes are no ZIP archive.
    #[error("the file is no ZIP archive with a trace.network in it")]
    Zip(#[source] zip::result::ZipError),
    /// The archive is larger than any trace.
    #[error("trace.network is larger than {0} MiB")]
    Large(u64),
    /// A line of the trace is no JSON.
    #[error("line {line} of trace.network")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        #[source]
        cause: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Har<E> {
    log: Log<E>,
}

#[derive(Deserialize)]
struct Log<E> {
    entries: Vec<E>,
    #[serde(default, rename = "_arenad")]
    own: Option<Own>,
}

impl Trace {
    /// Reads a file: a ZIP archive is Playwright's, anything else a HAR.
    ///
    /// # Errors
    ///
    /// When it is neither.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if bytes.starts_with(b"PK") { Self::from_playwright(bytes) } else { Self::from_har(bytes) }
    }

    /// Reads a HAR.
    ///
    /// # Errors
    ///
    /// When it is none, or has no entries.
    pub fn from_har(bytes: &[u8]) -> Result<Self, TraceError> {
        let (log, malformed) = match serde_json::from_slice::<Har<Event>>(bytes) {
            Ok(har) => (har.log, None),
            Err(_) => one_by_one(bytes)?,
        };
        let Log { entries: events, own } = log;
        if events.is_empty() && malformed.is_none() && own.is_none() {
            return Err(TraceError::Empty);
        }
        let warnings = malformed.clone().into_iter().collect();
        Ok(Self { events, warnings, malformed, coverage: own.map(|own| own.sites).unwrap_or_default() })
    }

    /// Reads a trace that Playwright wrote (`trace.zip`). It has no bodies in place; [`Self::warnings`] says how many
    /// requests that concerns.
    ///
    /// # Errors
    ///
    /// When it is no ZIP archive with a `trace.network`, or a line of that is no JSON.
    pub fn from_playwright(bytes: &[u8]) -> Result<Self, TraceError> {
        let events = playwright::events(bytes)?;
        let lost = events.iter().filter(|event| event.has_lost_body()).count();
        let warnings = match lost {
            0 => Vec::new(),
            lost => vec![format!(
                "the trace lacks the bodies of {lost} requests that had one, so what they sent cannot be judged; record a HAR instead"
            )],
        };
        Ok(Self { events, warnings, malformed: None, coverage: Vec::new() })
    }

    /// What whoever reads a verdict on it should know.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What a recording of arenad's own lacks of a task's sites, by the names that tasks have for them.
    #[must_use]
    pub fn lacks(&self, sites: &[String]) -> Option<String> {
        let is_meant = |coverage: &&Coverage| {
            let names = [Some(&coverage.site), coverage.variable.as_ref()];
            sites.iter().any(|site| names.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(site)))
        };
        let lacks = |coverage: &Coverage| match (coverage.records.as_str(), &coverage.lacks) {
            ("all", None) => None,
            ("all", Some(lacks)) => Some(format!("of {} {lacks}", coverage.site)),
            ("writes", _) => Some(format!("of {} only requests that may write were recorded", coverage.site)),
            _ => Some(format!("of {} nothing was recorded", coverage.site)),
        };
        self.coverage.iter().filter(is_meant).find_map(lacks)
    }

    /// The requests for anything but pictures, fonts, styles and scripts.
    pub(super) fn relevant(&self) -> Result<Vec<&Event>, Trouble> {
        if let Some(malformed) = &self.malformed {
            return Err(Trouble::raised(malformed.clone()));
        }
        let mut events = Vec::new();
        for event in &self.events {
            if !event.is_asset()? {
                events.push(event);
            }
        }
        Ok(events)
    }
}

/// The entries of a HAR that can be read, and what is wrong with the first that cannot: tasks about the answer alone do
/// not need it.
fn one_by_one(bytes: &[u8]) -> Result<(Log<Event>, Option<String>), TraceError> {
    let har: Har<Value> = serde_json::from_slice(bytes).map_err(TraceError::Har)?;
    let (mut entries, mut malformed) = (Vec::new(), None);
    for (index, entry) in har.log.entries.into_iter().enumerate() {
        match serde_json::from_value(entry) {
            Ok(event) => entries.push(event),
            Err(error) => malformed = malformed.or(Some(format!("entry {index} of the HAR is no request: {error}"))),
        }
    }
    Ok((Log { entries, own: har.log.own }, malformed))
}
