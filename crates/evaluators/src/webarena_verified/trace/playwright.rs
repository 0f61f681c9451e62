//! Playwright's traces: a ZIP archive whose `trace.network` has a line of JSON for each request.

use std::io::{Cursor, Read};

use serde::Deserialize;
use serde_json::Value;
use zip::ZipArchive;
use zip::result::ZipError;

use super::{TraceError, TraceEvent};
use crate::text::json;

/// A larger file is not a trace of an episode but a decompression bomb.
const MOST_MIB: u64 = 1024;

pub(super) fn events(bytes: &[u8]) -> Result<Vec<TraceEvent>, TraceError> {
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
        let mut line = read(line).map_err(|cause| TraceError::Line { line: index + 1, cause })?;
        if line["type"] == "resource-snapshot"
            && let Some(snapshot) = line.get_mut("snapshot").filter(|snapshot| snapshot.is_object())
        {
            events.push(TraceEvent::from(snapshot.take()));
        }
    }
    Ok(events)
}

/// Reads a line: an object with a type.
fn read(line: &[u8]) -> Result<Value, serde_json::Error> {
    let parsed = std::str::from_utf8(line).ok().and_then(|line| json::parse(line).ok().flatten());
    match parsed.filter(|line| line["type"].is_string()) {
        Some(line) => Ok(line),
        // Parsed again for its error message.
        None => serde_json::from_slice::<PlaywrightKind>(line).map(|_| Value::Null),
    }
}

#[derive(Deserialize)]
struct PlaywrightKind {
    #[serde(rename = "type")]
    _kind: String,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::Trace;
    use super::*;

    fn archive(name: &str, text: &str) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file(name, SimpleFileOptions::default()).expect("an entry");
        archive.write_all(text.as_bytes()).expect("its text");
        archive.finish().expect("an archive").into_inner()
    }

    #[test]
    fn requests_are_the_snapshots_of_resources() {
        let text = concat!(
            "{\"type\": \"context-options\"}\n\n",
            "{\"type\": \"resource-snapshot\", \"snapshot\": {\"request\": {\"method\": \"GET\", \"url\": \"http://h/\", \"headers\": []}, \"response\": {\"status\": 200}}}\n",
            "{\"type\": \"resource-snapshot\", \"snapshot\": {\"request\": {\"method\": \"POST\", \"url\": \"http://h/a\", \"headers\": [], ",
            "\"postData\": {\"mimeType\": \"text/plain\", \"text\": \"\", \"_sha1\": \"x\"}}, \"response\": {\"status\": 302}}}\n",
        );
        let trace = Trace::read(&archive("trace.network", text)).expect("a trace");
        let methods: Vec<&str> =
            trace.relevant().expect("requests").iter().map(|event| event.method().expect("a method")).collect();
        assert_eq!(methods, ["GET", "POST"]);
        assert!(trace.warnings()[0].contains("the bodies of 1 requests"), "{:?}", trace.warnings());
    }

    #[test]
    fn what_is_no_trace_says_why() {
        assert!(matches!(events(b"PK nothing"), Err(TraceError::Zip(_))));
        assert!(matches!(events(&archive("trace.trace", "")), Err(TraceError::Zip(ZipError::FileNotFound))));
        let broken = archive("trace.network", "{\"type\": \"context-options\"}\n{\"type\": 7}\n");
        assert!(matches!(events(&broken), Err(TraceError::Line { line: 2, .. })));
    }
}
