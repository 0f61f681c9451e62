//! The execution of the steps of episodes: clients of the API and of the episode proxy.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use arenad_fake_engine::ProgramRequest;
use arenad_gateway::{ProxyCredentials, ProxyDecision, ProxyDirectory, ProxySite};
use arenad_model::episode::ids::EpisodeId;
use http::Method;
use serde_json::{Value, json};

use super::SHARED;
use super::model::{Hold, LABEL, ModelEpisode};
use super::steps::{EpisodeAsk, EpisodeStep};
use crate::client::{SiteDoor, VisitOutcome, call, call_and_hold, call_with_key, visit};
use crate::model::Reader;
use crate::run::SimulationRun;
use crate::schedule::WriteDestination;
use crate::world::{DaemonLife, ENVIRONMENT, NAMES};

/// The codes of refusals that no request of this simulation deserves.
const WRONG_REFUSALS: [&str; 5] = ["bad_request", "internal", "key_reused", "shared_site", "already_held"];

/// The time after which the daemon has repeated what the store refused.
const RECORDED: Duration = Duration::from_secs(2);

/// A connection that holds an episode until it is dropped: a guard, or the rest of the answer to the request.
pub type EpisodeConnection = Box<dyn Any>;

impl SimulationRun {
    /// Executes the step of an episode's client. Waiting continues in the background.
    pub fn act_on_episode(self: &Rc<Self>, life: &Rc<DaemonLife>, step: EpisodeStep) {
        let live = |n: usize| self.model.borrow().episodes.live(n);
        match step {
            EpisodeStep::Ask(ask) => {
                self.ask_for_episode(life, ask);
            }
            EpisodeStep::Heartbeat(n, extension) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().beat(life.clone(), number, extension)));
                }
            }
            EpisodeStep::Freeze(n) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().freeze(life.clone(), number, true)));
                }
            }
            EpisodeStep::Unfreeze(n) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().freeze(life.clone(), number, false)));
                }
            }
            EpisodeStep::Hold(n) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().hold(life.clone(), number)));
                }
            }
            EpisodeStep::LoseHold(n) => self.lose_hold(life, n),
            EpisodeStep::Release(n) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().release(life.clone(), number)));
                }
            }
            EpisodeStep::Write(n, site, kind) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().episode_write(life.clone(), number, site, kind)));
                }
            }
            EpisodeStep::Read(n, site) => {
                if let Some(number) = live(n) {
                    drop(tokio::task::spawn_local(self.clone().episode_read(life.clone(), number, site)));
                }
            }
            EpisodeStep::Late(n, kind) => {
                let ended = self.model.borrow().episodes.ended(n);
                if let Some(number) = ended {
                    drop(tokio::task::spawn_local(self.clone().episode_write(life.clone(), number, 0, kind)));
                }
            }
        }
    }

    /// Asks for an episode. Returns the number of the request.
    pub fn ask_for_episode(self: &Rc<Self>, life: &Rc<DaemonLife>, ask: EpisodeAsk) -> u64 {
        let number = self.number();
        let circumstances = self.circumstances_of_request();
        self.model.borrow_mut().asks_for_episode(number, ask, circumstances, self.now());
        let (run, life) = (self.clone(), life.clone());
        tokio::task::spawn_local(async move {
            let work = run.clone().get_episode(life, number, ask);
            let is_answered = match ask.patience {
                None => {
                    work.await;
                    true
                }
                Some(millis) => tokio::time::timeout(Duration::from_millis(millis), work).await.is_ok(),
            };
            let mut model = run.model.borrow_mut();
            if !is_answered {
                model.leaves_before_answer(number, run.now());
            }
            model.episodes.open.remove(&number);
        });
        number
    }

    async fn get_episode(self: Rc<Self>, life: Rc<DaemonLife>, number: u64, ask: EpisodeAsk) {
        let sites: Vec<&str> =
            NAMES.iter().enumerate().filter(|(site, _)| ask.sites & (1 << site) != 0).map(|(_, name)| *name).collect();
        let mut body = json!({
            "environment": ENVIRONMENT, "sites": sites, "ttl_seconds": ask.ttl, "wait_seconds": ask.wait,
            "detach": ask.is_detached, "owner": format!("owner{}", ask.owner), "labels": { LABEL: number.to_string() },
        });
        if ask.sites & 1 == 1 {
            if let Some(slot) = ask.slot {
                body["slots"] = json!({ NAMES[0]: slot });
            }
            if let Some(name) = ask.snapshot.and_then(|index| self.snapshot_of_first(index)) {
                body["snapshots"] = json!({ NAMES[0]: name });
            }
        }
        let key = ask.key.map(|key| format!("key{key}"));
        // Half of the clients that do not wait for the answer hold their episodes from the beginning.
        let is_held = ask.is_detached && ask.key.is_none() && number.is_multiple_of(2);
        let (status, answer, connection) = if is_held {
            body["hold"] = json!(true);
            self.model.borrow_mut().asks_to_hold(number);
            call_and_hold(&life.router, &body).await
        } else {
            let (status, answer) =
                call_with_key(&life.router, Method::POST, "/v1/episodes", &body, key.as_deref()).await;
            (status, answer, None)
        };
        let code = answer["code"].as_str().unwrap_or_default();
        self.tell(|| {
            let (episode, detail) = (&answer["episode"], &answer["detail"]);
            format!("episode {number}: {status} {} {} {code} {detail}", episode["id"], episode["state"])
        });
        let mut model = self.model.borrow_mut();
        match (status, answer["episode"]["id"].as_str(), answer["token"].as_str()) {
            (200..300, Some(id), Some(token)) => {
                let Ok(id) = id.parse::<EpisodeId>() else {
                    return model.violate(format!("invalid episode id {id:?}"));
                };
                let is_served = matches!(answer["episode"]["state"].as_str(), Some("active" | "frozen"));
                model.gets_episode(number, &id, token, answer["is_known"] == true, is_served);
                if let Some(connection) = connection {
                    model.is_held(number);
                    life.holds.borrow_mut().insert(number, Box::new(connection));
                }
            }
            _ if WRONG_REFUSALS.contains(&code) || status < 400 => {
                model.violate(format!("a request for an episode is answered with {status} {code}"));
            }
            // The request was not recorded, or is withdrawn as soon as it is.
            _ => model.leaves_before_answer(number, self.now()),
        }
    }

    /// Returns the name of the n-th promised snapshot of the first site.
    fn snapshot_of_first(&self, index: usize) -> Option<String> {
        let model = self.model.borrow();
        let promised = model.named.iter().filter(|(_, named)| named.site == 0 && named.is_promised);
        let names: Vec<&String> = promised.map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| names[index % names.len()].clone())
    }

    fn known_episode(&self, number: u64) -> Option<(EpisodeId, ModelEpisode)> {
        let model = self.model.borrow();
        let episode = model.episodes.known.get(&number)?;
        Some((episode.id.clone()?, episode.clone()))
    }

    /// Sends a request about one episode. Returns the status.
    async fn call_episode(&self, life: &DaemonLife, number: u64, method: Method, rest: &str, body: &Value) -> u16 {
        let Some((id, _)) = self.known_episode(number) else { return 0 };
        let (status, answer) = call(&life.router, method, &format!("/v1/episodes/{id}{rest}"), body).await;
        let code = answer["code"].as_str().unwrap_or_default();
        self.tell(|| format!("episode {number} {rest}: {status} {code}"));
        if WRONG_REFUSALS.contains(&code) || status == 404 {
            self.model
                .borrow_mut()
                .violate(format!("a request about episode {number} is answered with {status} {code}"));
        }
        status
    }

    async fn beat(self: Rc<Self>, life: Rc<DaemonLife>, number: u64, extension: Option<u64>) {
        let sent = self.now();
        self.model.borrow_mut().beats(number, sent, extension, false);
        self.model.borrow_mut().may_extend(number, sent);
        let body = json!({ "extend_seconds": extension });
        let status = self.call_episode(&life, number, Method::POST, "/heartbeat", &body).await;
        let mut model = self.model.borrow_mut();
        model.may_extend(number, self.now());
        model.beats(number, sent, extension, status == 200);
    }

    async fn freeze(self: Rc<Self>, life: Rc<DaemonLife>, number: u64, is_frozen: bool) {
        let note = |change: &dyn Fn(&mut ModelEpisode)| {
            self.model.borrow_mut().episodes.known.get_mut(&number).into_iter().for_each(change);
        };
        note(&|episode| {
            episode.is_frozen &= is_frozen;
            episode.changes += 1;
        });
        let rest = if is_frozen { "/freeze" } else { "/unfreeze" };
        let status = self.call_episode(&life, number, Method::POST, rest, &Value::Null).await;
        note(&|episode| {
            episode.changes = episode.changes.saturating_sub(1);
            // If several requests are under way, it is not known which of them came last.
            episode.is_frozen |= is_frozen && status == 200 && episode.changes == 0;
        });
    }

    pub async fn hold(self: Rc<Self>, life: Rc<DaemonLife>, number: u64) {
        let Some((id, before)) = self.known_episode(number) else { return };
        if matches!(before.hold, Hold::Asked | Hold::Held) {
            return;
        }
        let note = |hold| {
            if let Some(episode) = self.model.borrow_mut().episodes.known.get_mut(&number) {
                episode.hold = hold;
            }
        };
        note(Hold::Asked);
        let held = life.episodes.hold(&id).await;
        self.tell(|| format!("episode {number} is held: {:?}", held.as_ref().map(|_| ())));
        match held {
            Ok(guard) => {
                self.model.borrow_mut().is_held(number);
                life.holds.borrow_mut().insert(number, Box::new(guard));
            }
            Err(_) => note(before.hold),
        }
    }

    /// Closes the n-th connection that holds an episode.
    pub fn lose_hold(&self, life: &DaemonLife, n: usize) {
        let mut holds = life.holds.borrow_mut();
        let held: Vec<u64> = holds.keys().rev().copied().collect();
        if held.is_empty() {
            return;
        }
        let number = held[n % held.len()];
        self.model.borrow_mut().loses_hold(number, self.now());
        holds.remove(&number);
    }

    /// Ends an episode, which may wait.
    pub async fn release(self: Rc<Self>, life: Rc<DaemonLife>, number: u64) {
        self.model.borrow_mut().asks_for_release(number);
        let status = self.call_episode(&life, number, Method::DELETE, "", &Value::Null).await;
        let mut model = self.model.borrow_mut();
        // Refused with 410 if it has ended already, and with 500 if its end takes effect when the store works again.
        if matches!(status, 204 | 410 | 500) {
            model.must_end(number, self.now(), status == 500);
        }
        let state = self.known_id(&model.episodes.known, number).and_then(|id| life.episodes.get(&id).ok());
        if status == 204 && state.as_ref().is_none_or(|view| view.state.ending().is_none()) {
            model.violate(format!("episode {number} is released and goes on: {state:?}"));
        } else if matches!(status, 204 | 410) {
            model.has_ended(number);
        }
    }

    fn known_id(&self, known: &BTreeMap<u64, ModelEpisode>, number: u64) -> Option<EpisodeId> {
        known.get(&number)?.id.clone()
    }

    /// Returns the place to which the episode proxy lets the client of an episode go.
    fn resolve(&self, life: &DaemonLife, episode: &ModelEpisode, site: usize) -> Result<ProxySite, String> {
        let (id, token) = (episode.id.as_ref(), episode.token.clone());
        let Some((id, token)) = id.zip(token) else { return Err("it has no credentials".to_owned()) };
        let credentials = ProxyCredentials { episode: id.to_string(), token };
        match life.directory.resolve(&credentials, &format!("{}.arena.test", NAMES[site]), 80) {
            ProxyDecision::Site(site) => Ok(site),
            ProxyDecision::Refused(refusal) => Err(format!("{refusal:?}")),
            ProxyDecision::External(_) => Err("it leads out of the arena".to_owned()),
        }
    }

    /// Sends a request with the credentials of an episode. Returns the slot that it was meant for.
    async fn through_proxy(
        &self,
        life: &DaemonLife,
        number: u64,
        site: usize,
        request: &ProgramRequest,
        reached: impl Fn(usize, u64),
    ) -> Option<(usize, VisitOutcome)> {
        let (_, episode) = self.known_episode(number)?;
        if episode.active_at.is_none() && !episode.is_over {
            return None;
        }
        let site = episode.wants[site % episode.wants.len()].0;
        let resolved = self.resolve(life, &episode, site);
        let place = match resolved {
            Ok(place) => place,
            Err(refusal) => {
                self.tell(|| format!("episode {number} at {}: {refusal}", NAMES[site]));
                return None;
            }
        };
        if episode.is_over || episode.is_frozen {
            let why = if episode.is_over { "has ended" } else { "is frozen" };
            let sentence = format!("episode {number} {why}, and its client is let through to {}", NAMES[site]);
            self.model.borrow_mut().violate(sentence);
        }
        let slot = episode.leases.iter().map(|(slot, _)| *slot).find(|slot| super::SLOT_NUMBERS[*slot].0 == site);
        let slot = slot.or((site == SHARED).then_some(SHARED));
        let Some(slot) = slot else {
            self.model.borrow_mut().violate(format!("episode {number} reaches {}, which it has not got", NAMES[site]));
            return None;
        };
        let is_its = |generation: u64| slot == SHARED || episode.leases.contains(&(slot, generation));
        let reached = |generation: u64| {
            let (is_over, leased) = {
                let model = self.model.borrow();
                let now = model.episodes.known.get(&number);
                (now.is_some_and(|now| now.is_over), is_its(generation))
            };
            if is_over || !leased {
                let sentence =
                    format!("a request of episode {number} reaches generation {generation} of {}", super::shown(slot));
                self.model.borrow_mut().violate(sentence);
            }
            reached(slot, generation);
        };
        let seen = visit(SiteDoor::Episode(&place), &self.world.engine, request, reached).await;
        let is_over = self.model.borrow().episodes.known.get(&number).is_some_and(|now| now.is_over);
        if let (VisitOutcome::Answer(generation, ..), true) = (&seen, is_over) {
            let sentence = format!("episode {number} has ended, and generation {generation} answers it");
            self.model.borrow_mut().violate(sentence);
        }
        Some((slot, seen))
    }

    pub async fn episode_write(self: Rc<Self>, life: Rc<DaemonLife>, number: u64, site: usize, kind: WriteDestination) {
        let name = format!("w{}", self.number());
        let request = ProgramRequest::post(&format!("/{}/{name}", kind.name()), "x");
        let reached = |slot: usize, generation: u64| {
            let mut model = self.model.borrow_mut();
            model.sends(slot, &name, kind, Some(number));
            model.reaches(slot, &name, generation, self.now());
        };
        let Some((slot, seen)) = self.through_proxy(&life, number, site, &request, reached).await else { return };
        self.tell(|| format!("episode {number} writes {name} ({}) to {}: {seen:?}", kind.name(), super::shown(slot)));
        if let VisitOutcome::Answer(_, 200, _) = seen {
            self.model.borrow_mut().acknowledges(slot, &name);
        }
    }

    pub async fn episode_read(self: Rc<Self>, life: Rc<DaemonLife>, number: u64, site: usize) {
        let request = ProgramRequest::get("/");
        let Some((slot, seen)) = self.through_proxy(&life, number, site, &request, |_, _| ()).await else { return };
        self.tell(|| format!("episode {number} reads {}: {seen:?}", super::shown(slot)));
        if let VisitOutcome::Answer(generation, 200, page) = &seen {
            self.note_page(&life, slot, *generation, page, Reader::Episode(number)).await;
        }
    }

    /// Ends all episodes, and waits until every request for one has been answered.
    pub async fn end_episodes(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        let limit = self.now() + Duration::from_secs(3600);
        // A request with a key that the store refused is recorded, and shown, as soon as the store works again.
        self.advance(life, RECORDED).await;
        loop {
            while !life.holds.borrow().is_empty() {
                self.lose_hold(life, 0);
            }
            let live = arenad_episodes::EpisodeFilter { is_live: true, ..Default::default() };
            let views = life.episodes.list(&live);
            let is_answered = self.model.borrow().episodes.open.is_empty();
            if self.is_violated() || (views.is_empty() && is_answered && !self.model.borrow().episodes.is_any_live()) {
                return;
            }
            if self.now() > limit {
                let open: Vec<u64> = self.model.borrow().episodes.open.keys().copied().collect();
                let left: Vec<String> = views.iter().map(|view| format!("{} {:?}", view.id, view.state)).collect();
                let sentence = format!("nothing is wrong, and episodes do not end: {left:?}, requests {open:?}");
                return self.model.borrow_mut().violate(sentence);
            }
            for view in views {
                let number = view.request.labels.get(LABEL).and_then(|text| text.parse().ok());
                if let Some(number) = number {
                    self.model.borrow_mut().learns_id(number, &view.id);
                    self.clone().release(life.clone(), number).await;
                }
            }
            self.advance(life, Duration::from_millis(500)).await;
        }
    }
}
