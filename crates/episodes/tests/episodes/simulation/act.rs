//! The steps of a schedule.

use std::time::Duration;

use arenad_episodes::{EpisodeError, EpisodeHandle, EpisodeReceipt};
use arenad_model::episode::EpisodeState;
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::{EpisodeId, IdempotencyKey, Owner};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::request::{EpisodeRequest, StartPoint};
use arenad_model::ids::EnvironmentName;

use super::{Grip, SimulationRun};
use crate::rig::{Rig, all_slots, request, seconds};

impl SimulationRun {
    /// Chooses among the live episodes that clients know.
    fn choose(&self) -> Option<EpisodeId> {
        let live = self.model.borrow().live();
        if live.is_empty() {
            return None;
        }
        let index = usize::try_from(self.below(live.len() as u64)).expect("small");
        Some(live[index].clone())
    }

    fn random_request(&self, handle: &EpisodeHandle) -> EpisodeRequest {
        let mut sites: Vec<&str> =
            ["shop", "forge", "forum", "wiki"].into_iter().filter(|_| self.percent(45)).collect();
        if sites.is_empty() {
            sites.push("forum");
        }
        let mut asked = request(&sites);
        asked.owner = Owner::parse(["ann", "ben"][usize::from(self.percent(50))]).expect("valid");
        let (ttl, wait) = (seconds(3 + self.below(40)), seconds(self.below(30)));
        asked.terms = EpisodeTerms::new(ttl, wait).expect("valid");
        if self.percent(20) {
            // The same key always stands for the same request.
            let key = self.below(6);
            asked = request(&[["shop", "forge", "forum"][usize::try_from(key % 3).expect("small")]]);
            asked.key = Some(IdempotencyKey::parse(&key.to_string()).expect("valid"));
        } else if self.percent(15)
            && let Some(parent) = self.choose()
            && let Ok(view) = handle.get(&parent)
        {
            for want in &mut asked.sites {
                if view.slots.iter().any(|slot| slot.instance.site_id() == want.site) {
                    let copy = "0123456789abcdef".to_owned().into();
                    want.start = StartPoint::Fork { parent: parent.clone(), copy };
                }
            }
        }
        asked
    }

    /// Checks that a refusal has a reason. Refusals of the store need a full disk.
    fn refused(&self, rig: &Rig, doing: &str, error: &EpisodeError) {
        self.tell(rig, || format!("{doing} was refused: {error}"));
        let is_wrong = match error {
            EpisodeError::Store(_) => !self.model.borrow().has_outage(rig.time.now(), rig.chaos.is_full()),
            EpisodeError::Stopping | EpisodeError::Slot(_) => true,
            EpisodeError::Ask(_) | EpisodeError::Refused(_) | EpisodeError::Busy { .. } => false,
        };
        if is_wrong {
            self.model.borrow_mut().violate(format!("{doing} was refused: {error}"));
        }
    }

    async fn ask(&self, rig: &Rig, handle: &EpisodeHandle) {
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..1 + self.below(3) {
            let asked = self.random_request(handle);
            let handle = handle.clone();
            asking.spawn(async move {
                let answer = handle.ask(asked.clone()).await;
                (asked, answer)
            });
        }
        for (asked, answer) in asking.join_all().await {
            self.answered(rig, handle, asked, answer);
        }
    }

    fn answered(
        &self,
        rig: &Rig,
        handle: &EpisodeHandle,
        asked: EpisodeRequest,
        answer: Result<EpisodeReceipt, EpisodeError>,
    ) {
        match answer {
            Ok(receipt) => {
                self.tell(rig, || format!("asked for {}", receipt.id));
                self.model.borrow_mut().asked(handle, asked, receipt);
            }
            Err(error) => self.refused(rig, "a request", &error),
        }
    }

    /// Asks and goes away, at a random point of the way.
    async fn ask_in_vain(&self, rig: &Rig, handle: &EpisodeHandle) {
        let asked = self.random_request(handle);
        self.tell(rig, || "a client asks and goes away".to_owned());
        let asking = tokio::spawn({
            let (asked, handle) = (asked.clone(), handle.clone());
            async move { handle.ask(asked).await }
        });
        for _ in 0..self.below(4) {
            tokio::task::yield_now().await;
        }
        asking.abort();
        // The answer may have been faster.
        if let Ok(answer) = asking.await {
            self.answered(rig, handle, asked, answer);
        }
    }

    pub(super) async fn hold_again(&self, rig: &Rig, handle: &EpisodeHandle, grip: &mut Grip) {
        let held = self.model.borrow().held();
        for id in held {
            if self.percent(60) {
                self.hold(rig, handle, grip, &id).await;
            } else {
                self.model.borrow_mut().closed(&id, rig.time.now() + seconds(16));
            }
        }
    }

    async fn hold(&self, rig: &Rig, handle: &EpisodeHandle, grip: &mut Grip, id: &EpisodeId) {
        // A hold is answered when it is recorded, and a client that does not wait for that gives it up.
        match tokio::time::timeout(Duration::from_millis(100), handle.hold(id)).await {
            Ok(Ok(guard)) => {
                self.tell(rig, || format!("{id} is held"));
                grip.holds.push(guard);
                self.model.borrow_mut().note_held(id);
            }
            Ok(Err(error)) => self.refused(rig, "a hold", &error),
            Err(_) => self.tell(rig, || format!("a hold of {id} was not recorded")),
        }
    }

    async fn release(&self, rig: &Rig, handle: &EpisodeHandle, id: &EpisodeId) {
        match handle.release(id).await {
            Ok(()) => {
                self.tell(rig, || format!("{id} was released"));
                self.model.borrow_mut().released(handle, id);
            }
            Err(error) => self.refused(rig, "a release", &error),
        }
    }

    async fn change(&self, rig: &Rig, handle: &EpisodeHandle, grip: &mut Grip, id: &EpisodeId) {
        let changed = match self.below(4) {
            0 => handle.freeze(id).await,
            1 => handle.unfreeze(id).await,
            2 => handle.heartbeat(id, None).await,
            _ => {
                handle.begin_evaluation(id, seconds(1 + self.below(9))).await.map(|guard| grip.evaluations.push(guard))
            }
        };
        if let Err(error) = changed {
            self.refused(rig, "a change", &error);
        }
    }

    async fn end_evaluation(&self, rig: &Rig, grip: &mut Grip) {
        let Some(guard) = grip.evaluations.pop() else { return };
        if self.percent(50)
            && let Err(error) = guard.end().await
        {
            self.refused(rig, "the end of an evaluation", &error);
        }
    }

    async fn fail_slot(&self, rig: &Rig, handle: &EpisodeHandle) {
        let slots = all_slots();
        let slot = self.random.borrow_mut().pick(&slots).clone();
        self.tell(rig, || format!("{slot} fails"));
        let reason = VoidReason::ContainerDied { slot: slot.clone(), detail: "exited with code 1".to_owned() };
        handle.slot_failed(slot, reason).await.unwrap_or_else(|error| self.refused(rig, "a report", &error));
    }

    async fn withdraw(&self, rig: &Rig, handle: &EpisodeHandle) {
        self.tell(rig, || "the environment is withdrawn".to_owned());
        let withdrawn = handle.withdraw_environment(EnvironmentName::parse("mini").expect("valid")).await;
        if let Err(error) = withdrawn {
            self.refused(rig, "a withdrawal", &error);
        }
        self.observe(rig, handle).await;
        let is_live = |state: &EpisodeState| state.ending().is_none();
        let left = handle.list(&Default::default()).into_iter().filter(|view| is_live(&view.state)).count();
        if left > 0 && !self.model.borrow().has_outage(rig.time.now(), rig.chaos.is_full()) {
            self.model.borrow_mut().violate(format!("{left} episodes outlive their environment"));
        }
        // The slots that are added are made anew.
        self.offer(handle).await;
        self.model.borrow_mut().disturbed(rig.time.now());
    }

    pub(super) async fn act(&self, rig: &Rig, handle: &EpisodeHandle, grip: &mut Grip) {
        let number = self.below(100);
        let chosen = self.choose();
        match (number, chosen) {
            (0..30, _) => self.ask(rig, handle).await,
            (30..35, _) => self.ask_in_vain(rig, handle).await,
            (35..44, Some(id)) => self.hold(rig, handle, grip, &id).await,
            (44..50, _) if !grip.holds.is_empty() => {
                let index = usize::try_from(self.below(grip.holds.len() as u64)).expect("small");
                let guard = grip.holds.swap_remove(index);
                self.tell(rig, || format!("the hold of {} is closed", guard.episode()));
                self.model.borrow_mut().closed(guard.episode(), rig.time.now());
            }
            (50..62, Some(id)) => self.release(rig, handle, &id).await,
            (62..74, Some(id)) => self.change(rig, handle, grip, &id).await,
            (74..80, _) => self.end_evaluation(rig, grip).await,
            (80..85, _) => self.fail_slot(rig, handle).await,
            (85..88, _) => {
                let jump = i64::try_from(self.below(7200)).expect("small") - 3600;
                self.tell(rig, || format!("the clock jumps by {jump} s"));
                rig.time.ahead.fetch_add(jump, std::sync::atomic::Ordering::Relaxed);
            }
            (88..90, _) => {
                let end = rig.time.now() + Duration::from_millis(self.below(4000));
                self.tell(rig, || "the disk is full".to_owned());
                self.full_until.set(Some(end));
                rig.chaos.set_full(true);
            }
            (90..94, _) => {
                let points = self.below(40);
                self.tell(rig, || format!("a crash in {points}"));
                rig.chaos.crash_in(points);
            }
            (94..96, _) => {
                rig.chaos.crash_now();
                std::future::pending().await
            }
            (96..97, _) => self.withdraw(rig, handle).await,
            _ => {}
        }
    }
}
