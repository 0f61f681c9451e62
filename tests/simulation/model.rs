//! The reference model: it records every write and every request, and decides what must hold afterwards.
//!
//! The model does not know how arenad works. A write belongs to the generation that received it and is visible in no other
//! generation, except through a named snapshot that may contain it. A reset that has succeeded makes every write
//! unreadable that was acknowledged before the reset was requested.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::episodes::{EpisodesModel, ModelEpisode, SHARED, SLOT_NUMBERS, SLOTS, is_work, shown};
use crate::schedule::{SITES, WriteDestination};
use crate::world::SEED;

/// A write that a client sent to a site.
#[derive(Debug, Clone)]
pub struct Write {
    pub kind: WriteDestination,
    /// The number of the episode whose client sent it through the episode proxy.
    by: Option<u64>,
    /// The time at which it reached its generation.
    reached_at: Option<Duration>,
    /// The generation that received it; `None` until it has reached one.
    pub generation: Option<u64>,
    pub sent: u64,
    pub acknowledged: Option<u64>,
    /// The reason why the write must no longer be visible.
    pub dead: Option<String>,
}

/// A snapshot that a client named.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub id: Option<String>,
    pub site: usize,
    /// The writes that it must contain.
    pub must: BTreeSet<String>,
    /// The writes that it may contain.
    pub may: BTreeSet<String>,
    /// Whether the API reported it taken and no client has removed it since.
    pub is_promised: bool,
    /// Whether it is on the first engine.
    pub is_here: bool,
}

/// A request to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiCall {
    Up,
    Reset,
    ResetTo(String),
    ResetIfDirty,
    Begin,
    Take(String),
    Down,
    Remove(String),
}

/// A request that has not been answered yet.
#[derive(Debug, Clone)]
pub struct Pending {
    pub asked: ApiCall,
    /// `None` means all sites.
    pub site: Option<usize>,
    /// The number of faults at the time of the request.
    pub disturbances: u64,
    /// Whether each site served at the time of the request.
    pub served: [bool; SITES],
    /// Whether no other request was pending at that time.
    pub was_alone: bool,
    /// Whether its end was reported, so that only the inspection of its result is still under way.
    pub is_told: bool,
}

/// The client that sees a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A client of the public port.
    Anyone,
    /// A locator that an operator runs: the time at which it began, and the current time.
    Locator { began: Duration, ended: Duration },
    /// The client of an episode.
    Episode(u64),
}

/// The writes to a slot.
#[derive(Debug, Default)]
pub struct SlotModel {
    pub writes: BTreeMap<String, Write>,
    /// The highest generation that a client has seen.
    pub newest: u64,
}

/// The state of the model. Moments are counted by `tick`.
#[derive(Debug, Default)]
pub struct Model {
    /// The slots. Those with the index of a site are the ones that people use.
    pub slots: [SlotModel; SLOTS],
    pub episodes: EpisodesModel,
    pub named: BTreeMap<String, Named>,
    pub pending: BTreeMap<u64, Pending>,
    /// The moment of the last request or reply about the removal of a snapshot, by its id.
    removals: BTreeMap<String, u64>,
    /// Whether a `down` of everything has succeeded and no `up` was requested since.
    pub is_down: bool,
    /// The moment at which that `down` was reported.
    pub down_at: u64,
    /// The moment of the last `up` request.
    pub last_up: u64,
    /// The moment of the last request.
    pub last_asked: u64,
    pub violation: Option<String>,
    now: u64,
}

impl Model {
    /// The initial state: no site is up.
    pub fn new() -> Self {
        Self { is_down: true, ..Self::default() }
    }

    /// Advances to the next moment and returns it.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Records a broken law, unless one is recorded already.
    pub fn violate(&mut self, what: impl Into<String>) {
        if self.violation.is_none() {
            self.violation = Some(what.into());
        }
    }

    /// Records a write, and the number of the episode whose client sends it.
    pub fn sends(&mut self, slot: usize, name: &str, kind: WriteDestination, by: Option<u64>) {
        let sent = self.tick();
        let write = Write { kind, by, reached_at: None, generation: None, sent, acknowledged: None, dead: None };
        self.slots[slot].writes.insert(name.to_owned(), write);
    }

    pub fn reaches(&mut self, slot: usize, name: &str, generation: u64, now: Duration) {
        if let Some(write) = self.slots[slot].writes.get_mut(name) {
            write.generation = Some(generation);
            write.reached_at = Some(now);
        }
        self.check_lease(slot, generation, Reader::Anyone);
    }

    /// Checks that a generation which has answered does not belong to an episode that has ended. Operators may look at what
    /// an episode has left, but a locator does not continue beyond the end.
    fn check_lease(&mut self, slot: usize, generation: u64, reader: Reader) {
        let is_wrong = |episode: &ModelEpisode| match reader {
            Reader::Anyone | Reader::Episode(_) => episode.is_over,
            Reader::Locator { began, ended } => episode.ended_at.is_some_and(|at| began < at && at < ended),
        };
        let ended = self.episodes.lease_of(slot, generation).filter(|(_, episode)| is_wrong(episode));
        if let Some(number) = ended.map(|(number, _)| number) {
            self.violate(format!("episode {number} has ended, and generation {generation} of {} serves", shown(slot)));
        }
    }

    pub fn acknowledges(&mut self, slot: usize, name: &str) {
        let now = self.tick();
        if let Some(write) = self.slots[slot].writes.get_mut(name) {
            write.acknowledged = Some(now);
        }
    }

    /// Records a request and returns its moment.
    pub fn asks(&mut self, asked: ApiCall, site: Option<usize>, disturbances: u64, served: [bool; SITES]) -> u64 {
        let at = self.tick();
        match &asked {
            ApiCall::Up => {
                self.is_down = false;
                self.last_up = at;
            }
            ApiCall::Down => self.episodes.downs += 1,
            ApiCall::Remove(_) => self.episodes.removals += 1,
            ApiCall::Take(name) => {
                let site = site.unwrap_or_default();
                let lasting = |write: &&Write| write.kind != WriteDestination::Memory;
                let writes = &self.slots[site].writes;
                let alive = writes.iter().filter(|(_, write)| lasting(write) && write.dead.is_none());
                let mut may: BTreeSet<String> = alive.map(|(name, _)| name.clone()).collect();
                // The site may serve another snapshot.
                for other in self.named.values().filter(|other| other.site == site) {
                    may.extend(other.may.iter().cloned());
                }
                self.named.insert(name.clone(), Named { site, may, is_here: true, ..Named::default() });
            }
            _ => {}
        }
        self.last_asked = at;
        self.episodes.works += u64::from(is_work(&asked));
        let was_alone = self.pending.is_empty();
        self.pending.insert(at, Pending { asked, site, disturbances, served, was_alone, is_told: false });
        at
    }

    /// Records that the complete outcome of a request was reported.
    pub fn is_told(&mut self, asked: u64) {
        if let Some(pending) = self.pending.get_mut(&asked) {
            pending.is_told = true;
        }
    }

    /// Returns a reset of one site that was requested before this moment and whose end was not reported.
    pub fn works_since(&self, moment: u64) -> Option<&ApiCall> {
        let is_work = |asked: &ApiCall| matches!(asked, ApiCall::Reset | ApiCall::ResetTo(_) | ApiCall::ResetIfDirty);
        let before = self.pending.range(..moment).map(|(_, pending)| pending);
        let mut found = before.filter(|pending| pending.site.is_some() && !pending.is_told && is_work(&pending.asked));
        found.next().map(|pending| &pending.asked)
    }

    /// Records a successful reset.
    pub fn is_reset(&mut self, site: usize, asked: u64, how: &str) {
        for write in self.slots[site].writes.values_mut() {
            if write.dead.is_none() && write.acknowledged.is_some_and(|acknowledged| acknowledged < asked) {
                write.dead = Some(format!("{how}, which was asked for at {asked} and is done"));
            }
        }
    }

    /// Records that a snapshot was taken; `is_quiet` means that no other request concerned the site at that time.
    pub fn is_taken(&mut self, name: &str, id: &str, asked: u64, generation: Option<u64>, is_quiet: bool) {
        let Some(site) = self.named.get(name).map(|named| named.site) else { return };
        let writes = &self.slots[site].writes;
        let lasting = |write: &Write| write.kind != WriteDestination::Memory;
        let later: Vec<String> = writes
            .iter()
            .filter(|(_, write)| lasting(write) && write.sent > asked)
            .map(|(name, _)| name.clone())
            .collect();
        let held = |write: &Write| {
            let is_before = write.acknowledged.is_some_and(|acknowledged| acknowledged < asked);
            lasting(write) && is_before && write.dead.is_none() && write.generation == generation
        };
        let must: Vec<String> =
            writes.iter().filter(|(_, write)| is_quiet && held(write)).map(|(name, _)| name.clone()).collect();
        let is_unwanted = self.removals.get(id).is_some_and(|at| *at > asked)
            || self.pending.values().any(|other| other.asked == ApiCall::Remove(id.to_owned()));
        // If the same content is taken twice, there is one snapshot, under the later name.
        for other in self.named.values_mut().filter(|other| other.id.as_deref() == Some(id)) {
            other.is_promised = false;
        }
        if let Some(named) = self.named.get_mut(name) {
            named.id = Some(id.to_owned());
            named.may.extend(later);
            named.must = must.into_iter().collect();
            // A concurrent request to remove the same content may have been executed last.
            named.is_promised = !is_unwanted;
        }
    }

    /// Records a request to remove a snapshot, which is no longer promised from then on. Returns its names.
    pub fn unwants(&mut self, id: &str) -> Vec<String> {
        let now = self.tick();
        self.removals.insert(id.to_owned(), now);
        let meant = self.named.iter_mut().filter(|(_, named)| named.id.as_deref() == Some(id));
        meant.filter_map(|(name, named)| std::mem::take(&mut named.is_promised).then(|| name.clone())).collect()
    }

    /// Records that a slot has no row any more: it is gone, and its generations are counted from the start.
    pub fn is_forgotten(&mut self, slot: usize) {
        let slot = &mut self.slots[slot];
        for write in slot.writes.values_mut() {
            write.dead.get_or_insert_with(|| "the site went down".to_owned());
        }
        slot.newest = 0;
    }

    /// Whether a client has ever named a snapshot of the site.
    pub fn has_named(&self, site: usize) -> bool {
        self.named.values().any(|named| named.site == site)
    }

    /// Returns the snapshots that an id may stand for.
    fn meant<'a>(&'a self, site: usize, id: Option<&str>) -> Vec<&'a Named> {
        let of_site = self.named.values().filter(|named| named.site == site);
        match id {
            None => of_site.collect(),
            Some(id) => {
                let known: Vec<&Named> = of_site.clone().filter(|named| named.id.as_deref() == Some(id)).collect();
                if known.is_empty() { of_site.filter(|named| named.id.is_none()).collect() } else { known }
            }
        }
    }

    /// Records a page. `snapshot` is the served snapshot according to the daemon, if its report is about this
    /// generation. `is_baseline` tells whether that snapshot is known to be an unnamed baseline.
    pub fn sees(
        &mut self,
        (slot, generation): (usize, u64),
        snapshot: Option<&str>,
        is_baseline: bool,
        page: &str,
        reader: Reader,
    ) {
        let lines: BTreeSet<&str> = page.lines().collect();
        let at = format!("{}, generation {generation}", shown(slot));
        let mut wrong = None;
        if !lines.contains(SEED) {
            wrong = Some(format!("{at}: the page lacks {SEED}"));
        }
        // The numbers of a slot that was removed and made again begin anew.
        let newest = self.slots[slot].newest;
        if slot < SITES && generation < newest {
            wrong = Some(format!("{at}: it serves after {newest}"));
        }
        let meant = if is_baseline { Vec::new() } else { self.meant(SLOT_NUMBERS[slot].0, snapshot) };
        for line in lines.iter().filter(|line| **line != SEED) {
            let name = line.split_once('/').map_or(*line, |(_, rest)| rest).split('=').next().unwrap_or_default();
            let others = || self.slots.iter().find_map(|slot| slot.writes.get(name));
            let own = self.slots[slot].writes.get(name);
            let Some(write) = own.or_else(others) else {
                wrong = Some(format!("{at}: no client wrote {line}"));
                continue;
            };
            if meant.iter().any(|named| named.may.contains(name)) && write.kind != WriteDestination::Memory {
                continue;
            }
            if own.is_none() {
                wrong = Some(format!("{at}: {line} is readable, which was written to another slot"));
            } else if let Some(why) = &write.dead {
                wrong = Some(format!("{at}: {line} is readable after {why}"));
            } else if write.generation != Some(generation) {
                let other = write.generation;
                wrong = Some(format!("{at}: {line} is readable, which was written to generation {other:?}"));
            } else if let Some(number) = self.is_before(write, slot, reader) {
                wrong = Some(format!("{at}: episode {number} reads {line}, which was written before it began"));
            }
        }
        if let ([named], Some(id)) = (meant.as_slice(), snapshot)
            && named.id.as_deref() == Some(id)
            && let Some(missing) = named.must.iter().find(|name| !lines.iter().any(|line| line.contains(*name)))
        {
            wrong = Some(format!("{at}: {missing} is missing, which snapshot {id} holds"));
        }
        self.slots[slot].newest = newest.max(generation);
        if let Some(wrong) = wrong {
            self.violate(wrong);
        }
        self.check_lease(slot, generation, reader);
    }

    /// Returns the number of the episode that reads a write of someone else which is older than the episode. While an
    /// episode has the slot that people use, they reach it as well.
    fn is_before(&self, write: &Write, slot: usize, reader: Reader) -> Option<u64> {
        let Reader::Episode(number) = reader else { return None };
        let episode = self.episodes.known.get(&number)?;
        let is_later = slot < SITES && write.reached_at >= episode.active_at;
        (slot != SHARED && write.by != Some(number) && !is_later).then_some(number)
    }
}
