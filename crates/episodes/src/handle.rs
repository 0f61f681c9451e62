//! The handle through which the API, the gateway and the instances reach the episode keeper.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::error::EpisodeError;
use crate::events::EpisodeEventCursor;
use crate::guards::{EvaluationGuard, HoldGuard};
use crate::message::{EpisodeReceipt, Message, Reply};
use crate::published::{EpisodeView, Published};
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::fence::{FenceDecision, TokenHash};
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, Owner};
use arenad_model::episode::queue::QueuePlace;
use arenad_model::episode::registry::{EpisodeChange, WithdrawalScope};
use arenad_model::episode::request::{EpisodeRequest, SiteCapacity};
use arenad_model::episode::slots::SlotDemand;
use arenad_model::episode::{EpisodeRefusal, EpisodeStatus};
use arenad_model::ids::{EnvironmentName, SiteId};
use arenad_model::instance::InstanceId;
use arenad_seams::ordered_watch as watch;
use arenad_store::DaemonStore;

/// The pause after which a caller tries again when the inbox is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The episodes to list.
#[derive(Debug, Clone, Default)]
pub struct EpisodeFilter {
    /// Only episodes of this owner.
    pub owner: Option<Owner>,
    /// Only episodes with all of these labels.
    pub labels: EpisodeLabels,
    /// Whether episodes that have ended are left out.
    pub is_live: bool,
}

/// Reaches the episode keeper. Clones reach the same one, which ends with the last of them.
#[derive(Clone)]
pub struct EpisodeHandle {
    pub(crate) inbox: mpsc::Sender<Message>,
    pub(crate) published: Arc<Published>,
    pub(crate) newest: watch::Receiver<i64>,
    pub(crate) store: DaemonStore,
}

impl EpisodeHandle {
    /// Sends a request of a client, which is refused if too many wait.
    async fn request<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, EpisodeError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.try_send(message(reply)).map_err(|error| match error {
            TrySendError::Full(_) => EpisodeError::Busy { retry_after: RETRY_AFTER },
            TrySendError::Closed(_) => EpisodeError::Stopping,
        })?;
        answer.await.map_err(|_| EpisodeError::Stopping)?
    }

    /// Sends a report of the daemon, which waits for its turn instead of being lost.
    async fn report<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, EpisodeError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(message(reply)).await.map_err(|_| EpisodeError::Stopping)?;
        answer.await.map_err(|_| EpisodeError::Stopping)?
    }

    /// Asks for an episode, and returns once the request is recorded. A repetition of a request with an idempotency key
    /// gets the same episode and a further token.
    ///
    /// Errors: [`EpisodeError::Ask`], [`EpisodeError::Busy`] and [`EpisodeError::Store`]. Then no episode exists, unless
    /// the request has a key and the store failed: a repetition gets the episode once the store works again.
    ///
    /// Cancellation: an episode without a key is released, because no client knows its id.
    pub async fn ask(&self, request: EpisodeRequest) -> Result<EpisodeReceipt, EpisodeError> {
        Ok(self.request(|reply| Message::Ask { request, reply }).await?.claim())
    }

    /// Asks for an episode as [`Self::ask`] does, and binds it to the life of the guard from the beginning, so that no
    /// moment exists in which a client that is killed leaves its episode behind. Returns once both are recorded.
    ///
    /// Errors: as [`Self::ask`], and [`EpisodeRefusal::AlreadyHeld`] if the request repeats one whose episode
    /// another connection holds.
    ///
    /// Cancellation: the episode ends.
    pub async fn ask_and_hold(&self, request: EpisodeRequest) -> Result<(EpisodeReceipt, HoldGuard), EpisodeError> {
        self.request(|reply| Message::AskAndHold { request, reply }).await
    }

    /// Waits until the client can reach the sites of an episode, or the episode has ended.
    ///
    /// Cancellation: nothing changes.
    pub async fn wait(&self, id: &EpisodeId) -> Result<EpisodeView, EpisodeError> {
        let mut newest = self.newest.clone();
        loop {
            // The value is marked as seen before the read, so a change in between is announced again.
            newest.borrow_and_update();
            match self.published.status(id) {
                Some(EpisodeStatus::Queued | EpisodeStatus::Preparing) => {}
                _ => return self.get(id),
            }
            newest.changed().await.map_err(|_| EpisodeError::Stopping)?;
        }
    }

    /// Waits until the state of an episode differs from `seen`, and returns the episode; at once if `seen` is `None`.
    /// States in between may be passed over, but not the last one.
    ///
    /// Cancellation: nothing changes.
    pub async fn changed(&self, id: &EpisodeId, seen: Option<EpisodeStatus>) -> Result<EpisodeView, EpisodeError> {
        let mut newest = self.newest.clone();
        loop {
            // The value is marked as seen before the read, so a change in between is announced again.
            newest.borrow_and_update();
            let view = self.get(id)?;
            if Some(view.state.status()) != seen {
                return Ok(view);
            }
            newest.changed().await.map_err(|_| EpisodeError::Stopping)?;
        }
    }

    async fn change(&self, id: &EpisodeId, change: EpisodeChange) -> Result<(), EpisodeError> {
        self.request(|reply| Message::Change { id: id.clone(), change, reply }).await
    }

    /// Extends the time to live.
    pub async fn heartbeat(&self, id: &EpisodeId, extension: Option<Duration>) -> Result<(), EpisodeError> {
        self.change(id, EpisodeChange::Heartbeat(extension)).await
    }

    /// Binds an episode, which may still wait for slots, to the life of the guard. Returns when the hold is recorded.
    ///
    /// Cancellation: the episode may end, as if it had been held.
    pub async fn hold(&self, id: &EpisodeId) -> Result<HoldGuard, EpisodeError> {
        self.request(|reply| Message::Hold { id: id.clone(), reply }).await
    }

    /// Freezes an episode on request of its client.
    pub async fn freeze(&self, id: &EpisodeId) -> Result<(), EpisodeError> {
        self.change(id, EpisodeChange::Freeze).await
    }

    /// Ends the client's freeze.
    pub async fn unfreeze(&self, id: &EpisodeId) -> Result<(), EpisodeError> {
        self.change(id, EpisodeChange::Unfreeze).await
    }

    /// Freezes an episode for an evaluation that takes at most `limit`.
    pub async fn begin_evaluation(&self, id: &EpisodeId, limit: Duration) -> Result<EvaluationGuard, EpisodeError> {
        self.request(|reply| Message::BeginEvaluation { id: id.clone(), limit, reply }).await
    }

    /// Ends an episode on behalf of its client, and returns when the end is recorded and its connections are cut.
    ///
    /// Errors: [`EpisodeError::Store`] if the end takes effect later.
    ///
    /// Cancellation: the episode ends.
    pub async fn release(&self, id: &EpisodeId) -> Result<(), EpisodeError> {
        self.request(|reply| Message::Release { id: id.clone(), reply }).await
    }

    /// Returns an episode that has not ended, or whose end is remembered.
    pub fn get(&self, id: &EpisodeId) -> Result<EpisodeView, EpisodeError> {
        self.published.get(id).ok_or(EpisodeError::Refused(EpisodeRefusal::Unknown))
    }

    /// Returns the episodes that match a filter, in order of their requests.
    pub fn list(&self, filter: &EpisodeFilter) -> Vec<EpisodeView> {
        self.published.list(|request, state| {
            filter.owner.as_ref().is_none_or(|owner| *owner == request.owner)
                && request.labels.include(&filter.labels)
                && !(filter.is_live && state.ending().is_some())
        })
    }

    /// Returns the episode that a request with this owner and key gets, if it repeats an earlier one.
    pub fn requested_with(&self, owner: &Owner, key: &IdempotencyKey) -> Option<EpisodeView> {
        let has_key = |request: &EpisodeRequest| request.key.as_ref() == Some(key) && request.owner == *owner;
        self.published.list(|request, _| has_key(request)).pop()
    }

    /// Returns the places of all requests that wait, in order of arrival.
    pub async fn queue(&self) -> Result<Vec<QueuePlace>, EpisodeError> {
        self.request(Message::Places).await
    }

    /// Decides on a request that a client sent through the proxy or to the API.
    ///
    /// An end that is not recorded yet is answered with [`FenceDecision::NotReady`].
    pub fn admit_client(&self, id: &EpisodeId, token: &TokenHash) -> FenceDecision {
        self.published.admit_client(id, token)
    }

    /// Decides on a request that a client sent to a slot's own port, on a connection of the episode.
    ///
    /// An end that is not recorded yet is answered with [`FenceDecision::NotReady`].
    pub fn admit_lease(&self, id: &EpisodeId) -> FenceDecision {
        self.published.admit_lease(id)
    }

    /// Decides on a visit of the daemon itself, such as a locator.
    pub fn admit_visitor(&self, id: &EpisodeId) -> FenceDecision {
        self.published.admit_visitor(id)
    }

    /// Returns the episode whose client can reach a slot.
    pub fn lease_of(&self, slot: &InstanceId) -> Option<EpisodeId> {
        self.published.lease_of(slot)
    }

    /// Returns a reader of the events of all episodes after the one with the number `after`, without gaps.
    pub fn follow(&self, after: i64) -> EpisodeEventCursor {
        EpisodeEventCursor { store: self.store.clone(), newest: self.newest.clone(), after }
    }

    /// Offers a site to episodes, or changes its capacity.
    pub async fn offer_site(&self, site: SiteId, capacity: SiteCapacity) -> Result<(), EpisodeError> {
        self.report(|reply| Message::OfferSite { site, capacity, reply }).await
    }

    /// Adds a slot. [`Slots::recycle`](crate::Slots::recycle) makes it before it is given to an episode.
    ///
    /// Errors: [`EpisodeError::Slot`] if the slot exists, for example because an episode has it since before a restart.
    pub async fn add_slot(&self, slot: InstanceId) -> Result<(), EpisodeError> {
        self.report(|reply| Message::AddSlot { slot, reply }).await
    }

    /// Removes a free slot, so that its instance can be removed.
    ///
    /// Errors: [`EpisodeError::Slot`] if the slot is not free.
    pub async fn retire_slot(&self, slot: InstanceId) -> Result<(), EpisodeError> {
        self.report(|reply| Message::RetireSlot { slot, reply }).await
    }

    /// Returns the requests that wait for slots of a site, by which the number of its slots is planned.
    pub async fn demand(&self, site: SiteId) -> Result<SlotDemand, EpisodeError> {
        self.report(|reply| Message::Demand { site, reply }).await
    }

    /// Ends all episodes of an environment, removes its sites and slots, and returns when no work on them is running.
    ///
    /// Errors: [`EpisodeError::Store`] if the ends were not recorded. The sites and slots are removed nevertheless.
    pub async fn withdraw_environment(&self, environment: EnvironmentName) -> Result<(), EpisodeError> {
        let scope = WithdrawalScope::Environment(environment);
        self.report(|reply| Message::Withdraw { scope, reply }).await
    }

    /// Ends all episodes that have or want a site, removes the site and its slots, and returns when no work on them is
    /// running. The other slots of those episodes are recycled.
    ///
    /// Errors: as [`Self::withdraw_environment`].
    pub async fn withdraw_site(&self, site: SiteId) -> Result<(), EpisodeError> {
        self.report(|reply| Message::Withdraw { scope: WithdrawalScope::Site(site), reply }).await
    }

    /// Ends an episode that the environment failed by something else than a slot, such as its browser. Returns when the
    /// end is recorded and its connections are cut.
    ///
    /// Errors: the episode has ended already, or the end takes effect later ([`EpisodeError::Store`]).
    pub async fn fail(&self, id: &EpisodeId, reason: VoidReason) -> Result<(), EpisodeError> {
        self.report(|reply| Message::Fail { id: id.clone(), reason, reply }).await
    }

    /// Reports that the instance of a slot failed. An episode that has the slot becomes void, and the slot is recycled.
    pub async fn slot_failed(&self, slot: InstanceId, reason: VoidReason) -> Result<(), EpisodeError> {
        self.report(|reply| Message::SlotFailed { slot, reason, reply }).await
    }
}
