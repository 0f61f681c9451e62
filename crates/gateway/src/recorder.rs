//! What passes through a route, kept for whoever judges what an agent did.
//!
//! In memory, of the generation that serves, and bounded: when the room is used up, the oldest answers' bodies go first, then the
//! oldest exchanges, and what went is counted, so that nobody takes a part for the whole. An exchange is entered before its
//! request may reach the target and completed as its bodies pass: who has read an answer to its end finds it here. What never
//! reached a target (held too long, refused) is not entered. Bodies are copied, because what hyper hands on shares its buffers.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use jiff::Timestamp;

use super::gather::Track;
use super::recording::{Exchange, Loss, Record, RecordedBody, Recording, RequestHead};

/// How much of a route's traffic is kept, in bytes, and in exchanges.
const BYTES_MAX: usize = 16 << 20;
const EXCHANGES_MAX: usize = 10_000;

/// How much of bodies that are still on their way is kept beside that, in bytes: hundreds of clients can each be in the middle of
/// one.
const PASSING_MAX: usize = 16 << 20;

/// Keeps what passes through one route.
pub struct Recorder {
    records: Record,
    log: Mutex<Log>,
    /// Bytes of bodies that are on their way.
    passing: AtomicUsize,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Recorder {
    pub(super) fn new(records: Record) -> Self {
        Self { records, log: Mutex::new(Log::new(None, false)), passing: AtomicUsize::new(0) }
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

    /// Prepares to record a request, if it is one that is recorded. `reached` is where it arrived.
    pub(super) fn hear<B>(self: &Arc<Self>, request: &Request<B>, reached: SocketAddr) -> Option<Track> {
        self.records.includes(request.method()).then(|| Track::of(self, request, reached))
    }

    /// Enters a request that is about to be sent to a generation, unless it is there already; nothing if that is of the past.
    pub(super) fn enter(&self, known: Option<Place>, generation: u64, request: &Arc<RequestHead>) -> Option<Place> {
        let mut log = self.log();
        known.filter(|place| place.serial == log.serial).or_else(|| log.enter(generation, request))
    }

    /// Takes room for bytes of a body on its way; `false`: there is none left.
    pub(super) fn take_room(&self, bytes: usize) -> bool {
        let taken = self.passing.fetch_add(bytes, Ordering::Relaxed);
        let is_taken = taken + bytes <= PASSING_MAX;
        if !is_taken {
            self.give_room(bytes);
        }
        is_taken
    }

    /// Gives room back.
    pub(super) fn give_room(&self, bytes: usize) {
        self.passing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Completes an exchange, if it is still there.
    pub(super) fn complete(&self, place: Place, change: impl FnOnce(&mut Exchange)) {
        self.log().complete(place, change);
    }
}

/// Where an exchange is: in which log, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use http::header::{CONTENT_TYPE, HOST};
    use http::{HeaderMap, StatusCode};

    use super::super::gather::{BODY_MAX, Gather};
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
    fn bodies_on_their_way_have_bounds_of_their_own() {
        let recorder = recorder();
        let gather = || {
            let request = Request::post("/a").header(HOST, "h:7770").body(()).expect("a request");
            let track = Rc::new(recorder.hear(&request, REACHED).expect("recorded"));
            track.sent_to(1);
            let mut sent = Gather::sent(&track);
            sent.add(&vec![b'x'; BODY_MAX]);
            sent
        };
        let mut all: Vec<_> = (0..20).map(|_| gather()).collect();
        assert_eq!(recorder.passing.load(Ordering::Relaxed), PASSING_MAX);
        all.iter_mut().for_each(|gather| gather.end());
        drop(all);
        assert_eq!(recorder.passing.load(Ordering::Relaxed), 0);
        let recording = recorded(&recorder);
        let lost = |exchange: &&Exchange| matches!(exchange.sent, RecordedBody::Lost { why: Loss::MadeRoom, .. });
        assert_eq!(recording.dropped as usize + recording.exchanges.iter().filter(lost).count() + 15, 20);
        drop(gather());
        assert_eq!(recorder.passing.load(Ordering::Relaxed), 0, "one that is cut off gives its room back");
    }

    #[test]
    fn what_is_too_long_is_named() {
        let recorder = recorder();
        post(&recorder, "/a", &vec![b'x'; BODY_MAX + 1], b"<p>");
        let first = recorded(&recorder).exchanges.remove(0);
        assert!(matches!(first.sent, RecordedBody::Lost { why: Loss::TooLong, size } if size == BODY_MAX as u64 + 1));
        assert_eq!(first.request.url, "http://h:7770/a");
        assert!(first.answer.is_some_and(|answer| answer.status == StatusCode::OK) && first.took.is_some());
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
