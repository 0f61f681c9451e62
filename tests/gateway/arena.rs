//! Episodes, sites and hosts as a daemon would know them, for tests of the episode proxy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use arenad_gateway::{
    EpisodeAccess, EpisodeRecorder, Gateway, Proxy, ProxyCredentials, ProxyDecision, ProxyDirectory, ProxyRefusal,
    ProxySite, Route,
};
use base64::Engine;

use super::support::*;

/// The knowledge of the daemon. The token of an episode is its id with `-token`.
#[derive(Default)]
pub struct TestArena {
    episodes: Mutex<BTreeMap<String, TestEpisode>>,
}

#[derive(Default)]
struct TestEpisode {
    access: EpisodeAccess,
    sites: Vec<(String, u16, ProxySite)>,
    externals: Vec<String>,
    refusal: Option<ProxyRefusal>,
}

impl TestArena {
    fn episodes(&self) -> MutexGuard<'_, BTreeMap<String, TestEpisode>> {
        self.episodes.lock().expect("no panic")
    }

    /// Starts an episode without sites.
    pub fn start(&self, id: &str) {
        assert!(self.episodes().insert(id.to_owned(), TestEpisode::default()).is_none(), "{id} exists");
    }

    /// Starts an episode without sites whose requests are recorded.
    pub fn start_recorded(&self, id: &str, recorder: Arc<EpisodeRecorder>) {
        let access = EpisodeAccess::recorded(Some(recorder));
        let episode = TestEpisode { access, ..TestEpisode::default() };
        assert!(self.episodes().insert(id.to_owned(), episode).is_none(), "{id} exists");
    }

    /// Makes a site reachable under addresses of the form `host:port`.
    pub fn add_site(&self, id: &str, addresses: &[&str], canonical: &str, route: &Route, generation: Option<u64>) {
        let mut episodes = self.episodes();
        let episode = episodes.get_mut(id).expect("an episode");
        let access = episode.access.clone();
        let site = ProxySite { route: route.clone(), canonical: canonical.to_owned(), generation, access, tls: None };
        for address in addresses {
            let (host, port) = address.rsplit_once(':').expect("a port");
            episode.sites.push((host.to_owned(), port.parse().expect("a port"), site.clone()));
        }
    }

    /// Allows a host outside of the arena.
    pub fn allow(&self, id: &str, host: &str) {
        self.episodes().get_mut(id).expect("an episode").externals.push(host.to_owned());
    }

    /// Refuses all further requests of an episode and cuts those under way.
    pub fn refuse(&self, id: &str, refusal: ProxyRefusal) {
        let access = {
            let mut episodes = self.episodes();
            let episode = episodes.get_mut(id).expect("an episode");
            episode.refusal = Some(refusal.clone());
            episode.access.clone()
        };
        access.revoke(refusal);
    }

    pub fn end(&self, id: &str) {
        self.refuse(id, ended());
    }
}

pub fn ended() -> ProxyRefusal {
    ProxyRefusal::Ended { reason: "it was released by its client".to_owned() }
}

impl ProxyDirectory for TestArena {
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision {
        let episodes = self.episodes();
        let Some(episode) = episodes.get(&credentials.episode) else {
            return ProxyDecision::Refused(ProxyRefusal::Credentials);
        };
        if credentials.token != format!("{}-token", credentials.episode) {
            return ProxyDecision::Refused(ProxyRefusal::Credentials);
        }
        if let Some(refusal) = &episode.refusal {
            return ProxyDecision::Refused(refusal.clone());
        }
        if let Some((_, _, site)) = episode.sites.iter().find(|(name, at, _)| name == host && *at == port) {
            return ProxyDecision::Site(site.clone());
        }
        if episode.externals.iter().any(|external| external == host) {
            return ProxyDecision::External(episode.access.clone());
        }
        let reachable = episode.sites.iter().map(|(name, _, _)| format!("http://{name}")).collect();
        ProxyDecision::Refused(ProxyRefusal::Outside { reachable })
    }
}

/// The header with the credentials of an episode.
pub fn authorization(id: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{id}-token"));
    format!("Proxy-Authorization: Basic {encoded}\r\n")
}

/// A gateway with a proxy; external hosts may have the address 127.0.0.1 and no other.
pub fn proxy() -> (Gateway, Proxy, Arc<TestArena>) {
    let gateway = gateway_with(|settings| {
        settings.may_be_external = |address| address == IpAddr::V4(Ipv4Addr::LOCALHOST);
    });
    let arena = Arc::new(TestArena::default());
    let proxy = gateway.open_proxy(loopback(), arena.clone()).expect("a free port");
    (gateway, proxy, arena)
}

/// Opens a route that serves the site.
pub fn route_to(gateway: &Gateway, site: &ScriptedSite, generation: u64) -> Route {
    let route = open(gateway);
    route.serve(target(site, generation));
    route
}

/// Opens a route that records and serves nothing yet.
pub fn open(gateway: &Gateway) -> Route {
    let (writes, record) = (arenad_gateway::WriteRules::default(), arenad_gateway::RecordingFilter::All);
    gateway.open(loopback(), hold_limits(), writes, record, "shop").expect("a free port")
}

impl RawClient {
    /// Sends a GET request of an episode through the proxy, and reads the answer.
    pub fn get_as(&mut self, id: &str, url: &str) -> std::io::Result<SentMessage> {
        self.send_as(id, "GET", url, "")?;
        self.answer()
    }

    /// Sends a request of an episode through the proxy. `rest` contains further headers, each with its end.
    pub fn send_as(&mut self, id: &str, method: &str, url: &str, rest: &str) -> std::io::Result<()> {
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        self.send(format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n{}{rest}\r\n", authorization(id)))
    }

    /// Opens a tunnel of an episode.
    pub fn connect_as(&mut self, id: &str, place: &str) -> std::io::Result<SentMessage> {
        self.send(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{}\r\n", authorization(id)))?;
        let mut message = self.head()?;
        if message.status() != 200 {
            read_body(&mut self.reader, &mut message, true)?;
        }
        Ok(message)
    }
}
