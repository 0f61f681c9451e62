//! `arenad serve`: runs the daemon in this process.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Global, ServeArgs};
use super::failure::Failure;
use super::{client, exit_code, secrets};
use arenad_daemon::{Daemon, Settings, StartError};
use arenad_engine::docker::DockerEngine;
use arenad_model::site::Secret;

/// Runs the daemon until a signal or `arenad down` stops it.
pub async fn run(global: &Global, args: &ServeArgs) -> Result<u8, Failure> {
    arenad_telemetry::start(global.json);
    arenad_folders::keep_private();
    if args.background {
        // The daemon gets a session of its own, because the terminal of `arenad up` may close.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "already the leader of a session");
        }
    }
    let tcp = match (args.listen, secrets::token(global)?) {
        (Some(address), Some(token)) if !token.is_empty() => Some((address, Secret::new(token))),
        (Some(_), _) => {
            return Err(Failure::usage("--listen wants a token")
                .hint(
                "set ARENAD_TOKEN to a long random text, such as the output of `openssl rand -hex 32`, or ARENAD_TOKEN_FILE to a file \
                 with one",
            ));
        }
        (None, _) => None,
    };
    if let Some((address, _)) = &tcp
        && is_readable_on_the_way(address.ip())
        && !args.behind_tls_proxy
    {
        return Err(Failure::usage(format!("--listen {address} can be reached from other hosts, and the API has no TLS")).hint(
            "listen on 127.0.0.1 behind a TLS proxy or a tunnel; if a TLS proxy on another host is the only way to this \
             address, say --behind-tls-proxy",
        ));
    }
    let mut engine = DockerEngine::new(&args.engine.engine);
    if let Some(bytes) = args.container_memory {
        engine = engine.with_container_memory(bytes);
    }
    let settings = Settings {
        state_dir: client::state_dir(global)?,
        engine: Arc::new(engine),
        block: args.daemon.subnets,
        parallel: args.daemon.parallel,
        standby_boots: args.standby_boots,
        memory_reserve: args.memory_reserve,
        tcp,
        socket_group: args.socket_group,
        background: args.background,
    };
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let daemon = Daemon::start(settings).await.map_err(|error| match error {
        StartError::Running { .. } => Failure::new(exit_code::BUSY, error).hint("`arenad status` asks it how it is"),
        error => error.into(),
    })?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = daemon.stop_requested() => {}
    }
    tracing::info!("stopping; containers go on running");
    tokio::select! {
        () = daemon.stop() => Ok(exit_code::OK),
        _ = interrupt.recv() => Ok(exit_code::INTERRUPTED),
        _ = terminate.recv() => Ok(exit_code::INTERRUPTED),
    }
}

/// Returns whether traffic to an address leaves this host.
fn is_readable_on_the_way(address: IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
