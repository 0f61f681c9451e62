//! What passes through a route, kept for whoever judges what an agent did.
//!
//! In memory, of the generation that serves, and bounded: when the room is used up, the oldest answers' bodies go first, then the
//! oldest exchanges, and what went is counted, so that nobody takes a part for the whole. An exchange is entered before its
//! request may reach the target and completed as its bodies pass: who has read an answer to its end finds it here. What never
//! reached a target (held too long, refused) is not entered. Bodies are copied, because what hyper hands on shares its buffers.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use jiff::Timestamp;

/// The longest body that is kept, in bytes: forms and pages are shorter, uploads and downloads need not be.
pub const BODY_MAX: usize = 1 << 20;

/// How much of a route's traffic is kept, in bytes, and in exchanges.
const BYTES_MAX: usize = 16 << 20;
const EXCHANGES_MAX: usize = 10_000;

/// What an exchange takes besides its texts, in bytes.
const OVERHEAD: usize = 512;

/// Which requests of a route are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Record {
    /// None: nothing is copied.
    #[default]
    Nothing,
    /// Those of every method but GET, HEAD and OPTIONS.
    Writes,
    /// All.
    All,
}

impl Record {
    /// Whether requests of the method are recorded.
    #[must_use]
    pub fn includes(self, method: &Method) -> bool {
        match self {
            Self::Nothing => false,
            Self::Writes => !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS),
            Self::All => true,
        }
    }
}

/// A request's head, as the client sent it.
#[derive(Clone)]
pub struct RequestHead {
    /// When it arrived; UTC.
    pub at: Timestamp,
    /// Its method.
    pub method: Method,
    /// The URL that the client used.
    pub url: String,
    /// Its headers.
    pub headers: HeaderMap,
}

/// An answer's head, as the client was sent it.
#[derive(Clone)]
pub struct AnswerHead {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// From the request's arrival to this.
    pub waited: Duration,
}

/// A body, as far as it is known.
#[derive(Clone, Default)]
pub enum RecordedBody {
    /// There was none, or it has not come to its end.
    #[default]
    None,
    /// All of it, in the coding that it was sent in.
    Whole(Bytes),
    /// It was not kept.
    Lost {
        /// Why.
        why: Loss,
        /// The bytes that passed.
        size: u64,
    },
}

/// Why a body was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is longer than [`BODY_MAX`].
    TooLong,
    /// It is a picture, a style, a script or the like, and nobody looks for a text in it.
    NoText,
    /// It ended early.
    CutOff,
    /// Later exchanges needed its place.
    MadeRoom,
}

/// A request and what came of it.
#[derive(Clone)]
pub struct Exchange {
    /// The request.
    pub request: Arc<RequestHead>,
    /// Its body.
    pub sent: RecordedBody,
    /// The answer; `None`: none has come.
    pub answer: Option<Arc<AnswerHead>>,
    /// Its body.
    pub received: RecordedBody,
    /// From the request's arrival to the answer's end; `None`: it has not ended.
    pub took: Option<Duration>,
}

// Whatever passes may be a secret.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("method", &self.request.method).finish_non_exhaustive()
    }
}

/// What was recorded of a generation so far.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The generation.
    pub generation: u64,
    /// Which requests are recorded.
    pub records: Record,
    /// Since when; UTC.
    pub since: Timestamp,
    /// Whether clients may have reached the generation before that.
    pub is_late: bool,
    /// How many exchanges, the oldest ones, had to make room.
    pub dropped: u64,
    /// The others, in the order in which they were sent to the site.
    pub exchanges: Vec<Exchange>,
}

/// Keeps what passes through one route.
pub struct Recorder {
    records: Record,
    log: Mutex<Log>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Recorder {
    pub(super) fn new(records: Record) -> Self {
        Self { records, log: Mutex::new(Log::new(None, false)) }
    }

    // Every critical section leaves a log that is whole at each step.
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was recorded of the generation that serves; `None` before one has.
    #[must_use]
    pub fn recording(&self) -> Option<Recording> {
        let log = self.log();
        Some(Recording {
            generation: log.generation?,
            records: self.records,
            since: log.since,
            is_late: log.is_late,
            dropped: log.first,
            exchanges: log.exchanges.iter().cloned().collect(),
        })
    }

    /// Begins anew, unless the generation is the one that is being recorded.
    pub(super) fn serve(&self, generation: u64) {
        let mut log = self.log();
        if log.generation != Some(generation) {
            log.restart(Some(generation), false);
        }
    }

    /// Begins anew with a generation that has served before nobody recorded it.
    pub(super) fn take_up(&self, generation: u64) {
        self.log().restart(Some(generation), true);
    }

    /// Forgets what was recorded; the generation begins anew.
    pub(super) fn forget(&self) {
        let mut log = self.log();
        let generation = log.generation;
        log.restart(generation, false);
    }

    /// Prepares to record a request, if it is one that is recorded. `reached` is where it arrived: HTTP/1.0 may do without Host.
    pub(super) fn hear<B>(self: &Arc<Self>, request: &Request<B>, reached: SocketAddr) -> Option<Track> {
        if !self.records.includes(request.method()) {
            return None;
        }
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok().map(str::to_owned));
        let host = host.unwrap_or_else(|| reached.to_string());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let head = RequestHead {
            at: Timestamp::now(),
            method: request.method().clone(),
            url: format!("http://{host}{path}"),
            headers: request.headers().clone(),
        };
        let place = Cell::new(None);
        Some(Track { recorder: Arc::clone(self), head: Arc::new(head), begun: Instant::now(), place })
    }
}

/// Where an exchange is: in which log, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    serial: u64,
    number: u64,
}

struct Log {
    generation: Option<u64>,
    /// Grows with every restart, so that what belongs to the past finds no place.
    serial: u64,
    since: Timestamp,
    is_late: bool,
    /// The number of the first exchange that is kept; so many were dropped.
    first: u64,
    /// The number of the first exchange whose answer's body may still be kept.
    thinned: u64,
    bytes: usize,
    exchanges: VecDeque<Exchange>,
}

impl Log {
    fn new(generation: Option<u64>, is_late: bool) -> Self {
        let since = Timestamp::now();
        Self { generation, serial: 0, since, is_late, first: 0, thinned: 0, bytes: 0, exchanges: VecDeque::new() }
    }

    fn restart(&mut self, generation: Option<u64>, is_late: bool) {
        *self = Self { serial: self.serial + 1, ..Self::new(generation, is_late) };
    }

    /// Enters a request that is about to be sent to the generation; nothing if that is of the past.
    fn enter(&mut self, generation: u64, request: &Arc<RequestHead>) -> Option<Place> {
        if self.generation != Some(generation) {
            return None;
        }
        let number = self.first + self.exchanges.len() as u64;
        let (request, sent, received) = (Arc::clone(request), RecordedBody::None, RecordedBody::None);
        let exchange = Exchange { request, sent, answer: None, received, took: None };
        self.bytes += exchange.bytes();
        self.exchanges.push_back(exchange);
        self.make_room();
        Some(Place { serial: self.serial, number })
    }

    /// Completes an exchange, if it is still there.
    fn complete(&mut self, place: Place, change: impl FnOnce(&mut Exchange)) {
        let index = place.number.checked_sub(self.first).filter(|_| place.serial == self.serial);
        let exchange = index.and_then(|index| self.exchanges.get_mut(usize::try_from(index).ok()?));
        if let Some(exchange) = exchange {
            let before = exchange.bytes();
            change(exchange);
            self.bytes = self.bytes - before + exchange.bytes();
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        while self.bytes > BYTES_MAX || self.exchanges.len() > EXCHANGES_MAX {
            let index = usize::try_from(self.thinned.saturating_sub(self.first)).unwrap_or(usize::MAX);
            let are_few = self.exchanges.len() <= EXCHANGES_MAX;
            match self.exchanges.get_mut(index).filter(|_| are_few) {
                Some(exchange) => {
                    self.thinned = self.thinned.max(self.first) + 1;
                    if let RecordedBody::Whole(body) = &exchange.received {
                        let size = body.len();
                        exchange.received = RecordedBody::Lost { why: Loss::MadeRoom, size: size as u64 };
                        self.bytes -= size;
                    }
                }
                None => {
                    let Some(oldest) = self.exchanges.pop_front() else { return };
                    self.first += 1;
                    self.bytes -= oldest.bytes();
                }
            }
        }
    }
}

impl Exchange {
    /// What it takes, as the log counts it.
    fn bytes(&self) -> usize {
        let answer = self.answer.as_ref().map_or(0, |answer| size_of(&answer.headers));
        let head = OVERHEAD + self.request.url.len() + size_of(&self.request.headers);
        head + answer + self.sent.kept() + self.received.kept()
    }
}

impl RecordedBody {
    fn kept(&self) -> usize {
        if let Self::Whole(bytes) = self { bytes.len() } else { 0 }
    }
}

fn size_of(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}

/// One request on its way, as the recorder sees it; on the worker that carries it.
pub(super) struct Track {
    recorder: Arc<Recorder>,
    head: Arc<RequestHead>,
    begun: Instant,
    place: Cell<Option<Place>>,
}

impl Track {
    /// Notes that the request is about to be sent to a generation; again is the same request once more.
    pub(super) fn sent_to(&self, generation: u64) {
        let mut log = self.recorder.log();
        if self.place.get().is_none_or(|place| place.serial != log.serial) {
            self.place.set(log.enter(generation, &self.head));
        }
    }

    /// Notes the answer's head.
    pub(super) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let head = AnswerHead { status, headers: headers.clone(), waited: self.begun.elapsed() };
        self.complete(|exchange| exchange.answer = Some(Arc::new(head)));
    }

    fn complete(&self, change: impl FnOnce(&mut Exchange)) {
        if let Some(place) = self.place.get() {
            self.recorder.log().complete(place, change);
        }
    }

    /// Notes a body that has come to its end, or never will.
    fn note(&self, side: Side, body: RecordedBody) {
        let took = self.begun.elapsed();
        self.complete(|exchange| match side {
            Side::Sent => exchange.sent = body,
            Side::Received => {
                exchange.received = body;
                exchange.took = Some(took);
            }
        });
    }
}

/// Whose body it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Sent,
    Received,
}

/// Copies a body as it passes. Dropped before its end, it says that the body was cut off.
pub(super) struct Gather {
    track: Rc<Track>,
    side: Side,
    kept: Vec<u8>,
    size: u64,
    loss: Option<Loss>,
    has_ended: bool,
}

impl Gather {
    /// Of a request.
    pub(super) fn sent(track: &Rc<Track>) -> Box<Self> {
        Self::new(track, Side::Sent, None)
    }

    /// Of an answer.
    pub(super) fn received(track: &Rc<Track>, headers: &HeaderMap) -> Box<Self> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        Self::new(track, Side::Received, (!is_text(kind.unwrap_or_default())).then_some(Loss::NoText))
    }

    fn new(track: &Rc<Track>, side: Side, loss: Option<Loss>) -> Box<Self> {
        let track = Rc::clone(track);
        Box::new(Self { track, side, kept: Vec::new(), size: 0, loss, has_ended: false })
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        if self.loss.is_none() && self.kept.len() + bytes.len() > BODY_MAX {
            self.loss = Some(Loss::TooLong);
            self.kept = Vec::new();
        }
        if self.loss.is_none() {
            self.kept.extend_from_slice(bytes);
        }
    }

    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let body = match self.loss {
                _ if self.size == 0 => RecordedBody::None,
                Some(why) => RecordedBody::Lost { why, size: self.size },
                None => RecordedBody::Whole(Bytes::from(std::mem::take(&mut self.kept))),
            };
            self.track.note(self.side, body);
        }
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        if !self.has_ended {
            self.track.note(self.side, RecordedBody::Lost { why: Loss::CutOff, size: self.size });
        }
    }
}

/// Whether a media type is of texts that somebody may look into. What an answer does not name is no text.
fn is_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_asset = kind.ends_with("css") || kind.ends_with("javascript") || kind.starts_with("image/");
    let is_data = kind.ends_with("json") || kind.ends_with("xml") || kind.ends_with("x-www-form-urlencoded");
    (kind.starts_with("text/") || is_data) && !is_asset
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7770);

    fn recorder() -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(Record::All));
        recorder.serve(1);
        recorder
    }

    fn post(recorder: &Arc<Recorder>, path: &str, body: &[u8], answer: &[u8]) {
        let request = Request::post(path).header(HOST, "h:7770").body(()).expect("a request");
        let track = Rc::new(recorder.hear(&request, REACHED).expect("recorded"));
        track.sent_to(1);
        let mut sent = Gather::sent(&track);
        sent.add(body);
        sent.end();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static("text/html"))]);
        track.answered(StatusCode::OK, &headers);
        let mut received = Gather::received(&track, &headers);
        received.add(answer);
        received.end();
    }

    fn recorded(recorder: &Recorder) -> Recording {
        recorder.recording().expect("a generation serves")
    }

    #[test]
    fn answers_make_room_before_requests_and_what_went_is_counted() {
        let recorder = recorder();
        for _ in 0..20 {
            post(&recorder, "/a", b"kept", &vec![b'x'; BODY_MAX]);
        }
        let recording = recorded(&recorder);
        assert_eq!((recording.exchanges.len(), recording.dropped), (20, 0));
        let is_kept = |exchange: &&Exchange| matches!(exchange.received, RecordedBody::Whole(_));
        let kept = recording.exchanges.iter().filter(is_kept).count();
        assert!((10..16).contains(&kept), "{kept} of 16 MiB");
        assert!(matches!(recording.exchanges[0].received, RecordedBody::Lost { why: Loss::MadeRoom, .. }));
        assert!(matches!(&recording.exchanges[0].sent, RecordedBody::Whole(body) if &body[..] == b"kept"));
        for _ in 0..40 {
            post(&recorder, "/b", &vec![b'x'; BODY_MAX], b"");
        }
        let recording = recorded(&recorder);
        assert!(recording.dropped > 40, "{}", recording.dropped);
        assert_eq!(recording.dropped + recording.exchanges.len() as u64, 60);
        for _ in 0..EXCHANGES_MAX + 5 {
            post(&recorder, "/c", b"", b"");
        }
        let recording = recorded(&recorder);
        assert_eq!(recording.exchanges.len(), EXCHANGES_MAX);
        assert_eq!(recording.dropped, 65);
        assert_eq!(recorder.log().bytes, recording.exchanges.iter().map(Exchange::bytes).sum::<usize>());
    }

    #[test]
    fn what_is_too_long_or_no_text_is_named() {
        let recorder = recorder();
        post(&recorder, "/a", &vec![b'x'; BODY_MAX + 1], b"<p>");
        let first = recorded(&recorder).exchanges.remove(0);
        assert!(matches!(first.sent, RecordedBody::Lost { why: Loss::TooLong, size } if size == BODY_MAX as u64 + 1));
        assert_eq!(first.request.url, "http://h:7770/a");
        assert!(first.answer.is_some_and(|answer| answer.status == StatusCode::OK) && first.took.is_some());
        assert!(is_text("text/html; charset=utf-8") && is_text("application/ld+json") && is_text("Text/Plain"));
        assert!(
            !is_text("text/css") && !is_text("image/svg+xml") && !is_text("") && !is_text("application/javascript")
        );
    }

    #[test]
    fn a_generation_begins_anew_and_nothing_of_the_past_is_entered() {
        let recorder = recorder();
        let request = Request::get("/").header(HOST, "h").body(()).expect("a request");
        let track = recorder.hear(&request, REACHED).expect("recorded");
        track.sent_to(1);
        recorder.serve(1);
        assert_eq!(recorded(&recorder).exchanges.len(), 1, "the same generation goes on");
        recorder.serve(2);
        track.answered(StatusCode::OK, &HeaderMap::new());
        track.sent_to(1);
        assert!(recorded(&recorder).exchanges.is_empty());
        track.sent_to(2);
        track.sent_to(2);
        assert_eq!(recorded(&recorder).exchanges.len(), 1, "sent again is one request");
        recorder.take_up(3);
        recorder.serve(3);
        assert!(recorded(&recorder).is_late);
        recorder.forget();
        assert!(!recorded(&recorder).is_late);
    }

    #[test]
    fn a_body_that_never_ends_is_cut_off_and_writes_can_be_recorded_alone() {
        let recorder = Arc::new(Recorder::new(Record::Writes));
        recorder.serve(1);
        let get = Request::get("/").header(HOST, "h").body(()).expect("a request");
        assert!(recorder.hear(&get, REACHED).is_none());
        let put = Request::put("/").header(HOST, "h").body(()).expect("a request");
        let track = Rc::new(recorder.hear(&put, REACHED).expect("recorded"));
        track.sent_to(1);
        Gather::sent(&track).add(b"half");
        let sent = recorded(&recorder).exchanges.remove(0).sent;
        assert!(matches!(sent, RecordedBody::Lost { why: Loss::CutOff, size: 4 }));
    }
}
