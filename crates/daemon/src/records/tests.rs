//! Tests of the format on files, with exchanges as the gateway makes them.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

use super::*;
use arenad_gateway::{AnswerHead, Exchange, RecordedBody, RequestHead, UnfinishedExchange};

const LIMIT: u64 = 256 * 1024;

fn head() -> RecordHead {
    RecordHead {
        version: VERSION,
        episode: "ep-0123456789abcdef0123".to_owned(),
        environment: "mini".to_owned(),
        records: "all".to_owned(),
        since: Timestamp::UNIX_EPOCH,
        sites: vec![RecordedSite {
            site: "shop".to_owned(),
            variable: Some("SHOPPING".to_owned()),
            instance: Some("mini/shop/2".to_owned()),
            generation: Some(7),
            urls: vec!["http://shop.arena.test".to_owned()],
        }],
    }
}

fn writer(path: &Path, limit: u64) -> RecordWriter {
    RecordWriter::new(path.to_owned(), head(), limit, WallClock::system())
}

fn request(second: i64, path: &str) -> Arc<RequestHead> {
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        (AUTHORIZATION, HeaderValue::from_static("Bearer hunter2")),
    ]);
    Arc::new(RequestHead {
        at: Timestamp::from_second(second).expect("a time"),
        method: Method::POST,
        url: format!("http://shop.arena.test{path}"),
        headers,
    })
}

fn exchange(second: i64, path: &str, answer: &str) -> Exchange {
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("text/html")),
        (SET_COOKIE, HeaderValue::from_static("session=hunter2; HttpOnly")),
    ]);
    Exchange {
        request: request(second, path),
        sent: RecordedBody::Whole(Bytes::from_static(b"user=ann&password=hunter2")),
        answer: Some(Arc::new(AnswerHead { status: StatusCode::OK, headers, waited: Duration::from_millis(5) })),
        received: RecordedBody::Whole(Bytes::from(answer.to_owned())),
        took: Some(Duration::from_millis(9)),
    }
}

fn har(path: &Path) -> Value {
    let content = RecordContent::read(path).expect("a record");
    serde_json::from_str(&content.har(&[], LIMIT)).expect("JSON")
}

fn paths(har: &Value) -> Vec<&str> {
    let entries = har["log"]["entries"].as_array().expect("a list");
    entries.iter().filter_map(|entry| entry["request"]["url"].as_str()?.rsplit('/').next()).collect()
}

fn lacks(har: &Value) -> Option<&str> {
    har["log"]["_arenad"]["sites"][0]["lacks"].as_str()
}

#[test]
fn what_was_written_is_read_back_in_order_and_without_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let mut writer = writer(&path, LIMIT);
    writer.write(Some("shop"), &exchange(20, "/second", "<p>two"));
    writer.write(None, &exchange(10, "/first", "<p>one"));
    writer.close();
    let text = fs::read_to_string(&path).expect("a file");
    assert!(!text.contains("hunter2") && text.contains("redacted"), "{text}");
    let har = har(&path);
    assert_eq!(paths(&har), ["first", "second"], "as the requests began, not as they ended");
    let log = &har["log"];
    assert_eq!((&log["version"], &log["creator"]["name"]), (&Value::from("1.2"), &Value::from("arenad")));
    let entries = &log["entries"];
    assert_eq!((&entries[0]["_site"], &entries[1]["_site"]), (&Value::Null, &Value::from("shop")));
    assert_eq!(entries[1]["response"]["content"]["text"], "<p>two");
    assert_eq!(entries[1]["request"]["postData"]["text"], "user=ann&password=[redacted]");
    let own = &log["_arenad"];
    assert_eq!((&own["episode"], &own["records"]), (&Value::from(head().episode), &Value::from("all")));
    assert_eq!(own["sites"][0]["urls"][0], "http://shop.arena.test");
    assert_eq!(lacks(&har), None, "{har:#}");
}

#[test]
fn a_torn_end_loses_nothing_before_it_and_the_record_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let mut first = writer(&path, LIMIT);
    first.write(Some("shop"), &exchange(1, "/one", "<p>"));
    first.write(Some("shop"), &exchange(2, "/two", "<p>"));
    drop(first);
    let whole = fs::read(&path).expect("a file");
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("several lines") + 1;
    // Every possible end of a write that a killed daemon did not finish.
    for end in last..whole.len() {
        fs::write(&path, &whole[..end]).expect("written");
        assert_eq!(paths(&har(&path)), ["one"], "cut at {end}");
    }
    let mut next = writer(&path, LIMIT);
    next.write(Some("shop"), &exchange(3, "/three", "<p>"));
    let har_now = har(&path);
    assert_eq!(paths(&har_now), ["one", "three"]);
    let said = lacks(&har_now).expect("a reason");
    assert!(said.contains("ended without notice"), "{said}");
    assert_eq!(fs::read_to_string(&path).expect("text").lines().count(), 4, "head, entry, resumed, entry");
    // The first line alone may be torn as well.
    let head_end = whole.iter().position(|byte| *byte == b'\n').expect("a line");
    fs::write(&path, &whole[..head_end]).expect("written");
    assert!(matches!(RecordContent::read(&path), Err(RecordError::Head)));
    let mut anew = writer(&path, LIMIT);
    anew.write(Some("shop"), &exchange(4, "/four", "<p>"));
    assert_eq!(paths(&har(&path)), ["four"]);
}

#[test]
fn a_daemon_that_stopped_in_order_leaves_no_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    for (second, name) in [(1, "/one"), (2, "/two"), (3, "/three")] {
        let mut writer = writer(&path, LIMIT);
        writer.write(Some("shop"), &exchange(second, name, "<p>"));
        writer.close();
    }
    let har = har(&path);
    assert_eq!((paths(&har), lacks(&har)), (vec!["one", "two", "three"], None));
}

#[test]
fn a_full_record_leaves_out_bodies_then_exchanges_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let mut writer = writer(&path, LIMIT);
    let page = "x".repeat(20 * 1024);
    for second in 0..400 {
        writer.write(Some("shop"), &exchange(second, &format!("/{second}"), &page));
    }
    assert!(fs::metadata(&path).expect("a file").len() <= LIMIT);
    // Said at once, so that a crash does not hide it.
    let running = har(&path);
    assert!(lacks(&running).is_some_and(|lacks| lacks.contains("reached its limit")), "{:?}", lacks(&running));
    writer.close();
    assert!(fs::metadata(&path).expect("a file").len() <= LIMIT);
    let har = har(&path);
    let entries = har["log"]["entries"].as_array().expect("a list");
    let has_body = |entry: &&Value| entry["response"]["content"]["text"].is_string();
    let bodies = entries.iter().filter(has_body).count();
    assert!((5..12).contains(&bodies), "{bodies} bodies of 20 KiB");
    assert!(entries.len() > bodies + 10, "{} exchanges", entries.len());
    let without = entries.iter().find(|entry| !has_body(entry)).expect("one without its body");
    assert_eq!(without["_lost"][0], "answer");
    assert_eq!(without["request"]["postData"]["text"], "user=ann&password=[redacted]", "what was sent is kept");
    let missing = 400 - entries.len();
    let said = lacks(&har).expect("a reason");
    assert!(said.contains(&format!("so {missing} or more later requests are missing")), "{said}");
}

#[test]
fn what_could_not_be_written_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file").expect("written");
    let path = blocked.join("record");
    let mut writer = writer(&path, LIMIT);
    writer.write(Some("shop"), &exchange(1, "/lost", "<p>"));
    assert_eq!(writer.missed().load(Ordering::Relaxed), 1);
    fs::remove_file(&blocked).expect("removed");
    writer.write(Some("shop"), &exchange(2, "/kept", "<p>"));
    let har = har(&path);
    assert_eq!(paths(&har), ["kept"]);
    assert!(
        lacks(&har).is_some_and(|lacks| lacks == "requests that could not be written are missing: 1"),
        "{:?}",
        lacks(&har)
    );
}

#[test]
fn damaged_lines_are_passed_over_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let mut writer = writer(&path, LIMIT);
    writer.write(Some("shop"), &exchange(1, "/one", "<p>"));
    let damaged: [&[u8]; 4] = [b"{\"entry\":{\"a\":}}\n", b"\xff\xfe\n", b"{\"entry\":7}\n", b"\n"];
    let bytes = [fs::read(&path).expect("a file"), damaged.concat()].concat();
    fs::write(&path, bytes).expect("written");
    let har = har(&path);
    assert_eq!(paths(&har), ["one"]);
    assert_eq!(lacks(&har), Some("4 lines of the record are damaged"));
    fs::write(&path, "{\"closed\":{\"at\":\"2026-01-01T00:00:00Z\"}}\n").expect("written");
    assert!(matches!(RecordContent::read(&path), Err(RecordError::Head)), "no first line");
}

#[test]
fn requests_under_way_are_shown_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record");
    let mut writer = writer(&path, LIMIT);
    writer.write(Some("shop"), &exchange(1, "/done", "<p>"));
    let unfinished =
        |second, path| UnfinishedExchange { site: Some("shop".to_owned()), request: request(second, path) };
    let under_way = [unfinished(2, "/asked"), unfinished(1, "/done")];
    let content = RecordContent::read(&path).expect("a record");
    let har: Value = serde_json::from_str(&content.har(&under_way, LIMIT)).expect("JSON");
    assert_eq!(paths(&har), ["done", "asked"]);
    assert_eq!(har["log"]["entries"][1]["response"]["status"], 0);
    assert_eq!(har["log"]["entries"][1]["_lost"][0], "answer");
}

fn records(folder: &Path, retention: RecordRetention) -> EpisodeRecords {
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    EpisodeRecords::new(folder.to_owned(), retention, WallClock::system(), tasks, shutdown)
}

#[tokio::test]
async fn a_record_lasts_from_the_beginning_of_its_episode_until_it_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (EpisodeId::from_random([1; 10]), EpisodeId::from_random([2; 10]));
    let records_of = |total_bytes| records(folder.path(), RecordRetention { total_bytes, ..Default::default() });
    let records = records_of(1 << 20);
    records.begin(&other, "mini", RecordedRequests::Nothing, Vec::new());
    assert!(records.recorder(&other).is_none() && records.har(&other).await.expect("no error").is_none());
    records.begin(&one, "mini", RecordedRequests::Writes, head().sites);
    assert!(records.recorder(&one).is_some());
    let file = folder.path().join(one.as_str()).join(FILE);
    while !file.exists() {
        tokio::task::yield_now().await;
    }
    records.end(&one);
    assert!(records.recorder(&one).is_none(), "nothing of a later moment is recorded");
    let har: Value = serde_json::from_str(&records.har(&one).await.expect("read").expect("a record")).expect("JSON");
    assert_eq!((paths(&har).len(), lacks(&har)), (0, None), "{har:#}");
    assert_eq!(har["log"]["_arenad"]["records"], "writes");
    // The record of a running episode is never removed, whatever the limit.
    let records = records_of(0);
    records.begin(&one, "mini", RecordedRequests::All, Vec::new());
    records.remove_old().await;
    assert!(file.exists());
    records.end(&one);
    records.0.tasks.close();
    records.0.tasks.wait().await;
    assert!(!file.exists(), "removed at its end, because there is no room");
    assert!(records.har(&one).await.expect("no error").is_none());
}
