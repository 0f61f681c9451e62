//! Bytes that clients send to a public port. For any bytes the site sees well-formed requests, each of which the
//! gateway has recorded, and the next client gets the answer to its own request.

use std::collections::HashMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_gateway::{
    Gateway, GatewaySettings, HoldLimits, RecordedBody, RecordingFilter, Route, Target as Served, WriteRules,
};

use super::wire::{self, WireMessage};
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "GET ",
        "POST ",
        "HEAD ",
        "OPTIONS * ",
        "CONNECT ",
        "PUT / HTTP/1.1\r\n",
        "HTTP/1.0",
        " HTTP/1.1\r\n",
        "\r\n",
        "\r",
        "\n",
        "\r\n\r\n",
        "\0",
        "Host: a\r\n",
        "Host: b\r\n",
        "Content-Length: ",
        "Content-Length: 5\r\n",
        "Content-Length:\t5 \r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:",
        "chunked",
        ", chunked",
        "gzip, ",
        "Connection: close\r\n",
        "Connection: content-length\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
        "Expect: 100-continue\r\n",
        "TE: trailers\r\n",
        "Trailer: X\r\n",
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "ffffffffffffffff\r\n",
        ";x=\"\r\n",
        "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "http://b/",
        "//",
        "\x7f",
        "\u{e9}",
        " ",
        "\t",
        ":",
    ],
    ..FuzzTarget::new("gateway-requests", open)
};

/// The client's time limit; the gateway's limit is a tenth of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time that a client waits before it closes its sending side.
const PAUSE: Duration = Duration::from_millis(10);

/// The largest number of recorded exchanges, because the recording is copied for each input.
const RECORDED_MAX: u64 = 200;

/// Requests by method and target, each with its body if that is known.
type Requests = HashMap<(String, String), Vec<Option<Vec<u8>>>>;

/// A gateway with one route to a site.
pub struct Passage {
    route: Route,
    site: SocketAddr,
    /// The address to which clients connect.
    door: SocketAddr,
    /// The text before a path in a request through this door, and the headers that the door requires.
    form: (&'static str, &'static str),
    // The gateway's threads end when it is dropped.
    _gateway: Gateway,
}

impl Passage {
    pub fn to(site: SocketAddr) -> Self {
        Self::through(site, |_, route| (route.local_addr(), ("", "")))
    }

    /// Opens a gateway to the site, and the door to it that `open` returns.
    pub fn through(
        site: SocketAddr,
        open: impl FnOnce(&Gateway, &Route) -> (SocketAddr, (&'static str, &'static str)),
    ) -> Self {
        let mut settings = GatewaySettings::default();
        settings.workers = 1;
        settings.head_timeout = PATIENCE / 10;
        settings.idle_timeout = PATIENCE / 10;
        let gateway = Gateway::start(settings).expect("the gateway starts");
        let hold = HoldLimits { requests: 64, timeout: PATIENCE };
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let route =
            gateway.open(listen, hold, WriteRules::default(), RecordingFilter::All, "shop").expect("a free port");
        let (door, form) = open(&gateway, &route);
        let passage = Self { route, site, door, form, _gateway: gateway };
        passage.serve(1);
        passage
    }

    fn serve(&self, generation: u64) {
        self.route.serve(Served { address: self.site, instance: "shop-1".to_owned(), generation });
    }

    pub fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.door).expect("the gateway accepts");
        client.set_read_timeout(Some(PATIENCE)).and_then(|()| client.set_nodelay(true)).expect("a client");
        client
    }

    /// A request that makes the gateway close the connection, unless it is parsed as part of the bytes before it.
    fn last(&self, path: &str) -> String {
        let (origin, headers) = self.form;
        format!("GET {origin}{path} HTTP/1.1\r\nHost: a\r\n{headers}Connection: close\r\n\r\n")
    }

    /// Sends a request on a new connection and checks that the answer belongs to it.
    pub fn visit(&self, path: &str) {
        let mut visitor = self.connect();
        visitor.write_all(self.last(path).as_bytes()).expect("sent");
        let answer = wire::answer(&mut BufReader::new(visitor), "GET").expect("an answer");
        assert_eq!(answer.first, "HTTP/1.1 200 OK", "{answer:?}");
        assert_eq!(String::from_utf8_lossy(&answer.body), path, "the answer to another's request");
    }
}

/// Listens, with a thread for each connection, until the process ends.
pub fn site(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Answers each request with its target, and records it.
fn answer_all(mut stream: TcpStream, seen: &Mutex<Vec<WireMessage>>) {
    let mut from = BufReader::new(stream.try_clone().expect("a second handle"));
    // The loop ends when the gateway closes the connection, within a request or between two.
    while let Ok(request) = wire::request(&mut from) {
        let target = request.second().to_owned();
        let is_head = request.first.starts_with("HEAD ");
        seen.lock().expect("no panic").push(request);
        let body = if is_head { "" } else { target.as_str() };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", target.chars().count());
        // Each character of the target stands for one byte.
        let bytes: Vec<u8> = answer.chars().chain(body.chars()).map(|c| c as u8).collect();
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn open() -> InputCheck {
    checked(Passage::to, |_| {})
}

/// Checks inputs through the passage that `to` makes to a site. `examine` checks each request that the site receives.
pub fn checked(to: impl FnOnce(SocketAddr) -> Passage, examine: impl Fn(&[WireMessage]) + 'static) -> InputCheck {
    let seen: Arc<Mutex<Vec<WireMessage>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let passage = to(site(move |stream| answer_all(stream, &noted)));
    let mut known = Requests::new();
    let mut taken = 0;
    let mut number = 0;
    let mut generation = 1;
    Box::new(move |input| {
        let answers = exchange(&passage, input);
        number += 1;
        passage.visit(&format!("/visitor/{number}"));
        // The list of requests that the site received is taken first, because a request is recorded before it arrives.
        let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
        learn(&passage.route, &mut known, &mut taken);
        if taken > RECORDED_MAX {
            // No requests are sent while requests are held, so none is missed before the recording restarts.
            passage.route.hold("a new generation");
            learn(&passage.route, &mut known, &mut taken);
            (generation, taken) = (generation + 1, 0);
            passage.serve(generation);
        }
        for request in &seen {
            forget(&mut known, request);
        }
        examine(&seen);
        let statuses: Vec<&str> = answers.iter().map(WireMessage::second).collect();
        format!("{statuses:?} {} seen", seen.len())
    })
}

/// Sends bytes and a last request, and reads well-formed answers until the gateway sends no more.
fn exchange(passage: &Passage, input: &[u8]) -> Vec<WireMessage> {
    let mut client = passage.connect();
    client.set_read_timeout(Some(PAUSE)).expect("a time-out");
    // A gateway may close the connection before it has read everything.
    let _ = client.write_all(input).and_then(|()| client.write_all(passage.last("/last").as_bytes()));
    let mut from = BufReader::new(Patient { client, has_ended: false });
    let mut answers = Vec::new();
    loop {
        // The client can match answers to requests only by counting; after a HEAD, the rest stays unread.
        match wire::answer(&mut from, "GET") {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(!is_late, "the gateway neither answers nor hangs up");
                return answers;
            }
        }
        let has_other_rules = [b"HEAD".as_slice(), b"pgrade", b"CONNECT"].iter().any(|word| has_word(input, word));
        if has_other_rules {
            let _ = from.read_to_end(&mut Vec::new());
            return answers;
        }
    }
}

/// A client that reads until no more data comes, closes its sending side, and reads on.
struct Patient {
    client: TcpStream,
    has_ended: bool,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.client.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !self.has_ended => {
                self.has_ended = true;
                self.client.set_read_timeout(Some(PATIENCE))?;
                // The gateway may have closed the connection meanwhile.
                let _ = self.client.shutdown(Shutdown::Write);
                self.client.read(buffer)
            }
            read => read,
        }
    }
}

fn has_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// Adds the requests that the gateway has recorded as forwarded.
fn learn(route: &Route, known: &mut Requests, taken: &mut u64) {
    let recording = route.recorder().and_then(|recorder| recorder.recording()).expect("a generation serves");
    let first = taken.saturating_sub(recording.dropped);
    assert!(recording.dropped <= *taken, "more was forgotten than was looked at");
    for exchange in recording.exchanges.iter().skip(usize::try_from(first).unwrap_or(usize::MAX)) {
        let target = target_of(&exchange.request.url);
        let body = match &exchange.sent {
            RecordedBody::Whole(bytes) => Some(bytes.to_vec()),
            RecordedBody::None | RecordedBody::Lost { .. } => None,
        };
        known.entry((exchange.request.method.to_string(), target)).or_default().push(body);
    }
    *taken = recording.dropped + recording.exchanges.len() as u64;
}

/// Returns `/path?query` of a URL.
fn target_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let target = rest.find(['/', '?', '*']).map_or("", |at| &rest[at..]);
    // Each byte becomes a character, as the site reads it.
    target.bytes().map(char::from).collect()
}

/// Removes a request that the site has received; the gateway must have recorded it exactly once.
fn forget(known: &mut Requests, seen: &WireMessage) {
    let method = seen.first.split(' ').next().unwrap_or_default().to_owned();
    let bodies = known.get_mut(&(method, seen.second().to_owned()));
    let bodies = bodies.unwrap_or_else(|| panic!("the gateway did not record {seen:?}"));
    let same = |body: &Option<Vec<u8>>| body.as_ref().is_none_or(|body| *body == seen.body);
    let at = bodies.iter().position(same).unwrap_or_else(|| panic!("the gateway did not record {seen:?}"));
    bodies.swap_remove(at);
}
