//! The episode keeper: the one task that owns the registry.
//!
//! It wakes for a message, the end of work on a slot or a deadline, applies everything that has arrived, and then
//! records and executes the result (`recording.rs`). Nothing else changes an episode, so no two changes interleave.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::message::{Closing, Message, Reply};
use crate::pending::{Effect, PendingChanges};
use crate::published::Published;
use crate::random::RandomBytes;
use crate::slots::{ChangeNote, Slots};
use crate::work::SlotWork;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::registry::{EndCause, EndedEpisode, EpisodeRegistry, WithdrawalScope};
use arenad_model::episode::{EpisodeRefusal, EpisodeStatus};
use arenad_model::instance::InstanceId;
use arenad_seams::ordered_watch as watch;
use arenad_seams::wall_clock::WallClock;
use arenad_store::{DaemonStore, EpisodePart, NewEpisodeEvent, StoreError, StoredSlot};

/// The largest number of messages that are applied before their result is recorded.
const BATCH: usize = 256;
/// The time for which the keeper sleeps if nothing is due.
const IDLE: Duration = Duration::from_secs(24 * 3600);
/// Deadlines pass after their time, and timers have a resolution of a millisecond.
const TICK: Duration = Duration::from_millis(1);

/// The properties of an episode that the registry does not have.
#[derive(Debug, Clone)]
pub(crate) struct EpisodeNotes {
    pub(crate) asked_at: Timestamp,
    pub(crate) granted_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    /// The state of the newest event.
    pub(crate) status: EpisodeStatus,
    /// The slots in the order of the request, with the generations of those that are prepared.
    pub(crate) slots: Vec<StoredSlot>,
}

/// A caller that waits until sites are withdrawn.
pub(crate) struct Withdrawal {
    pub(crate) scope: WithdrawalScope,
    pub(crate) reply: Reply<()>,
    pub(crate) is_recorded: bool,
}

/// The failure of the store that no success has followed.
#[derive(Debug, Clone)]
pub(crate) struct StoreOutage {
    pub(crate) error: Arc<StoreError>,
    pub(crate) retry_at: Instant,
}

/// The task that owns all episodes of a daemon.
pub(crate) struct EpisodeKeeper {
    pub(crate) registry: EpisodeRegistry,
    pub(crate) notes: BTreeMap<EpisodeId, EpisodeNotes>,
    /// The ended episodes in the order of their ends, to notice which of them the registry forgets.
    pub(crate) ended: VecDeque<EpisodeId>,
    /// The episodes whose slots are all prepared.
    pub(crate) prepared: Vec<EpisodeId>,
    pub(crate) pending: PendingChanges,
    pub(crate) outage: Option<StoreOutage>,
    pub(crate) withdrawals: Vec<Withdrawal>,
    pub(crate) holds: u64,
    pub(crate) events: u64,
    pub(crate) work: SlotWork,
    pub(crate) published: Arc<Published>,
    pub(crate) newest: watch::Sender<i64>,
    pub(crate) store: DaemonStore,
    pub(crate) clock: WallClock,
    pub(crate) random: RandomBytes,
    pub(crate) slots: Arc<dyn Slots>,
    pub(crate) inbox: mpsc::Receiver<Message>,
    pub(crate) closings: (mpsc::UnboundedSender<Closing>, mpsc::UnboundedReceiver<Closing>),
    pub(crate) changing: (mpsc::Sender<ChangeNote>, mpsc::Receiver<ChangeNote>),
    pub(crate) shutdown: CancellationToken,
}

impl EpisodeKeeper {
    /// Runs until the daemon stops or the last handle is gone. Episodes go on with the next daemon.
    pub(crate) async fn run(mut self) {
        self.settle_and_record().await;
        while self.step().await {
            self.settle_and_record().await;
        }
    }

    /// Applies everything that has arrived. Returns false when the keeper is to end.
    async fn step(&mut self) -> bool {
        let wake = self.next_wake();
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => return false,
            Some(closing) = self.closings.1.recv() => self.close(closing),
            finished = self.work.finished() => self.finish(finished),
            Some(note) = self.changing.1.recv() => self.note_changing(note),
            message = self.inbox.recv() => match message {
                Some(message) => self.handle(message),
                None => return false,
            },
            () = tokio::time::sleep_until(wake) => {}
        }
        for _ in 0..BATCH {
            if let Ok(closing) = self.closings.1.try_recv() {
                self.close(closing);
            } else if let Some(finished) = self.work.try_finished() {
                self.finish(finished);
            } else if let Ok(note) = self.changing.1.try_recv() {
                self.note_changing(note);
            } else if let Ok(message) = self.inbox.try_recv() {
                self.handle(message);
            } else {
                break;
            }
        }
        true
    }

    fn next_wake(&self) -> Instant {
        let due = self.registry.next_due().map(|due| self.published.instant(due) + TICK);
        let retry = self.outage.as_ref().map(|outage| outage.retry_at);
        due.into_iter().chain(retry).min().unwrap_or_else(|| Instant::now() + IDLE)
    }

    pub(crate) fn now(&self) -> Duration {
        self.published.now()
    }

    /// Notes that a part of an episode has changed, and the change of its state if there is one.
    pub(crate) fn touch(&mut self, id: &EpisodeId, part: EpisodePart) {
        let Some((note, episode)) = self.notes.get_mut(id).zip(self.registry.get(id)) else { return };
        let state = episode.life.state();
        if note.status != state.status() {
            match (note.status, state.status()) {
                (_, EpisodeStatus::Frozen) => self.pending.effects.push(Effect::Freeze(id.clone())),
                (EpisodeStatus::Frozen, EpisodeStatus::Active) => {
                    self.pending.effects.push(Effect::Unfreeze(id.clone()));
                }
                _ => {}
            }
            note.status = state.status();
            let ending = state.ending().cloned();
            self.pending.events.push(NewEpisodeEvent { episode: id.clone(), status: note.status, ending });
        }
        self.pending.write(id, part);
    }

    /// Ends an episode, and notes what follows.
    pub(crate) fn end(&mut self, id: &EpisodeId, cause: EndCause) -> Result<(), EpisodeRefusal> {
        let ended = self.registry.end(id, cause, self.now())?;
        self.note_ended(ended);
        Ok(())
    }

    /// Notes that the registry has ended episodes. Their preparations stop at once; everything else waits until the ends
    /// are recorded.
    pub(crate) fn note_ended(&mut self, ended: impl IntoIterator<Item = EndedEpisode>) {
        for EndedEpisode { id, ending, recycle } in ended {
            let Some(note) = self.notes.get_mut(&id) else { continue };
            let slots: Vec<InstanceId> = note.slots.iter().map(|slot| slot.instance.clone()).collect();
            note.ended_at = Some(self.clock.now());
            if self.registry.get(&id).is_some() {
                self.touch(&id, EpisodePart::Life);
            } else {
                // The registry remembers fewer episodes than ended at once.
                let status = arenad_model::episode::EpisodeState::Ended(ending.clone()).status();
                self.pending.events.push(NewEpisodeEvent { episode: id.clone(), status, ending: Some(ending.clone()) });
            }
            tracing::info!(episode.id = %id, "episode {id} has ended: {ending}");
            self.pending.is_durable = true;
            self.ended.push_back(id.clone());
            for slot in &slots {
                self.work.stop_preparing(slot, &id);
            }
            // An episode without slots may have shared sites.
            self.pending.effects.push(Effect::Cut { episode: id.clone(), ending, slots });
            self.pending.effects.extend(recycle.into_iter().map(Effect::Recycle));
        }
        self.forget();
    }

    /// Forgets the episodes that the registry has forgotten.
    fn forget(&mut self) {
        while let Some(id) = self.ended.pop_front_if(|id| self.registry.get(id).is_none()) {
            self.notes.remove(&id);
            self.pending.forget(id);
        }
    }
}
