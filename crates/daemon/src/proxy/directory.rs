//! Where a request to the episode proxy goes.

use std::sync::Arc;

use http::Method;

use super::access::{ProxyAccess, ended, frozen, unavailable};
use crate::environments::EnvironmentRegistry;
use crate::replays::{self, LoadedReplay, ReplayRegistry};
use arenad_episodes::{EpisodeHandle, EpisodeToken, EpisodeView};
use arenad_gateway::{ProxyCredentials, ProxyDecision, ProxyDirectory, ProxyRefusal, ProxySite};
use arenad_model::episode::fence::{FenceDecision, TokenHash};
use arenad_model::episode::ids::EpisodeId;
use arenad_model::ids::SiteName;
use arenad_model::instance::InstanceId;
use arenad_model::proxy_address::{allows_egress, canonical, is_of_site, own_url};
use arenad_model::site::{Environment, Site};

/// Knows the episodes, their sites and their environments.
pub struct EpisodeDirectory {
    environments: Arc<EnvironmentRegistry>,
    episodes: EpisodeHandle,
    access: Arc<ProxyAccess>,
    /// Whether the port on which a request arrives stands for the episode's token.
    trusts_port: bool,
    /// The replays; `None` for daemons without them.
    replays: Option<Arc<ReplayRegistry>>,
}

/// The place to which an address leads in an environment, for an episode.
#[derive(Debug, PartialEq, Eq)]
enum ArenaPlace {
    /// A site of the episode, with the address that it was made for.
    Site { name: SiteName, canonical: String },
    /// A host outside of the arena that the environment allows.
    External,
    /// None; the sites of the episode have these addresses.
    Nowhere { reachable: Vec<String> },
}

impl EpisodeDirectory {
    /// Returns the directory of the episodes and environments of one daemon.
    pub fn new(environments: Arc<EnvironmentRegistry>, episodes: EpisodeHandle) -> Self {
        let access = environments.proxy_access().clone();
        Self { environments, episodes, access, trusts_port: false, replays: None }
    }

    /// Returns the directory for ports that one client of an episode has for itself, and on which no token is sent.
    pub fn of_own_ports(environments: Arc<EnvironmentRegistry>, episodes: EpisodeHandle) -> Self {
        Self { trusts_port: true, ..Self::new(environments, episodes) }
    }

    /// Returns the directory with replays, which are reached by episodes that name them and by their own credentials.
    #[must_use]
    pub fn with_replays(self, replays: Arc<ReplayRegistry>) -> Self {
        Self { replays: Some(replays), ..self }
    }

    /// Returns the replays of an episode that have not been removed.
    fn replays_of(&self, view: &EpisodeView) -> Vec<Arc<LoadedReplay>> {
        let named = view.request.replays.iter();
        named.filter_map(|name| self.replays.as_ref()?.get(name).ok()).collect()
    }

    fn admit(&self, id: &EpisodeId, token: &TokenHash) -> FenceDecision {
        match self.trusts_port {
            true => self.episodes.admit_lease(id),
            false => self.episodes.admit_client(id, token),
        }
    }

    fn decide(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> Result<ProxyDecision, ProxyRefusal> {
        if let (Some(known), true) = (&self.replays, credentials.episode.starts_with(replays::USER)) {
            return known.resolve(&credentials.episode, &credentials.token, host, port);
        }
        let id: EpisodeId = credentials.episode.parse().map_err(|_| ProxyRefusal::Credentials)?;
        let token = EpisodeToken::presented(&credentials.token).hash();
        let access = self.access.admitted(&id, || admitted(&self.admit(&id, &token)))?;
        let view = self.episodes.get(&id).map_err(|_| ProxyRefusal::Credentials)?;
        let Some(first) = view.request.sites.first() else {
            return Err(ProxyRefusal::Outside { reachable: Vec::new() });
        };
        let place = self.environments.with_definition(first.site.environment.as_str(), |definition| {
            place(definition, &sites(definition, &view), host, port)
        });
        let place = place.ok_or_else(|| unavailable("its environment is not up yet"))?;
        if !matches!(place, ArenaPlace::Site { .. })
            && let Some(site) = self.replays_of(&view).iter().find_map(|replay| replay.site(host, port, &access))
        {
            return Ok(ProxyDecision::Site(site));
        }
        match place {
            ArenaPlace::Site { name, canonical } => {
                let (slot, generation) = slot(&view, &name)?;
                let instance = self.environments.slot(&slot);
                let instance = instance.ok_or_else(|| unavailable(format!("{name} is not up yet")))?;
                Ok(ProxyDecision::Site(ProxySite { route: instance.route(), canonical, generation, access, tls: None }))
            }
            ArenaPlace::External => Ok(ProxyDecision::External(access)),
            ArenaPlace::Nowhere { mut reachable } => {
                for replay in self.replays_of(&view) {
                    reachable.extend(replay.addresses());
                }
                Err(ProxyRefusal::Outside { reachable })
            }
        }
    }
}

impl ProxyDirectory for EpisodeDirectory {
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision {
        self.decide(credentials, host, port).unwrap_or_else(ProxyDecision::Refused)
    }

    fn refused_outside(&self, credentials: &ProxyCredentials, method: &Method, host: &str, port: u16) {
        let Some(known) = &self.replays else { return };
        let of_episode = || {
            let view = self.episodes.get(&credentials.episode.parse().ok()?).ok()?;
            Some(self.replays_of(&view))
        };
        let replays = match known.of_user(&credentials.episode) {
            Some(replay) => vec![replay],
            None => of_episode().unwrap_or_default(),
        };
        for replay in replays {
            replay.forbid(method.as_str(), host, port);
        }
    }
}

/// Returns the refusal of a request that the fence does not admit as an error.
pub(crate) fn admitted(decision: &FenceDecision) -> Result<(), ProxyRefusal> {
    match decision {
        FenceDecision::Admitted => Ok(()),
        FenceDecision::Unknown | FenceDecision::WrongToken => Err(ProxyRefusal::Credentials),
        FenceDecision::NotReady => Err(unavailable("it does not have its sites")),
        FenceDecision::Frozen => Err(frozen()),
        FenceDecision::Ended(ending) => Err(ended(ending)),
    }
}

/// Returns the sites of an episode.
fn sites<'a>(definition: &'a Environment, view: &EpisodeView) -> Vec<&'a Site> {
    let is_its = |site: &&Site| view.request.sites.iter().any(|want| want.site.site == site.name);
    definition.sites.iter().filter(is_its).collect()
}

fn place(definition: &Environment, sites: &[&Site], host: &str, port: u16) -> ArenaPlace {
    if let Some(site) = sites.iter().find(|site| is_of_site(site, &definition.host, host, port)) {
        return ArenaPlace::Site { name: site.name.clone(), canonical: canonical(site, &definition.host) };
    }
    // A rule for egress must not lead to a site of the environment that the episode does not have.
    let is_other_site = definition.sites.iter().any(|site| is_of_site(site, &definition.host, host, port));
    if !is_other_site && allows_egress(definition, host, port) {
        return ArenaPlace::External;
    }
    ArenaPlace::Nowhere { reachable: sites.iter().map(|site| own_url(site)).collect() }
}

/// Returns the instance of a site, and the only generation that may answer. A site that all episodes share is served by
/// its first instance, whatever its generation.
fn slot(view: &EpisodeView, name: &SiteName) -> Result<(InstanceId, Option<u64>), ProxyRefusal> {
    let lost = || unavailable(format!("it has lost {name}"));
    match view.slots.iter().find(|slot| slot.instance.site == *name) {
        Some(slot) => Ok((slot.instance.clone(), Some(slot.generation.ok_or_else(lost)?))),
        None => {
            let want = view.request.sites.iter().find(|want| want.site.site == *name).ok_or_else(lost)?;
            Ok((InstanceId::serving(&want.site.environment, name), None))
        }
    }
}
