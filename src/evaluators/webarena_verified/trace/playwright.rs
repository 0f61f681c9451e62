//! Playwright's traces: a ZIP archive with a line of JSON for each request in `trace.network`.

use std::io::{Cursor, Read};

use serde::Deserialize;
use zip::ZipArchive;
use zip::result::ZipError;

use super::{Event, TraceError};

/// A larger one is no trace of an episode, but a bomb.
const MOST_MIB: u64 = 1024;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    snapshot: Option<Event>,
}

pub(super) fn events(bytes: &[u8]) -> Result<Vec<Event>, TraceError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(TraceError::Zip)?;
    let file = archive.by_name("trace.network").map_err(TraceError::Zip)?;
    let mut text = Vec::new();
    let most = MOST_MIB * 1024 * 1024;
    file.take(most + 1).read_to_end(&mut text).map_err(|error| TraceError::Zip(ZipError::Io(error)))?;
    if text.len() as u64 > most {
        return Err(TraceError::Large(MOST_MIB));
    }
    let mut events = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let line: Line = serde_json::from_slice(line).map_err(|cause| TraceError::Line { line: index + 1, cause })?;
        if line.kind == "resource-snapshot" {
            events.extend(line.snapshot);
        }
    }
    Ok(events)
}
