//! Recordings of each format become replays, and broken ones are named.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use arenad_replay::{
    HeaderField, KeptReplay, MatchRule, ReplayBuilder, ReplayError, ReplayMatch, ReplayReport, ReplayRequest,
    ReplaySettings, SourceSet,
};

struct Workshop {
    folder: TempDir,
}

struct Made {
    report: ReplayReport,
    kept: KeptReplay,
}

impl Workshop {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn upload(&self, files: &[(&str, Vec<u8>)]) -> PathBuf {
        let path = self.folder.path().join("upload");
        let mut archive = tar::Builder::new(File::create(&path).expect("a file"));
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            archive.append_data(&mut header, name, content.as_slice()).expect("appended");
        }
        archive.into_inner().expect("written");
        path
    }

    fn build(&self, files: &[(&str, Vec<u8>)], settings: &ReplaySettings) -> Result<Made, ReplayError> {
        let sources = SourceSet::open(&self.upload(files), "upload")?;
        let folder = self.folder.path().join("replay");
        let _ = std::fs::remove_dir_all(&folder);
        let report = ReplayBuilder::begin(&folder, settings)?.build(&sources, settings)?;
        let kept = KeptReplay::open(&folder, &report)?;
        Ok(Made { report, kept })
    }

    fn made(&self, files: &[(&str, Vec<u8>)]) -> Made {
        self.build(files, &ReplaySettings::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(&self, name: &str, content: impl Into<Vec<u8>>) -> String {
        match self.build(&[(name, content.into())], &ReplaySettings::default()) {
            Ok(made) => panic!("{name} was accepted: {:?}", made.report),
            Err(error) => error.to_string(),
        }
    }
}

impl Made {
    fn ask(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<(MatchRule, u16, Vec<u8>)> {
        let field = |(name, value): &(&str, &str)| HeaderField((*name).to_owned(), (*value).to_owned());
        let headers: Vec<HeaderField> = headers.iter().map(field).collect();
        let request = ReplayRequest { method, url: Url::parse(url).expect("a URL"), headers: &headers, body };
        match self.kept.index().find(&request) {
            ReplayMatch::Found { entry, rule } => {
                Some((rule, entry.status, self.kept.body(entry.body).expect("a body")))
            }
            ReplayMatch::Preflight => Some((MatchRule::Preflight, 204, Vec::new())),
            ReplayMatch::Miss => None,
        }
    }

    fn get(&self, url: &str) -> Option<(MatchRule, u16, Vec<u8>)> {
        self.ask("GET", url, &[], b"")
    }

    fn header(&self, url: &str, name: &str) -> Option<String> {
        let entry = self.kept.index().entries().iter().find(|entry| entry.url == url)?;
        let field = entry.headers.iter().find(|field| field.0.eq_ignore_ascii_case(name))?;
        Some(field.1.clone())
    }
}

fn entry(method: &str, url: &str, status: u16, text: &str) -> Value {
    json!({
        "startedDateTime": "2023-03-01T10:00:00Z",
        "request": { "method": method, "url": url, "headers": [] },
        "response": {
            "status": status, "headers": [{ "name": "Content-Type", "value": "text/html" }],
            "content": { "size": text.len(), "text": text }, "redirectURL": "",
        },
    })
}

fn har(entries: &[Value]) -> Vec<u8> {
    serde_json::to_vec(&json!({ "log": { "version": "1.2", "entries": entries } })).expect("JSON")
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

#[test]
fn a_har_answers_as_playwright_would() {
    let mut german = entry("GET", "https://a.test/page#top", 200, "deutsch");
    german["request"]["headers"] = json!([{ "name": "Accept-Language", "value": "de" }]);
    let mut english = entry("GET", "https://a.test/page", 200, "english");
    english["request"]["headers"] =
        json!([{ "name": "accept-language", "value": "en" }, { "name": ":authority", "value": "a.test" }]);
    let mut one = entry("POST", "https://a.test/api", 200, "one");
    one["request"]["postData"] = json!({ "mimeType": "application/json", "text": "{\"q\":1}" });
    let mut two = entry("POST", "https://a.test/api", 200, "two");
    two["request"]["postData"] = json!({ "mimeType": "application/json", "text": "{\"q\":2}" });
    let made = Workshop::new().made(&[("a.har", har(&[german, english, one, two]))]);
    let page = |language: &str| {
        let answer = made.ask("GET", "https://a.test/page", &[("Accept-Language", language)], b"");
        answer.expect("recorded").2
    };
    assert_eq!(page("de"), b"deutsch");
    assert_eq!(page("en"), b"english", "closest by headers");
    assert_eq!(page("fr"), b"deutsch", "of equally close ones the first");
    let post = |body: &str| made.ask("POST", "https://a.test/api", &[], body.as_bytes());
    assert_eq!(post("{\"q\":2}"), Some((MatchRule::Exact, 200, b"two".to_vec())));
    assert_eq!(post("{\"q\":3}"), None, "another body");
    assert_eq!(made.ask("PUT", "https://a.test/api", &[], b""), None, "another method");
    assert_eq!(made.get("http://a.test/page"), None, "another scheme");
    assert_eq!(made.ask("HEAD", "https://a.test/page", &[], b"").expect("recorded").0, MatchRule::Head);
    let asks = [("Access-Control-Request-Method", "POST"), ("Origin", "https://b.test")];
    assert_eq!(made.ask("OPTIONS", "https://a.test/api", &asks, b"").expect("allowed").0, MatchRule::Preflight);
    assert_eq!(made.ask("OPTIONS", "https://a.test/other", &asks, b""), None);
    assert_eq!(made.report.origins.iter().map(ToString::to_string).collect::<Vec<_>>(), ["https://a.test"]);
    assert_eq!(made.report.recorded_from.as_deref(), Some("2023-03-01T10:00:00Z"));
}

#[test]
fn what_moves_is_matched_after_what_is_the_same() {
    let made = Workshop::new().made(&[(
        "a.har",
        har(&[
            entry("GET", "https://a.test/x.js?v=1&_=1677660000000", 200, "first"),
            entry("GET", "https://a.test/x.js?v=1&_=1677669999999", 200, "second"),
            entry("GET", "https://a.test/log/1677660000/end", 404, "recorded"),
        ]),
    )]);
    assert_eq!(
        made.get("https://a.test/x.js?v=1&_=1677669999999").expect("recorded"),
        (MatchRule::Exact, 200, b"second".to_vec())
    );
    assert_eq!(
        made.get("https://a.test/x.js?_=1&v=1").expect("moved"),
        (MatchRule::MovedParameters, 200, b"first".to_vec())
    );
    assert_eq!(made.get("https://a.test/x.js?_=1&v=2"), None);
    let moved = made.get("https://a.test/log/1700000000/end").expect("moved");
    assert_eq!(moved, (MatchRule::MovedValues, 404, b"recorded".to_vec()));
}

#[test]
fn a_har_is_decoded_and_its_gaps_are_named() {
    let mut coded = entry("GET", "https://a.test/coded", 200, "naïve");
    coded["response"]["headers"] = json!([
        { "name": "content-encoding", "value": "br" }, { "name": "content-length", "value": "3" },
        { "name": "Content-Type", "value": "text/html; charset=iso-8859-1" }, { "name": "set-cookie", "value": "a=1\nb=2" },
    ]);
    let mut binary = entry("GET", "https://a.test/p.png", 200, "");
    binary["response"]["content"] =
        json!({ "size": 4, "text": STANDARD.encode([137, 80, 78, 71]), "encoding": "base64" });
    let mut lacking = entry("GET", "https://a.test/lost", 200, "");
    lacking["response"]["content"] = json!({ "size": 900, "mimeType": "image/png" });
    let mut cached = entry("GET", "https://a.test/cached", 304, "kept");
    cached["response"]["content"]["size"] = json!(4);
    let mut redirect = entry("GET", "https://a.test/old", 302, "");
    redirect["response"]["headers"] = json!([{ "name": "Location", "value": "../new" }]);
    let made = Workshop::new().made(&[(
        "a.har",
        har(&[
            coded,
            binary,
            lacking,
            cached,
            redirect,
            entry("GET", "data:text/html,x", 200, "x"),
            entry("GET", "https://a.test/failed", 0, ""),
            entry("GET", "wss://a.test/socket", 101, ""),
            json!({ "request": {} }),
        ]),
    )]);
    assert_eq!(made.get("https://a.test/coded").expect("recorded").2, "naïve".as_bytes());
    assert_eq!(made.header("https://a.test/coded", "content-type").as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(made.header("https://a.test/coded", "content-encoding"), None);
    assert_eq!(made.get("https://a.test/p.png").expect("recorded").2, [137, 80, 78, 71]);
    assert_eq!(made.get("https://a.test/cached").expect("recorded").1, 200);
    assert_eq!(made.get("https://a.test/old").expect("recorded").1, 302);
    assert_eq!(made.get("https://a.test/lost"), None);
    let named: Vec<String> = made.report.problems.iter().map(ToString::to_string).collect();
    for expected in [
        "a.har: entry 3: the recording lacks the body of https://a.test/lost",
        "a.har: entry 7: https://a.test/failed has no response",
        "a.har: entry 8: wss://a.test/socket is neither http nor https",
        "a.har: entry 9: the entry is not valid (missing field",
        "a.har: entry 5: https://a.test/old: redirects to https://a.test/new, which was not recorded",
    ] {
        assert!(named.iter().any(|problem| problem.starts_with(expected)), "{expected}: {named:#?}");
    }
    assert_eq!((made.report.entries, made.report.left_out), (4, 4));
}

#[test]
fn playwrights_bodies_are_found_beside_the_har_and_in_its_archive() {
    let mut attached = entry("GET", "https://a.test/", 200, "");
    attached["response"]["content"] = json!({ "size": 4, "_file": "0123.html" });
    let file = har(&[attached]);
    let workshop = Workshop::new();
    let made =
        workshop.made(&[("s/1/a.har", file.clone()), ("s/1/0123.html", b"body".to_vec()), ("notes.txt", vec![1])]);
    assert_eq!(made.get("https://a.test/").expect("recorded").2, b"body");
    assert_eq!(made.report.recordings, ["s/1/a.har"]);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in [("har.har", file.as_slice()), ("0123.html", b"packed")] {
        archive.start_file(name, options).expect("begun");
        archive.write_all(content).expect("written");
    }
    let packed = archive.finish().expect("finished").into_inner();
    let made = workshop.made(&[("session.har.zip", packed)]);
    assert_eq!(made.get("https://a.test/").expect("recorded").2, b"packed");
    assert_eq!(made.report.recordings, ["session.har.zip/har.har"]);
    let named = workshop.refused("a.har", file);
    assert!(named.contains("in the file 0123.html, which is missing"), "{named}");
}

#[test]
fn an_mhtml_page_gets_its_parts_and_loses_the_marks_of_its_recorder() {
    let page = concat!(
        "From: <Saved by Blink>\r\nSnapshot-Content-Location: https://a.test/shop\r\nSubject: Shop\r\n",
        "Date: Wed, 1 Mar 2023 10:00:00 +0000\r\nMIME-Version: 1.0\r\n",
        "Content-Type: multipart/related; type=\"text/html\"; boundary=\"----B\"\r\n\r\n\r\n",
        "------B\r\nContent-Type: text/html\r\nContent-ID: <frame-1@mhtml.blink>\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\nContent-Location: https://a.test/shop\r\n\r\n",
        "<a data-pw-testid-buckeye=3D\"u1\" href=3D\"/x\">caf=C3=A9</a>",
        "<iframe src=3D\"cid:frame-2@mhtml.blink\"></iframe>\r\n",
        "------B\r\nContent-Type: text/html\r\nContent-ID: <frame-2@mhtml.blink>\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>inner</p>\r\n",
        "------B\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n",
        "Content-Location: https://cdn.test/p.png\r\n\r\niVBORw==\r\n",
        "------B--\r\n",
    );
    let workshop = Workshop::new();
    let made = workshop.made(&[("u1_before.mhtml", page.as_bytes().to_vec())]);
    let text = String::from_utf8(made.get("https://a.test/shop").expect("the page").2).expect("UTF-8");
    assert!(text.contains("<a href=\"/x\">café</a>"), "{text}");
    let inner = "https://a.test/.arenad-replay/part/frame-2@mhtml.blink";
    assert!(text.contains(&format!("src=\"{inner}\"")), "{text}");
    assert!(made.get(inner).expect("the frame").2.starts_with(b"<p>inner</p>"));
    assert_eq!(made.get("https://cdn.test/p.png").expect("the picture").2, [137, 80, 78, 71]);
    assert_eq!(made.header("https://a.test/shop", "content-type").as_deref(), Some("text/html; charset=utf-8"));
    let cut = page.split("------B--").next().expect("a beginning");
    assert!(workshop.refused("cut.mhtml", cut).contains("the file ends early"));
}

fn record(kind: &str, id: &str, further: &str, url: &str, block: &[u8]) -> Vec<u8> {
    let mut record = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{id}>\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: 2023-03-01T10:00:00Z\r\nContent-Type: application/http; msgtype={kind}\r\n{further}\
         Content-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

#[test]
fn warc_keeps_the_bytes_that_were_sent() {
    let coded = gzipped(b"compressed");
    let mut first = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    first.extend_from_slice(format!("{:x}\r\n", coded.len()).as_bytes());
    first.extend_from_slice(&coded);
    first.extend_from_slice(b"\r\n0\r\n\r\n");
    let digest = "WARC-Payload-Digest: sha1:AAAA\r\n";
    let records = [
        record("warcinfo", "0", "", "", b""),
        record("response", "1", digest, "https://a.test/", &first),
        record(
            "request",
            "2",
            "WARC-Concurrent-To: <urn:1>\r\n",
            "https://a.test/",
            b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ),
        record("response", "3", "", "https://a.test/send", b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
        record(
            "request",
            "4",
            "WARC-Concurrent-To: <urn:3>\r\n",
            "https://a.test/send",
            b"POST /send HTTP/1.1\r\n\r\na=1",
        ),
        record("revisit", "5", digest, "https://a.test/again", b""),
        record("response", "6", "WARC-Truncated: length\r\n", "https://a.test/long", b"HTTP/1.1 200 OK\r\n\r\nx"),
    ];
    let workshop = Workshop::new();
    for (name, file) in [
        ("crawl.warc", records.concat()),
        ("crawl.warc.gz", records.iter().flat_map(|record| gzipped(record)).collect()),
    ] {
        let made = workshop.made(&[(name, file)]);
        assert_eq!(made.get("https://a.test/").expect("recorded").2, coded, "{name}");
        assert_eq!(made.header("https://a.test/", "content-encoding").as_deref(), Some("gzip"));
        assert_eq!(made.header("https://a.test/", "transfer-encoding"), None);
        assert_eq!(made.get("https://a.test/again").expect("a revisit").2, coded);
        assert_eq!(made.ask("POST", "https://a.test/send", &[], b"a=1").expect("recorded").1, 201);
        assert_eq!(made.ask("POST", "https://a.test/send", &[], b"a=2"), None);
        assert_eq!(made.report.left_out, 1, "{:?}", made.report.problems);
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("archive/data.warc.gz", zip::write::SimpleFileOptions::default()).expect("begun");
    archive.write_all(&gzipped(&records[1])).expect("written");
    let wacz = archive.finish().expect("finished").into_inner();
    assert_eq!(workshop.made(&[("site.wacz", wacz)]).get("https://a.test/").expect("recorded").2, coded);
    let cut = &records[1][..records[1].len() - 40];
    assert!(workshop.refused("cut.warc", cut).contains("record 1: the file ends within the record"));
}

#[test]
fn broken_recordings_are_refused_with_their_place_or_named_and_left_out() {
    let whole = har(&[entry("GET", "https://a.test/", 200, "x")]);
    let workshop = Workshop::new();
    for (name, content, expected) in [
        ("cut.har", whole[..whole.len() - 9].to_vec(), "read cut.har: EOF while parsing"),
        ("log.har", b"{\"log\": {}}".to_vec(), "the field `log.entries` is missing"),
        ("list.har", b"[]".to_vec(), "read list.har: invalid type: sequence"),
        ("tail.har", [whole.as_slice(), b"x"].concat(), "trailing characters"),
        ("empty.har", har(&[]), "no exchange can be replayed: the recordings are empty"),
        ("notes.txt", b"hello".to_vec(), "no recording among 1 file (notes.txt)"),
        ("bad.zip", b"PK\x03\x04nothing".to_vec(), "the ZIP archive is broken"),
        ("empty.warc", Vec::new(), "the file has no records"),
        ("odd.warc", b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "record 1: expected `WARC/1.x`"),
        ("odd.mhtml", b"Subject: x\r\n\r\nhello".to_vec(), "not `multipart/related`"),
    ] {
        let told = workshop.refused(name, content);
        assert!(told.contains(expected), "{name}: {told}");
    }
    let settings = ReplaySettings { skip_broken: true, ..ReplaySettings::default() };
    let files = [("cut.har", whole[..whole.len() - 9].to_vec()), ("whole.har", whole.clone())];
    let made = workshop.build(&files, &settings).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.report.skipped.len(), 1);
    assert_eq!(made.report.skipped[0].file, "cut.har");
    assert!(made.get("https://a.test/").is_some());
}

#[test]
fn an_upload_that_ends_early_is_refused() {
    let workshop = Workshop::new();
    let path = workshop.upload(&[("a.har", har(&[entry("GET", "https://a.test/", 200, &"x".repeat(2000))]))]);
    let bytes = std::fs::read(&path).expect("read");
    std::fs::write(&path, &bytes[..1024]).expect("written");
    assert!(matches!(SourceSet::open(&path, "upload"), Err(ReplayError::Broken { .. })));
    // One file needs no archive.
    let single = har(&[entry("GET", "https://a.test/", 200, "alone")]);
    std::fs::write(&path, single).expect("written");
    let sources = SourceSet::open(&path, "alone.har").expect("opened");
    let settings = ReplaySettings::default();
    let built = ReplayBuilder::begin(&workshop.folder.path().join("alone"), &settings)
        .and_then(|it| it.build(&sources, &settings));
    assert_eq!(built.expect("built").recordings, ["alone.har"]);
}
