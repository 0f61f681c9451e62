//! Recordings that are written as HAR. The target makes exchanges with secrets in every place, form and encoding in
//! which real traffic has them, and none appears in the written file. All other parts of the input are written
//! unchanged.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arenad_daemon::traffic::{SiteTraffic, har};
use arenad_evaluators::webarena_verified::Submission;
use arenad_gateway::{AnswerHead, Exchange, RecordedBody, Recording, RecordingFilter, RequestHead};
use arenad_verdict::Traffic;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        DIVIDER,
        "{\"password\":",
        "password=",
        "&token=",
        "token",
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n",
        "--b--\r\n",
        "text/html",
        "gzip",
        "zstd, gzip",
        "Set-Cookie",
        "=",
        ";",
        ":",
        "#",
        "?",
        "%7B%22",
        "\\\"",
        "\u{feff}",
        "\u{e9}",
    ],
    ..FuzzTarget::new("hars", open)
};

/// A secret that every text coding leaves unchanged, so that it is found in any place.
const SECRET: &str = "qZ7hunter2X9";

/// Field names whose values are secrets.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "new_password",
    "user[password]",
    "pwd",
    "secret",
    "client-secret",
    "csrf_token",
    "accessToken",
    "api_key",
    "credential",
    "sessionid",
];

fn open() -> InputCheck {
    Box::new(|input| {
        let mut parts = pieces(input).into_iter();
        let tape = parts.next().unwrap_or_default();
        let rest: Vec<Vec<u8>> = parts.collect();
        let noise = rest
            .first()
            .map(|noise| String::from_utf8_lossy(noise).replace(SECRET, "").replace("--b", ""))
            .unwrap_or_default();
        let made = Maker { tape: &tape, at: 0, noise, is_broken: false }.exchange();
        let written = write(vec![made, raw(&rest)]);
        let text = written.to_string();
        let read = Submission::read("{}", Traffic::of(text.into_bytes()).bytes());
        assert!(read.trace.is_ok(), "what is written is not read: {:?}", read.trace.err());
        let first = &written["log"]["entries"][0];
        assert!(!leaks(first), "{first:#}");
        let marks = first.to_string().matches("[redacted]").count();
        let lost = first["_lost"].as_array().map_or(0, Vec::len);
        format!("{marks} marks, {lost} lost, {}", first["request"]["postData"]["mimeType"])
    })
}

/// Returns whether any text of a value contains the secret, including coded texts.
fn leaks(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let decoded = STANDARD.decode(text).unwrap_or_default();
            text.contains(SECRET) || decoded.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
        }
        Value::Array(values) => values.iter().any(leaks),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains(SECRET) || leaks(value)),
        _ => false,
    }
}

fn write(exchanges: Vec<Exchange>) -> Value {
    let recording = Recording {
        generation: 1,
        records: RecordingFilter::All,
        since: Timestamp::UNIX_EPOCH,
        is_late: false,
        dropped: 0,
        exchanges,
    };
    har(&[SiteTraffic::recorded("shop", recording)], |_| true)
}

fn headers(pairs: &[(String, Vec<u8>)]) -> HeaderMap {
    let pairs = pairs.iter().filter_map(|(name, value)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

fn exchange(url: String, sent: (HeaderMap, RecordedBody), received: (HeaderMap, RecordedBody)) -> Exchange {
    let at = Timestamp::UNIX_EPOCH;
    let request = RequestHead { at, method: Method::POST, url, headers: sent.0 };
    let answer = AnswerHead { status: StatusCode::OK, headers: received.0, waited: Duration::from_millis(1) };
    Exchange {
        request: Arc::new(request),
        sent: sent.1,
        answer: Some(Arc::new(answer)),
        received: received.1,
        took: Some(Duration::from_millis(2)),
    }
}

/// An exchange made from the input: address, header, kind and body of the request, and the same parts of the answer.
fn raw(parts: &[Vec<u8>]) -> Exchange {
    let part = |index: usize| parts.get(index).cloned().unwrap_or_default();
    let side = |first: usize| {
        let header = String::from_utf8_lossy(&part(first)).into_owned();
        let (name, value) = header.split_once(':').unwrap_or(("x-a", &header));
        let pairs = [(name.to_owned(), value.trim().into()), ("content-type".to_owned(), part(first + 1))];
        (headers(&pairs), RecordedBody::Whole(Bytes::from(part(first + 2))))
    };
    exchange(format!("http://h/{}", String::from_utf8_lossy(&part(1))), side(2), side(5))
}

/// Makes an exchange with a secret; the bytes of a tape determine its form.
struct Maker<'a> {
    tape: &'a [u8],
    at: usize,
    /// The content of fields beside the secret's.
    noise: String,
    /// Whether the JSON will be incomplete: then secrets are in fields with their names. In scripts and in truncated
    /// text, lists of names and values and texts within texts are not recognized.
    is_broken: bool,
}

impl Maker<'_> {
    fn choose(&mut self, count: usize) -> usize {
        let byte = self.tape.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        usize::from(byte) % count
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.choose(NAMES.len())]
    }

    fn exchange(&mut self) -> Exchange {
        let url = match self.choose(3) {
            0 => "http://h/".to_owned(),
            1 => format!("http://h{}", self.address(0)),
            _ => format!("http://h/rest/{}/token?x=1", self.choose(9)),
        };
        let is_token = url.contains("/token?");
        let sent = self.side(&["authorization", "proxy-authorization", "cookie", "referer", "x-api-key", "x-state"]);
        let mut received =
            self.side(&["set-cookie", "location", "content-location", "x-csrf-token", "refresh", "x-state"]);
        if is_token {
            received = (HeaderMap::new(), RecordedBody::Whole(Bytes::from(format!("\"{SECRET}\""))));
        }
        exchange(url, sent, received)
    }

    fn side(&mut self, names: &[&str]) -> (HeaderMap, RecordedBody) {
        let name = names[self.choose(names.len())];
        let value = match name {
            "authorization" | "proxy-authorization" => format!("Bearer {SECRET}"),
            "cookie" => format!("a=b; sid={SECRET}"),
            "set-cookie" if self.choose(2) == 0 => format!("x={SECRET}; Path=/; HttpOnly"),
            "set-cookie" => format!("PHPSESSID={SECRET}"),
            "referer" | "location" | "content-location" => format!("http://h{}", self.address(0)),
            "refresh" => format!("0; url=http://h{}", self.address(0)),
            "x-state" => self.object(0).to_string(),
            _ => SECRET.to_owned(),
        };
        let (body, kind) = self.body();
        let (body, coding) = self.coded(body);
        let mut pairs = vec![(name.to_owned(), value.into_bytes()), ("content-type".to_owned(), kind.into())];
        if let Some(coding) = coding {
            pairs.push(("content-encoding".to_owned(), coding.into()));
        }
        (headers(&pairs), RecordedBody::Whole(Bytes::from(body)))
    }

    fn coded(&mut self, body: Vec<u8>) -> (Vec<u8>, Option<&'static str>) {
        let packed = match self.choose(6) {
            0 => (GzEncoder::new(Vec::new(), Compression::fast()), "gzip"),
            1 => {
                let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
                zlib.write_all(&body).expect("memory");
                return (zlib.finish().expect("memory"), Some("deflate"));
            }
            _ => return (body, None),
        };
        let (mut gzip, coding) = packed;
        gzip.write_all(&body).expect("memory");
        (gzip.finish().expect("memory"), Some(coding))
    }

    fn body(&mut self) -> (Vec<u8>, &'static str) {
        const JSON: [&str; 4] =
            ["application/json", "text/plain;charset=UTF-8", "application/vnd.api+json", "x-unknown"];
        let is_cut = self.choose(8) == 7;
        let form = if is_cut { 3 + self.choose(3) } else { self.choose(8) };
        self.is_broken = is_cut || form == 4;
        let (mut text, kind) = match form {
            0 | 1 => (self.object(0).to_string(), JSON[self.choose(JSON.len())]),
            2 => (self.form(0), "application/x-www-form-urlencoded"),
            3 => (format!("event: a\ndata: {}\n\n", self.object(0)), "text/event-stream"),
            4 => (format!("callback({});", self.object(0)), "text/javascript"),
            5 => (format!(")]}}',\n{}", self.object(0)), "application/json"),
            6 => (format!("{{\"a\":1}}\n{}\n", self.object(0)), "application/x-ndjson"),
            _ => (self.parts(), "multipart/form-data; boundary=b"),
        };
        self.is_broken = false;
        if is_cut {
            // The text is cut at a place where the secret stays complete.
            let end = text.rfind(SECRET).map_or(text.len(), |at| at + SECRET.len());
            text.truncate(end);
        }
        let mut bytes = text.into_bytes();
        if self.choose(8) == 7 {
            // The text is in a coding other than UTF-8.
            bytes = String::from_utf8_lossy(&bytes).replace("neighbour", "n\u{1}").into_bytes();
            bytes.iter_mut().filter(|byte| **byte == 1).for_each(|byte| *byte = 0xe9);
        }
        (bytes, kind)
    }

    fn parts(&mut self) -> String {
        let (head, content) = match self.choose(3) {
            0 => (format!("name=\"{}\"", self.name()), SECRET.to_owned()),
            1 => (format!("name={}; filename=x", self.name()), SECRET.to_owned()),
            _ => ("name=\"state\"".to_owned(), self.object(1).to_string()),
        };
        let noise = &self.noise;
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"neighbour\"\r\n\r\n{noise}\r\n\
             --b\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n--b--\r\n"
        )
    }

    /// Makes JSON with a secret at some place in it.
    fn object(&mut self, depth: usize) -> Value {
        let name = self.name();
        let noise = self.noise.clone();
        let shape = if self.is_broken { [0, 1, 2, 6, 9][self.choose(5)] } else { self.choose(10) };
        match shape {
            0 => json!({ name: SECRET }),
            1 => json!({ "neighbour": noise, name: SECRET }),
            2 if depth < 3 => json!({ "a": self.object(depth + 1), "neighbour": noise }),
            3 if depth < 3 => json!([1, noise, self.object(depth + 1)]),
            4 => json!([{ "name": "neighbour", "value": noise }, { "name": name, "value": SECRET }]),
            5 => json!([["neighbour", noise], [name, SECRET]]),
            6 => json!({ name: { "x": [SECRET, 5], "y": noise } }),
            7 if depth < 2 => json!({ "data": self.text(depth + 1), "neighbour": noise }),
            8 => json!({ "fields": [{ "key": name, "type": noise, "val": [SECRET] }] }),
            _ => json!({ "neighbour": [noise, null, 1.5], name: [SECRET] }),
        }
    }

    /// Makes a text within a value: JSON, a form or an address.
    fn text(&mut self, depth: usize) -> String {
        match self.choose(3) {
            0 => self.object(depth).to_string(),
            1 => self.form(depth),
            _ => self.address(depth),
        }
    }

    fn form(&mut self, depth: usize) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("neighbour", &self.noise);
        match self.choose(4) {
            0 => form.append_pair(self.name(), SECRET),
            1 if depth < 2 => form.append_pair("state", &self.text(depth + 1)),
            2 => form.append_pair("0[name]", self.name()).append_pair("0[value]", SECRET),
            _ => form.append_pair(self.name(), SECRET).append_pair("neighbour", "x"),
        };
        form.finish()
    }

    fn address(&mut self, depth: usize) -> String {
        match self.choose(5) {
            0 => format!("/a?{}", self.form(depth)),
            1 => format!("/a#{}", self.form(depth)),
            2 => format!("/#/cb?{}", self.form(depth)),
            3 => format!("/a;jsessionid={SECRET}/b?x=1"),
            _ => format!("/a?b=c#access_token={SECRET}&state=1"),
        }
    }
}
