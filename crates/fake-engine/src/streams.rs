//! The streams of a simulated engine: archives, logs and events.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use super::FakeEngine;
use super::engine::sent;
use super::errors::{short, unreachable};
use super::events::Subscriber;
use super::exchange::CallReply;
use super::script::{EngineMethod, ReplyFate};
use super::world::EngineWorld;
use arenad_engine::{EngineError, EngineEvent, EngineHandle, EngineStream, LogChunk, LogRange};

/// Size of the pieces of an archive, in bytes.
const CHUNK: usize = 64 << 10;

/// Collects an archive that a caller sends.
pub(super) async fn gather(
    doing: &str,
    mut archive: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
) -> Result<Vec<u8>, EngineError> {
    let mut whole = Vec::new();
    while let Some(chunk) = archive.next().await {
        let broken = |cause: io::Error| EngineError::Broken { doing: doing.to_owned(), cause: cause.into() };
        whole.extend_from_slice(&chunk.map_err(broken)?);
    }
    Ok(whole)
}

/// Returns an archive as a stream. If the reply was lost, the stream breaks in the middle.
pub(super) fn pieces(
    reply: Result<CallReply<Vec<u8>>, EngineError>,
) -> impl Stream<Item = Result<Bytes, EngineError>> + Send {
    let (content, error) = match reply {
        Ok(CallReply::Arrived(content)) => (content, None),
        Ok(CallReply::Lost(mut content, error)) => {
            content.truncate(content.len() / 2);
            (content, Some(error))
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    let content = Bytes::from(content);
    let chunks =
        (0..content.len()).step_by(CHUNK).map(move |from| content.slice(from..content.len().min(from + CHUNK)));
    let items: Vec<Result<Bytes, EngineError>> = chunks.map(Ok).chain(error.map(Err)).collect();
    stream::iter(items)
}

impl FakeEngine {
    /// Returns the log of a container as a stream.
    pub(super) fn follow(&self, handle: &EngineHandle, range: LogRange) -> EngineStream<LogChunk> {
        let (engine, handle) = (self.clone(), handle.clone());
        let first = async move {
            let name = engine.name_of(&handle);
            let sent = sent(EngineMethod::Logs, &name, format!("read the log of container {}", short(&handle.0)));
            let id = handle.0.clone();
            let read = engine.call(sent, move |world, doing| world.log(doing, &id, range)).await;
            let state = match read {
                Ok((id, page)) => {
                    let waiting = page.chunks.into_iter().map(Ok).collect();
                    LogState { engine, id, waiting, seen: page.seen, follows: range.follow }
                }
                Err(error) => {
                    let waiting = VecDeque::from([Err(error)]);
                    LogState { engine, id: handle.0, waiting, seen: 0, follows: false }
                }
            };
            stream::unfold(state, move |state| state.next(range.timestamps))
        };
        Box::pin(stream::once(first).flatten())
    }

    /// Opens a stream of events.
    pub(super) fn listen(&self, label: &str, value: &str) -> EngineStream<EngineEvent> {
        let fate = self.fate(EngineMethod::Events, label);
        let unreachable = |kind| unreachable(&self.shared.endpoint, kind);
        let mut subscriber = match fate.reply {
            ReplyFate::Never => Subscriber::new("", ""),
            ReplyFate::Arrives | ReplyFate::Lost => Subscriber::new(label, value),
        };
        if let Some(failure) = fate.failure {
            let error = failure.error("watch the engine's events".to_owned(), &self.shared.endpoint, Duration::ZERO);
            subscriber.end(Some(error));
        }
        if fate.reply == ReplyFate::Lost {
            subscriber.end(Some(unreachable(io::ErrorKind::ConnectionReset)));
        }
        let alive = Arc::new(());
        let listens = Arc::downgrade(&alive);
        let number = self.look(|world| {
            let number = world.count();
            if !world.is_up {
                subscriber.end(Some(unreachable(io::ErrorKind::ConnectionRefused)));
            }
            let effect = move |world: &mut EngineWorld| {
                if listens.upgrade().is_some() {
                    world.subscribers.insert(number, subscriber);
                }
            };
            if fate.before_effect.is_zero() {
                effect(world);
            } else {
                world.defer(fate.before_effect, Box::new(effect));
            }
            number
        });
        let subscription =
            Subscription { engine: self.clone(), number, session: self.look(|world| world.session), _alive: alive };
        Box::pin(stream::unfold(subscription, |subscription| async move {
            let event = subscription.next().await?;
            Some((event, subscription))
        }))
    }
}

/// The state of a log stream.
struct LogState {
    engine: FakeEngine,
    id: String,
    waiting: VecDeque<Result<LogChunk, EngineError>>,
    seen: u64,
    follows: bool,
}

impl LogState {
    async fn next(mut self, timestamps: bool) -> Option<(Result<LogChunk, EngineError>, Self)> {
        loop {
            if let Some(chunk) = self.waiting.pop_front() {
                return Some((chunk, self));
            }
            if !self.follows {
                return None;
            }
            let news = self.engine.news_count();
            let page = self.engine.look(|world| world.log_after(&self.id, self.seen, timestamps));
            self.seen = page.seen;
            self.follows = page.goes_on;
            let is_quiet = page.chunks.is_empty();
            self.waiting.extend(page.chunks.into_iter().map(Ok));
            if is_quiet && self.follows {
                self.engine.news_or(news, page.next).await;
            }
        }
    }
}

/// An open stream of events.
struct Subscription {
    engine: FakeEngine,
    number: u64,
    session: u64,
    _alive: Arc<()>,
}

impl Subscription {
    async fn next(&self) -> Option<Result<EngineEvent, EngineError>> {
        loop {
            let news = self.engine.news_count();
            let (event, is_ended) = self.engine.look(|world| {
                let is_cut = world.session != self.session;
                match world.subscribers.get_mut(&self.number) {
                    Some(subscriber) => (subscriber.next(), subscriber.is_ended),
                    None => (None, is_cut),
                }
            });
            match (event, is_ended) {
                (Some(event), _) => return Some(event),
                (None, true) => return None,
                (None, false) => self.engine.news(news).await,
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.engine.look(|world| drop(world.subscribers.remove(&self.number)));
    }
}
