//! The changes of a batch that are not recorded yet, and what follows when they are.

use std::sync::Arc;

use crate::error::EpisodeError;
use crate::message::Reply;
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::RecycleOrder;
use arenad_model::episode::queue::Grant;
use arenad_model::instance::InstanceId;
use arenad_store::{EpisodePart, NewEpisodeEvent, StoreError};

/// A step that follows when the changes are recorded.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Cut an episode off from its sites.
    Cut { episode: EpisodeId, ending: EpisodeEnding, slots: Vec<InstanceId> },
    /// End the requests of an episode's client, because the episode is frozen.
    Freeze(EpisodeId),
    /// Let the client reach the sites again.
    Unfreeze(EpisodeId),
    /// Bring a slot back to its baseline.
    Recycle(RecycleOrder),
    /// Prepare the slots of an episode.
    Prepare(Grant),
}

/// An answer that waits until the changes are recorded, or are not.
pub(crate) type DeferredReply = Box<dyn FnOnce(Result<(), EpisodeError>) + Send>;

/// Returns an answer with a value that stands if the changes are recorded.
pub(crate) fn deferred<T: Send + 'static>(reply: Reply<T>, answer: Result<T, EpisodeError>) -> DeferredReply {
    Box::new(move |recorded| {
        // A caller that has gone away needs no answer. The guards of an answer that is dropped take effect.
        let _ = reply.send(recorded.and(answer));
    })
}

/// The changes of a batch that are not recorded yet.
#[derive(Default)]
pub(crate) struct PendingChanges {
    /// The episodes that are new or have changed, in the order of their first change.
    pub(crate) written: Vec<(EpisodeId, EpisodePart)>,
    /// The episodes that are not remembered any more.
    pub(crate) forgotten: Vec<EpisodeId>,
    /// The changes of states.
    pub(crate) events: Vec<NewEpisodeEvent>,
    /// Whether a client depends on the changes after a crash of the host.
    pub(crate) is_durable: bool,
    /// The new episodes of this batch that no client can ask for again, because their requests have no keys.
    pub(crate) asked: Vec<EpisodeId>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) replies: Vec<DeferredReply>,
    /// The answers to holds, which wait until the holds are recorded, however long the store fails. A hold that a new
    /// daemon did not know of would not end with its connection.
    pub(crate) holds: Vec<DeferredReply>,
}

impl PendingChanges {
    /// Notes that a part of an episode must be written.
    pub(crate) fn write(&mut self, id: &EpisodeId, part: EpisodePart) {
        match self.written.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) => *known = known.with(part),
            None => self.written.push((id.clone(), part)),
        }
    }

    /// Notes that the row of an episode must be deleted.
    pub(crate) fn forget(&mut self, id: EpisodeId) {
        self.written.retain(|(known, _)| *known != id);
        self.forgotten.push(id);
    }

    /// Whether a transaction is necessary.
    pub(crate) fn has_rows(&self) -> bool {
        !(self.written.is_empty() && self.forgotten.is_empty() && self.events.is_empty())
    }

    /// Answers all callers of the batch.
    pub(crate) fn answer(&mut self, failed: Option<&Arc<StoreError>>) {
        let holds = if failed.is_none() { std::mem::take(&mut self.holds) } else { Vec::new() };
        for reply in self.replies.drain(..).chain(holds) {
            reply(failed.map_or(Ok(()), |error| Err(EpisodeError::Store(error.clone()))));
        }
    }
}
