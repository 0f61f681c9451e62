//! The log of a route's traffic, from which an agent's episode is judged.
//!
//! The log is in memory, covers the generation that serves, and is bounded. When its room is used up, the bodies of the
//! oldest responses are dropped first, then the oldest exchanges; the dropped exchanges are counted, so that an
//! incomplete recording is not mistaken for a complete one. An exchange is entered before its request may reach the
//! target and completed as its bodies pass, so a client that has read a response to its end finds the exchange in the
//! log. Requests that never reached a target (held too long, refused) are not entered. Bodies are copied, because the
//! chunks that hyper hands over share its buffers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use jiff::Timestamp;

use super::episode_recorder::BodyRoom;
use super::recording::{Exchange, Loss, RecordedBody, Recording, RecordingFilter, RequestHead};

/// Limits of a route's log, in bytes and in exchanges.
const BYTES_MAX: usize = 16 << 20;
const EXCHANGES_MAX: usize = 10_000;

/// Limit for bodies that are still in transit, in bytes, in addition to the log: hundreds of clients can each be in the
/// middle of a body.
const PASSING_MAX: usize = 16 << 20;

/// Records the traffic of one route.
pub struct Recorder {
    records: RecordingFilter,
    log: Mutex<ExchangeLog>,
    /// Room for bodies that are in transit.
    passing: BodyRoom,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Recorder {
    pub(super) fn new(records: RecordingFilter) -> Self {
        Self { records, log: Mutex::new(ExchangeLog::new(None, false)), passing: BodyRoom::new(PASSING_MAX) }
    }

    // Every critical section leaves the log consistent at each step.
    fn log(&self) -> MutexGuard<'_, ExchangeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recording of the generation that serves, or `None` before the first generation.
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

    /// Starts a new log, unless the generation is already being recorded.
    pub(super) fn serve(&self, generation: u64) {
        let mut log = self.log();
        if log.generation != Some(generation) {
            log.restart(Some(generation), false);
        }
    }

    /// Starts a new log for a generation that has already served without being recorded.
    pub(super) fn take_up(&self, generation: u64) {
        self.log().restart(Some(generation), true);
    }

    /// Discards the log and starts a new one for the same generation.
    pub(super) fn forget(&self) {
        let mut log = self.log();
        let generation = log.generation;
        log.restart(generation, false);
    }

    pub(super) fn includes(&self, method: &Method) -> bool {
        self.records.includes(method)
    }

    /// Enters a request that is about to be sent to a generation, unless it has been entered before. Returns `None` if
    /// the generation is not the one being recorded.
    pub(super) fn enter(
        &self,
        known: Option<ExchangePosition>,
        generation: u64,
        request: &Arc<RequestHead>,
    ) -> Option<ExchangePosition> {
        let mut log = self.log();
        known.filter(|place| place.serial == log.serial).or_else(|| log.enter(generation, request))
    }

    pub(super) fn room(&self) -> &BodyRoom {
        &self.passing
    }

    /// Completes an exchange, if it is still in the log.
    pub(super) fn complete(&self, place: ExchangePosition, change: impl FnOnce(&mut Exchange)) {
        self.log().complete(place, change);
    }
}

/// The position of an exchange: the log, and the number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangePosition {
    serial: u64,
    number: u64,
}

struct ExchangeLog {
    generation: Option<u64>,
    /// Serial number of the log; it grows with every restart, so that places in an earlier log are invalid.
    serial: u64,
    since: Timestamp,
    is_late: bool,
    /// Number of the first exchange that is kept, which is also the number of dropped exchanges.
    first: u64,
    /// Number of the first exchange whose response body may still be kept.
    thinned: u64,
    bytes: usize,
    exchanges: VecDeque<Exchange>,
}

impl ExchangeLog {
    fn new(generation: Option<u64>, is_late: bool) -> Self {
        let since = Timestamp::now();
        Self { generation, serial: 0, since, is_late, first: 0, thinned: 0, bytes: 0, exchanges: VecDeque::new() }
    }

    fn restart(&mut self, generation: Option<u64>, is_late: bool) {
        *self = Self { serial: self.serial + 1, ..Self::new(generation, is_late) };
    }

    fn enter(&mut self, generation: u64, request: &Arc<RequestHead>) -> Option<ExchangePosition> {
        if self.generation != Some(generation) {
            return None;
        }
        let number = self.first + self.exchanges.len() as u64;
        let exchange = Exchange::begun(request);
        self.bytes += exchange.bytes();
        self.exchanges.push_back(exchange);
        self.make_room();
        Some(ExchangePosition { serial: self.serial, number })
    }

    fn complete(&mut self, place: ExchangePosition, change: impl FnOnce(&mut Exchange)) {
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
    use std::net::SocketAddr;
    use std::rc::Rc;

    use http::Request;
    use http::header::{CONTENT_TYPE, HOST};
    use http::{HeaderMap, StatusCode};

    use super::super::gather::{BODY_MAX, Gather, Track, TrackPlace};
    use super::*;

    const REACHED: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7770);

    fn recorder() -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(RecordingFilter::All));
        recorder.serve(1);
        recorder
    }

    fn hear(recorder: &Arc<Recorder>, request: &Request<()>) -> Option<Track> {
        Track::of(request, TrackPlace { reached: REACHED, site: Some("shop"), is_tls: false }, Some(recorder), None)
    }

    fn post(recorder: &Arc<Recorder>, path: &str, body: &[u8], answer: &[u8]) {
        let request = Request::post(path).header(HOST, "h:7770").body(()).expect("a request");
        let track = Rc::new(hear(recorder, &request).expect("recorded"));
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
            let track = Rc::new(hear(&recorder, &request).expect("recorded"));
            track.sent_to(1);
            let mut sent = Gather::sent(&track);
            sent.add(&vec![b'x'; BODY_MAX]);
            sent
        };
        let mut all: Vec<_> = (0..20).map(|_| gather()).collect();
        assert_eq!(recorder.passing.taken(), PASSING_MAX);
        all.iter_mut().for_each(|gather| gather.end());
        drop(all);
        assert_eq!(recorder.passing.taken(), 0);
        let recording = recorded(&recorder);
        let lost = |exchange: &&Exchange| matches!(exchange.sent, RecordedBody::Lost { why: Loss::MadeRoom, .. });
        assert_eq!(recording.dropped as usize + recording.exchanges.iter().filter(lost).count() + 15, 20);
        drop(gather());
        assert_eq!(recorder.passing.taken(), 0, "one that is cut off gives its room back");
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
        let track = hear(&recorder, &request).expect("recorded");
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
        let recorder = Arc::new(Recorder::new(RecordingFilter::Writes));
        recorder.serve(1);
        let get = Request::get("/").header(HOST, "h").body(()).expect("a request");
        assert!(hear(&recorder, &get).is_none());
        let put = Request::put("/").header(HOST, "h").body(()).expect("a request");
        let track = Rc::new(hear(&recorder, &put).expect("recorded"));
        track.sent_to(1);
        Gather::sent(&track).add(b"half");
        let sent = recorded(&recorder).exchanges.remove(0).sent;
        assert!(matches!(sent, RecordedBody::Lost { why: Loss::CutOff, size: 4 }));
    }
}
