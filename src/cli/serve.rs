//! `arenad serve`: runs the daemon in this process.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{EpisodeQuota, Global, PortAddress, ServeArgs, port_address};
use super::failure::CommandFailure;
use super::{client, exit_code, secrets};
use arenad_daemon::port::ChosenPort;
use arenad_daemon::slots::{DEFAULT_EPISODE_LIMIT, EpisodeSettings, waiting_of_owner};
use arenad_daemon::{Daemon, DaemonSettings, StartError};
use arenad_engine::docker::DockerEngine;
use arenad_model::episode::queue::{OwnerQuotas, QueueLimits};
use arenad_model::record_retention::RecordRetention;
use arenad_model::site::Secret;

/// The address of the episode proxy unless the operator chooses another one.
const DEFAULT_PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7500);

/// The address of the reset server of harnesses unless the operator chooses another one: the port that `arenad env`
/// prints by default.
const DEFAULT_COMPAT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7565);

/// Returns the ports that a daemon would use besides those of sites if it were started from here, with their uses.
pub(super) fn expected_ports() -> BTreeMap<u16, String> {
    let listens = |kind: PortKind| {
        let chosen = std::env::var(kind.variable).ok().map(|text| port_address(&text)).transpose();
        // With a malformed value, the daemon does not start.
        let port = port(&kind, chosen.ok()?, true).ok().flatten()?;
        Some((port.address.port(), kind.purpose.to_owned()))
    };
    [PROXY, COMPAT].into_iter().filter_map(listens).collect()
}

/// Runs the daemon until a signal or `arenad down` stops it.
pub async fn run(global: &Global, args: &ServeArgs) -> Result<u8, CommandFailure> {
    arenad_telemetry::start(global.json);
    arenad_folders::keep_private();
    if args.background {
        // The daemon gets a session of its own, because the terminal of `arenad up` may close.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "already the leader of a session");
        }
    }
    let tcp = offered(args.listen, args.behind_tls_proxy, secrets::token(global)?)?;
    let proxy = port(&PROXY, args.daemon.proxy, args.behind_tls_proxy)?;
    let compat = port(&COMPAT, args.daemon.compat, args.behind_tls_proxy)?;
    let mut engine = DockerEngine::new(&args.engine.engine);
    if let Some(bytes) = args.container_memory {
        engine = engine.with_container_memory(bytes);
    }
    let settings = DaemonSettings {
        state_dir: client::state_dir(global)?,
        engine: Arc::new(engine),
        block: args.daemon.subnets,
        parallel: args.daemon.parallel,
        standby_boots: args.standby_boots,
        memory_reserve: args.memory_reserve,
        record_retention: RecordRetention { age: args.record_age, total_bytes: args.record_size },
        tcp,
        proxy,
        compat,
        openenv: service(args)?,
        episodes: episodes(args)?,
        socket_group: args.socket_group,
        background: args.background,
    };
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let daemon = Daemon::start(settings).await.map_err(|error| match error {
        StartError::Running { .. } => {
            CommandFailure::new(exit_code::BUSY, error).hint("`arenad status` shows its state")
        }
        error => error.into(),
    })?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = daemon.stop_requested() => {}
    }
    tracing::info!("stopping; containers keep running");
    tokio::select! {
        () = daemon.stop() => Ok(exit_code::OK),
        _ = interrupt.recv() => Ok(exit_code::INTERRUPTED),
        _ = terminate.recv() => Ok(exit_code::INTERRUPTED),
    }
}

/// Returns the TCP address to offer the API on, with its token; `None` without an address.
///
/// Errors: there is no token, or other hosts can reach the address and no proxy adds TLS.
fn offered(
    listen: Option<SocketAddr>,
    is_behind_tls_proxy: bool,
    token: Option<String>,
) -> Result<Option<(SocketAddr, Secret)>, CommandFailure> {
    let Some(address) = listen else { return Ok(None) };
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return Err(CommandFailure::usage("--listen requires a token")
            .hint(
            "set ARENAD_TOKEN to a long random text, such as the output of `openssl rand -hex 32`, or ARENAD_TOKEN_FILE to a file \
             that contains one",
        ));
    };
    if is_readable_on_the_way(address.ip()) && !is_behind_tls_proxy {
        let message = format!("--listen {address} can be reached from other hosts, and the API has no TLS");
        return Err(CommandFailure::usage(message).hint(
            "listen on 127.0.0.1 behind a TLS proxy or a tunnel; if a TLS proxy on another host is the only way to this \
             address, pass --behind-tls-proxy",
        ));
    }
    Ok(Some((address, Secret::new(token))))
}

/// Returns the address of the environment service; `None` without one.
///
/// Errors: other hosts can reach the address and no proxy adds TLS. The service has no credentials.
fn service(args: &ServeArgs) -> Result<Option<SocketAddr>, CommandFailure> {
    let chosen = args.openenv.map(PortAddress::Listen).unwrap_or(PortAddress::Nothing);
    let port = port(&OPENENV, Some(chosen), args.behind_tls_proxy)?;
    Ok(port.map(|port| port.address))
}

/// A port that the daemon offers besides the API.
pub(super) struct PortKind {
    /// The option that chooses the address.
    option: &'static str,
    /// The environment variable that chooses it.
    variable: &'static str,
    /// The server behind the port, for messages.
    server: &'static str,
    /// The use of the port, for people who do not know the server.
    pub(super) purpose: &'static str,
    /// The address unless the operator chooses another one.
    default: SocketAddr,
}

pub(super) const PROXY: PortKind = PortKind {
    option: "--proxy",
    variable: "ARENAD_PROXY",
    server: "the proxy",
    purpose: "the episode proxy",
    default: DEFAULT_PROXY,
};

pub(super) const COMPAT: PortKind = PortKind {
    option: "--compat",
    variable: "ARENAD_COMPAT",
    server: "the reset server",
    purpose: "the reset server of harnesses",
    default: DEFAULT_COMPAT,
};

const OPENENV: PortKind = PortKind {
    option: "--openenv",
    variable: "ARENAD_OPENENV",
    server: "the environment service",
    purpose: "the environment service",
    // Not used: the service is offered only at an address that the operator has chosen.
    default: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
};

/// Returns a port that the daemon offers besides the API.
///
/// Errors: other hosts can reach the address and no proxy adds TLS. Tokens of episodes would be readable on the way to
/// the episode proxy, and the reset server has no credentials at all.
fn port(
    kind: &PortKind,
    chosen: Option<PortAddress>,
    is_behind_tls_proxy: bool,
) -> Result<Option<ChosenPort>, CommandFailure> {
    match chosen {
        None => Ok(Some(ChosenPort { address: kind.default, is_required: false })),
        Some(PortAddress::Nothing) => Ok(None),
        Some(PortAddress::Listen(address)) if is_readable_on_the_way(address.ip()) && !is_behind_tls_proxy => {
            let PortKind { option, server, .. } = kind;
            let message = format!("{option} {address} can be reached from other hosts, and {server} has no TLS");
            Err(CommandFailure::usage(message).hint(
                "listen on 127.0.0.1 and let other hosts reach it through a tunnel; if a TLS proxy on another host is the \
                 only way to this address, pass --behind-tls-proxy",
            ))
        }
        Some(PortAddress::Listen(address)) => Ok(Some(ChosenPort { address, is_required: true })),
    }
}

/// Returns the limits of episodes.
///
/// Errors: a quota is given twice.
fn episodes(args: &ServeArgs) -> Result<EpisodeSettings, CommandFailure> {
    let waiting = args.queue_limit.get();
    let waiting_of_owner = args.owner_queue_limit.map_or_else(|| waiting_of_owner(waiting), NonZeroUsize::get);
    Ok(EpisodeSettings {
        quotas: quotas(&args.quota)?,
        queue: QueueLimits { waiting, waiting_of_owner },
        ttl: args.ttl_limit,
    })
}

fn quotas(given: &[EpisodeQuota]) -> Result<OwnerQuotas, CommandFailure> {
    let (mut default, mut by_owner) = (None, BTreeMap::new());
    for EpisodeQuota { owner, most } in given {
        let earlier = match owner {
            None => default.replace(*most),
            Some(owner) => by_owner.insert(owner.clone(), *most),
        };
        if earlier.is_some() {
            let subject = owner.as_ref().map_or("each owner".to_owned(), ToString::to_string);
            return Err(CommandFailure::usage(format!("--quota gives {subject} two quotas")).hint("give one of them"));
        }
    }
    Ok(OwnerQuotas { default: default.unwrap_or(DEFAULT_EPISODE_LIMIT.get()), by_owner })
}

/// Returns whether traffic to an address leaves this host.
fn is_readable_on_the_way(address: IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::episode::ids::Owner;

    #[test]
    fn an_owner_has_one_quota() {
        let quota = |owner: Option<&str>, most| EpisodeQuota {
            owner: owner.map(|owner| Owner::parse(owner).expect("valid")),
            most,
        };
        let both = quotas(&[quota(Some("ann"), 3), quota(None, 2)]).expect("valid");
        let of = |name: &str| both.of(&Owner::parse(name).expect("valid"));
        assert_eq!((of("ann"), of("bob")), (3, 2));
        assert_eq!(quotas(&[]).expect("valid").default, DEFAULT_EPISODE_LIMIT.get());
        assert!(quotas(&[quota(None, 2), quota(None, 2)]).is_err());
        assert!(quotas(&[quota(Some("ann"), 2), quota(Some("ann"), 3)]).is_err());
    }

    #[test]
    fn only_loopback_addresses_stay_on_the_host() {
        let leaves = |address: &str| is_readable_on_the_way(address.parse().expect("an address"));
        assert!(
            ["0.0.0.0", "::", "10.0.0.7", "192.0.2.1", "::ffff:10.0.0.7", "fe80::1"]
                .iter()
                .all(|address| leaves(address))
        );
        assert!(!["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"].iter().any(|address| leaves(address)));
    }

    #[test]
    fn a_port_without_tls_is_offered_to_no_other_host() {
        let listen = |address: &str| Some(PortAddress::Listen(address.parse().expect("an address")));
        for kind in [PROXY, COMPAT] {
            let port = |chosen, is_behind_tls_proxy| port(&kind, chosen, is_behind_tls_proxy).ok();
            assert_eq!(port(None, false), Some(Some(ChosenPort { address: kind.default, is_required: false })));
            assert_eq!(port(Some(PortAddress::Nothing), false), Some(None));
            let own = port(listen("127.0.0.1:7501"), false).flatten().expect("a port");
            assert!(own.is_required);
            for address in ["0.0.0.0:7500", "[::]:7500", "192.0.2.1:7500"] {
                assert_eq!(port(listen(address), false), None, "{address}");
                assert!(port(listen(address), true).flatten().is_some(), "{address} behind a proxy");
            }
        }
    }

    #[test]
    fn an_api_without_tls_is_offered_to_no_other_host() {
        let offer = |address: &str, is_behind_tls_proxy, token: Option<&str>| {
            let listen = Some(address.parse().expect("an address"));
            offered(listen, is_behind_tls_proxy, token.map(str::to_owned)).map(|tcp| tcp.map(|(address, _)| address))
        };
        for address in ["0.0.0.0:7000", "[::]:7000", "192.0.2.1:7000"] {
            assert!(offer(address, false, Some("secret")).is_err(), "{address}");
            let behind = offer(address, true, Some("secret")).ok().flatten();
            assert_eq!(behind, address.parse().ok(), "{address} behind a proxy");
        }
        assert!(offer("127.0.0.1:7000", false, Some("secret")).is_ok_and(|offered| offered.is_some()));
        for token in [None, Some("")] {
            assert!(offer("127.0.0.1:7000", true, token).is_err(), "{token:?}");
        }
        assert!(offered(None, false, None).is_ok_and(|offered| offered.is_none()));
    }
}
