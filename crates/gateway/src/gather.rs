//! One request in transit as the recorder sees it, and its bodies, which are copied as they pass.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, StatusCode};
use jiff::Timestamp;

use super::episode_recorder::{EpisodeRecorder, KeptReceipt};
use super::recorder::{ExchangePosition, Recorder};
use super::recording::{AnswerHead, Exchange, Loss, RecordedBody, RequestHead};

/// Maximum size of a body that is kept, in bytes. Forms and pages are smaller; uploads and downloads may be larger.
pub const BODY_MAX: usize = 1 << 20;

/// The recorder of the episode that a request belongs to.
#[derive(Debug, Clone)]
pub(super) struct RecordedEpisode {
    pub(super) recorder: Arc<EpisodeRecorder>,
    /// The only generation whose requests belong to the episode; `None` if any does.
    pub(super) generation: Option<u64>,
}

/// The place at which a request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackPlace<'a> {
    /// The address, which replaces a missing Host in HTTP/1.0.
    pub(super) reached: SocketAddr,
    /// The name of the site; `None` for a host outside of the arena.
    pub(super) site: Option<&'a str>,
    /// Whether the request arrived in TLS.
    pub(super) is_tls: bool,
}

/// One request in transit as the recorders see it, on the worker that forwards it.
pub(super) struct Track {
    head: Arc<RequestHead>,
    begun: Instant,
    /// The log of the route.
    log: Option<Arc<Recorder>>,
    place: Cell<Option<ExchangePosition>>,
    episode: Option<EpisodeTrack>,
}

/// The part of a request that belongs to the record of its episode.
struct EpisodeTrack {
    recording: RecordedEpisode,
    site: Option<String>,
    /// Whether the request has been entered, or was left out. It is entered once.
    is_entered: Cell<bool>,
    /// The exchange from the moment that it is entered to its end.
    exchange: RefCell<Option<EnteredExchange>>,
    /// Whether the body of the request has begun and not ended.
    awaits_body: Cell<bool>,
    receipt: Cell<Option<KeptReceipt>>,
}

struct EnteredExchange {
    number: u64,
    exchange: Exchange,
    /// The room that the exchange has taken.
    room: usize,
}

impl EpisodeTrack {
    fn enter(&self, generation: u64, head: &Arc<RequestHead>) {
        let is_its = self.recording.generation.is_none_or(|own| own == generation);
        if !is_its || self.is_entered.replace(true) {
            return;
        }
        let exchange = Exchange::begun(head);
        let room = exchange.bytes();
        let number = self.recording.recorder.enter(self.site.as_deref(), &exchange);
        let entered = number.map(|number| EnteredExchange { number, exchange, room });
        self.exchange.replace(entered);
    }

    fn complete(&self, change: impl FnOnce(&mut Exchange)) {
        if let Some(entered) = &mut *self.exchange.borrow_mut() {
            change(&mut entered.exchange);
        }
    }

    /// Leaves the room of a body to the exchange that has it, or releases it.
    fn leave_room(&self, bytes: usize) {
        match &mut *self.exchange.borrow_mut() {
            Some(entered) => entered.room += bytes,
            None => self.recording.recorder.room().give(bytes),
        }
    }

    /// Hands the exchange over, if it was entered and not handed over before.
    fn finish(&self) {
        let Some(EnteredExchange { number, mut exchange, room }) = self.exchange.take() else { return };
        if self.awaits_body.get() && matches!(exchange.sent, RecordedBody::None) {
            exchange.sent = RecordedBody::Lost { why: Loss::CutOff, size: 0 };
        }
        let receipt = self.recording.recorder.end(number, self.site.clone(), exchange, room);
        self.receipt.set(Some(receipt));
    }
}

impl Drop for EpisodeTrack {
    fn drop(&mut self) {
        // The client is gone, so no response waits for the receipt.
        self.finish();
    }
}

impl Track {
    /// Captures a request as its client sent it, if it is recorded.
    pub(super) fn of<B>(
        request: &Request<B>,
        place: TrackPlace<'_>,
        log: Option<&Arc<Recorder>>,
        episode: Option<RecordedEpisode>,
    ) -> Option<Self> {
        let log = log.filter(|log| log.includes(request.method()));
        let episode = episode.filter(|episode| episode.recorder.includes(request.method()));
        if log.is_none() && episode.is_none() {
            return None;
        }
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok().map(str::to_owned));
        let host = host.unwrap_or_else(|| place.reached.to_string());
        // A target such as `http://shop?page=2` has an empty path, and the site is asked for `/?page=2`.
        let target = request.uri().path_and_query().map_or_else(|| "/".to_owned(), PathAndQuery::to_string);
        let head = RequestHead {
            at: Timestamp::now(),
            method: request.method().clone(),
            url: format!("{}://{host}{target}", if place.is_tls { "https" } else { "http" }),
            headers: request.headers().clone(),
        };
        let episode = episode.map(|recording| EpisodeTrack {
            recording,
            site: place.site.map(str::to_owned),
            is_entered: Cell::new(false),
            exchange: RefCell::default(),
            awaits_body: Cell::new(false),
            receipt: Cell::default(),
        });
        let (head, log) = (Arc::new(head), log.map(Arc::clone));
        Some(Self { head, begun: Instant::now(), log, place: Cell::new(None), episode })
    }

    /// Records that the request is about to be sent to a generation. A repeated call enters no second exchange.
    pub(super) fn sent_to(&self, generation: u64) {
        if let Some(log) = &self.log {
            self.place.set(log.enter(self.place.get(), generation, &self.head));
        }
        if let Some(episode) = &self.episode {
            episode.enter(generation, &self.head);
        }
    }

    /// Records the head of the response.
    pub(super) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let head = Arc::new(AnswerHead { status, headers: headers.clone(), waited: self.begun.elapsed() });
        self.complete(|exchange| exchange.answer = Some(Arc::clone(&head)));
    }

    /// Records that the response consists of its head, such as that of an upgrade.
    pub(super) fn end(&self) {
        if let Some(episode) = &self.episode {
            episode.finish();
        }
    }

    /// Returns the receipt for the exchange, if it has just been handed over to the keeper of its episode. The response
    /// must not end before the receipt resolves.
    pub(super) fn receipt(&self) -> Option<KeptReceipt> {
        self.episode.as_ref()?.receipt.take()
    }

    fn complete(&self, change: impl Fn(&mut Exchange)) {
        if let (Some(log), Some(place)) = (&self.log, self.place.get()) {
            log.complete(place, &change);
        }
        if let Some(episode) = &self.episode {
            episode.complete(&change);
        }
    }

    /// Records a body that has ended or has been cut off.
    fn note(&self, side: BodyDirection, body: RecordedBody) {
        let took = self.begun.elapsed();
        self.complete(|exchange| match side {
            BodyDirection::Sent => exchange.sent = body.clone(),
            BodyDirection::Received => {
                exchange.received = body.clone();
                exchange.took = Some(took);
            }
        });
        match (&self.episode, side) {
            (None, _) => {}
            (Some(episode), BodyDirection::Sent) => episode.awaits_body.set(false),
            (Some(episode), BodyDirection::Received) => episode.finish(),
        }
    }

    /// Takes room for bytes of a body in transit. Returns false if a recorder has none left.
    fn take_room(&self, bytes: usize) -> bool {
        if self.log.as_ref().is_some_and(|log| !log.room().take(bytes)) {
            return false;
        }
        let is_taken = self.episode.as_ref().is_none_or(|episode| episode.recording.recorder.room().take(bytes));
        if !is_taken {
            self.give_log_room(bytes);
        }
        is_taken
    }

    fn give_log_room(&self, bytes: usize) {
        if let Some(log) = &self.log {
            log.room().give(bytes);
        }
    }

    /// Releases the room of a body that is not kept.
    fn give_room(&self, bytes: usize) {
        self.give_log_room(bytes);
        if let Some(episode) = &self.episode {
            episode.recording.recorder.room().give(bytes);
        }
    }

    /// Releases the room of a body that was kept: the log counts it by itself from now on, and the record of the episode
    /// when it is written.
    fn leave_room(&self, bytes: usize) {
        self.give_log_room(bytes);
        if let Some(episode) = &self.episode {
            episode.leave_room(bytes);
        }
    }
}

/// The direction of a body: sent by the client or received from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyDirection {
    Sent,
    Received,
}

/// Copies a body as it passes. If it is dropped before the end, it records that the body was cut off.
pub(super) struct Gather {
    track: Rc<Track>,
    side: BodyDirection,
    kept: Vec<u8>,
    size: u64,
    loss: Option<Loss>,
    has_ended: bool,
}

impl Gather {
    /// Starts copying the body of a request.
    pub(super) fn sent(track: &Rc<Track>) -> Box<Self> {
        if let Some(episode) = &track.episode {
            episode.awaits_body.set(true);
        }
        Self::new(track, BodyDirection::Sent, None)
    }

    /// Starts copying the body of a response; its content type decides whether bytes are kept.
    pub(super) fn received(track: &Rc<Track>, headers: &HeaderMap) -> Box<Self> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        Self::new(track, BodyDirection::Received, (!is_text(kind.unwrap_or_default())).then_some(Loss::NoText))
    }

    fn new(track: &Rc<Track>, side: BodyDirection, loss: Option<Loss>) -> Box<Self> {
        let track = Rc::clone(track);
        Box::new(Self { track, side, kept: Vec::new(), size: 0, loss, has_ended: false })
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        if self.loss.is_some() {
            return;
        }
        if self.kept.len() + bytes.len() > BODY_MAX {
            self.loss = Some(Loss::TooLong);
        } else if !self.track.take_room(bytes.len()) {
            self.loss = Some(Loss::MadeRoom);
        } else {
            self.kept.extend_from_slice(bytes);
            return;
        }
        self.discard();
    }

    /// Discards the bytes kept so far and releases their room.
    fn discard(&mut self) {
        self.track.give_room(self.kept.len());
        self.kept = Vec::new();
    }

    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let body = match self.loss {
                _ if self.size == 0 => RecordedBody::None,
                Some(why) => RecordedBody::Lost { why, size: self.size },
                None => {
                    self.track.leave_room(self.kept.len());
                    RecordedBody::Whole(Bytes::from(std::mem::take(&mut self.kept)))
                }
            };
            self.track.note(self.side, body);
        }
    }

    /// Returns the receipt for the exchange; see [`Track::receipt`].
    pub(super) fn receipt(&self) -> Option<KeptReceipt> {
        self.track.receipt()
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        if !self.has_ended {
            self.discard();
            self.track.note(self.side, RecordedBody::Lost { why: Loss::CutOff, size: self.size });
        }
    }
}

/// Returns whether a task may search content of this media type for text. Content without a media type does not count
/// as text.
fn is_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_asset = kind.ends_with("css") || kind.ends_with("javascript") || kind.starts_with("image/");
    let is_data = kind.ends_with("json") || kind.ends_with("xml") || kind.ends_with("x-www-form-urlencoded");
    (kind.starts_with("text/") || is_data) && !is_asset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_what_has_none() {
        assert!(is_text("text/html; charset=utf-8") && is_text("application/ld+json") && is_text("Text/Plain"));
        for asset in ["text/css", "image/svg+xml", "application/javascript", "application/octet-stream", ""] {
            assert!(!is_text(asset), "{asset}");
        }
    }
}
