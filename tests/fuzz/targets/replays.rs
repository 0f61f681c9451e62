//! Recordings from which replays are made: HAR, MHTML, WARC, ZIP archives and tar archives of them. Every exchange that is
//! kept answers its own request.

use std::fs::File;
use std::io::{BufRead, BufReader};

use arenad_replay::{KeptEntry, KeptReplay, ReplayBuilder, ReplayMatch, ReplayRequest, ReplaySettings, SourceSet};

use crate::target::{FuzzTarget, InputCheck, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "{\"log\":{\"entries\":[",
        "\"request\":{\"method\":\"POST\",\"url\":\"http://a.test/\",\"headers\":[]}",
        "\"response\":{\"status\":302,\"redirectURL\":\"/b\"}",
        "\"content\":{\"text\":\"YQ==\",\"encoding\":\"base64\"}",
        "\"_file\":\"../x\"",
        "\"postData\":{\"mimeType\":\"multipart/form-data; boundary=x\",\"text\":\"--x\"}",
        "WARC/1.1\r\n",
        "WARC-Type: response\r\n",
        "WARC-Type: revisit\r\n",
        "WARC-Concurrent-To: <urn:uuid:1>\r\n",
        "WARC-Payload-Digest: sha1:A\r\n",
        "Content-Length: 9999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "ffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n",
        "Content-Location: cid:css-1@mhtml\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "--b--",
        "PK\u{3}\u{4}",
        "\u{1f}\u{8b}",
        "ustar",
        "http://[::1]:99999/",
        "xn--",
        "%00",
        "?_=1700000000000&nonce=",
    ],
    ..FuzzTarget::new("replays", open)
};

fn open() -> InputCheck {
    let folder = scratch();
    let (upload, made) = (folder.join("upload"), folder.join("replay"));
    Box::new(move |input| {
        std::fs::write(&upload, input).expect("written");
        let _ = std::fs::remove_dir_all(&made);
        // Only the name tells a compressed WARC from other compressed files.
        let name = if input.starts_with(b"\x1f\x8b") { "recording.warc.gz" } else { "recording" };
        let settings = ReplaySettings { moving: vec!["nonce".to_owned()], skip_broken: false };
        let built = SourceSet::open(&upload, name)
            .and_then(|sources| ReplayBuilder::begin(&made, &settings)?.build(&sources, &settings));
        let report = match built {
            Ok(report) => report,
            // The words of the input in a message would make every input a new one.
            Err(error) => return format!("{error}").split(['"', '`']).step_by(2).take(2).collect(),
        };
        let replay = KeptReplay::open(&made, &report).expect("a replay that was made can be opened");
        let lines = BufReader::new(File::open(made.join("entries.jsonl")).expect("the entries")).lines();
        let mut count = 0;
        for line in lines {
            let entry: KeptEntry = serde_json::from_str(&line.expect("a line")).expect("an entry");
            replay.body(entry.body).expect("the body is there");
            count += 1;
            // The body of a request is kept as keys alone, so the request cannot be made again.
            if entry.sent.is_some() {
                continue;
            }
            let request = ReplayRequest {
                method: &entry.method,
                url: entry.url.parse().expect("a URL"),
                headers: &entry.request_headers,
                body: &[],
            };
            let found = replay.index().find(&request);
            assert!(matches!(found, ReplayMatch::Found { .. }), "{} {} is not found", entry.method, entry.url);
        }
        assert_eq!(count, report.entries);
        let problems: Vec<&str> =
            report.problems.iter().map(|problem| problem.what.split('"').next().unwrap_or_default()).collect();
        format!("{} origins, {}", report.origins.len().min(2), problems.concat().chars().take(80).collect::<String>())
    })
}
