//! Requests for episodes, and the reasons for which they are refused at once instead of waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, Owner, RecordBeginningId};
use super::life::EpisodeTerms;
use crate::ids::{ReplayName, SiteId, is_snapshot_name};
use crate::site::RecordedRequests;
use crate::snapshot::SnapshotId;

/// The maximum number of sites of one episode.
pub const MOST_SITES: usize = 32;

/// The state from which an episode starts on a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StartPoint {
    /// The baseline of the site.
    #[default]
    Baseline,
    /// The snapshot of that name.
    Snapshot(String),
    /// The state that the site had in another episode when it was copied.
    Fork {
        /// The episode whose state was copied. It may have ended since.
        parent: EpisodeId,
        /// The snapshot that holds the copy. It has no name, and is removed when nothing needs it any more.
        copy: SnapshotId,
    },
}

impl StartPoint {
    /// Whether a repetition of a request asks for the same. A repeated fork gets the copy of the first one.
    fn is_repeated_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fork { parent, .. }, Self::Fork { parent: other, .. }) => parent == other,
            _ => self == other,
        }
    }

    /// Returns the copy that the site starts from, if it starts from one.
    pub fn copy(&self) -> Option<&SnapshotId> {
        match self {
            Self::Fork { copy, .. } => Some(copy),
            Self::Baseline | Self::Snapshot(_) => None,
        }
    }
}

/// One site that an episode needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteWant {
    /// The site of which a slot is needed.
    pub site: SiteId,
    /// The number of the slot. `None` means any slot.
    pub slot: Option<u32>,
    /// The state from which the episode starts.
    pub start: StartPoint,
}

/// A request for an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeRequest {
    /// The owner for whose quota the episode counts.
    pub owner: Owner,
    /// The key that repetitions of the request have in common.
    pub key: Option<IdempotencyKey>,
    /// The sites, each once.
    pub sites: Vec<SiteWant>,
    /// The time to live and the longest wait.
    pub terms: EpisodeTerms,
    /// The labels by which the client finds the episode.
    pub labels: EpisodeLabels,
    /// The requests that are recorded, until long after the end of the episode.
    pub record: RecordedRequests,
    /// The requests of the episode that this one was forked from, with which its record begins. `None` unless the episode
    /// is a recorded fork.
    pub beginning: Option<RecordBeginningId>,
    /// The replays whose hosts the episode reaches, in the order in which they are asked.
    pub replays: Vec<ReplayName>,
}

impl EpisodeRequest {
    /// Whether a repetition with the same key asks for the same episode. A repeated fork gets the beginning of the first one.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&SiteWant, &SiteWant)| {
            (&one.site, one.slot) == (&other.site, other.slot) && one.start.is_repeated_by(&other.start)
        };
        self.sites.len() == other.sites.len()
            && self.sites.iter().zip(&other.sites).all(is_same)
            && self.terms == other.terms
            && self.record == other.record
            && self.replays == other.replays
    }
}

/// How many episodes can use a site at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteCapacity {
    /// The site is only read, so all episodes share it and it takes no slot.
    Shared,
    /// One episode at a time has each slot.
    Slots {
        /// The largest number of a slot.
        max: u32,
        /// The number of slots, from 1, that only requests get which name them. They serve people at the public ports
        /// at other times.
        by_name_only: u32,
    },
}

/// The reason why a request for an episode is refused at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskRefusal {
    /// There is nothing to have.
    #[error("an episode needs at least one site")]
    NoSites,
    /// The request is larger than any environment.
    #[error("an episode has at most {MOST_SITES} sites")]
    TooManySites,
    /// The sites belong to several environments.
    #[error("the sites of an episode belong to one environment, unlike {0} and {1}")]
    SeveralEnvironments(SiteId, SiteId),
    /// A site is named twice.
    #[error("{0} is listed twice; an episode has one slot of each site")]
    SiteTwice(SiteId),
    /// The site is not up.
    #[error("{0} is not available for episodes")]
    UnknownSite(SiteId),
    /// The site can never have such a slot.
    #[error("{site} has no slot {slot}; its slots are 1 to {max}")]
    NoSuchSlot {
        /// The site of the request.
        site: SiteId,
        /// The number that was asked for.
        slot: u32,
        /// The largest number of a slot.
        max: u32,
    },
    /// The site has no slots for requests that name none.
    #[error("all slots of {0} are given only to requests that name them")]
    OnlyByName(SiteId),
    /// A site that all episodes share was asked for in a way that only slots allow.
    #[error("{0} is shared by all episodes, so it has neither slots nor starting points")]
    Shared(SiteId),
    /// The name of a snapshot breaks the rule for such names.
    #[error("`{0}` is not the name of a snapshot")]
    InvalidSnapshot(String),
    /// The episode would live longer than is allowed.
    #[error("the time to live is at most {} s on this daemon", most.as_secs())]
    TtlTooLong {
        /// The longest time that is allowed.
        most: Duration,
    },
    /// The owner may not have any episodes.
    #[error("the quota of {0} allows no episodes")]
    NoQuota(Owner),
    /// Another request has the same key.
    #[error("the idempotency key belongs to {0}, which was requested with other sites, times or recording")]
    KeyReused(EpisodeId),
    /// The id that was made for the episode is taken.
    #[error("the id {0} is taken")]
    IdTaken(EpisodeId),
    /// As many requests wait as are allowed to.
    #[error("{waiting} requests are waiting, which is the limit; try again in {} s", retry_after.as_secs())]
    QueueFull {
        /// The number of requests that wait.
        waiting: usize,
        /// The time after which another attempt makes sense, in whole seconds.
        retry_after: Duration,
    },
    /// As many requests of the owner wait as are allowed to.
    #[error("{waiting} requests of {owner} are waiting, which is the limit; try again in {} s", retry_after.as_secs())]
    OwnerQueueFull {
        /// The owner of the requests.
        owner: Owner,
        /// The number of requests that wait.
        waiting: usize,
        /// The time after which another attempt makes sense, in whole seconds.
        retry_after: Duration,
    },
}

/// Checks a request against the capacity of the sites, so that no request waits for something that never comes.
///
/// Errors: all variants but those about quotas, times, keys, ids and the queue.
pub fn check(request: &EpisodeRequest, capacities: &BTreeMap<SiteId, SiteCapacity>) -> Result<(), AskRefusal> {
    let first = request.sites.first().ok_or(AskRefusal::NoSites)?;
    if request.sites.len() > MOST_SITES {
        return Err(AskRefusal::TooManySites);
    }
    let mut seen = BTreeSet::new();
    for SiteWant { site, slot, start } in &request.sites {
        if site.environment != first.site.environment {
            return Err(AskRefusal::SeveralEnvironments(first.site.clone(), site.clone()));
        }
        if !seen.insert(site) {
            return Err(AskRefusal::SiteTwice(site.clone()));
        }
        if let StartPoint::Snapshot(name) = start
            && !is_snapshot_name(name)
        {
            return Err(AskRefusal::InvalidSnapshot(name.clone()));
        }
        match (capacities.get(site), slot) {
            (None, _) => return Err(AskRefusal::UnknownSite(site.clone())),
            (Some(SiteCapacity::Shared), None) if *start == StartPoint::Baseline => {}
            (Some(SiteCapacity::Shared), _) => return Err(AskRefusal::Shared(site.clone())),
            (Some(SiteCapacity::Slots { max, .. }), Some(slot)) if *slot == 0 || slot > max => {
                return Err(AskRefusal::NoSuchSlot { site: site.clone(), slot: *slot, max: *max });
            }
            (Some(SiteCapacity::Slots { max, by_name_only }), None) if by_name_only >= max => {
                return Err(AskRefusal::OnlyByName(site.clone()));
            }
            (Some(SiteCapacity::Slots { .. }), _) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{EnvironmentName, SiteName};

    fn site(environment: &str, name: &str) -> SiteId {
        SiteId {
            environment: EnvironmentName::parse(environment).expect("valid"),
            site: SiteName::parse(name).expect("valid"),
        }
    }

    fn want(name: &str) -> SiteWant {
        SiteWant { site: site("mini", name), slot: None, start: StartPoint::Baseline }
    }

    fn checked(sites: Vec<SiteWant>) -> Result<(), AskRefusal> {
        let slots = |max, by_name_only| SiteCapacity::Slots { max, by_name_only };
        let capacities = BTreeMap::from([
            (site("mini", "shop"), slots(3, 1)),
            (site("mini", "forge"), slots(1, 1)),
            (site("mini", "wiki"), SiteCapacity::Shared),
            (site("other", "shop"), slots(3, 1)),
        ]);
        let terms = EpisodeTerms::new(Duration::from_secs(60), Duration::ZERO).expect("valid");
        let owner = Owner::parse("ann").expect("valid");
        let (labels, record) = (EpisodeLabels::default(), RecordedRequests::Nothing);
        check(
            &EpisodeRequest { owner, key: None, sites, terms, labels, record, beginning: None, replays: Vec::new() },
            &capacities,
        )
    }

    #[test]
    fn requests_for_available_sites_may_wait() {
        let named = SiteWant { slot: Some(1), ..want("forge") };
        let from = SiteWant { start: StartPoint::Snapshot("cart-full".to_owned()), ..want("shop") };
        assert_eq!(checked(vec![from, named, want("wiki")]), Ok(()));
    }

    #[test]
    fn a_repeated_fork_asks_for_the_same_whatever_copy_it_brings() {
        let fork = |parent, copy: &str| StartPoint::Fork {
            parent: EpisodeId::from_random([parent; 10]),
            copy: SnapshotId::from(copy.to_owned()),
        };
        let terms = EpisodeTerms::new(Duration::from_secs(60), Duration::ZERO).expect("valid");
        let request = |start| EpisodeRequest {
            owner: Owner::parse("ann").expect("valid"),
            key: None,
            sites: vec![SiteWant { start, ..want("shop") }],
            terms,
            labels: EpisodeLabels::default(),
            record: RecordedRequests::Nothing,
            beginning: None,
            replays: Vec::new(),
        };
        let first = request(fork(1, "a"));
        assert!(first.is_repeated_by(&request(fork(1, "b"))));
        let beginning = Some(RecordBeginningId::from_random([1; 8]));
        assert!(first.is_repeated_by(&EpisodeRequest { beginning, ..first.clone() }));
        assert!(!first.is_repeated_by(&request(fork(2, "a"))), "the fork of another episode");
        assert!(!first.is_repeated_by(&request(StartPoint::Baseline)));
        assert!(!first.is_repeated_by(&EpisodeRequest { sites: Vec::new(), ..first.clone() }));
    }

    #[test]
    fn requests_for_anything_that_never_comes_are_refused() {
        assert_eq!(checked(Vec::new()), Err(AskRefusal::NoSites));
        assert_eq!(checked(vec![want("shop"); MOST_SITES + 1]), Err(AskRefusal::TooManySites));
        assert_eq!(checked(vec![want("shop"), want("shop")]), Err(AskRefusal::SiteTwice(site("mini", "shop"))));
        assert_eq!(checked(vec![want("map")]), Err(AskRefusal::UnknownSite(site("mini", "map"))));
        let foreign = SiteWant { site: site("other", "shop"), ..want("shop") };
        let several = AskRefusal::SeveralEnvironments(site("mini", "shop"), site("other", "shop"));
        assert_eq!(checked(vec![want("shop"), foreign]), Err(several));
        for slot in [0, 4] {
            let refusal = AskRefusal::NoSuchSlot { site: site("mini", "shop"), slot, max: 3 };
            assert_eq!(checked(vec![SiteWant { slot: Some(slot), ..want("shop") }]), Err(refusal));
        }
        assert_eq!(checked(vec![want("forge")]), Err(AskRefusal::OnlyByName(site("mini", "forge"))));
        let shared = Err(AskRefusal::Shared(site("mini", "wiki")));
        assert_eq!(checked(vec![SiteWant { slot: Some(1), ..want("wiki") }]), shared);
        let from = StartPoint::Snapshot("a".to_owned());
        assert_eq!(checked(vec![SiteWant { start: from, ..want("wiki") }]), shared);
        let from = StartPoint::Snapshot("../a".to_owned());
        assert_eq!(
            checked(vec![SiteWant { start: from, ..want("shop") }]),
            Err(AskRefusal::InvalidSnapshot("../a".to_owned()))
        );
    }
}
