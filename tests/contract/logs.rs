//! Cases about the logs of containers.

use std::time::Duration;

use arenad_engine::{EngineHandle, LogChunk, LogRange};
use futures_util::StreamExt;

use crate::bed::{Bed, PATIENCE, script};

const ALL: LogRange = LogRange { tail: None, since: None, follow: false, timestamps: false };

async fn read(bed: &Bed, handle: &EngineHandle, range: LogRange) -> Vec<LogChunk> {
    let chunks: Vec<_> = bed.engine.logs(handle, range).collect().await;
    chunks.into_iter().map(|chunk| chunk.expect("a log")).collect()
}

fn text(chunks: &[LogChunk]) -> String {
    chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.bytes).into_owned()).collect()
}

pub async fn logs_are_read_whole_or_from_their_end(bed: Bed) {
    let handle = bed.start("one", script("echo one; echo two; echo three")).await;
    bed.ended(&handle).await;
    assert_eq!(text(&read(&bed, &handle, ALL).await), "one\ntwo\nthree\n");
    assert_eq!(text(&read(&bed, &handle, LogRange { tail: Some(2), ..ALL }).await), "two\nthree\n");
    assert_eq!(text(&read(&bed, &handle, LogRange { tail: Some(9), ..ALL }).await), "one\ntwo\nthree\n");
    assert_eq!(text(&read(&bed, &handle, LogRange { tail: Some(0), ..ALL }).await), "");
    let never = bed.create("two", script("echo one")).await;
    assert_eq!(text(&read(&bed, &never, ALL).await), "");
}

pub async fn logs_keep_errors_apart(bed: Bed) {
    let handle = bed.start("one", script("echo out; echo err >&2")).await;
    bed.ended(&handle).await;
    let log = read(&bed, &handle, ALL).await;
    let of = |is_stderr: bool| {
        let chunks: Vec<LogChunk> = log.iter().filter(|chunk| chunk.is_stderr == is_stderr).cloned().collect();
        text(&chunks)
    };
    assert_eq!((of(false).as_str(), of(true).as_str()), ("out\n", "err\n"));
}

pub async fn logs_are_read_from_a_time_on(bed: Bed) {
    let handle = bed.start("one", script("echo early; sleep 4; echo late")).await;
    let created = bed.engine.containers(crate::bed::LABEL, &bed.name).await.unwrap()[0].created;
    bed.ended(&handle).await;
    let since = |since: i64| LogRange { since: Some(since), ..ALL };
    assert_eq!(text(&read(&bed, &handle, since(created)).await), "early\nlate\n");
    // A container may take some time from its creation to its first line.
    assert_eq!(text(&read(&bed, &handle, since(created + 4)).await), "late\n");
    assert_eq!(text(&read(&bed, &handle, since(created + 1000)).await), "");
}

pub async fn logs_carry_times(bed: Bed) {
    let handle = bed.start("one", script("echo one")).await;
    bed.ended(&handle).await;
    let line = text(&read(&bed, &handle, LogRange { timestamps: true, ..ALL }).await);
    let (time, word) = line.split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
    assert_eq!(word, "one\n");
}

pub async fn logs_are_followed_to_the_end_of_the_container(bed: Bed) {
    let handle = bed.start("one", script("echo one; sleep 1; echo two; sleep 1; echo three")).await;
    let mut log = bed.engine.logs(&handle, LogRange { follow: true, ..ALL });
    let mut said = String::new();
    let reading = async {
        while let Some(chunk) = log.next().await {
            said.push_str(&String::from_utf8_lossy(&chunk.expect("a log").bytes));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it ends with the container");
    assert_eq!(said, "one\ntwo\nthree\n");
    // The stream starts with the last line and continues.
    bed.engine.start(&handle).await.unwrap();
    let mut log = bed.engine.logs(&handle, LogRange { follow: true, tail: Some(0), ..ALL });
    let first = tokio::time::timeout(Duration::from_secs(60), log.next()).await.unwrap().unwrap().unwrap();
    assert!(!first.bytes.is_empty());
}

pub async fn logs_of_nothing_are_an_error(bed: Bed) {
    let none = EngineHandle("0".repeat(64));
    let first = bed.engine.logs(&none, ALL).next().await.expect("an item");
    assert!(first.unwrap_err().is_not_found());
}
