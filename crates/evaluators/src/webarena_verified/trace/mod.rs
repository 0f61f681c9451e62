//! Recorded traffic: HAR files and Playwright's traces.

mod body;
mod event;
mod playwright;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use event::TraceEvent;

use super::failure::ReadingFailure;
use crate::text::json;
use arenad_har::{Coverage, Own};
use event::Plain;

/// The requests of an episode, in order.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    events: Vec<TraceEvent>,
    warnings: Vec<String>,
    /// The traffic of each site that arenad's own recording contains, as the recording states it.
    coverage: Vec<Coverage>,
}

/// The reason why recorded traffic cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No traffic was recorded.
    #[error("no traffic was recorded")]
    Missing,
    /// The bytes are not a HAR.
    #[error("the file is not a HAR: it has no log.entries with a request and a response each")]
    Har(#[source] serde_json::Error),
    /// The HAR has no entries.
    #[error("the HAR has no entries")]
    Empty,
    /// The bytes are not a ZIP archive with a `trace.network`.
    #[error("the file is not a ZIP archive that contains trace.network")]
    Zip(#[source] zip::result::ZipError),
    /// The trace exceeds the limit, given in MiB.
    #[error("trace.network is larger than {0} MiB")]
    Large(u64),
    /// A line of the trace is not a JSON object with a type.
    #[error("line {line} of trace.network")]
    Line {
        /// The number of the line, counted from 1.
        line: usize,
        /// The error of the JSON parser.
        #[source]
        cause: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct TraceFile<E> {
    log: TraceLog<E>,
}

#[derive(Deserialize)]
struct TraceLog<E> {
    entries: Vec<E>,
    #[serde(default, rename = "_arenad")]
    own: Option<Own>,
}

impl Trace {
    /// Reads a file: a ZIP archive as Playwright's trace, any other as a HAR.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is neither.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if bytes.starts_with(b"PK") { Self::from_playwright(bytes) } else { Self::from_har(bytes) }
    }

    /// Reads a HAR.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a HAR, or if it has no entries. A recording of arenad's own may be empty.
    pub(crate) fn from_har(bytes: &[u8]) -> Result<Self, TraceError> {
        let (events, own) = match serde_json::from_slice::<TraceFile<Plain>>(bytes) {
            Ok(har) => (har.log.entries.into_iter().map(TraceEvent::from).collect(), har.log.own),
            Err(error) => one_by_one(bytes, error)?,
        };
        if events.is_empty() && own.is_none() {
            return Err(TraceError::Empty);
        }
        let odd = events.iter().filter(|event| !event.is_plain()).count();
        let warnings = match odd {
            0 => Vec::new(),
            odd => vec![format!(
                "{odd} entries of the HAR are not as the format has them; what asks for the missing parts fails"
            )],
        };
        Ok(Self { events, warnings, coverage: own.map(|own| own.sites).unwrap_or_default() })
    }

    /// Reads a trace that Playwright wrote (`trace.zip`). It refers to bodies in other files; [`Self::warnings`]
    /// reports the number of requests that this affects.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a ZIP archive with a `trace.network`, or if a line of that is not JSON.
    pub(crate) fn from_playwright(bytes: &[u8]) -> Result<Self, TraceError> {
        let events = playwright::events(bytes)?;
        let lost = events.iter().filter(|event| event.has_lost_body()).count();
        let warnings = match lost {
            0 => Vec::new(),
            lost => vec![format!(
                "the trace lacks the bodies of {lost} requests that had one, so what they sent cannot be judged; record a HAR instead"
            )],
        };
        Ok(Self { events, warnings, coverage: Vec::new() })
    }

    /// Returns warnings for the readers of a verdict on this trace.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Describes the traffic of a task's sites that arenad's own recording lacks. `sites` are the names in the task.
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

    /// Returns the requests for anything but pictures, fonts, style sheets and scripts.
    pub(super) fn relevant(&self) -> Result<Vec<&TraceEvent>, ReadingFailure> {
        let mut events = Vec::new();
        for event in &self.events {
            if !event.is_asset()? {
                events.push(event);
            }
        }
        Ok(events)
    }
}

/// Reads the entries of a HAR in which some entries are malformed, or which only Python parses.
fn one_by_one(bytes: &[u8], error: serde_json::Error) -> Result<(Vec<TraceEvent>, Option<Own>), TraceError> {
    let parsed = std::str::from_utf8(bytes).ok().and_then(|text| json::parse(text).ok().flatten());
    let Some(Value::Object(mut har)) = parsed else { return Err(TraceError::Har(error)) };
    let Some(Value::Object(mut log)) = har.remove("log") else { return Err(TraceError::Har(error)) };
    let own = log.remove("_arenad").and_then(|own| Own::deserialize(own).ok());
    match log.remove("entries") {
        Some(Value::Array(entries)) if entries.iter().all(Value::is_object) => {
            Ok((entries.into_iter().map(TraceEvent::from).collect(), own))
        }
        _ => Err(TraceError::Har(error)),
    }
}
