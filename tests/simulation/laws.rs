//! The laws that are checked from outside the daemon: after each step, at rest, and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use arenad_engine::{Engine, labels};
use arenad_episodes::EpisodeFilter;
use arenad_gateway::RouteState;
use arenad_model::instance::InstanceStatus;
use arenad_model::pool::Standing;
use arenad_storage::StoreTree;

use crate::client::ASKS_AGAIN;
use crate::episodes::{RECYCLED, SLOT_NUMBERS, SLOTS, index_of, instance, part_of_names, shown};
use crate::model::ApiCall;
use crate::run::SimulationRun;
use crate::schedule::SITES;
use crate::world::{DaemonLife, ENVIRONMENT, FIRST_PORT, NAMES, STANDBYS};

/// The longest time until a dead container is noticed: two rounds of probes with their timeouts.
pub const DETECTION: Duration = Duration::from_secs(90);
/// The duration of two passes of reconciliation.
const RECONCILED: Duration = Duration::from_secs(200);
/// The time within which every request ends once no fault remains: the engine may send no progress of an image for an
/// hour before that is an error, and the work that follows takes time as well.
const ENDS_WITHIN: Duration = Duration::from_secs(3600 + 1200);
/// The longest pause after failures, and a boot.
const POOL_FILLS: Duration = Duration::from_secs(400);
/// The longest delay between the notifications of two clients about operations that have ended. No operation is as
/// short.
const TOLD_WITHIN: Duration = Duration::from_millis(50);
/// An upper bound on the tasks of a daemon with three sites and as many slots as there may be.
const TASKS_MAX: usize = 50;

impl SimulationRun {
    fn violate(&self, what: String) {
        self.model.borrow_mut().violate(what);
    }

    /// Returns every object of this installation on the engine: kind, name with generation, and whether it runs. `None`
    /// if the engine does not answer.
    async fn things(&self, life: &DaemonLife) -> Option<Vec<(&'static str, String, bool)>> {
        if !self.world.engine.is_up() {
            return None;
        }
        self.quietly(async {
            let (label, value) = (labels::INSTALLATION, &life.shared.installation);
            let engine = &self.world.engine;
            let mut all = Vec::new();
            for found in engine.containers(label, value).await.ok()? {
                all.push(("container", found.name, found.running));
            }
            all.extend(engine.networks(label, value).await.ok()?.into_iter().map(|it| ("network", it.name, false)));
            all.extend(engine.volumes(label, value).await.ok()?.into_iter().map(|it| ("volume", it.name, false)));
            Some(all)
        })
        .await
    }

    /// Returns the names of all objects on the engine that belong to sites with a driver.
    pub async fn looked_after(&self, life: &DaemonLife) -> BTreeSet<String> {
        let names: Vec<String> = (0..SITES).filter(|site| life.handle(*site).is_some()).map(part_of_names).collect();
        let things = self.things(life).await.unwrap_or_default().into_iter().map(|(_, name, _)| name);
        things.filter(|thing| names.iter().any(|name| thing.contains(name))).collect()
    }

    /// Checks the effect of a successful `down`; `before` lists the objects that existed when it was requested.
    pub async fn check_down(&self, life: &DaemonLife, asked: u64, before: &BTreeSet<String>) {
        // The rows of an environment are removed with it, even if the next `up` is already running.
        (0..SLOTS).for_each(|slot| self.model.borrow_mut().is_forgotten(slot));
        let is_wanted_again = {
            let model = self.model.borrow();
            model.last_up > asked || model.pending.values().any(|other| other.asked == ApiCall::Up)
        };
        if is_wanted_again {
            return;
        }
        {
            let mut model = self.model.borrow_mut();
            model.is_down = true;
            model.down_at = model.tick();
        }
        self.down_since.set(self.now());
        let things = self.things(life).await.unwrap_or_default();
        let is_late = self.now() <= self.world.chaos.late_until();
        // Delayed calls create or remove objects, but they restore none.
        if let Some((kind, name, _)) = things.iter().find(|(_, name, _)| !is_late || before.contains(name)) {
            self.violate(format!("`down` has succeeded, and {kind} {name} is there"));
        }
        if let Some(route) = life.shared.gateway.listening().first() {
            self.violate(format!("`down` has succeeded, and port {} is open", route.local_addr().port()));
        }
    }

    /// Checks that a reset which has just succeeded does not follow a successful `down`.
    pub fn look_for_life_after_down(&self, site: usize) {
        if self.model.borrow().is_down && self.now() > self.down_since.get() + TOLD_WITHIN {
            self.violate(format!("`down` has succeeded, and afterwards {} is reset", NAMES[site]));
        }
    }

    /// Checks that every earlier request has ended when a `down` ends.
    fn look_for_work_after_down(&self) {
        let model = self.model.borrow();
        let is_told = model.is_down && self.now() > self.down_since.get() + ASKS_AGAIN + TOLD_WITHIN;
        let working = is_told.then(|| model.works_since(model.down_at).cloned()).flatten();
        drop(model);
        if let Some(asked) = working {
            self.violate(format!("`down` has succeeded, and {asked:?}, asked for before, goes on"));
        }
    }

    /// Checks the laws that hold after each step.
    pub async fn look(&self, life: &DaemonLife) {
        self.look_for_work_after_down();
        self.look_for_doubles(life);
        let is_down = self.model.borrow().is_down;
        let is_settled = self.now() > self.calm_since.get().max(self.world.chaos.late_until()) + RECONCILED;
        if is_down && is_settled {
            if let Some((kind, name, _)) = self.things(life).await.unwrap_or_default().first() {
                self.violate(format!("everything is down, and {kind} {name} is there"));
            }
            if let Some(route) = life.shared.gateway.listening().first() {
                self.violate(format!("everything is down, and port {} is open", route.local_addr().port()));
            }
        }
        if self.step.get().is_multiple_of(10) {
            self.look_for_snapshots(life).await;
        }
    }

    /// Returns the sites that are up and either start from this snapshot or are reset to it.
    pub async fn users(&self, life: &DaemonLife, snapshot: &str) -> Vec<&'static str> {
        let rows = self.quietly(life.shared.store.instances(ENVIRONMENT)).await.unwrap_or_default();
        let is_user = |name: &&&str| {
            rows.iter().any(|row| {
                let uses = [&row.snapshot, &row.baseline].into_iter().flatten().any(|used| used.as_str() == snapshot);
                row.id.site.as_str() == **name && row.state != InstanceStatus::Down && uses
            })
        };
        NAMES.iter().filter(is_user).copied().collect()
    }

    /// Returns the number of the slots that the schedule may have.
    fn slots(&self) -> usize {
        if self.has_episodes { SLOTS } else { SITES }
    }

    /// An instance without a row starts again from the beginning: a `down` took place whose reply was lost.
    pub async fn look_for_rows(&self, life: &DaemonLife) {
        for slot in 0..self.slots() {
            if let Ok(None) = self.quietly(life.shared.store.instance(instance(slot))).await {
                self.model.borrow_mut().is_forgotten(slot);
            }
        }
    }

    /// Checks that every named snapshot exists until a client removes it.
    async fn look_for_snapshots(&self, life: &DaemonLife) {
        let promised: Vec<(String, String, bool)> = {
            let model = self.model.borrow();
            let named = model.named.iter().filter(|(_, named)| named.is_promised);
            named.filter_map(|(name, named)| Some((name.clone(), named.id.clone()?, named.is_here))).collect()
        };
        for (name, id, is_here) in promised {
            let Ok(stored) = self.quietly(life.shared.store.snapshot(&id)).await else { continue };
            let Some(stored) = stored else {
                self.violate(format!("snapshot {name} was taken and not removed, and has no row"));
                return;
            };
            if let Some(storage) = &life.shared.storage {
                for tree in &stored.state {
                    let is_whole = StoreTree::snapshot(&id, tree).is_ok_and(|tree| storage.root().is_whole(&tree));
                    if !is_whole {
                        self.violate(format!("snapshot {name} was taken and not removed, and its {tree} is gone"));
                    }
                }
            }
            if is_here != self.is_elsewhere.get() && self.world.engine.is_up() {
                for image in stored.images.values() {
                    let found = self.quietly(self.world.engine.image(image)).await;
                    if matches!(found, Ok(None)) {
                        self.violate(format!("snapshot {name} was taken and not removed, and its image is gone"));
                    }
                }
            }
        }
    }

    /// Checks that every ready site serves and answers, except during the time in which a death may go unnoticed.
    pub fn look_for_lies(&self, life: &DaemonLife) {
        for (site, name) in NAMES.iter().enumerate() {
            let state = life.state(site);
            let is_ready = state.is_some_and(|(state, _)| state == "ready");
            // The promises to episodes say what holds while one has the slot, and until the slot is free again.
            let is_of_people = !self.has_episodes || life.slots.is_idle(instance(site));
            let is_true = !is_ready
                || !is_of_people
                || life.route(site).is_some_and(|route| {
                    let serves = match route.state() {
                        RouteState::Serving { target } => {
                            state.is_some_and(|(_, generation)| generation == target.generation)
                        }
                        _ => false,
                    };
                    serves && self.answers(&route)
                });
            let mut since = self.lying_since.borrow_mut();
            if is_true {
                since[site] = None;
                continue;
            }
            let begun = *since[site].get_or_insert(self.now());
            // The daemon is not blamed for faults outside it while they last.
            let begun = begun.max(self.calm_since.get());
            if self.now() > begun + DETECTION && self.world.engine.is_up() {
                drop(since);
                let state = life.route(site).map(|route| route.state());
                self.violate(format!("{name} says that it is ready, and does not serve: its route is {state:?}"));
            }
        }
    }

    /// Repairs everything, waits until the system is at rest, and checks the laws of rest.
    pub async fn rest(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        self.world.chaos.calm();
        self.undo_due(true);
        if self.engine_change.get().is_some() {
            // The daemon ends here, and the next one runs the rest step.
            std::future::pending::<()>().await;
        }
        self.world.engine.come_up();
        self.world.engine.drop_events(false);
        self.set_full(0);
        (0..SITES).for_each(|site| self.set_build(site, true));
        self.is_disturbed();
        if self.has_episodes {
            self.end_episodes(life).await;
        }
        self.end_all(life).await;
        // Delayed deaths and replies take place now, so that they do not spoil a later reset.
        let late = self.world.chaos.late_until().saturating_sub(self.now());
        self.advance(life, late).await;
        // A reset succeeds in every state of a site, even before anything else has repaired it.
        let there: Vec<usize> = (0..SITES).filter(|site| life.handle(*site).is_some()).collect();
        if !self.is_violated() && !self.model.borrow().is_down {
            for site in &there {
                self.succeed_in_resetting(life, *site).await;
            }
        }
        self.advance(life, RECONCILED).await;
        if self.is_violated() {
            return;
        }
        if !self.model.borrow().is_down {
            for site in there {
                self.look_for_service(life, site, "a reset");
            }
        }
        self.look_at_rest(life).await;
        if self.has_episodes {
            // After failures the next attempt to bring a slot back takes place later.
            self.advance(life, RECYCLED.saturating_sub(RECONCILED)).await;
            self.look_at_free_slots(life);
        }
        if !self.model.borrow().is_down && !self.is_violated() {
            self.come_up(life).await;
            if self.has_episodes && !self.is_violated() {
                self.succeed_in_an_episode(life).await;
            }
        }
    }

    /// Waits until every request has ended.
    async fn end_all(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        let limit = self.now() + ENDS_WITHIN;
        while !self.model.borrow().pending.is_empty() && !self.is_violated() {
            if self.now() > limit {
                let pending = self.model.borrow().pending.values().next().cloned();
                self.violate(format!("{pending:?} has not ended {ENDS_WITHIN:?} after everything was repaired"));
                return;
            }
            self.advance(life, Duration::from_secs(1)).await;
        }
    }

    /// Checks that a reset succeeds in the absence of faults.
    async fn succeed_in_resetting(self: &Rc<Self>, life: &Rc<DaemonLife>, site: usize) {
        let resets = self.resets.get();
        self.reset(life, ApiCall::Reset, Some(site));
        self.end_all(life).await;
        if self.resets.get() == resets {
            let told = self.last_refusal.borrow().clone();
            self.violate(format!("nothing is wrong, and a reset of {} is not done: {told}", NAMES[site]));
        }
    }

    /// Checks that a site which was brought up serves in the absence of faults.
    fn look_for_service(&self, life: &DaemonLife, site: usize, after: &str) {
        let (state, name) = (life.state(site).map(|(state, _)| state), NAMES[site]);
        let answers = life.route(site).is_some_and(|route| self.answers(&route));
        if state != Some("ready") || !answers {
            self.violate(format!(
                "nothing is wrong, and after {after} {name} is {} and its page {}",
                state.unwrap_or("not there"),
                if answers { "answers" } else { "does not answer" }
            ));
        }
    }

    /// Checks that `up` succeeds in the absence of faults.
    async fn come_up(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        let asked = self.ask(life, ApiCall::Up, None);
        let work = tokio::task::spawn_local(self.clone().up(life.clone(), None, asked));
        let limit = self.now() + ENDS_WITHIN;
        while !work.is_finished() && self.now() < limit && !self.is_violated() {
            self.advance(life, Duration::from_secs(1)).await;
        }
        for site in 0..SITES {
            self.look_for_service(life, site, "`up`");
            if !self.is_violated() {
                self.clone().read(life.clone(), site).await;
            }
        }
        for site in (0..SITES).filter(|site| STANDBYS[*site] > 0 && !self.is_violated()) {
            self.stand_by(life, site).await;
        }
    }

    /// Checks that a reset succeeds in the absence of faults, and that the pool replaces the standby that it used.
    async fn stand_by(self: &Rc<Self>, life: &Rc<DaemonLife>, site: usize) {
        self.succeed_in_resetting(life, site).await;
        let is_ready = || {
            let members = life.standbys(site).map(|standbys| standbys.members).unwrap_or_default();
            members.iter().any(|(_, state)| matches!(*state, Standing::Running | Standing::Frozen))
        };
        let limit = self.now() + POOL_FILLS;
        while !is_ready() && !self.is_violated() {
            if self.now() > limit {
                let standbys = life.standbys(site);
                self.violate(format!("nothing is wrong, and {} has no standby: {standbys:?}", NAMES[site]));
            }
            self.advance(life, Duration::from_secs(5)).await;
        }
    }

    /// Checks that no generation is in two slots, or in a slot and among the standbys.
    fn look_for_doubles(&self, life: &DaemonLife) {
        for site in 0..SITES {
            let standbys = life.standbys(site).map(|standbys| standbys.members).unwrap_or_default();
            let mut seen: BTreeSet<u64> = standbys.iter().map(|(made, _)| *made).collect();
            for slot in (0..self.slots()).filter(|slot| SLOT_NUMBERS[*slot].0 == site) {
                let Some(incarnation) = life.report(slot).and_then(|report| report.incarnation) else { continue };
                if !seen.insert(incarnation.made) {
                    let made = incarnation.made;
                    self.violate(format!("generation {made} serves in {}, and is elsewhere too", shown(slot)));
                }
            }
        }
    }

    /// Checks the laws that hold at rest.
    async fn look_at_rest(&self, life: &DaemonLife) {
        let mut claimed = BTreeSet::new();
        let mut open = BTreeSet::new();
        // The generations by site, each with the row that says where it is.
        let mut noted: BTreeMap<(usize, u64), String> = BTreeMap::new();
        let mut note = |site: usize, made: u64, place: String| {
            if let Some(other) = noted.insert((site, made), place.clone()) {
                self.violate(format!("generation {made} of {} is {other}, and also {place}", NAMES[site]));
            }
            (site, made)
        };
        for (slot, &(site, _)) in SLOT_NUMBERS.iter().enumerate().take(self.slots()) {
            let (id, name) = (instance(slot), shown(slot));
            let row = self.quietly(life.shared.store.instance(id)).await.ok().flatten();
            // Generations that could not be adopted yet, or that are on another engine, are adopted by a later attempt.
            let serving = row.as_ref().and_then(|row| row.serving);
            claimed.extend(serving.map(|serving| note(site, serving.made, format!("serving in {name}"))));
            if slot < SITES {
                for standby in self.quietly(life.shared.store.standbys(id)).await.unwrap_or_default() {
                    claimed.insert(note(site, standby.made, "a standby".to_owned()));
                }
                let standbys = life.standbys(site).map(|standbys| standbys.members).unwrap_or_default();
                claimed.extend(standbys.iter().map(|(made, _)| (site, *made)));
            }
            let Some(report) = life.report(slot) else { continue };
            claimed.extend(report.incarnation.iter().map(|incarnation| (site, incarnation.made)));
            if slot < SITES {
                open.insert(FIRST_PORT + u16::try_from(slot).unwrap_or_default());
                if !report.state.serves() && life.route(slot).is_some_and(|route| self.answers(&route)) {
                    self.violate(format!("{name} is {}, and its port leads to a page", report.state.name()));
                }
            }
            let row = row.map(|row| row.state);
            if row != Some(report.state.status()) {
                self.violate(format!("{name} says that it is {}, and its row {row:?}", report.state.name()));
            }
        }
        claimed.extend(self.elsewhere(life).await);
        let is_claimed = |name: &str| {
            claimed.iter().any(|(site, made)| {
                let begin = format!("{}{made}-", part_of_names(*site));
                format!("{name}-").contains(&begin)
            })
        };
        for (kind, name, _) in self.things(life).await.unwrap_or_default() {
            if !is_claimed(&name) {
                self.violate(format!("{kind} {name} has no owner after two passes of reconciliation"));
            }
        }
        for route in life.shared.gateway.listening() {
            let port = route.local_addr().port();
            if !open.contains(&port) {
                self.violate(format!("port {port} is open, and no site has it"));
            }
        }
        self.look_at_trees(life, &claimed).await;
        self.look_for_snapshots(life).await;
        let tasks = life.shared.tasks.len();
        if tasks > TASKS_MAX {
            self.violate(format!("{tasks} tasks run at rest"));
        }
    }

    /// Returns the generations, by site, that run on an engine other than the current one. Their state is kept until
    /// they are removed there.
    async fn elsewhere(&self, life: &DaemonLife) -> BTreeSet<(usize, u64)> {
        let all = self.quietly(life.shared.store.generations_elsewhere()).await.unwrap_or_default();
        let known = all.into_iter().filter_map(|(instance, made)| {
            let slot = index_of(&instance)?;
            Some(made.into_iter().map(move |made| (slot, made)))
        });
        known.flatten().collect()
    }

    async fn look_at_trees(&self, life: &DaemonLife, claimed: &BTreeSet<(usize, u64)>) {
        let Some(storage) = &life.shared.storage else { return };
        let rows = self.quietly(life.shared.store.snapshots()).await.unwrap_or_default();
        for tree in storage.root().trees().unwrap_or_default() {
            let is_known = match &tree {
                StoreTree::Instance { instance, generation, .. } => {
                    index_of(instance).is_some_and(|slot| claimed.contains(&(slot, *generation)))
                }
                StoreTree::Snapshot { snapshot, .. } => rows.iter().any(|row| row.id == *snapshot),
            };
            if !is_known {
                self.violate(format!("tree {tree:?} has no owner after two passes of reconciliation"));
            }
        }
        let trash = storage.root().trash_usage();
        if trash.is_ok_and(|usage| usage.files + usage.folders > 1) {
            self.violate("the trash is not empty at rest".to_owned());
        }
    }

    /// Takes everything down and checks that only snapshots are left.
    pub async fn finish(self: &Rc<Self>, life: &Rc<DaemonLife>) {
        if !self.model.borrow().is_down {
            let asked = self.ask(life, ApiCall::Down, None);
            if !self.down(life, asked).await {
                self.violate("nothing is wrong, and `down` fails".to_owned());
            }
        }
        self.advance(life, RECONCILED).await;
        if self.is_violated() {
            return;
        }
        if let Some((kind, name, _)) = self.things(life).await.unwrap_or_default().first() {
            self.violate(format!("{kind} {name} is there in the end"));
        }
        let live = EpisodeFilter { is_live: true, ..EpisodeFilter::default() };
        if let Some(view) = life.episodes.list(&live).first() {
            self.violate(format!("episode {} is {:?} in the end", view.id, view.state));
        }
        if self.has_episodes {
            self.look_at_free_slots(life);
        }
        self.look_at_trees(life, &self.elsewhere(life).await).await;
        let rows = self.quietly(life.shared.store.environments()).await.unwrap_or_default();
        if !rows.is_empty() {
            self.violate("a definition is there in the end".to_owned());
        }
    }
}
