//! The reference: what was written where, what was asked for, and what must hold of it.
//!
//! It knows nothing of how arenad works. A write belongs to the generation that took it, and is seen in no other, except through a
//! named snapshot that may hold it; a reset that reported done makes everything unreadable that was acknowledged before it was
//! asked for.

use std::collections::{BTreeMap, BTreeSet};

use crate::schedule::{Kind, SITES};
use crate::world::{NAMES, SEED};

/// One write.
#[derive(Debug, Clone)]
pub struct Write {
    pub kind: Kind,
    /// The generation that took it; none before it has reached one.
    pub generation: Option<u64>,
    pub sent: u64,
    pub acknowledged: Option<u64>,
    /// Why it must not be seen any more.
    pub dead: Option<String>,
}

/// A snapshot that someone named.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub id: Option<String>,
    pub site: usize,
    /// What it holds for certain.
    pub must: BTreeSet<String>,
    /// What it may hold.
    pub may: BTreeSet<String>,
    /// Taking it was reported done, and nobody has removed it.
    pub is_promised: bool,
    /// On the engine that was there first.
    pub is_here: bool,
}

/// What was asked of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
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
    pub asked: Asked,
    /// None: all sites.
    pub site: Option<usize>,
    /// What had gone wrong by then.
    pub disturbances: u64,
    /// The sites that served then.
    pub served: [bool; SITES],
    /// Whether nothing else had been asked for that was not answered.
    pub was_alone: bool,
    /// Whether its end was told, and only a look at what it left is still under way.
    pub is_told: bool,
}

/// One site.
#[derive(Debug, Default)]
pub struct SiteModel {
    pub writes: BTreeMap<String, Write>,
    /// The newest generation that was seen.
    pub newest: u64,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Model {
    pub sites: [SiteModel; SITES],
    pub named: BTreeMap<String, Named>,
    pub pending: BTreeMap<u64, Pending>,
    /// When removing a snapshot was last asked for or answered, by its id.
    removals: BTreeMap<String, u64>,
    /// Whether a `down` of everything has reported success, and nobody has asked for anything to come up since.
    pub is_down: bool,
    /// The moment at which that `down` was reported.
    pub down_at: u64,
    /// When anything was last asked to come up.
    pub last_up: u64,
    /// When anything was last asked for.
    pub last_asked: u64,
    pub violation: Option<String>,
    now: u64,
}

impl Model {
    /// Nothing is up.
    pub fn new() -> Self {
        Self { is_down: true, ..Self::default() }
    }

    /// The next moment.
    pub fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Notes the first law that was broken.
    pub fn violate(&mut self, what: impl Into<String>) {
        if self.violation.is_none() {
            self.violation = Some(what.into());
        }
    }

    pub fn sends(&mut self, site: usize, name: &str, kind: Kind) {
        let sent = self.tick();
        let write = Write { kind, generation: None, sent, acknowledged: None, dead: None };
        self.sites[site].writes.insert(name.to_owned(), write);
    }

    pub fn reaches(&mut self, site: usize, name: &str, generation: u64) {
        if let Some(write) = self.sites[site].writes.get_mut(name) {
            write.generation = Some(generation);
        }
    }

    pub fn acknowledges(&mut self, site: usize, name: &str) {
        let now = self.tick();
        if let Some(write) = self.sites[site].writes.get_mut(name) {
            write.acknowledged = Some(now);
        }
    }

    /// Something is asked for.
    pub fn asks(&mut self, asked: Asked, site: Option<usize>, disturbances: u64, served: [bool; SITES]) -> u64 {
        let at = self.tick();
        match &asked {
            Asked::Up => {
                self.is_down = false;
                self.last_up = at;
            }
            Asked::Take(name) => {
                let site = site.unwrap_or_default();
                let lasting = |write: &&Write| write.kind != Kind::Memory;
                let writes = &self.sites[site].writes;
                let alive = writes.iter().filter(|(_, write)| lasting(write) && write.dead.is_none());
                let mut may: BTreeSet<String> = alive.map(|(name, _)| name.clone()).collect();
                // What serves may be another snapshot.
                for other in self.named.values().filter(|other| other.site == site) {
                    may.extend(other.may.iter().cloned());
                }
                self.named.insert(name.clone(), Named { site, may, is_here: true, ..Named::default() });
            }
            _ => {}
        }
        self.last_asked = at;
        let was_alone = self.pending.is_empty();
        self.pending.insert(at, Pending { asked, site, disturbances, served, was_alone, is_told: false });
        at
    }

    /// Everything that was to come of a request has been told.
    pub fn is_told(&mut self, asked: u64) {
        if let Some(pending) = self.pending.get_mut(&asked) {
            pending.is_told = true;
        }
    }

    /// What works on one site, was asked for before a moment and has not been told to be over.
    pub fn works_since(&self, moment: u64) -> Option<&Asked> {
        let is_work = |asked: &Asked| matches!(asked, Asked::Reset | Asked::ResetTo(_) | Asked::ResetIfDirty);
        let before = self.pending.range(..moment).map(|(_, pending)| pending);
        let mut found = before.filter(|pending| pending.site.is_some() && !pending.is_told && is_work(&pending.asked));
        found.next().map(|pending| &pending.asked)
    }

    /// A reset was reported done.
    pub fn is_reset(&mut self, site: usize, asked: u64, how: &str) {
        for write in self.sites[site].writes.values_mut() {
            if write.dead.is_none() && write.acknowledged.is_some_and(|acknowledged| acknowledged < asked) {
                write.dead = Some(format!("{how}, which was asked for at {asked} and is done"));
            }
        }
    }

    /// A snapshot was reported taken; `is_quiet`: nothing else was going on with the site.
    pub fn is_taken(&mut self, name: &str, id: &str, asked: u64, generation: Option<u64>, is_quiet: bool) {
        let Some(site) = self.named.get(name).map(|named| named.site) else { return };
        let writes = &self.sites[site].writes;
        let lasting = |write: &Write| write.kind != Kind::Memory;
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
            || self.pending.values().any(|other| other.asked == Asked::Remove(id.to_owned()));
        // The same content taken twice is one snapshot, under the later name.
        for other in self.named.values_mut().filter(|other| other.id.as_deref() == Some(id)) {
            other.is_promised = false;
        }
        if let Some(named) = self.named.get_mut(name) {
            named.id = Some(id.to_owned());
            named.may.extend(later);
            named.must = must.into_iter().collect();
            // Somebody who wanted the same content gone meanwhile may have had the last word.
            named.is_promised = !is_unwanted;
        }
    }

    /// A snapshot was asked to go; nobody promises it any more. Returns the names that it had.
    pub fn unwants(&mut self, id: &str) -> Vec<String> {
        let now = self.tick();
        self.removals.insert(id.to_owned(), now);
        let meant = self.named.iter_mut().filter(|(_, named)| named.id.as_deref() == Some(id));
        meant.filter_map(|(name, named)| std::mem::take(&mut named.is_promised).then(|| name.clone())).collect()
    }

    /// A site has no row any more: it is gone, and its generations are counted anew.
    pub fn is_forgotten(&mut self, site: usize) {
        let site = &mut self.sites[site];
        for write in site.writes.values_mut() {
            write.dead.get_or_insert_with(|| "the site went down".to_owned());
        }
        site.newest = 0;
    }

    /// Whether anybody has ever named a snapshot of a site.
    pub fn has_named(&self, site: usize) -> bool {
        self.named.values().any(|named| named.site == site)
    }

    /// The names of the snapshots that an id may stand for.
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

    /// A page was read: `snapshot` is what serves by the daemon's own account, if that is of this generation; `is_baseline`
    /// whether that is known to be no snapshot of anybody's.
    pub fn sees(&mut self, site: usize, generation: u64, snapshot: Option<&str>, is_baseline: bool, page: &str) {
        let lines: BTreeSet<&str> = page.lines().collect();
        let shown = NAMES[site];
        let mut wrong = None;
        if !lines.contains(SEED) {
            wrong = Some(format!("{shown}, generation {generation}: the page lacks {SEED}"));
        }
        if generation < self.sites[site].newest {
            let newest = self.sites[site].newest;
            wrong = Some(format!("{shown}: generation {generation} serves after {newest}"));
        }
        let meant = if is_baseline { Vec::new() } else { self.meant(site, snapshot) };
        for line in lines.iter().filter(|line| **line != SEED) {
            let name = line.split_once('/').map_or(*line, |(_, rest)| rest).split('=').next().unwrap_or_default();
            let Some(write) = self.sites[site].writes.get(name) else {
                wrong = Some(format!("{shown}: nobody wrote {line}"));
                continue;
            };
            if meant.iter().any(|named| named.may.contains(name)) && write.kind != Kind::Memory {
                continue;
            }
            if let Some(why) = &write.dead {
                wrong = Some(format!("{shown}, generation {generation}: {line} is readable after {why}"));
            } else if write.generation != Some(generation) {
                wrong = Some(format!(
                    "{shown}, generation {generation}: {line} is readable, which was written to generation {:?}",
                    write.generation
                ));
            }
        }
        if let ([named], Some(id)) = (meant.as_slice(), snapshot)
            && named.id.as_deref() == Some(id)
            && let Some(missing) = named.must.iter().find(|name| !lines.iter().any(|line| line.contains(*name)))
        {
            wrong = Some(format!("{shown}, generation {generation}: {missing} is missing, which snapshot {id} holds"));
        }
        self.sites[site].newest = self.sites[site].newest.max(generation);
        if let Some(wrong) = wrong {
            self.violate(wrong);
        }
    }
}
