//! The seam between episodes and instances: what the daemon does with the slots of an episode.

use std::fmt;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use arenad_model::episode::ending::{EpisodeEnding, VoidReason};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::lease::{RecycleOrder, SlotRefusal};
use arenad_model::episode::request::{EpisodeRequest, StartPoint};
use arenad_model::instance::InstanceId;

/// A slot that an episode has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedSlot {
    /// The instance of the slot.
    pub instance: InstanceId,
    /// The generation that the episode got. No other generation may ever serve the episode.
    pub generation: u64,
}

/// A slot that equals its starting point and is held for an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreparedSlot {
    /// The generation that is to serve the episode.
    pub generation: u64,
}

/// The preparation of one slot of an episode.
#[derive(Debug)]
pub struct SlotPreparation {
    /// The slot to prepare.
    pub slot: InstanceId,
    /// The state from which the episode starts.
    pub start: StartPoint,
    /// The episode that the slot is for.
    pub episode: EpisodeId,
    /// The permission to change the slot.
    pub permit: ChangePermit,
}

/// A message that the preparation of an episode is about to change a slot.
pub(crate) struct ChangeNote {
    pub(crate) slot: InstanceId,
    pub(crate) episode: EpisodeId,
    pub(crate) reply: oneshot::Sender<Result<(), SlotRefusal>>,
}

/// The permission to change a slot for an episode, which ends with the episode.
#[derive(Clone)]
pub struct ChangePermit {
    pub(crate) slot: InstanceId,
    pub(crate) episode: EpisodeId,
    pub(crate) notes: mpsc::Sender<ChangeNote>,
    /// Cancelled when the episode does not want the slot any more, before [`Slots::cut`] is called.
    pub(crate) withdrawn: CancellationToken,
}

impl ChangePermit {
    /// Announces a change of the slot, so that the slot is recycled even if the episode never begins. Must complete
    /// before the first change.
    ///
    /// Errors: the slot does not belong to the episode any more, and must not be changed.
    pub async fn begin(&self) -> Result<(), SlotRefusal> {
        let (reply, answer) = oneshot::channel();
        let note = ChangeNote { slot: self.slot.clone(), episode: self.episode.clone(), reply };
        let ended = || SlotRefusal::OtherLease { slot: self.slot.clone(), lease: self.episode.clone() };
        self.notes.send(note).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    /// Whether the episode has ended. [`Slots::cut`] follows or has been called, so the slot must not be held for the
    /// episode.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.is_cancelled()
    }
}

impl fmt::Debug for ChangePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangePermit").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// The slots of all sites, as the episodes need them. The daemon implements this trait with its instances.
///
/// At most one call of `prepare` or `recycle` runs for a slot. A call is cancelled by dropping it when its result is not
/// wanted any more; calls to the engine that have begun by then may still come to their end, so the next call for the
/// slot waits for them. A panic counts as a failure.
#[async_trait::async_trait]
pub trait Slots: Send + Sync + 'static {
    /// Brings a slot to its starting point and proves it. No client reaches the slot before [`Self::switch`].
    ///
    /// Errors: the reason for which the episode is void.
    async fn prepare(&self, preparation: SlotPreparation) -> Result<PreparedSlot, VoidReason>;

    /// Opens the routes to all slots of an episode, after its grant was recorded. Also called for each episode that a
    /// new daemon continues; then the instances may not be up yet, and the routes open when they are.
    ///
    /// An episode on shared sites alone has no slots. The call must not block, and takes effect for all slots or for none.
    ///
    /// Errors: the reason for which the episode is void. A later failure is reported by
    /// [`EpisodeHandle::slot_failed`](crate::EpisodeHandle::slot_failed).
    fn switch(&self, episode: &EpisodeId, request: &EpisodeRequest, slots: &[LeasedSlot]) -> Result<(), VoidReason>;

    /// Ends the requests of an episode that has just been frozen, and closes the public ports of its slots. The fence
    /// refuses further requests through the episode proxy and at the own ports of slots. Also called for each frozen
    /// episode that a new daemon continues, after [`Self::switch`].
    ///
    /// The call must not block. Nothing of a client reaches the slots afterwards.
    fn freeze(&self, episode: &EpisodeId);

    /// Opens the public ports of the slots of an episode that is not frozen any more.
    ///
    /// The call must not block.
    fn unfreeze(&self, episode: &EpisodeId);

    /// Closes the routes of an episode that has ended, and cuts its connections and the daemon's own visits. The episode
    /// may never have been switched, and has no slots if all of its sites are shared. The fence refuses its requests
    /// before the call.
    ///
    /// The call must not block. Nothing of the episode reaches its sites afterwards.
    fn cut(&self, episode: &EpisodeId, ending: &EpisodeEnding, slots: &[InstanceId]);

    /// Brings a slot back to its baseline and proves it, or makes it if it does not exist. A failed or cancelled attempt
    /// is followed by another one.
    ///
    /// Errors: the reason for the log.
    async fn recycle(&self, order: &RecycleOrder) -> Result<(), VoidReason>;
}
