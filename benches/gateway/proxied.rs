//! Compares the episode proxy with direct access, with nginx as a reverse proxy, and with tinyproxy, a forward proxy.
//!
//! Clients of a forward proxy name the site in each request and send their credentials; nginx needs neither, so it is
//! the stricter measure.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arenad_gateway::{
    EpisodeAccess, Gateway, ProxyCredentials, ProxyDecision, ProxyDirectory, ProxyRefusal, ProxySite, Route,
};
use base64::Engine;

use crate::servers::{free_address, tinyproxy};
use crate::wrk::{Way, in_turns, median};
use crate::{BenchPlan, CONNECTIONS, SIZES};

/// The minimum ratio of the proxy's throughput to nginx's, and the maximum addition to the median latency in
/// microseconds.
const LEAST_RATIO: f64 = 0.6;
const MOST_ADDED: f64 = 700.0;

const EPISODE: &str = "episode";
const TOKEN: &str = "token";
const HOST: &str = "shop.test";

/// A directory with one episode that has one site.
struct OneEpisode(ProxySite);

impl ProxyDirectory for OneEpisode {
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision {
        if (credentials.episode.as_str(), credentials.token.as_str()) != (EPISODE, TOKEN) {
            return ProxyDecision::Refused(ProxyRefusal::Credentials);
        }
        if (host, port) != (HOST, 80) {
            return ProxyDecision::Refused(ProxyRefusal::Outside { reachable: vec![format!("http://{HOST}")] });
        }
        ProxyDecision::Site(self.0.clone())
    }
}

/// Measures the ways alternately, prints two tables, and returns whether the limits are kept.
pub fn compare(
    plan: &BenchPlan,
    directory: &Path,
    gateway: &Gateway,
    route: &Route,
    site: SocketAddr,
    nginx: SocketAddr,
) -> io::Result<bool> {
    let known = ProxySite {
        route: route.clone(),
        canonical: site.to_string(),
        generation: Some(1),
        access: EpisodeAccess::default(),
        tls: None,
    };
    let at = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let proxy = gateway.open_proxy(at, Arc::new(OneEpisode(known))).map_err(io::Error::other)?;
    let forward = free_address()?;
    let _forward = tinyproxy(directory, EPISODE, TOKEN, forward)?;
    let ways = [
        Way::to(site),
        Way::to(nginx),
        Way { script: Some(script(directory, "proxy.lua", HOST)?), ..Way::to(proxy.local_addr()) },
        // tinyproxy keeps no connection open.
        Way { script: Some(script(directory, "forward.lua", &site.to_string())?), closes: true, ..Way::to(forward) },
    ];
    println!(
        "\n{:<22} {:>10} {:>10} {:>10} {:>10} {:>15}",
        "", "direct", "nginx", "proxy", "tinyproxy", "proxy / nginx"
    );
    let mut is_kept = true;
    for (name, _) in SIZES {
        let rounds = in_turns(plan, &ways, CONNECTIONS, name)?;
        let [direct, nginx, proxy, forward] =
            [0, 1, 2, 3].map(|way| median(rounds.iter().map(|round| round[way].rate)));
        let ratio = median(rounds.iter().map(|round| round[2].rate / round[1].rate));
        is_kept &= ratio >= LEAST_RATIO;
        println!(
            "{:<22} {direct:>10.0} {nginx:>10.0} {proxy:>10.0} {forward:>10.0} {ratio:>14.2}x",
            format!("{name} requests/s, c{CONNECTIONS}")
        );
    }
    for (name, _) in SIZES {
        let rounds = in_turns(plan, &ways, 1, name)?;
        let medians = [0, 1, 2, 3].map(|way| median(rounds.iter().map(|round| round[way].median)));
        let added = median(rounds.iter().map(|round| round[2].median - round[0].median));
        is_kept &= added <= MOST_ADDED;
        let [direct, nginx, proxy, forward] = medians.map(|median| format!("{median:.0} µs"));
        println!(
            "{:<22} {direct:>11} {nginx:>11} {proxy:>11} {forward:>11} {added:>11.0} µs added",
            format!("{name} median, c1")
        );
    }
    println!(
        "\nepisode proxy: >= {LEAST_RATIO}x nginx and <= {MOST_ADDED} µs added: {}",
        if is_kept { "kept" } else { "NOT KEPT" }
    );
    Ok(is_kept)
}

/// Writes a script that makes wrk send requests as a client of a proxy: the whole URL, and credentials.
fn script(directory: &Path, name: &str, host: &str) -> io::Result<PathBuf> {
    let credentials = base64::engine::general_purpose::STANDARD.encode(format!("{EPISODE}:{TOKEN}"));
    let file = directory.join(name);
    fs::write(
        &file,
        format!(
            "init = function(arguments)\n\
             wrk.headers['Host'] = '{host}'\n\
             wrk.headers['Proxy-Authorization'] = 'Basic {credentials}'\n\
             text = wrk.format('GET', 'http://{host}' .. wrk.path)\n\
             end\n\
             request = function() return text end\n"
        ),
    )?;
    Ok(file)
}
