//! How a call goes: it is sent, takes effect at its time, and answers at its time, each of which a script may forbid.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::errors::unreachable;
use super::script::{Call, Fate, Operation, ReplyFate};
use super::world::World;
use super::{Failure, FakeEngine};
use arenad_engine::EngineError;

/// How long one ordinary call may take, as callers of Docker have it.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long commits and archive transfers may take.
pub(super) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a call is about.
pub(super) struct Sent<'a> {
    pub(super) operation: Operation,
    pub(super) subject: &'a str,
    /// Completes "failed to …".
    pub(super) doing: String,
    pub(super) limit: Duration,
}

/// What came back of a call.
pub(super) enum Reply<T> {
    Arrived(T),
    /// It took effect, and the connection broke before the answer was through.
    Lost(T, EngineError),
}

impl FakeEngine {
    /// Asks the script; the engine counts the call.
    pub(super) fn fate(&self, operation: Operation, subject: &str) -> Fate {
        let (nth, number, at) = self.look(|world| {
            let nth = world.calls.entry(operation).or_default();
            *nth += 1;
            let nth = *nth;
            (nth, world.calls.values().sum(), world.now)
        });
        let mut script = self.shared.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.fate(&Call { operation, subject, nth, number, at })
    }

    fn unreachable(&self, kind: io::ErrorKind) -> EngineError {
        unreachable(&self.shared.endpoint, kind)
    }

    /// One call whose answer is either there or not.
    pub(super) async fn call<T, F>(&self, sent: Sent<'_>, effect: F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: FnOnce(&mut World, &str) -> Result<T, EngineError> + Send + 'static,
    {
        match self.exchange(sent, effect).await? {
            Reply::Arrived(value) => Ok(value),
            Reply::Lost(_, error) => Err(error),
        }
    }

    /// One call. Dropping the future after it was first polled does not undo the call.
    pub(super) async fn exchange<T, F>(&self, sent: Sent<'_>, effect: F) -> Result<Reply<T>, EngineError>
    where
        T: Send + 'static,
        F: FnOnce(&mut World, &str) -> Result<T, EngineError> + Send + 'static,
    {
        let fate = self.fate(sent.operation, sent.subject);
        if fate.failure == Some(Failure::Unreachable) {
            tokio::time::sleep(fate.before_effect).await;
            return Err(self.unreachable(io::ErrorKind::ConnectionRefused));
        }
        let Some(session) = self.look(|world| world.is_up.then_some(world.session)) else {
            return Err(self.unreachable(io::ErrorKind::ConnectionRefused));
        };
        let answer: Arc<Mutex<Option<Result<T, EngineError>>>> = Arc::default();
        // Until a container is made, its name is taken and nothing has it.
        let reserves = sent.operation == Operation::Create
            && !fate.before_effect.is_zero()
            && self.look(|world| world.reserved.insert(sent.subject.to_owned()));
        let effect = {
            let (answer, endpoint) = (answer.clone(), self.shared.endpoint.clone());
            let (operation, subject, doing, limit) =
                (sent.operation, sent.subject.to_owned(), sent.doing.clone(), sent.limit);
            let (failure, death) = (fate.failure, fate.death);
            move |world: &mut World| {
                if reserves {
                    world.reserved.remove(&subject);
                }
                let failure = failure.or((world.disk_full && operation.takes_space()).then_some(Failure::NoSpace));
                let result = match failure {
                    Some(failure) => Err(failure.error(doing, &endpoint, limit)),
                    None => effect(world, &doing),
                };
                if let (Ok(_), Some(death)) = (&result, death) {
                    world.die_later(&subject, death);
                }
                *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        if fate.before_effect.is_zero() {
            self.look(effect);
        } else {
            self.look(|world| world.defer(fate.before_effect, Box::new(effect)));
            self.wait(fate.before_effect, Duration::ZERO, &sent).await?;
        }
        let replies_after = match fate.reply {
            ReplyFate::Never => sent.limit,
            ReplyFate::Arrives | ReplyFate::Lost => fate.before_reply,
        };
        self.wait(replies_after, fate.before_effect, &sent).await?;
        let is_connected = self.look(|world| world.session == session);
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The engine went away in between, and what was on its way with it.
        let (true, Some(answer)) = (is_connected, answer) else {
            return Err(self.unreachable(io::ErrorKind::ConnectionReset));
        };
        let lost = || self.unreachable(io::ErrorKind::ConnectionReset);
        match (answer, fate.reply) {
            (Ok(value), ReplyFate::Lost) => Ok(Reply::Lost(value, lost())),
            (Err(_), ReplyFate::Lost) => Err(lost()),
            (answer, _) => answer.map(Reply::Arrived),
        }
    }

    /// Waits as long as the caller's limit allows, of which something is spent already.
    async fn wait(&self, duration: Duration, spent: Duration, sent: &Sent<'_>) -> Result<(), EngineError> {
        if duration.is_zero() {
            return Ok(());
        }
        let left = sent.limit.saturating_sub(spent);
        tokio::time::sleep(duration.min(left)).await;
        if duration < left {
            return Ok(());
        }
        self.look(|_| ());
        Err(EngineError::TimedOut { doing: sent.doing.clone(), limit: sent.limit })
    }

    /// Waits until a time of the engine's clock, and lets happen what is due by then.
    pub(super) async fn wait_until(&self, due: Duration) {
        loop {
            let now = self.shared.clock.now();
            if now >= due {
                break;
            }
            tokio::time::sleep(due - now).await;
        }
        self.look(|_| ());
    }

    /// Waits until something happens, or is due to. `seen` is the count of news before the caller last looked.
    pub(super) async fn news(&self, seen: u64) {
        self.news_or(seen, None).await;
    }

    /// The same, at the longest until a time.
    pub(super) async fn news_or(&self, seen: u64, latest: Option<Duration>) {
        let mut news = self.shared.news.subscribe();
        let due = self.look(|world| world.next_due()).into_iter().chain(latest).min();
        let changed = news.wait_for(|count| *count != seen);
        match due {
            Some(due) => {
                tokio::select! {
                    biased;
                    _ = changed => {}
                    () = self.wait_until(due) => {}
                }
            }
            None => drop(changed.await),
        }
    }

    pub(super) fn news_count(&self) -> u64 {
        *self.shared.news.borrow()
    }
}
