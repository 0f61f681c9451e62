//! The course of a call: it is sent, takes effect after a delay, and is answered after a delay. A script may prevent
//! each of these steps.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::errors::unreachable;
use super::script::{CallFate, EngineCall, EngineMethod, ReplyFate};
use super::world::EngineWorld;
use super::{CallFailure, FakeEngine};
use arenad_engine::EngineError;

/// Time limit of an ordinary call, as for callers of Docker.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit of commits and archive transfers.
pub(super) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(3600);

/// The description of a call.
pub(super) struct Sent<'a> {
    pub(super) operation: EngineMethod,
    pub(super) subject: &'a str,
    /// Completes the sentence "failed to …".
    pub(super) doing: String,
    pub(super) limit: Duration,
}

/// The response to a call that took effect.
pub(super) enum CallReply<T> {
    Arrived(T),
    /// The call took effect, but the connection broke before the response was complete.
    Lost(T, EngineError),
}

impl FakeEngine {
    /// Asks the script for the fate of a call, and counts the call.
    pub(super) fn fate(&self, operation: EngineMethod, subject: &str) -> CallFate {
        let (nth, number, at) = self.look(|world| {
            let nth = world.calls.entry(operation).or_default();
            *nth += 1;
            let nth = *nth;
            (nth, world.calls.values().sum(), world.now)
        });
        let mut script = self.shared.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.fate(&EngineCall { operation, subject, nth, number, at })
    }

    fn unreachable(&self, kind: io::ErrorKind) -> EngineError {
        unreachable(&self.shared.endpoint, kind)
    }

    /// Makes a call whose response either arrives completely or not at all.
    pub(super) async fn call<T, F>(&self, sent: Sent<'_>, effect: F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: FnOnce(&mut EngineWorld, &str) -> Result<T, EngineError> + Send + 'static,
    {
        match self.exchange(sent, effect).await? {
            CallReply::Arrived(value) => Ok(value),
            CallReply::Lost(_, error) => Err(error),
        }
    }

    /// Makes a call. Dropping the future after its first poll does not undo the call.
    pub(super) async fn exchange<T, F>(&self, sent: Sent<'_>, effect: F) -> Result<CallReply<T>, EngineError>
    where
        T: Send + 'static,
        F: FnOnce(&mut EngineWorld, &str) -> Result<T, EngineError> + Send + 'static,
    {
        let fate = self.fate(sent.operation, sent.subject);
        if fate.failure == Some(CallFailure::Unreachable) {
            tokio::time::sleep(fate.before_effect).await;
            return Err(self.unreachable(io::ErrorKind::ConnectionRefused));
        }
        let Some(session) = self.look(|world| world.is_up.then_some(world.session)) else {
            return Err(self.unreachable(io::ErrorKind::ConnectionRefused));
        };
        let answer: Arc<Mutex<Option<Result<T, EngineError>>>> = Arc::default();
        // The name is taken while the container is being created, but does not yet lead to a container.
        let reserves = sent.operation == EngineMethod::Create
            && !fate.before_effect.is_zero()
            && self.look(|world| world.reserved.insert(sent.subject.to_owned()));
        let effect = {
            let (answer, endpoint) = (answer.clone(), self.shared.endpoint.clone());
            let (operation, subject, doing, limit) =
                (sent.operation, sent.subject.to_owned(), sent.doing.clone(), sent.limit);
            let (failure, death) = (fate.failure, fate.death);
            move |world: &mut EngineWorld| {
                if reserves {
                    world.reserved.remove(&subject);
                }
                let failure = failure.or((world.disk_full && operation.takes_space()).then_some(CallFailure::NoSpace));
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
        // The engine went down in between, so the call was lost.
        let (true, Some(answer)) = (is_connected, answer) else {
            return Err(self.unreachable(io::ErrorKind::ConnectionReset));
        };
        let lost = || self.unreachable(io::ErrorKind::ConnectionReset);
        match (answer, fate.reply) {
            (Ok(value), ReplyFate::Lost) => Ok(CallReply::Lost(value, lost())),
            (Err(_), ReplyFate::Lost) => Err(lost()),
            (answer, _) => answer.map(CallReply::Arrived),
        }
    }

    /// Waits for `duration`, but only until the caller's time limit, of which `spent` has passed already.
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

    /// Waits until a time of the engine's clock, and then applies the effects that are due.
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

    /// Waits until the next change or the next due effect. `seen` is the count of changes before the caller last
    /// looked.
    pub(super) async fn news(&self, seen: u64) {
        self.news_or(seen, None).await;
    }

    /// Like [`FakeEngine::news`], but waits at most until `latest`.
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
