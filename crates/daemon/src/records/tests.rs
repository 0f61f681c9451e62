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
    RecordWriter::new(path.to_owned(), None, head(), limit, WallClock::system())
}

/// Returns the head of the record of another episode.
fn head_of(episode: &str, records: &str) -> RecordHead {
    RecordHead { episode: episode.to_owned(), records: records.to_owned(), ..head() }
}

/// Returns the writer of the record of an episode below `folder`, which begins with the file `beginning`.
fn writer_of(folder: &Path, episode: &str, beginning: Option<&Path>) -> RecordWriter {
    let path = folder.join(episode).join(FILE);
    RecordWriter::new(path, beginning.map(Path::to_owned), head_of(episode, "all"), LIMIT, WallClock::system())
}

fn unfinished(second: i64, path: &str) -> UnfinishedExchange {
    UnfinishedExchange { site: Some("shop".to_owned()), request: request(second, path) }
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
    records.begin(&other, "mini", RecordedRequests::Nothing, None, Vec::new());
    assert!(records.recorder(&other).is_none() && records.har(&other).await.expect("no error").is_none());
    records.begin(&one, "mini", RecordedRequests::Writes, None, head().sites);
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
    records.begin(&one, "mini", RecordedRequests::All, None, Vec::new());
    records.remove_old().await;
    assert!(file.exists());
    records.end(&one);
    records.0.tasks.close();
    records.0.tasks.wait().await;
    assert!(!file.exists(), "removed at its end, because there is no room");
    assert!(records.har(&one).await.expect("no error").is_none());
}

#[test]
fn the_record_of_a_fork_begins_with_the_requests_of_its_parent() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = |episode: &str| folder.path().join(episode).join(FILE);
    let kept = |name: &str| folder.path().join(name);
    let mut parent = writer_of(folder.path(), "parent", None);
    parent.write(Some("shop"), &exchange(2, "/two", "<p>"));
    parent.write(Some("shop"), &exchange(1, "/one", "<p>"));
    parent.fork(&kept("first.jsonl"), &[unfinished(3, "/under-way")]).expect("forked");
    parent.write(Some("shop"), &exchange(3, "/under-way", "<p>"));
    parent.write(Some("shop"), &exchange(4, "/of-the-parent", "<p>"));
    parent.close();
    assert_eq!(paths(&har(&record("parent"))), ["one", "two", "under-way", "of-the-parent"]);
    fs::remove_dir_all(folder.path().join("parent")).expect("removed");

    let mut child = writer_of(folder.path(), "child", Some(&kept("first.jsonl")));
    assert!(child.open());
    // From now on the child has it, whatever becomes of the copy.
    fs::remove_file(kept("first.jsonl")).expect("removed");
    let begun = har(&record("child"));
    assert_eq!((paths(&begun), lacks(&begun)), (vec!["one", "two", "under-way"], None));
    assert_eq!(begun["log"]["entries"][2]["_lost"][0], "answer", "the site may have received it");
    // The clock of the host was set back, but the requests of the parent came first.
    child.write(Some("shop"), &exchange(1, "/of-the-child", "<p>"));
    let of_child = har(&record("child"));
    assert_eq!(paths(&of_child), ["one", "two", "under-way", "of-the-child"]);
    let own = &of_child["log"]["_arenad"];
    let beginning = &own["beginnings"][0];
    assert_eq!((&own["episode"], &beginning["episode"]), (&Value::from("child"), &Value::from("parent")));
    assert_eq!(beginning["records"], "all");
    assert!(beginning["until"].as_str().is_some_and(|until| until.parse::<Timestamp>().is_ok()), "{own:#}");

    child.fork(&kept("second.jsonl"), &[]).expect("forked");
    let mut grandchild = writer_of(folder.path(), "grandchild", Some(&kept("second.jsonl")));
    grandchild.write(Some("shop"), &exchange(9, "/of-the-grandchild", "<p>"));
    let of_grandchild = har(&record("grandchild"));
    let expected = ["one", "two", "under-way", "of-the-child", "of-the-grandchild"];
    assert_eq!((paths(&of_grandchild), lacks(&of_grandchild)), (expected.to_vec(), None));
    let ancestors = of_grandchild["log"]["_arenad"]["beginnings"].as_array().expect("a list");
    assert_eq!(
        ancestors.iter().map(|one| one["episode"].as_str()).collect::<Vec<_>>(),
        [Some("parent"), Some("child")]
    );
    let text = fs::read_to_string(folder.path().join("grandchild").join(beginning::BEGINNING)).expect("a file");
    assert!(!text.contains("hunter2") && text.contains("redacted"), "{text}");
}

#[test]
fn a_daemon_that_is_killed_while_a_fork_begins_its_record_leaves_no_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.jsonl");
    let mut parent = writer_of(folder.path(), "parent", None);
    parent.write(Some("shop"), &exchange(1, "/one", "<p>"));
    parent.fork(&kept, &[]).expect("forked");
    let record = folder.path().join("child").join(FILE);
    assert!(writer_of(folder.path(), "child", Some(&kept)).open());
    let whole = fs::read(&record).expect("a file");
    let has_beginning = |har: &Value| (paths(har).contains(&"one"), lacks(har).is_none()) == (true, true);
    assert!(has_beginning(&har(&record)));
    // Killed before the beginning was taken over, and in the middle of the first line after that.
    for (has_taken_over, end) in [(false, 0), (true, 0), (true, 9), (true, whole.len() - 1)] {
        fs::write(&record, &whole[..end]).expect("written");
        if !has_taken_over {
            fs::remove_file(record.with_file_name(beginning::BEGINNING)).expect("removed");
        }
        let mut next = writer_of(folder.path(), "child", Some(&kept));
        next.write(Some("shop"), &exchange(2, "/two", "<p>"));
        let har = har(&record);
        assert!(has_beginning(&har), "cut at {end}: {har:#}");
        assert_eq!(paths(&har), ["one", "two"], "cut at {end}");
    }
    // A later daemon goes on without the copy.
    fs::remove_file(&kept).expect("removed");
    let mut next = writer_of(folder.path(), "child", Some(&kept));
    next.write(Some("shop"), &exchange(3, "/three", "<p>"));
    assert_eq!(paths(&har(&record)), ["one", "two", "three"]);
}

#[test]
fn a_beginning_says_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.jsonl");
    let child = |name: &str, kept: &Path, records: &str| {
        let path = folder.path().join(name).join(FILE);
        let head = head_of(name, records);
        RecordWriter::new(path.clone(), Some(kept.to_owned()), head, LIMIT, WallClock::system()).close();
        har(&path)
    };
    let lost = child("lost", &kept, "all");
    assert_eq!(lacks(&lost), Some("the requests before the fork are missing, because they could not be copied"));

    let at = Timestamp::from_second(60).expect("a time");
    beginning::write_silent(&kept, head_of("parent", "none"), at).expect("written");
    let silent =
        "all requests of parent before its fork at 1970-01-01T00:01:00Z are missing, because they were not recorded";
    for records in ["all", "writes"] {
        assert_eq!(lacks(&child(&format!("of-silent-{records}"), &kept, records)), Some(silent));
    }
    let path = folder.path().join("writes").join(FILE);
    let mut parent = RecordWriter::new(path, None, head_of("parent", "writes"), LIMIT, WallClock::system());
    parent.missed().store(2, Ordering::Relaxed);
    parent.fork(&kept, &[]).expect("forked");
    let said = child("of-writes", &kept, "all");
    let said = lacks(&said).expect("a reason");
    assert!(said.starts_with("all requests but writes of parent before its fork at "), "{said}");
    assert!(said.ends_with("; requests that could not be written are missing: 2"), "{said}");
    let same = child("same", &kept, "writes");
    assert_eq!(lacks(&same), Some("requests that could not be written are missing: 2"));
    // A daemon that was killed leaves a gap in the record of the parent, and so in that of the child.
    let mut next = writer_of(folder.path(), "writes", None);
    next.fork(&kept, &[]).expect("forked");
    let resumed = child("of-resumed", &kept, "writes");
    assert!(lacks(&resumed).is_some_and(|lacks| lacks.contains("ended without notice")), "{:?}", lacks(&resumed));
}

#[test]
fn the_limit_holds_for_a_record_with_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.jsonl");
    let page = "x".repeat(20 * 1024);
    let mut parent = writer_of(folder.path(), "parent", None);
    for second in 0..6 {
        parent.write(Some("shop"), &exchange(second, &format!("/{second}"), &page));
    }
    let under_way: Vec<UnfinishedExchange> = (0..400).map(|number| unfinished(10, &format!("/{number}"))).collect();
    parent.fork(&kept, &under_way).expect("forked");
    assert!(fs::metadata(&kept).expect("a file").len() <= LIMIT);
    parent.fork(&kept, &[]).expect("forked again");
    let mut child = writer_of(folder.path(), "child", Some(&kept));
    for second in 10..400 {
        child.write(Some("shop"), &exchange(second, &format!("/{second}"), &page));
    }
    child.close();
    let of_child = folder.path().join("child");
    let size = |name: &str| fs::metadata(of_child.join(name)).expect("a file").len();
    assert!(size(FILE) + size(beginning::BEGINNING) <= LIMIT);
    let har = har(&of_child.join(FILE));
    let entries = har["log"]["entries"].as_array().expect("a list");
    let bodies = entries.iter().filter(|entry| entry["response"]["content"]["text"].is_string()).count();
    assert!((7..12).contains(&bodies), "{bodies} bodies of 20 KiB, as in a record without a beginning");
    let missing = 396 - entries.len();
    let said = lacks(&har).expect("a reason");
    assert!(said.contains(&format!("so {missing} or more later requests are missing")), "{said}");
    // A fork of a full record has no room for anything but the reason.
    child.fork(&kept, &[unfinished(500, "/late")]).expect("forked");
    let mut last = writer_of(folder.path(), "last", Some(&kept));
    last.write(Some("shop"), &exchange(600, "/later", &page));
    let of_last = self::har(&folder.path().join("last").join(FILE));
    assert_eq!(paths(&of_last), paths(&har));
    assert!(lacks(&of_last).is_some_and(|lacks| lacks.contains("reached its limit")), "{:?}", lacks(&of_last));
}

#[test]
fn a_beginning_needs_its_space_once_however_many_records_have_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.jsonl");
    let mut parent = writer_of(folder.path(), EpisodeId::from_random([9; 10]).as_str(), None);
    let page = "x".repeat(50 * 1024);
    parent.write(Some("shop"), &exchange(1, "/one", &page));
    parent.fork(&kept, &[]).expect("forked");
    let beginning = fs::metadata(&kept).expect("a file").len();
    let children: Vec<EpisodeId> = (1..=4).map(|number| EpisodeId::from_random([number; 10])).collect();
    for child in &children {
        writer_of(folder.path(), child.as_str(), Some(&kept)).close();
    }
    fs::remove_file(&kept).expect("removed");
    let size = |of: &dyn Fn(&EpisodeId) -> bool| {
        let records = found(folder.path()).expect("a folder");
        records.iter().filter(|record| of(&record.episode)).map(|record| record.bytes).sum::<u64>()
    };
    let is_child = |episode: &EpisodeId| children.contains(episode);
    assert!((beginning..beginning + 8 * 1024).contains(&size(&is_child)), "{} of {beginning}", size(&is_child));
    let share = size(&|episode| *episode == children[0]);
    assert!((beginning / 4..beginning / 4 + 2 * 1024).contains(&share), "{share} of {beginning}");
}

#[tokio::test]
async fn the_beginning_of_a_fork_is_kept_as_long_as_a_fork_may_need_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = records(folder.path(), RecordRetention::default());
    let (parent, child) = (EpisodeId::from_random([1; 10]), EpisodeId::from_random([2; 10]));
    let forked = |records| ForkedEpisode { id: &parent, environment: "mini", records, since: Timestamp::UNIX_EPOCH };
    let all = || async { records.beginnings().await.expect("a folder") };
    assert!(all().await.is_empty(), "there is no folder");
    records.begin(&parent, "mini", RecordedRequests::All, None, head().sites);
    let beginning = records.fork(forked(RecordedRequests::All)).await;
    records.sync(&beginning).await;
    let file = beginning.path();
    let text = fs::read_to_string(&file).expect("a file");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(all().await.is_empty(), "its requests may not be recorded");
    let id = beginning.id().clone();
    drop(beginning);
    assert_eq!(all().await, BTreeSet::from([id.clone()]));

    // An episode that has just ended may not have taken it over yet.
    records.begin(&child, "mini", RecordedRequests::All, Some(&id), head().sites);
    records.end(&child);
    records.remove_beginnings(all().await).await.expect("removed");
    let har: Value = serde_json::from_str(&records.har(&child).await.expect("read").expect("a record")).expect("JSON");
    assert_eq!(
        (&har["log"]["_arenad"]["beginnings"][0]["episode"], lacks(&har)),
        (&Value::from(parent.as_str()), None)
    );
    while records.0.live().contains_key(&child) {
        tokio::task::yield_now().await;
    }
    records.remove_beginnings(all().await).await.expect("removed");
    assert!(!file.exists() && all().await.is_empty());
    assert!(folder.path().join(child.as_str()).join(beginning::BEGINNING).exists(), "the record keeps it");

    // Neither a fork that was interrupted nor one of an episode without a record leaves anything for ever.
    fs::write(file.with_extension("partial"), "{").expect("written");
    assert_eq!(all().await, BTreeSet::from([id]));
    let silent = records.fork(forked(RecordedRequests::Nothing)).await;
    let text = fs::read_to_string(silent.path()).expect("a file");
    assert!(text.contains("\"none\"") && text.lines().count() == 2, "{text}");
    drop(silent);
    assert_eq!(all().await.len(), 2);
    records.remove_beginnings(all().await).await.expect("removed");
    assert_eq!(fs::read_dir(folder.path().join("beginnings")).expect("a folder").count(), 0);

    // The record of an episode that has ended is closed, so its fork has no beginning.
    records.end(&parent);
    while records.0.live().contains_key(&parent) {
        tokio::task::yield_now().await;
    }
    let late = records.fork(forked(RecordedRequests::All)).await;
    assert!(!late.path().exists());
}
