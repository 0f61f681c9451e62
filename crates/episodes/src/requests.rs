//! The effect of each message on the registry. Answers wait until the result is recorded.

use std::time::Duration;

use crate::error::EpisodeError;
use crate::guards::{EvaluationGuard, HoldGuard};
use crate::keeper::{EpisodeKeeper, EpisodeNotes, Withdrawal};
use crate::message::{Closing, EpisodeReceipt, Message, Reply, UnclaimedReceipt};
use crate::pending::{Effect, deferred};
use crate::token::EpisodeToken;
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::life::HoldId;
use arenad_model::episode::registry::{AskedEpisode, EndCause, EpisodeChange, SlotFailure, WithdrawalScope};
use arenad_model::episode::request::EpisodeRequest;
use arenad_store::{EpisodePart, NewEpisodeEvent};

impl EpisodeKeeper {
    pub(crate) fn handle(&mut self, message: Message) {
        match message {
            Message::Ask { request, reply } => self.ask(request, reply),
            Message::AskAndHold { request, reply } => self.ask_and_hold(request, reply),
            Message::Change { id, change, reply } => {
                let changed = self.change(&id, change);
                self.pending.replies.push(deferred(reply, changed));
            }
            Message::Hold { id, reply } => self.hold(id, reply),
            Message::BeginEvaluation { id, limit, reply } => self.begin_evaluation(id, limit, reply),
            Message::Release { id, reply } => {
                let released = self.end(&id, EndCause::Release).map_err(EpisodeError::from);
                self.pending.replies.push(deferred(reply, released));
            }
            Message::Fail { id, reason, reply } => {
                let failed = self.end(&id, EndCause::Failed(reason)).map_err(EpisodeError::from);
                self.pending.replies.push(deferred(reply, failed));
            }
            // The answers to these depend on nothing that must be recorded. A caller that has gone away needs none.
            Message::Places(reply) => drop(reply.send(Ok(self.registry.places()))),
            Message::Demand { site, reply } => drop(reply.send(Ok(self.registry.demand(&site)))),
            Message::OfferSite { site, capacity, reply } => {
                self.registry.offer_site(site, capacity);
                let _ = reply.send(Ok(()));
            }
            Message::AddSlot { slot, reply } => {
                let added = self.registry.add_slot(slot);
                let added = added.map(|order| self.pending.effects.push(Effect::Recycle(order)));
                let _ = reply.send(added.map_err(EpisodeError::from));
            }
            Message::RetireSlot { slot, reply } => {
                let retired = self.registry.retire_slot(&slot);
                if retired.is_ok() {
                    self.work.forget(&slot);
                }
                let _ = reply.send(retired.map_err(EpisodeError::from));
            }
            Message::Withdraw { scope, reply } => self.withdraw(scope, reply),
            Message::SlotFailed { slot, reason, reply } => {
                match self.registry.fail_slot(&slot, reason, self.now()) {
                    SlotFailure::Void(ended) => self.note_ended([ended]),
                    SlotFailure::Recycle(order) => self.pending.effects.push(Effect::Recycle(order)),
                    SlotFailure::Nothing => {}
                }
                self.pending.replies.push(deferred(reply, Ok(())));
            }
        }
    }

    /// Returns the refusal of requests that the store could not record. It keeps the number of changes that wait for
    /// the store bounded.
    fn check_store(&self) -> Result<(), EpisodeError> {
        self.outage.as_ref().map_or(Ok(()), |outage| Err(EpisodeError::Store(outage.error.clone())))
    }

    fn ask(&mut self, request: EpisodeRequest, reply: Reply<UnclaimedReceipt>) {
        if reply.is_closed() {
            return;
        }
        let has_key = request.key.is_some();
        let answer = self.register(request).map(|receipt| {
            let is_lost_without_reply = !has_key && !receipt.is_known;
            UnclaimedReceipt::new(receipt, is_lost_without_reply.then(|| self.closings.0.clone()))
        });
        self.pending.replies.push(deferred(reply, answer));
    }

    fn register(&mut self, request: EpisodeRequest) -> Result<EpisodeReceipt, EpisodeError> {
        self.check_store()?;
        let has_key = request.key.is_some();
        let token = EpisodeToken::from_random(self.random.next());
        let id = EpisodeId::from_random(self.random.next());
        let AskedEpisode { id, is_known } = self.registry.ask(id, request, token.hash(), self.now())?;
        if is_known {
            self.touch(&id, EpisodePart::Tokens);
        } else {
            let note = EpisodeNotes {
                asked_at: self.clock.now(),
                granted_at: None,
                ended_at: None,
                status: EpisodeStatus::Queued,
                slots: Vec::new(),
            };
            let event = NewEpisodeEvent { episode: id.clone(), status: note.status, ending: None };
            self.pending.events.push(event);
            self.notes.insert(id.clone(), note);
            if !has_key {
                self.pending.asked.push(id.clone());
            }
            self.touch(&id, EpisodePart::Everything);
        }
        Ok(EpisodeReceipt { id, token, is_known })
    }

    fn change(&mut self, id: &EpisodeId, change: EpisodeChange) -> Result<(), EpisodeError> {
        self.check_store()?;
        self.registry.change(id, change, self.now())?;
        self.touch(id, EpisodePart::Life);
        Ok(())
    }

    fn ask_and_hold(&mut self, request: EpisodeRequest, reply: Reply<(EpisodeReceipt, HoldGuard)>) {
        if reply.is_closed() {
            return;
        }
        // A new episode is known to no other client, so only the hold of a known one can be refused.
        let held = self.register(request).and_then(|receipt| {
            let guard = self.bind(receipt.id.clone())?;
            Ok((receipt, guard))
        });
        // If the store fails, the request is undone with its hold.
        self.pending.replies.push(deferred(reply, held));
    }

    fn hold(&mut self, id: EpisodeId, reply: Reply<HoldGuard>) {
        match self.bind(id) {
            Ok(guard) => self.pending.holds.push(deferred(reply, Ok(guard))),
            Err(refusal) => self.pending.replies.push(deferred(reply, Err(refusal))),
        }
    }

    /// Binds an episode to a new guard.
    fn bind(&mut self, id: EpisodeId) -> Result<HoldGuard, EpisodeError> {
        self.holds += 1;
        let hold = HoldId(self.holds);
        self.change(&id, EpisodeChange::Hold(hold))?;
        Ok(HoldGuard { id, hold, closings: self.closings.0.clone() })
    }

    fn begin_evaluation(&mut self, id: EpisodeId, limit: Duration, reply: Reply<EvaluationGuard>) {
        let begun = self.change(&id, EpisodeChange::BeginEvaluation(limit));
        let guard = begun.map(|()| EvaluationGuard { id, closings: self.closings.0.clone(), is_open: true });
        self.pending.replies.push(deferred(reply, guard));
    }

    pub(crate) fn close(&mut self, closing: Closing) {
        match closing {
            Closing::Hold(id, hold) => drop(self.end(&id, EndCause::HoldClosed(hold))),
            Closing::Unclaimed(id) => drop(self.end(&id, EndCause::Release)),
            Closing::Evaluation(id, reply) => {
                // The end of an evaluation must not be lost, so it is applied even while the store fails.
                let ended = self.registry.change(&id, EpisodeChange::EndEvaluation, self.now());
                if ended.is_ok() {
                    self.touch(&id, EpisodePart::Life);
                }
                if let Some(reply) = reply {
                    self.pending.replies.push(deferred(reply, ended.map_err(EpisodeError::from)));
                }
            }
        }
    }

    fn withdraw(&mut self, scope: WithdrawalScope, reply: Reply<()>) {
        let ended = self.registry.withdraw(&scope, self.now());
        self.note_ended(ended);
        self.work.stop_all(&scope);
        self.withdrawals.push(Withdrawal { scope, reply, is_recorded: false });
    }
}
