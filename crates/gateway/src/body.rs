//! Bodies in transit: forwarded one chunk at a time, at the pace of the slower side, and kept only as copies for the
//! recorder.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::address_table::AddressMapper;
use super::client::ClientConnection;
use super::decoder::BodyDecoder;
use super::episode_recorder::KeptReceipt;
use super::gather::Gather;
use super::link::ExchangeLink;
use super::local::{InFlight, LocalRoute};
use super::mapped_body::BodyMapper;
use super::pool::TargetConnection;

/// The reason why a body ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the compressed body is damaged: {0}")]
    Damaged(#[from] io::Error),
}

/// Progress of a client's body; it outlives the body, which hyper owns.
#[derive(Debug, Default)]
pub(super) struct BodyProgress {
    pub(super) is_ended: Cell<bool>,
    pub(super) is_broken: Cell<bool>,
}

/// The body of a request to a target.
pub(super) enum RequestBody {
    None,
    Streamed(Box<StreamedBody>),
    Whole(Box<WholeBody>),
}

/// A client's body that has been read to its end.
pub(super) struct WholeBody {
    /// `None` once it has been sent.
    bytes: Option<Bytes>,
    progress: Rc<BodyProgress>,
    route: Rc<LocalRoute>,
    gather: Option<Box<Gather>>,
}

impl WholeBody {
    pub(super) fn new(
        bytes: Bytes,
        progress: Rc<BodyProgress>,
        route: Rc<LocalRoute>,
        gather: Option<Box<Gather>>,
    ) -> Self {
        Self { bytes: Some(bytes), progress, route, gather }
    }

    fn take(&mut self) -> Option<Bytes> {
        self.progress.is_ended.set(true);
        let bytes = self.bytes.take()?;
        self.route.count_to_site(bytes.len());
        // Only now, because the exchange is recorded from the moment that it is sent.
        if let Some(gather) = &mut self.gather {
            gather.add(&bytes);
            gather.end();
        }
        Some(bytes)
    }
}

/// A client's body on its way to a target.
pub(super) struct StreamedBody {
    incoming: Incoming,
    progress: Rc<BodyProgress>,
    route: Rc<LocalRoute>,
    gather: Option<Box<Gather>>,
    mapped: Option<MappedFrames>,
}

impl StreamedBody {
    pub(super) fn new(
        incoming: Incoming,
        progress: Rc<BodyProgress>,
        route: Rc<LocalRoute>,
        gather: Option<Box<Gather>>,
        mapper: Option<Box<AddressMapper>>,
    ) -> Self {
        let mapper = mapper.map(|addresses| BodyMapper { addresses, decoder: None });
        Self { incoming, progress, route, gather, mapped: mapper.map(MappedFrames::new) }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream() && !self.mapped.as_ref().is_some_and(MappedFrames::has_more)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = ready!(self.poll_mapped(cx));
        match &polled {
            Some(Ok(frame)) => {
                self.route.count_to_site(frame.data_ref().map_or(0, Bytes::len));
                if let (Some(gather), Some(data)) = (self.gather.as_mut(), frame.data_ref()) {
                    gather.add(data);
                }
                self.progress.is_ended.set(self.is_end_stream());
            }
            Some(Err(_)) => self.progress.is_broken.set(true),
            None => self.progress.is_ended.set(true),
        }
        if let Some(gather) = self.gather.as_mut().filter(|_| self.progress.is_ended.get()) {
            gather.end();
        }
        Poll::Ready(polled)
    }

    fn poll_mapped(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self { incoming, mapped, .. } = self;
        let Some(mapped) = mapped else { return Pin::new(incoming).poll_frame(cx).map_err(BodyError::Http) };
        loop {
            if let Some(trailers) = mapped.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            if mapped.mapper.is_none() {
                return Poll::Ready(None);
            }
            let polled = ready!(Pin::new(&mut *incoming).poll_frame(cx).map_err(BodyError::Http));
            let is_last = incoming.is_end_stream() || polled.is_none();
            match mapped.map(polled, is_last) {
                // The bytes of the chunk depend on the next one.
                MappedFrame::Next(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                MappedFrame::Next(frame) => return Poll::Ready(Some(frame)),
                MappedFrame::End(frame) => return Poll::Ready(frame.map(Ok)),
            }
        }
    }
}

impl RequestBody {
    pub(super) fn progress(&self) -> Option<Rc<BodyProgress>> {
        match self {
            Self::None => None,
            Self::Streamed(body) => Some(Rc::clone(&body.progress)),
            Self::Whole(body) => Some(Rc::clone(&body.progress)),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Streamed(body) => body.poll(cx),
            Self::Whole(body) => Poll::Ready(body.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Streamed(body) => body.is_end_stream(),
            Self::Whole(body) => body.bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Streamed(body) if body.mapped.is_some() => SizeHint::default(),
            Self::Streamed(body) => body.incoming.size_hint(),
            Self::Whole(body) => SizeHint::with_exact(body.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}

/// The body of a response to a client.
pub(super) enum AnswerBody {
    /// A body that the gateway itself generated; `None` once it has been sent.
    Own(Option<Bytes>),
    /// A body that the gateway forwards from the target.
    Passed(Box<PassedBody>),
}

/// A target's body, with the connection from which it is read.
///
/// The connection has no task of its own: it is driven when a chunk is requested. Client and target then share one
/// task, and a chunk passes from one to the other without a wake-up.
pub(super) struct PassedBody {
    incoming: Incoming,
    connection: Option<Box<TargetConnection>>,
    client: Rc<ClientConnection>,
    /// The exchange from which the connection is detached when the body has been read; only the proxy attaches it.
    attached: Option<Arc<ExchangeLink>>,
    visit: Option<InFlight>,
    gather: Option<Box<Gather>>,
    mapped: Option<MappedFrames>,
    /// The end of the body, from the moment that it has been read until the record of the episode has the exchange.
    withheld: Option<WithheldEnd>,
}

/// The frames of a body whose addresses are replaced.
struct MappedFrames {
    /// `None` once the last bytes have been mapped.
    mapper: Option<Box<AddressMapper>>,
    /// Decompresses the body first, if it is compressed.
    decoder: Option<Box<BodyDecoder>>,
    /// The end of the body, with its trailers, while bytes that precede it are being decompressed.
    end: Option<Option<Frame<Bytes>>>,
    /// The trailers, while the last bytes precede them.
    trailers: Option<Frame<Bytes>>,
}

impl MappedFrames {
    fn new(BodyMapper { addresses, decoder }: BodyMapper) -> Self {
        Self { mapper: Some(addresses), decoder, end: None, trailers: None }
    }

    /// Returns whether something follows the frames that have been read.
    fn has_more(&self) -> bool {
        self.mapper.is_some() || self.trailers.is_some()
    }

    /// Whether the next frame can be had without another one of the body.
    fn is_decompressing(&self) -> bool {
        self.end.is_some() || self.decoder.as_ref().is_some_and(|decoder| decoder.has_input())
    }

    /// Maps the next frame of the body.
    fn map(&mut self, frame: Option<Result<Frame<Bytes>, BodyError>>, is_last: bool) -> MappedFrame {
        let (data, after) = match frame {
            Some(Err(error)) => return MappedFrame::Next(Err(error)),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => (data, None),
                Err(frame) => (Bytes::new(), Some(frame)),
            },
            None => (Bytes::new(), None),
        };
        let is_last = is_last || after.is_some();
        match &mut self.decoder {
            None => self.replace(&data, is_last.then_some(after)),
            Some(decoder) => {
                decoder.add(data);
                self.end = is_last.then_some(after);
                self.decompress()
            }
        }
    }

    /// Decompresses and maps the next piece of the frame that was read last.
    fn decompress(&mut self) -> MappedFrame {
        let Some(decoder) = &mut self.decoder else { return MappedFrame::End(None) };
        if decoder.has_input() {
            return match decoder.decompress() {
                Ok(text) => self.replace(&text, None),
                Err(error) => MappedFrame::Next(Err(error.into())),
            };
        }
        match self.end.take() {
            None => MappedFrame::Next(Ok(Frame::data(Bytes::new()))),
            Some(after) => match decoder.finish() {
                Ok(text) => self.replace(&text, Some(after)),
                Err(error) => MappedFrame::Next(Err(error.into())),
            },
        }
    }

    /// Replaces the addresses in bytes, which the end of the body may follow, with its trailers.
    fn replace(&mut self, data: &[u8], end: Option<Option<Frame<Bytes>>>) -> MappedFrame {
        let text = match end {
            Some(_) => self.mapper.take().map(|mut mapper| mapper.last(data)),
            None => self.mapper.as_mut().map(|mapper| mapper.next(data)),
        };
        let text = text.unwrap_or_default();
        let Some(after) = end else { return MappedFrame::Next(Ok(Frame::data(text.into()))) };
        match (text.is_empty(), after) {
            (true, after) => MappedFrame::End(after),
            (false, Some(after)) => {
                self.trailers = Some(after);
                MappedFrame::Next(Ok(Frame::data(text.into())))
            }
            (false, None) => MappedFrame::End(Some(Frame::data(text.into()))),
        }
    }
}

/// A frame of a mapped body.
enum MappedFrame {
    /// A frame that others follow, or an error.
    Next(Result<Frame<Bytes>, BodyError>),
    /// The end of the body, with the frame that it comes with.
    End(Option<Frame<Bytes>>),
}

/// The end of a body whose exchange is being kept. Until it is handed over, a switch or a revocation takes the response
/// for one that has not ended, and cuts the client.
struct WithheldEnd {
    receipt: KeptReceipt,
    /// The last chunk or the trailers; `None` if the end follows chunks that have been handed over.
    frame: Option<Frame<Bytes>>,
}

impl PassedBody {
    pub(super) fn new(
        incoming: Incoming,
        connection: Box<TargetConnection>,
        client: Rc<ClientConnection>,
        attached: Option<Arc<ExchangeLink>>,
        visit: InFlight,
        gather: Option<Box<Gather>>,
        mapper: Option<BodyMapper>,
    ) -> Self {
        let mapped = mapper.map(MappedFrames::new);
        let (connection, visit) = (Some(connection), Some(visit));
        let mut body = Self { incoming, connection, client, attached, visit, gather, mapped, withheld: None };
        if body.incoming.is_end_stream() {
            body.mapped = None;
            body.finish();
        }
        body
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream() && !self.mapped.as_ref().is_some_and(MappedFrames::has_more)
    }

    fn size_hint(&self) -> SizeHint {
        match self.mapped {
            None => self.incoming.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }

    /// Hands over the end of the body, or withholds it until the record of the episode has the exchange.
    fn end(
        &mut self,
        cx: &mut Context<'_>,
        frame: Option<Frame<Bytes>>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        // Before the last bytes leave, so that a client that has read the response finds it recorded.
        let receipt = self.gather.take().and_then(|mut gather| {
            gather.end();
            gather.receipt()
        });
        match receipt {
            Some(receipt) => {
                self.withheld = Some(WithheldEnd { receipt, frame });
                self.poll_withheld(cx)
            }
            None => {
                self.finish();
                Poll::Ready(frame.map(Ok))
            }
        }
    }

    fn poll_withheld(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(withheld) = &mut self.withheld {
            // A keeper that fails drops its end, which resolves the receipt as well.
            let _ = ready!(Pin::new(&mut withheld.receipt).poll(cx));
        }
        let frame = self.withheld.take().and_then(|withheld| withheld.frame);
        self.finish();
        Poll::Ready(frame.map(Ok))
    }

    fn finish(&mut self) {
        if let Some(mut gather) = self.gather.take() {
            gather.end();
        }
        let is_free = self.attached.take().is_none_or(|attached| attached.detach());
        if let Some(visit) = self.visit.take() {
            if let Some(connection) = self.connection.take().filter(|_| is_free) {
                visit.route().pool.put(visit.route(), connection);
            }
            self.client.end_answer(Some(visit));
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.withheld.is_some() {
            return self.poll_withheld(cx);
        }
        loop {
            if let Some(trailers) = self.mapped.as_mut().and_then(|mapped| mapped.trailers.take()) {
                return self.end(cx, Some(trailers));
            }
            let mapped = match &mut self.mapped {
                None => return self.poll_incoming(cx),
                Some(MappedFrames { mapper: None, .. }) => return Poll::Ready(None),
                Some(mapped) if mapped.is_decompressing() => mapped.decompress(),
                Some(_) => {
                    let polled = ready!(self.poll_incoming(cx));
                    let is_last = self.incoming.is_end_stream() || polled.is_none();
                    match &mut self.mapped {
                        Some(mapped) => mapped.map(polled, is_last),
                        None => return Poll::Ready(polled),
                    }
                }
            };
            if let MappedFrame::Next(Err(BodyError::Damaged(_))) = &mapped {
                self.cut();
            }
            match mapped {
                // The bytes of the chunk depend on the next one.
                MappedFrame::Next(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                MappedFrame::Next(frame) => return Poll::Ready(Some(frame)),
                MappedFrame::End(frame) => return self.end(cx, frame),
            }
        }
    }

    /// Cuts the client because the body cannot be completed. hyper would close the connection in order, which a client that
    /// reads until the end takes for a complete body.
    fn cut(&self) {
        self.client.link.cut_telling(|| {
            if let (Some(visit), Some(connection)) = (&self.visit, &self.connection) {
                let shared = &visit.route().shared;
                // A switch also breaks the target's connection before it visits the client's; that is not a failure of the
                // target.
                let is_current = connection.is_current(shared);
                if is_current { shared.counters.target_failed() } else { shared.counters.cut_by_switch() }
            }
        });
    }

    /// Returns the next frame of the target. A mapped body may have bytes left after it, and is ended with them.
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let incoming = &mut self.incoming;
        let polled = match &mut self.connection {
            Some(connection) => connection.drive(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx)),
            None => Pin::new(incoming).poll_frame(cx),
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(visit) = &self.visit {
                    visit.route().count_from_site(frame.data_ref().map_or(0, Bytes::len));
                }
                if let (Some(gather), Some(data)) = (&mut self.gather, frame.data_ref()) {
                    gather.add(data);
                }
                if self.incoming.is_end_stream() && self.mapped.is_none() {
                    return self.end(cx, Some(frame));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.cut();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) if self.mapped.is_none() => self.end(cx, None),
            Poll::Ready(None) => Poll::Ready(None),
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Passed(body) => body.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(text) => text.is_none(),
            Self::Passed(body) => body.withheld.is_none() && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Self::Passed(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for PassedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassedBody").finish_non_exhaustive()
    }
}
