//! The engine, as far as a command must know of it before it asks a daemon: whether this user can reach it, and whether
//! the daemon that runs can.

use super::client::Client;
use super::failure::Failure;
use super::{exit_code, say};
use arenad_api::{Condition, Status};
use arenad_doctor as doctor;
use arenad_engine::docker::DockerEngine;
use arenad_engine::{Engine, EngineError};

/// Insists that this process reaches the engine; the failure is what `arenad doctor` would say. One that is slow to answer
/// is there.
pub async fn insist(endpoint: &str) -> Result<(), Failure> {
    match DockerEngine::new(endpoint).ping().await {
        Err(error @ EngineError::Unreachable { .. }) => Err(away(endpoint, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// An error of the engine's, in the doctor's words where those say more.
pub fn away(endpoint: &str, error: EngineError) -> Failure {
    match doctor::away(endpoint, &error) {
        Some(finding) => {
            let failure = Failure::new(exit_code::FAILED, anyhow::Error::new(error).context(finding.seen));
            failure.hint(finding.cure.unwrap_or_default())
        }
        None => error.into(),
    }
}

/// What the daemon says of an engine that it cannot reach.
pub fn lost(status: &Status) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.kind == "EngineReachable" && condition.status == "False")
}

/// Before something is brought up by a daemon that runs: one that cannot reach its engine, such as one that was started
/// before its user joined the engine's group, makes room for another, if nothing is up in it and this process can reach the
/// engine. Says whether it did.
pub async fn renew_daemon(client: &Client, is_silent: bool) -> Result<bool, Failure> {
    let status = client.status().await?;
    if lost(&status).is_none() || !client.is_local() {
        return Ok(false);
    }
    insist(&status.daemon.engine).await?;
    let mut sites = status.environments.iter().flat_map(|environment| &environment.sites);
    let is_idle = sites.all(|site| site.containers.is_empty());
    if !is_idle || !status.daemon.background {
        return Ok(false);
    }
    let pid = status.daemon.pid;
    say(is_silent, &format!("replacing the daemon (pid {pid}): it cannot reach its engine, and nothing is up in it"));
    client.stop_daemon().await?;
    Ok(true)
}
