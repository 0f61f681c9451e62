//! The execution of each kind of step.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arenad_fake_engine::ProgramRequest;
use arenad_gateway::Route;
use arenad_instance::{InstanceHandle, InstanceReport, StandbyReport};
use arenad_model::pool::Standing;
use arenad_model::snapshot::Snapshot;
use http::Method;
use serde_json::{Value, json};

use crate::client::{SiteDoor, VisitOutcome, call, ended, visit};
use crate::episodes::{SLOT_NUMBERS, instance, part_of_names};
use crate::model::{ApiCall, Reader};
use crate::run::{SimulationRun, Undo};
use crate::schedule::{SITES, ScheduleStep, Victim, WriteDestination};
use crate::world::{DaemonLife, ENVIRONMENT, FIRST_PORT, NAMES};

impl DaemonLife {
    /// Returns the handle of a slot of a site that is up.
    pub fn handle(&self, slot: usize) -> Option<InstanceHandle> {
        match NAMES.get(slot) {
            Some(name) => self.environments.handle(ENVIRONMENT, name),
            None => self.environments.slot(instance(slot)),
        }
    }

    /// Returns the name of a site's state and its generation, if the site is up.
    pub fn state(&self, site: usize) -> Option<(&'static str, u64)> {
        self.handle(site).map(|handle| handle.with_report(|report| (report.state.name(), report.generation)))
    }

    /// Returns the daemon's report on a slot of a site that is up.
    pub fn report(&self, slot: usize) -> Option<InstanceReport> {
        self.handle(slot).map(|handle| handle.report())
    }

    /// Returns the standbys of a site that is up.
    pub fn standbys(&self, site: usize) -> Option<StandbyReport> {
        self.handle(site).map(|handle| handle.standbys())
    }

    /// Returns the route of a site's public port, if the port is open.
    pub fn route(&self, site: usize) -> Option<Route> {
        let port = FIRST_PORT + u16::try_from(site).unwrap_or_default();
        self.shared.gateway.listening().into_iter().find(|route| route.local_addr().port() == port)
    }
}

impl SimulationRun {
    /// Executes a step. Long operations continue in the background during the next steps.
    pub async fn act(self: &Rc<Self>, life: &Rc<DaemonLife>, step: &ScheduleStep) {
        match step {
            ScheduleStep::Up(which, patience) => {
                let asked = self.ask(life, ApiCall::Up, *which);
                let work = self.clone().up(life.clone(), *which, asked);
                let patience = *patience;
                let run = self.clone();
                tokio::task::spawn_local(async move {
                    match patience {
                        None => work.await,
                        Some(millis) => {
                            let left = tokio::time::timeout(Duration::from_millis(millis), work).await.is_err();
                            if left {
                                run.tell(|| format!("the client of {asked} has gone"));
                                run.model.borrow_mut().pending.remove(&asked);
                            }
                        }
                    }
                });
            }
            ScheduleStep::Reset(site) => self.reset(life, ApiCall::Reset, Some(*site)),
            ScheduleStep::ResetAll => self.reset(life, ApiCall::Reset, None),
            ScheduleStep::ResetIfDirty(site) => self.reset(life, ApiCall::ResetIfDirty, Some(*site)),
            ScheduleStep::ResetTo(site, index) => {
                let names: Vec<String> = {
                    let model = self.model.borrow();
                    let known = model.named.iter().filter(|(_, named)| named.site == *site && named.is_promised);
                    known.map(|(name, _)| name.clone()).collect()
                };
                if !names.is_empty() {
                    self.reset(life, ApiCall::ResetTo(names[index % names.len()].clone()), Some(*site));
                }
            }
            ScheduleStep::Take(site) => {
                let asked = self.ask(life, ApiCall::Take(format!("s{}", self.number())), Some(*site));
                tokio::task::spawn_local(self.clone().take(life.clone(), *site, asked));
            }
            ScheduleStep::Begin(site) => {
                let asked = self.ask(life, ApiCall::Begin, Some(*site));
                drop(tokio::task::spawn_local(self.clone().begin(life.clone(), *site, asked)));
            }
            ScheduleStep::Visit(site) => drop(tokio::task::spawn_local(self.clone().locate(life.clone(), *site))),
            ScheduleStep::Down => {
                let asked = self.ask(life, ApiCall::Down, None);
                let (run, life) = (self.clone(), life.clone());
                tokio::task::spawn_local(async move {
                    run.down(&life, asked).await;
                });
            }
            ScheduleStep::Remove(index) => self.remove(life, |_| true, *index).await,
            ScheduleStep::RemoveBaseline(site) => {
                let is_baseline =
                    |known: &Snapshot| known.baseline_key.is_some() && known.site.as_str() == NAMES[*site];
                self.remove(life, is_baseline, 0).await;
            }
            ScheduleStep::Write(site, kind) => {
                drop(tokio::task::spawn_local(self.clone().write(life.clone(), *site, *kind)));
            }
            ScheduleStep::Read(site) => drop(tokio::task::spawn_local(self.clone().read(life.clone(), *site))),
            ScheduleStep::Wait(millis) => self.advance(life, Duration::from_millis(*millis)).await,
            ScheduleStep::Crash(points) => self.world.chaos.crash_in(*points),
            ScheduleStep::Mishap(call, after, mishap) => self.world.chaos.arm(*call, *after, *mishap),
            ScheduleStep::EngineDown(millis, containers_die) => {
                self.is_disturbed();
                if *containers_die {
                    self.world.chaos.note_death();
                }
                self.world.engine.go_down(*containers_die);
                self.later(*millis, Undo::EngineUp);
            }
            ScheduleStep::Kill(victim) => self.end_each(life, *victim, |name| self.world.engine.kill(name)),
            ScheduleStep::Oom(victim) => self.end_each(life, *victim, |name| self.world.engine.oom(name)),
            ScheduleStep::Discard(victim) => self.end_each(life, *victim, |name| self.world.engine.discard(name)),
            ScheduleStep::Pause(victim, millis) => self.each(life, *victim, |name| {
                let is_paused = self.world.engine.pause(name);
                if is_paused {
                    self.later(*millis, Undo::Unpause(name.to_owned()));
                }
                is_paused
            }),
            ScheduleStep::LoseEvents(millis) => {
                self.is_disturbed();
                self.world.engine.drop_events(true);
                self.later(*millis, Undo::Events);
            }
            ScheduleStep::BreakEvents => self.world.engine.break_events(),
            ScheduleStep::ClockMoves(seconds) => {
                self.is_disturbed();
                self.world.ahead.fetch_add(*seconds, Ordering::Relaxed);
                if *seconds > 0 {
                    self.model.borrow_mut().clock_jumps();
                }
            }
            ScheduleStep::DiskFull(bits, millis) => {
                self.is_disturbed();
                self.set_full(self.full.get() | bits);
                self.later(*millis, Undo::Room(*bits));
            }
            ScheduleStep::OtherEngine(millis) => {
                if !self.is_elsewhere.get() {
                    self.later(*millis, Undo::OwnEngine);
                    self.engine_change.set(Some(true));
                    self.world.chaos.crash_now();
                    std::future::pending::<()>().await;
                }
            }
            ScheduleStep::BreakBuild(site) => self.set_build(*site, false),
            ScheduleStep::RepairBuild(site) => self.set_build(*site, true),
            ScheduleStep::Episode(step) => self.act_on_episode(life, *step),
            ScheduleStep::Rest => self.rest(life).await,
        }
    }

    pub fn set_build(&self, site: usize, is_whole: bool) {
        self.broken.borrow_mut()[site] = !is_whole;
        self.world.set_build(site, is_whole);
    }

    /// Replaces the engine by another one, or restores the first.
    pub fn change_engine(&self, is_other: bool) {
        let shelved = self.world.shelved.borrow_mut().take();
        let engine = &self.world.engine;
        let gone = match shelved {
            Some(earlier) if !is_other => engine.restore(earlier),
            _ => engine.replace(),
        };
        self.tell(|| format!("another engine is there: {is_other}"));
        self.world.chaos.note_death();
        *self.world.shelved.borrow_mut() = is_other.then_some(gone);
        self.is_elsewhere.set(is_other);
        for named in self.model.borrow_mut().named.values_mut() {
            // A snapshot that was taken on the other engine is gone with that engine.
            if !is_other && !named.is_here {
                named.is_promised = false;
            }
        }
    }

    fn end_each(&self, life: &DaemonLife, victim: Victim, end: impl Fn(&str) -> bool) {
        self.world.chaos.note_death();
        self.each(life, victim, end);
    }

    fn each(&self, life: &DaemonLife, victim: Victim, act: impl Fn(&str) -> bool) {
        self.is_disturbed();
        let Some(report) = life.report(victim.slot) else { return };
        if !victim.is_standby {
            report.containers.values().for_each(|(id, _)| {
                act(id);
            });
            return;
        }
        let site = SLOT_NUMBERS[victim.slot].0;
        let (part, standbys) = (part_of_names(site), life.standbys(site).unwrap_or_default());
        for (_, name) in self.world.engine.all_containers() {
            let is_meant = |(made, _): &(u64, Standing)| name.contains(&format!("{part}{made}-"));
            if standbys.members.iter().any(is_meant) {
                act(&name);
            }
        }
    }

    /// Records a request and returns its number.
    pub fn ask(&self, life: &DaemonLife, asked: ApiCall, site: Option<usize>) -> u64 {
        let mut served = [false; SITES];
        for (site, served) in served.iter_mut().enumerate() {
            let is_ready = life.state(site).is_some_and(|(state, _)| state == "ready");
            *served = is_ready && life.route(site).is_some_and(|route| self.answers(&route));
        }
        let is_take = matches!(asked, ApiCall::Take(_));
        let number = self.model.borrow_mut().asks(asked, site, self.world.chaos.disturbances(), served);
        if is_take && self.is_elsewhere.get() {
            for named in self.model.borrow_mut().named.values_mut().filter(|named| named.id.is_none()) {
                named.is_here = false;
            }
        }
        number
    }

    /// Whether a site's port leads to a container that answers with status 200 now.
    pub fn answers(&self, route: &Route) -> bool {
        let arenad_gateway::RouteState::Serving { target } = route.state() else { return false };
        self.world.engine.request(target.address, &ProgramRequest::get("/")).is_ok_and(|answer| answer.status == 200)
    }

    fn forget(&self, asked: u64) -> Option<crate::model::Pending> {
        self.model.borrow_mut().pending.remove(&asked)
    }

    pub async fn up(self: Rc<Self>, life: Rc<DaemonLife>, which: Option<usize>, asked: u64) {
        let sites: Vec<String> = which.iter().map(|site| NAMES[*site].to_owned()).collect();
        let body = serde_json::to_value(self.world.up_request(&sites)).expect("JSON");
        let (status, answer) = call(&life.router, Method::PUT, "/v1/environments/sim", &body).await;
        let mut failed = Vec::new();
        if status == 202 {
            for operation in answer["operations"].as_array().into_iter().flatten() {
                let (shown, _) = ended(&life.router, operation["id"].as_str().unwrap_or_default()).await;
                self.tell(|| format!("{asked} up {}: {} {}", shown["site"], shown["state"], shown["reason"]));
                if shown["state"] != "done" {
                    failed.push(shown["site"].as_str().unwrap_or_default().to_owned());
                }
            }
        } else {
            self.tell(|| format!("{asked} up: {status} {}", answer["detail"]));
            // No other process uses these ports.
            if answer["code"] == "ports_taken" {
                self.model.borrow_mut().violate(format!("`up` finds a port in use: {}", answer["detail"]));
            }
            failed.extend(NAMES.iter().map(|name| (*name).to_owned()));
        }
        let Some(pending) = self.forget(asked) else { return };
        // A request made in the meantime may have failed too, and may have had to remove the containers that served.
        if pending.was_alone && self.model.borrow().last_asked == asked {
            self.check_unharmed(&life, &pending, &failed);
        }
    }

    /// Checks that a failure caused only by a broken build left every serving site serving.
    fn check_unharmed(&self, life: &DaemonLife, pending: &crate::model::Pending, failed: &[String]) {
        if pending.disturbances != self.world.chaos.disturbances() {
            return;
        }
        for (site, name) in NAMES.iter().enumerate() {
            let is_failed = failed.iter().any(|failed| failed == name);
            let answers = life.route(site).is_some_and(|route| self.answers(&route));
            // An episode may have the slot, or may just have had it.
            let is_of_people = life.slots.is_idle(instance(site));
            if is_failed && pending.served[site] && !answers && is_of_people {
                let sentence = format!("{name} served, {:?} failed, and it serves no more", pending.asked);
                self.model.borrow_mut().violate(sentence);
            }
        }
    }

    pub fn reset(self: &Rc<Self>, life: &Rc<DaemonLife>, asked: ApiCall, site: Option<usize>) {
        let mut body = json!({ "sites": site.iter().map(|site| NAMES[*site]).collect::<Vec<_>>() });
        match &asked {
            ApiCall::ResetTo(name) => body["to"] = json!(name),
            ApiCall::ResetIfDirty => body["if_dirty"] = json!(true),
            _ => {}
        }
        let how = format!("{asked:?}");
        let number = self.ask(life, asked, site);
        let (run, life) = (self.clone(), life.clone());
        tokio::task::spawn_local(async move {
            let (status, answer) = call(&life.router, Method::POST, "/v1/environments/sim/resets", &body).await;
            if status != 202 {
                run.tell(|| format!("{number} {how}: {status} {}", answer["detail"]));
                *run.last_refusal.borrow_mut() = answer["detail"].to_string();
            }
            for operation in answer["operations"].as_array().into_iter().flatten() {
                let (shown, at_once) = ended(&life.router, operation["id"].as_str().unwrap_or_default()).await;
                let state = shown["state"].as_str().unwrap_or_default().to_owned();
                run.tell(|| {
                    let (site, joined) = (&shown["site"], &shown["joined"]);
                    let (way, reason) = (&shown["reset"]["strategy"], &shown["reason"]);
                    format!("{number} {how} of {site}: {state} joined {joined} by {way} {reason}")
                });
                if state != "done" {
                    *run.last_refusal.borrow_mut() = shown["reason"].to_string();
                }
                let done = NAMES.iter().position(|name| shown["site"] == **name).filter(|_| state == "done");
                if site.is_some() {
                    run.model.borrow_mut().is_told(number);
                }
                if let Some(site) = done {
                    if at_once {
                        run.look_for_life_after_down(site);
                    }
                    run.resets.set(run.resets.get() + 1);
                    run.model.borrow_mut().is_reset(site, number, &how);
                    run.clone().read(life.clone(), site).await;
                }
            }
            run.forget(number);
        });
    }

    /// Begins an episode with a reset of its site.
    async fn begin(self: Rc<Self>, life: Rc<DaemonLife>, site: usize, asked: u64) {
        let text = format!(
            "environment: {ENVIRONMENT}\ntasks:\n  - {{ name: {name}.task, kind: content, sites: [{name}], intent: x, \
             check: {{ locate: 'http: /', contains: x }} }}\n",
            name = NAMES[site]
        );
        let task = format!("{}.task", NAMES[site]);
        let body = json!({ "task": task, "file": { "path": "/tasks.yaml", "text": text }, "reset": true });
        let (status, answer) = call(&life.router, Method::POST, "/v1/environments/sim/checks/begin", &body).await;
        self.tell(|| format!("{asked} begin {}: {status} {}", NAMES[site], answer["detail"]));
        if status == 200 {
            self.model.borrow_mut().is_reset(site, asked, "Begin");
            self.clone().read(life.clone(), site).await;
        } else if ["definition", "bad_request", "unknown_task", "internal"].iter().any(|code| answer["code"] == *code) {
            self.model.borrow_mut().violate(format!("an episode cannot begin: {}", answer["detail"]));
        }
        self.forget(asked);
    }

    /// Evaluates a locator of the daemon on a site.
    async fn locate(self: Rc<Self>, life: Rc<DaemonLife>, site: usize) {
        let (path, began) = (format!("/v1/environments/sim/sites/{}/locate", NAMES[site]), self.now());
        let (status, answer) = call(&life.router, Method::POST, &path, &json!({ "locator": "http: /" })).await;
        let (page, generation) = (answer["value"].as_str(), answer["evidence"]["generation"].as_u64());
        self.tell(|| format!("visit {}: {status} {generation:?} {page:?} {}", NAMES[site], answer["detail"]));
        if let (200, Some(page), Some(generation)) = (status, page, generation) {
            let reader = Reader::Locator { began, ended: self.now() };
            self.note_page(&life, site, generation, page, reader).await;
        }
    }

    async fn take(self: Rc<Self>, life: Rc<DaemonLife>, site: usize, asked: u64) {
        let Some(pending) = self.model.borrow().pending.get(&asked).cloned() else { return };
        let ApiCall::Take(name) = &pending.asked else { return };
        let generation = life.state(site).map(|(_, generation)| generation);
        let is_alone = self.model.borrow().pending.len() == 1;
        let path = format!("/v1/environments/sim/sites/{}/snapshots", NAMES[site]);
        let (status, answer) = call(&life.router, Method::POST, &path, &json!({ "name": name })).await;
        if status != 202 {
            self.tell(|| format!("{asked} take: {status} {}", answer["detail"]));
        }
        for operation in answer["operations"].as_array().into_iter().flatten() {
            let (shown, _) = ended(&life.router, operation["id"].as_str().unwrap_or_default()).await;
            self.tell(|| format!("{asked} take: {} {}", shown["state"], shown["reason"]));
            if let Some(id) = shown["snapshot"]["id"].as_str() {
                let is_same = life.state(site).map(|(_, generation)| generation) == generation;
                self.model.borrow_mut().is_taken(name, id, asked, generation, is_alone && is_same);
                self.clone().read(life.clone(), site).await;
            }
        }
        self.forget(asked);
    }

    /// Takes everything down. Returns whether the API reported success.
    pub async fn down(self: &Rc<Self>, life: &Rc<DaemonLife>, asked: u64) -> bool {
        let before = self.looked_after(life).await;
        let path = "/v1/environments/sim/down";
        let (status, answer) = call(&life.router, Method::POST, path, &json!({ "sites": [] })).await;
        self.tell(|| format!("{asked} down: {status} {}", answer["detail"]));
        if status == 204 {
            self.check_down(life, asked, &before).await;
        }
        self.forget(asked);
        self.model.borrow_mut().episodes.downs += 1;
        status == 204
    }

    async fn remove(self: &Rc<Self>, life: &Rc<DaemonLife>, is_meant: impl Fn(&Snapshot) -> bool, index: usize) {
        let mut known = self.quietly(life.shared.store.snapshots()).await.unwrap_or_default();
        known.retain(is_meant);
        if known.is_empty() {
            return;
        }
        let chosen = known[index % known.len()].clone();
        let users = self.users(life, &chosen.id).await;
        // A slot that starts an episode from a snapshot no longer uses it once the episode has ended.
        let is_alone = self.model.borrow().pending.is_empty() && !self.model.borrow().episodes.is_any_live();
        let asked = self.ask(life, ApiCall::Remove(chosen.id.to_string()), None);
        // The request withdraws the promise of this snapshot whatever its outcome; a refusal restores the promise.
        let promised = self.model.borrow_mut().unwants(&chosen.id);
        let (run, life) = (self.clone(), life.clone());
        tokio::task::spawn_local(async move {
            let path = format!("/v1/snapshots/{}", chosen.id);
            let (status, answer) = call(&life.router, Method::DELETE, &path, &Value::Null).await;
            run.tell(|| format!("{asked} remove {:?}: {status} {}", chosen.name, answer["detail"]));
            if status == 204 {
                if let Some(user) = users.first().filter(|_| is_alone && run.model.borrow().last_asked == asked) {
                    let sentence = format!("{user} uses snapshot {}, and it was removed", chosen.id);
                    run.model.borrow_mut().violate(sentence);
                }
                run.model.borrow_mut().unwants(&chosen.id);
            } else if (400..500).contains(&status) {
                for name in promised {
                    run.model.borrow_mut().named.entry(name).and_modify(|named| named.is_promised = true);
                }
            }
            run.forget(asked);
        });
    }

    async fn write(self: Rc<Self>, life: Rc<DaemonLife>, site: usize, kind: WriteDestination) {
        let name = format!("w{}", self.number());
        self.model.borrow_mut().sends(site, &name, kind, None);
        let Some(route) = life.route(site) else { return };
        let request = ProgramRequest::post(&format!("/{}/{name}", kind.name()), "x");
        let reached = |generation| {
            let mut model = self.model.borrow_mut();
            model.reaches_at_public_port(site, generation);
            model.reaches(site, &name, generation, self.now());
        };
        let seen = visit(SiteDoor::Public(&route), &self.world.engine, &request, reached).await;
        self.tell(|| format!("write {name} ({}) to {}: {seen:?}", kind.name(), NAMES[site]));
        if let VisitOutcome::Answer(_, 200, _) = seen {
            self.model.borrow_mut().acknowledges(site, &name);
        }
    }

    /// Reads a site's page and compares it with the model.
    pub async fn read(self: Rc<Self>, life: Rc<DaemonLife>, site: usize) {
        let Some(route) = life.route(site) else { return };
        let seen = visit(SiteDoor::Public(&route), &self.world.engine, &ProgramRequest::get("/"), |_| ()).await;
        let VisitOutcome::Answer(generation, 200, page) = &seen else {
            self.tell(|| format!("read {}: {seen:?}", NAMES[site]));
            return;
        };
        self.tell(|| format!("read {}: {generation} {}", NAMES[site], page.replace('\n', " ")));
        self.note_page(&life, site, *generation, page, Reader::Anyone).await;
    }

    /// Compares a page with the content that its generation may show.
    pub async fn note_page(&self, life: &DaemonLife, slot: usize, generation: u64, page: &str, reader: Reader) {
        let report = life.report(slot).filter(|report| report.generation == generation);
        let snapshot = report.and_then(|report| report.snapshot);
        let is_baseline = match &snapshot {
            // The answer makes no difference for a site without named snapshots.
            Some(id) if self.model.borrow().has_named(SLOT_NUMBERS[slot].0) => {
                let stored = self.quietly(life.shared.store.snapshot(id)).await.ok().flatten();
                stored.is_some_and(|stored| stored.baseline_key.is_some() && stored.name.is_none())
            }
            _ => false,
        };
        self.model.borrow_mut().sees((slot, generation), snapshot.as_deref(), is_baseline, page, reader);
    }

    /// Runs a query of the harness with faults disabled.
    pub async fn quietly<T>(&self, look: impl Future<Output = T>) -> T {
        // The query runs to its end before any other task runs.
        self.world.chaos.look(true);
        let seen = look.await;
        self.world.chaos.look(false);
        seen
    }
}
