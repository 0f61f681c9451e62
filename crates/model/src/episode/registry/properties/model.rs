//! A naive model of the promises about episodes. It knows nothing of the code under test but its answers: plain lists,
//! whole seconds, and every rule written out where it applies.

use std::collections::BTreeMap;

use crate::instance::InstanceId;

/// The state of a slot in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelSlot {
    Free,
    Held(usize),
    Recycling,
}

/// A site that an episode waits for, by name, and the slot if one was named. Shared sites are left out.
pub(super) type ModelWant = (&'static str, Option<u32>);

/// An episode in the model. Episodes are numbered in order of arrival.
#[derive(Debug, Clone)]
pub(super) struct ModelEpisode {
    pub(super) owner: usize,
    pub(super) wants: Vec<ModelWant>,
    pub(super) status: &'static str,
    pub(super) ttl: u64,
    pub(super) deadline: u64,
    pub(super) hold: Option<u64>,
    pub(super) hold_again_by: Option<u64>,
    pub(super) is_frozen_by_client: bool,
    pub(super) evaluations: u32,
    /// The slots of the episode with whether the preparation changed and proved each of them.
    pub(super) slots: Vec<(InstanceId, bool, bool)>,
}

impl ModelEpisode {
    pub(super) fn is_open(&self) -> bool {
        ["preparing", "active", "frozen"].contains(&self.status)
    }

    pub(super) fn is_live(&self) -> bool {
        self.status == "queued" || self.is_open()
    }

    /// Returns the status that the passing of time brings.
    pub(super) fn due(&self, now: u64) -> Option<&'static str> {
        let is_past = now > self.deadline;
        let is_suspended = self.hold.is_some() || self.hold_again_by.is_some();
        match self.status {
            _ if !self.is_live() => None,
            _ if self.hold_again_by.is_some_and(|by| now > by) => Some("released"),
            "queued" if is_past => Some("expired"),
            "preparing" if is_past => Some("void"),
            "active" | "frozen" if is_past && !is_suspended => Some("expired"),
            _ => None,
        }
    }

    fn is_running(&self, now: u64) -> bool {
        ["active", "frozen"].contains(&self.status) && self.due(now).is_none()
    }
}

/// All episodes and slots.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) now: u64,
    pub(super) episodes: Vec<ModelEpisode>,
    pub(super) slots: BTreeMap<InstanceId, ModelSlot>,
    pub(super) quota: usize,
    pub(super) most_open: usize,
    /// Whether a slot is given only to requests that name it.
    pub(super) is_by_name_only: fn(&InstanceId) -> bool,
}

impl Model {
    fn end(&mut self, number: usize, status: &'static str) {
        let episode = &mut self.episodes[number];
        for (slot, is_changed, _) in &episode.slots {
            let is_pristine = episode.status == "preparing" && !is_changed;
            self.slots.insert(slot.clone(), if is_pristine { ModelSlot::Free } else { ModelSlot::Recycling });
        }
        (episode.status, episode.hold, episode.hold_again_by) = (status, None, None);
    }

    /// Ends the episodes whose time is over.
    pub(super) fn expire(&mut self) {
        for number in 0..self.episodes.len() {
            if let Some(status) = self.episodes[number].due(self.now) {
                self.end(number, status);
            }
        }
    }

    /// Returns the episodes that must be granted now, found one by one.
    pub(super) fn grants(&self) -> Vec<usize> {
        let mut counted: Vec<usize> =
            self.episodes.iter().filter(|episode| episode.is_open()).map(|episode| episode.owner).collect();
        let mut granted: Vec<usize> = Vec::new();
        let mut ahead: Vec<usize> = Vec::new();
        let open = counted.len();
        for (number, episode) in self.episodes.iter().enumerate().filter(|(_, episode)| episode.status == "queued") {
            if open + granted.len() >= self.most_open {
                break;
            }
            if counted.iter().filter(|owner| **owner == episode.owner).count() >= self.quota {
                continue;
            }
            counted.push(episode.owner);
            if episode.wants.iter().all(|want| self.is_available(*want, &granted, &ahead)) {
                granted.push(number);
            } else {
                ahead.push(number);
            }
        }
        granted
    }

    /// Whether a site has more free slots than requests that take one or wait for one before this request.
    fn is_available(&self, (site, slot): ModelWant, granted: &[usize], ahead: &[usize]) -> bool {
        let wants = |numbers: &[usize]| -> Vec<Option<u32>> {
            let all = numbers.iter().flat_map(|number| &self.episodes[*number].wants);
            all.filter(|(other, _)| *other == site).map(|(_, slot)| *slot).collect()
        };
        let before: Vec<Option<u32>> = [wants(granted), wants(ahead)].concat();
        let is_named = |slot: &InstanceId| before.contains(&Some(slot.number));
        let of_site = self.slots.iter().filter(|(slot, _)| slot.site.as_str() == site);
        let free: Vec<&InstanceId> = of_site
            .filter(|(slot, state)| **state == ModelSlot::Free && !is_named(slot))
            .map(|(slot, _)| slot)
            .collect();
        let for_any = free.iter().filter(|slot| !(self.is_by_name_only)(slot)).count();
        let is_spare = for_any > before.iter().filter(|slot| slot.is_none()).count();
        match slot {
            None => is_spare,
            Some(number) => free.iter().any(|slot| slot.number == number && ((self.is_by_name_only)(slot) || is_spare)),
        }
    }

    /// Notes a grant, after checking that the slots are free and are those that the episode waits for.
    pub(super) fn grant(&mut self, number: usize, slots: &[InstanceId], limit: u64) {
        for slot in slots {
            assert_eq!(self.slots.insert(slot.clone(), ModelSlot::Held(number)), Some(ModelSlot::Free), "{slot}");
        }
        let episode = &mut self.episodes[number];
        assert_eq!(slots.len(), episode.wants.len());
        for (slot, (site, wanted)) in slots.iter().zip(&episode.wants) {
            assert_eq!(slot.site.as_str(), *site);
            assert!(wanted.map_or(!(self.is_by_name_only)(slot), |wanted| wanted == slot.number), "{slot}");
        }
        (episode.status, episode.deadline) = ("preparing", self.now + limit);
        episode.slots = slots.iter().map(|slot| (slot.clone(), false, false)).collect();
    }

    /// Notes a commit, and returns whether it must succeed.
    pub(super) fn commit(&mut self, number: usize) -> bool {
        let now = self.now;
        let episode = &mut self.episodes[number];
        let is_prepared = episode.slots.iter().all(|(_, _, is_proven)| *is_proven);
        let is_possible = episode.status == "preparing" && is_prepared && episode.due(now).is_none();
        if is_possible {
            (episode.status, episode.deadline) = ("active", now + episode.ttl);
        }
        is_possible
    }

    /// Notes a heartbeat, and returns whether it must succeed.
    pub(super) fn heartbeat(&mut self, number: usize) -> bool {
        let now = self.now;
        let episode = &mut self.episodes[number];
        if episode.is_running(now) {
            episode.deadline = episode.deadline.max(now + episode.ttl);
        }
        episode.is_live() && episode.due(now).is_none()
    }

    /// Notes a hold, and returns whether it must succeed.
    pub(super) fn hold(&mut self, number: usize, connection: u64) -> bool {
        let now = self.now;
        let episode = &mut self.episodes[number];
        let is_possible =
            episode.is_live() && episode.due(now).is_none() && episode.hold.is_none_or(|hold| hold == connection);
        if is_possible {
            (episode.hold, episode.hold_again_by) = (Some(connection), None);
        }
        is_possible
    }

    /// Notes an end, and returns whether it must succeed. `connection` is given if a hold was closed.
    pub(super) fn close(&mut self, number: usize, status: &'static str, connection: Option<u64>) -> bool {
        let episode = &self.episodes[number];
        let is_meant = connection.is_none() || episode.hold == connection;
        let is_possible = episode.is_live() && episode.due(self.now).is_none() && is_meant;
        if is_possible {
            self.end(number, status);
        }
        is_possible
    }

    /// Notes the begin or the end of a freeze by the client, and returns whether it must succeed.
    pub(super) fn freeze(&mut self, number: usize, is_begin: bool) -> bool {
        let now = self.now;
        let episode = &mut self.episodes[number];
        let is_possible = episode.is_running(now) && (is_begin || episode.is_frozen_by_client);
        if is_possible {
            episode.is_frozen_by_client = is_begin;
            episode.status = if is_begin || episode.evaluations > 0 { "frozen" } else { "active" };
        }
        is_possible
    }

    /// Notes the begin or the end of an evaluation, and returns whether it must succeed.
    pub(super) fn evaluate(&mut self, number: usize, limit: Option<u64>) -> bool {
        let now = self.now;
        let episode = &mut self.episodes[number];
        let is_possible = episode.is_running(now) && (limit.is_some() || episode.evaluations > 0);
        if is_possible {
            match limit {
                Some(limit) => {
                    episode.evaluations += 1;
                    episode.deadline = episode.deadline.max(now + limit);
                }
                None => episode.evaluations -= 1,
            }
            let is_frozen = episode.is_frozen_by_client || episode.evaluations > 0;
            episode.status = if is_frozen { "frozen" } else { "active" };
        }
        is_possible
    }

    /// Notes a restart of the daemon.
    pub(super) fn restart(&mut self, hold_again_within: u64) {
        for number in 0..self.episodes.len() {
            let was_preparing = self.episodes[number].status == "preparing";
            if was_preparing {
                self.end(number, "void");
            }
            let now = self.now;
            let episode = &mut self.episodes[number];
            if !episode.is_live() {
                continue;
            }
            // No time is left after the deadline, but the episode is not over before the next look.
            episode.deadline = episode.deadline.max(now);
            if episode.hold.take().is_some() || episode.hold_again_by.is_some() {
                episode.hold_again_by = Some(now + hold_again_within);
            }
            episode.evaluations = 0;
            if episode.status == "frozen" && !episode.is_frozen_by_client {
                episode.status = "active";
            }
        }
        // A new daemon proves every slot that no episode has.
        for state in self.slots.values_mut() {
            if *state == ModelSlot::Free {
                *state = ModelSlot::Recycling;
            }
        }
    }
}
