//! `arenad serve`

use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Global, ServeArgs};
use super::failure::Failure;
use super::{client, exit_code};
use crate::daemon::{Daemon, Settings, StartError};
use crate::domain::site::Secret;
use crate::engine::docker::DockerEngine;

/// Runs the daemon until it is told to stop: by a signal or by `arenad down`.
pub async fn run(global: &Global, args: &ServeArgs) -> Result<u8, Failure> {
    crate::telemetry::start(global.json);
    if args.background {
        // A session of its own: the terminal that `arenad up` was typed on may close.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "already the leader of a session");
        }
    }
    let tcp = match (args.listen, &global.token) {
        (Some(address), Some(token)) if !token.is_empty() => Some((address, Secret::new(token.clone()))),
        (Some(_), _) => {
            return Err(Failure::usage("--listen wants a token")
                .hint("set ARENAD_TOKEN to a long random text, such as the output of `openssl rand -hex 32`"));
        }
        (None, _) => None,
    };
    let settings = Settings {
        state_dir: client::state_dir(global)?,
        engine: Arc::new(DockerEngine::new(&args.engine.engine)),
        block: args.engine.subnets,
        parallel: args.engine.parallel,
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
