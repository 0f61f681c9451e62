//! The access of one episode's client, from the moment that its sites are ready until it is revoked.
//!
//! A revocation does for one client what a switch does for a route. Under the mutex of the access, it first publishes
//! the refusal and then visits every exchange of the client (`ExchangeLink::revoke`); `route` argues why no byte gets
//! through. A request that enters later is refused, because it enters under the same mutex. In contrast to a switch, no
//! request is held or sent again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::directory::ProxyRefusal;
use super::episode_recorder::EpisodeRecorder;
use super::link::ExchangeLink;
use arenad_seams::ordered_watch as watch;

/// The access of the client of one episode. Clones are handles to the same one.
///
/// It lasts from the moment that the client may use its sites until it is revoked, for good, because the episode
/// ends or is frozen. An episode that is unfrozen gets a new one.
#[derive(Clone)]
pub struct EpisodeAccess(Arc<SharedAccess>);

struct SharedAccess {
    register: Mutex<AccessRegister>,
    revoked: watch::Sender<bool>,
    recorder: Option<Arc<EpisodeRecorder>>,
}

#[derive(Default)]
struct AccessRegister {
    refusal: Option<ProxyRefusal>,
    exchanges: HashMap<u64, Arc<ExchangeLink>>,
    next_key: u64,
}

impl fmt::Debug for EpisodeAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpisodeAccess").field("refusal", &self.refusal()).finish_non_exhaustive()
    }
}

impl Default for EpisodeAccess {
    fn default() -> Self {
        Self::recorded(None)
    }
}

impl EpisodeAccess {
    /// Creates the access of a client whose requests are recorded by `recorder`.
    #[must_use]
    pub fn recorded(recorder: Option<Arc<EpisodeRecorder>>) -> Self {
        Self(Arc::new(SharedAccess { register: Mutex::default(), revoked: watch::Sender::new(false), recorder }))
    }

    pub(super) fn recorder(&self) -> Option<&Arc<EpisodeRecorder>> {
        self.0.recorder.as_ref()
    }

    // Every critical section leaves the register consistent at each step.
    fn register(&self) -> MutexGuard<'_, AccessRegister> {
        self.0.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Revokes the access; requests of the client are answered with `refusal` from now on. Only the first call has an
    /// effect.
    ///
    /// When this returns, no byte of a response reaches the client, and no byte of a request reaches a
    /// site. A request of which no response was forwarded is answered with `refusal`; otherwise the client's connection
    /// is reset. The call does not block.
    pub fn revoke(&self, refusal: ProxyRefusal) {
        let mut register = self.register();
        if register.refusal.is_some() {
            return;
        }
        register.refusal = Some(refusal);
        for exchange in register.exchanges.values() {
            exchange.revoke();
        }
        self.0.revoked.send_replace(true);
    }

    /// Returns the refusal with which the access was revoked, if it was.
    #[must_use]
    pub fn refusal(&self) -> Option<ProxyRefusal> {
        self.register().refusal.clone()
    }

    /// Registers an exchange, so that a revocation ends it.
    ///
    /// Errors: the access has been revoked.
    pub(super) fn enter(&self, exchange: Arc<ExchangeLink>) -> Result<AccessEntry, ProxyRefusal> {
        let mut register = self.register();
        if let Some(refusal) = &register.refusal {
            return Err(refusal.clone());
        }
        register.next_key += 1;
        let key = register.next_key;
        register.exchanges.insert(key, exchange);
        Ok(AccessEntry { access: self.clone(), key })
    }

    /// Waits until the access has been revoked.
    pub(super) async fn revoked(&self) {
        // Fails only if the access is dropped, which this handle prevents.
        let _ = self.0.revoked.subscribe().wait_for(|is_revoked| *is_revoked).await;
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An exchange in the register of an access; dropping it removes the entry.
#[derive(Debug)]
pub(super) struct AccessEntry {
    access: EpisodeAccess,
    key: u64,
}

impl Drop for AccessEntry {
    fn drop(&mut self) {
        // Removed under the mutex and dropped after it, because dropping the last owner closes the connection.
        let removed = self.access.register().exchanges.remove(&self.key);
        drop(removed);
    }
}
