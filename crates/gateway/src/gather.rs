//! One request in transit as the recorder sees it, and its bodies, which are copied as they pass.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Request, StatusCode};
use jiff::Timestamp;

use super::recorder::{ExchangePosition, Recorder};
use super::recording::{AnswerHead, Exchange, Loss, RecordedBody, RequestHead};

/// Maximum size of a body that is kept, in bytes. Forms and pages are smaller; uploads and downloads may be larger.
pub const BODY_MAX: usize = 1 << 20;

/// One request in transit as the recorder sees it, on the worker that forwards it.
pub(super) struct Track {
    recorder: Arc<Recorder>,
    head: Arc<RequestHead>,
    begun: Instant,
    place: Cell<Option<ExchangePosition>>,
}

impl Track {
    /// Captures a request as its client sent it. `reached` is the address at which it arrived, which replaces a missing
    /// Host in HTTP/1.0.
    pub(super) fn of<B>(recorder: &Arc<Recorder>, request: &Request<B>, reached: SocketAddr) -> Self {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok().map(str::to_owned));
        let host = host.unwrap_or_else(|| reached.to_string());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let head = RequestHead {
            at: Timestamp::now(),
            method: request.method().clone(),
            url: format!("http://{host}{path}"),
            headers: request.headers().clone(),
        };
        let (recorder, head) = (Arc::clone(recorder), Arc::new(head));
        Self { recorder, head, begun: Instant::now(), place: Cell::new(None) }
    }

    /// Records that the request is about to be sent to a generation. A repeated call enters no second exchange.
    pub(super) fn sent_to(&self, generation: u64) {
        self.place.set(self.recorder.enter(self.place.get(), generation, &self.head));
    }

    /// Records the head of the response.
    pub(super) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let head = AnswerHead { status, headers: headers.clone(), waited: self.begun.elapsed() };
        self.complete(|exchange| exchange.answer = Some(Arc::new(head)));
    }

    fn complete(&self, change: impl FnOnce(&mut Exchange)) {
        if let Some(place) = self.place.get() {
            self.recorder.complete(place, change);
        }
    }

    /// Records a body that has ended or has been cut off.
    fn note(&self, side: BodyDirection, body: RecordedBody) {
        let took = self.begun.elapsed();
        self.complete(|exchange| match side {
            BodyDirection::Sent => exchange.sent = body,
            BodyDirection::Received => {
                exchange.received = body;
                exchange.took = Some(took);
            }
        });
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
        } else if !self.track.recorder.take_room(bytes.len()) {
            self.loss = Some(Loss::MadeRoom);
        } else {
            self.kept.extend_from_slice(bytes);
            return;
        }
        drop(self.taken());
    }

    /// Takes the bytes kept so far and releases their share of the room for bodies in transit.
    fn taken(&mut self) -> Vec<u8> {
        self.track.recorder.give_room(self.kept.len());
        std::mem::take(&mut self.kept)
    }

    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let body = match self.loss {
                _ if self.size == 0 => RecordedBody::None,
                Some(why) => RecordedBody::Lost { why, size: self.size },
                None => RecordedBody::Whole(Bytes::from(self.taken())),
            };
            self.track.note(self.side, body);
        }
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        if !self.has_ended {
            drop(self.taken());
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
