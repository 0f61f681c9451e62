//! The access of the clients of live episodes, and why no request outlives it.
//!
//! An episode's end is published before its access is revoked and removed from the table. A request takes the access out
//! of the table, which makes one if there is none, before it asks the fence for the last time:
//!
//! - If the fence still admits the request, the end had not been published, so the access is still in the table when the
//!   end revokes it, and the request ends with it.
//! - If the end had been published, the fence refuses the request.
//!
//! A freeze works in the same way, and an episode that goes on gets a new access with its next request. Requests to the
//! own ports of slots have the same access (`slot_ports`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::records::EpisodeRecords;
use arenad_gateway::{EpisodeAccess, ProxyRefusal};
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::ids::EpisodeId;

/// The `Retry-After` of refusals that end soon.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Returns the refusal of requests of an episode that has ended.
pub(crate) fn ended(ending: &EpisodeEnding) -> ProxyRefusal {
    ProxyRefusal::Ended { reason: ending.to_string() }
}

/// Returns the refusal of requests of an episode that is frozen.
pub(crate) fn frozen() -> ProxyRefusal {
    unavailable("it is frozen, for example while it is evaluated")
}

pub(super) fn unavailable(reason: impl Into<String>) -> ProxyRefusal {
    ProxyRefusal::Unavailable { reason: reason.into(), retry_after: RETRY_AFTER }
}

/// The access of the clients of live episodes.
pub(crate) struct ProxyAccess {
    table: Mutex<HashMap<EpisodeId, EpisodeAccess>>,
    records: Arc<EpisodeRecords>,
}

impl ProxyAccess {
    /// Creates the table for clients whose requests these records contain.
    pub(crate) fn new(records: Arc<EpisodeRecords>) -> Self {
        Self { table: Mutex::default(), records }
    }

    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn table(&self) -> MutexGuard<'_, HashMap<EpisodeId, EpisodeAccess>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the access of an episode whose client the fence admits. `check` asks the fence, and is called twice, as the
    /// module comment argues.
    pub(crate) fn admitted(
        &self,
        episode: &EpisodeId,
        check: impl Fn() -> Result<(), ProxyRefusal>,
    ) -> Result<EpisodeAccess, ProxyRefusal> {
        // A stranger gets no access, not even one that is never used.
        check()?;
        let access = self.of(episode);
        if let Err(refusal) = check() {
            if let ProxyRefusal::Ended { .. } = &refusal {
                self.revoke(episode, refusal.clone());
            }
            return Err(refusal);
        }
        Ok(access)
    }

    fn of(&self, episode: &EpisodeId) -> EpisodeAccess {
        let mut table = self.table();
        if let Some(access) = table.get(episode) {
            return access.clone();
        }
        // The record begins before the fence admits the first client, and ends after the access was revoked.
        let access = EpisodeAccess::recorded(self.records.recorder(episode));
        table.entry(episode.clone()).or_insert(access).clone()
    }

    /// Revokes the access of an episode, whose requests the fence refuses by now. Requests under way are answered with
    /// the refusal, or their connections are reset.
    pub(crate) fn revoke(&self, episode: &EpisodeId, refusal: ProxyRefusal) {
        let access = self.table().remove(episode);
        if let Some(access) = access {
            access.revoke(refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::episode::ending::ReleaseCause;

    #[test]
    fn an_episode_has_one_access_until_it_is_revoked() {
        let records = EpisodeRecords::new(
            "records".into(),
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
        );
        let access = ProxyAccess::new(Arc::new(records));
        let (one, other) = (EpisodeId::from_random([1; 10]), EpisodeId::from_random([2; 10]));
        let before = access.of(&one);
        let other_access = access.of(&other);
        access.revoke(&one, frozen());
        assert_eq!(before.refusal(), Some(frozen()));
        assert_eq!(access.of(&one).refusal(), None, "an episode that goes on gets a new access");
        let ending = EpisodeEnding::Released(ReleaseCause::Client);
        access.revoke(&one, ended(&ending));
        assert_eq!(before.refusal(), Some(frozen()), "the first revocation counts");
        assert_eq!(other_access.refusal(), None);
        assert_eq!(access.table().len(), 1, "an episode that ended leaves nothing");
    }
}
