//! The promises to episodes that are checked from outside the daemon.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use arenad_fake_engine::ProgramRequest;
use arenad_gateway::RouteState;
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_store::{FollowError, StoredEpisodeEvent};

use super::model::ModelEpisode;
use super::steps::EpisodeAsk;
use super::{Circumstances, SHARED, SLOTS, instance, shown};
use crate::laws::DETECTION;
use crate::model::Reader;
use crate::run::SimulationRun;
use crate::schedule::{SITES, WriteDestination};
use crate::world::DaemonLife;

/// The time within which a slot is free after the end of its episode.
const FREE_WITHIN: Duration = Duration::from_secs(2);
/// The time without faults before an end, after which no earlier failure delays the recycling of its slots.
const QUIET: Duration = Duration::from_secs(200);
/// The time within which a slot is free, whatever happened before: the longest pause between two attempts, and the limits
/// of the calls to the engine.
pub const RECYCLED: Duration = Duration::from_secs(400);
/// The time within which an episode is void whose slot does not answer: two rounds of probes with their timeouts, and
/// the time for which an episode may be unhealthy.
const VOID_WITHIN: Duration = Duration::from_secs(180);
/// The events that are read at once.
const PAGE: u32 = 100;

impl SimulationRun {
    /// Returns the counts of what can make an episode void.
    pub fn circumstances(&self) -> Circumstances {
        let model = self.model.borrow();
        Circumstances {
            disturbances: self.world.chaos.disturbances(),
            deaths: self.world.chaos.deaths(),
            crashes: self.crashes.get(),
            downs: model.episodes.downs,
            removals: model.episodes.removals,
            works: model.episodes.works,
        }
    }

    /// Returns the circumstances of a request that is made now. Faults that may still have effects count as later ones.
    pub fn circumstances_of_request(&self) -> Circumstances {
        let mut since = self.circumstances();
        if self.faultless_since() + QUIET > self.now() {
            since.disturbances = since.disturbances.saturating_sub(1);
        }
        // Deaths are noticed later, and only those that took place are faults.
        if self.faultless_since() + DETECTION > self.now() {
            since.deaths = since.deaths.saturating_sub(1);
        }
        since
    }

    /// Returns the time since which no fault has been present, which is now if one is.
    fn faultless_since(&self) -> Duration {
        if !self.agenda.borrow().is_empty() {
            return self.now();
        }
        self.calm_since.get().max(self.world.chaos.fault_until())
    }

    /// Polls a query of the harness, which may wait, with faults disabled.
    async fn quietly_waiting<T>(&self, query: impl Future<Output = T>) -> T {
        let mut query = pin!(query);
        poll_fn(|cx| {
            self.world.chaos.look(true);
            let polled = query.as_mut().poll(cx);
            self.world.chaos.look(false);
            polled
        })
        .await
    }

    /// Follows the events of all episodes for the life of a daemon, which began at a time.
    pub async fn follow_episodes(self: Rc<Self>, life: Rc<DaemonLife>, began: Duration) {
        let mut cursor = life.episodes.follow(self.model.borrow().episodes.seen);
        let entered = self.now();
        loop {
            let events = match self.quietly_waiting(cursor.next(PAGE)).await {
                Ok(events) => events,
                Err(FollowError::Stopping) => return,
                Err(error) => return self.model.borrow_mut().violate(format!("events are lost: {error:?}")),
            };
            // Events that are there at once took place during the start, or in the life of the last daemon.
            let since = if self.now() == entered { began } else { self.now() };
            for event in &events {
                self.note_episode_event(&life, event, since).await;
            }
        }
    }

    async fn note_episode_event(self: &Rc<Self>, life: &Rc<DaemonLife>, event: &StoredEpisodeEvent, since: Duration) {
        let view = life.episodes.get(&event.episode).ok();
        let circumstances = self.circumstances();
        let number = self.model.borrow_mut().notes_event(event, view.as_ref(), since..self.now(), &circumstances);
        self.tell(|| format!("event: episode {number:?} is {} {:?}", event.status.name(), event.ending));
        let Some(episode) = number.and_then(|number| self.model.borrow().episodes.known.get(&number).cloned()) else {
            return;
        };
        match event.status {
            EpisodeStatus::Active => {
                for (slot, generation) in episode.leases.clone() {
                    self.look_at_granted(life, number.unwrap_or_default(), slot, generation).await;
                }
            }
            EpisodeStatus::Released | EpisodeStatus::Expired | EpisodeStatus::Void => {
                self.watch_release(life, number.unwrap_or_default(), &episode);
            }
            EpisodeStatus::Queued | EpisodeStatus::Preparing | EpisodeStatus::Frozen => {}
        }
    }

    /// Checks that a slot has the content of its starting point when its episode gets it.
    async fn look_at_granted(&self, life: &DaemonLife, number: u64, slot: usize, generation: u64) {
        let Some(route) = life.environments.slot(instance(slot)).map(|instance| instance.route()) else { return };
        let RouteState::Serving { target } = route.state() else { return };
        if target.generation != generation {
            return;
        }
        let answer = self.world.engine.request(target.address, &ProgramRequest::get("/"));
        if let Some(answer) = answer.ok().filter(|answer| answer.status == 200) {
            self.note_page(life, slot, generation, &answer.body_text(), Reader::Episode(number)).await;
        }
    }

    /// Checks after two seconds that the slots of an episode which has ended are free, if nothing delays that.
    fn watch_release(self: &Rc<Self>, life: &Rc<DaemonLife>, number: u64, episode: &ModelEpisode) {
        let (began, disturbances) = (self.now(), self.world.chaos.disturbances());
        let is_quiet = move |run: &Self| {
            let is_alone = run.model.borrow().pending.is_empty();
            is_alone && run.faultless_since() + QUIET < began && run.world.chaos.disturbances() == disturbances
        };
        if !is_quiet(self) {
            return;
        }
        let slots: Vec<usize> = episode.leases.iter().map(|(slot, _)| *slot).collect();
        let (run, life) = (self.clone(), life.clone());
        tokio::task::spawn_local(async move {
            tokio::time::sleep(FREE_WITHIN).await;
            let is_its = |slot: &usize| run.model.borrow().episodes.last.get(slot) == Some(&number);
            for slot in slots.into_iter().filter(is_its) {
                if is_quiet(&run) && run.is_between_episodes(&life, slot) {
                    let sentence = format!(
                        "episode {number} ended {FREE_WITHIN:?} ago, nothing was wrong since, and {} is not free",
                        shown(slot)
                    );
                    run.model.borrow_mut().violate(sentence);
                }
            }
        });
    }

    /// Whether a slot that exists is neither free nor has an episode.
    fn is_between_episodes(&self, life: &DaemonLife, slot: usize) -> bool {
        let there = life.environments.slot(instance(slot));
        there.is_some_and(|there| !life.slots.is_idle(&there.id) && there.holder().is_none())
    }

    /// Checks the promises that hold at all times.
    pub fn look_at_episodes(&self, life: &DaemonLife) {
        let (now, since) = (self.now(), self.faultless_since());
        self.model.borrow_mut().check_deadlines(now, since);
        let is_up = self.world.engine.is_up() && !self.is_elsewhere.get();
        for slot in (0..SLOTS).filter(|slot| *slot != SHARED) {
            let there = life.environments.slot(instance(slot));
            let holder = there.as_ref().and_then(|there| there.holder());
            let route = || there.as_ref().map(|there| there.route().state());
            if let Some(holder) = &holder {
                let state = life.episodes.get(holder).ok().map(|view| view.state);
                let wrong = match state {
                    Some(EpisodeState::Ended(_)) | None => Some("has ended, and has"),
                    // Both change without an await in between.
                    Some(EpisodeState::Frozen) if matches!(route(), Some(RouteState::Serving { .. })) => {
                        Some("is frozen, and a public port leads to")
                    }
                    Some(_) => None,
                };
                if let Some(wrong) = wrong {
                    self.model.borrow_mut().violate(format!("episode {holder} {wrong} {}", shown(slot)));
                }
            }
            let leased = {
                let model = self.model.borrow();
                let number = model.episodes.last.get(&slot).copied();
                let episode = number.and_then(|number| model.episodes.known.get(&number));
                let served = episode.filter(|episode| episode.is_served());
                let lease = served.and_then(|episode| {
                    let (_, generation) = episode.leases.iter().find(|(of, _)| *of == slot)?;
                    Some((*generation, episode.status == Some(EpisodeStatus::Frozen)))
                });
                lease.zip(number)
            };
            let wrong = match (leased, &there) {
                // Its route says nothing about it, because no client reaches it.
                (Some(((_, true), _)), _) => None,
                (Some(((generation, false), number)), _) => {
                    let serves = there.as_ref().is_some_and(|there| {
                        let route = there.route();
                        let is_it =
                            matches!(route.state(), RouteState::Serving { target } if target.generation == generation);
                        is_it && self.answers(&route)
                    });
                    (!serves).then(|| (VOID_WITHIN, format!("episode {number} is not void, and {} fails", shown(slot))))
                }
                (None, Some(there)) if holder.is_none() && !life.slots.is_idle(&there.id) => {
                    Some((RECYCLED, format!("{} has no episode, and is not free", shown(slot))))
                }
                _ => None,
            };
            let mut wrong_since = self.wrong_since.borrow_mut();
            let Some((limit, sentence)) = wrong else {
                wrong_since[slot] = None;
                continue;
            };
            let (begun, before) = wrong_since[slot].get_or_insert_with(|| (now, sentence.clone()));
            if *before != sentence {
                (*begun, *before) = (now, sentence.clone());
            }
            let is_broken = self.broken.borrow().iter().any(|is_broken| *is_broken);
            if now > (*begun).max(since) + limit && is_up && !is_broken {
                drop(wrong_since);
                self.model.borrow_mut().violate(sentence);
            }
        }
    }

    /// Checks that all slots are free, and that nothing is left of ended episodes.
    pub fn look_at_free_slots(&self, life: &DaemonLife) {
        for slot in 0..SLOTS {
            let Some(there) = life.environments.slot(instance(slot)) else { continue };
            if !life.slots.is_idle(&there.id) || there.holder().is_some() {
                self.model.borrow_mut().violate(format!("no episode is live, and {} is not free", shown(slot)));
            }
            let mark = there.id.to_string().replace('/', ".");
            if life.shared.state_dir.episodes().join(mark).exists() {
                self.model.borrow_mut().violate(format!("no episode is live, and {} is marked", shown(slot)));
            }
        }
    }

    /// Checks that an episode gets all sites in the absence of faults, and that its slots are free within two seconds of
    /// its end, whatever ends it.
    pub async fn succeed_in_an_episode(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        let way = self.number() % 3;
        let ask = EpisodeAsk {
            sites: (1 << SITES) - 1,
            slot: None,
            snapshot: None,
            ttl: if way == 1 { 1 } else { 60 },
            wait: 60,
            key: None,
            owner: 0,
            patience: None,
            is_detached: false,
        };
        let number = self.ask_for_episode(life, ask);
        let is_active = || self.model.borrow().episodes.known.get(&number).is_some_and(ModelEpisode::is_served);
        let is_open = || self.model.borrow().episodes.open.contains_key(&number);
        while is_open() && !self.is_violated() {
            self.advance(life, Duration::from_millis(100)).await;
        }
        if !is_active() {
            let episode = self.model.borrow().episodes.known.get(&number).cloned();
            let known = episode.map(|episode| (episode.status, episode.ending));
            return self
                .model
                .borrow_mut()
                .violate(format!("nothing is wrong, and an episode does not begin: {known:?}"));
        }
        for site in 0..SITES {
            let write = self.clone().episode_write(life.clone(), number, site, WriteDestination::Data);
            write.await;
            self.clone().episode_read(life.clone(), number, site).await;
        }
        match way {
            0 => self.clone().release(life.clone(), number).await,
            1 => self.advance(life, Duration::from_secs(1)).await,
            _ => {
                self.clone().hold(life.clone(), number).await;
                self.lose_hold(life, 0);
            }
        }
        // The law about the two seconds is checked by the follower of the events.
        self.advance(life, 2 * FREE_WITHIN).await;
        if !self.is_violated() {
            self.look_at_free_slots(life);
            self.clone().episode_write(life.clone(), number, 0, WriteDestination::Data).await;
        }
    }
}
