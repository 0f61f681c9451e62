//! The checks of the engine that precede a request to the daemon: whether this user can reach it, and whether the
//! running daemon can.

use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, say};
use arenad_api::{Condition, ConditionKind, ConditionStatus, Status};
use arenad_doctor as doctor;
use arenad_engine::docker::DockerEngine;
use arenad_engine::{Engine, EngineError};

/// Checks that this process reaches the engine; the failure has the words of `arenad doctor`. An engine that is slow to
/// answer counts as reachable.
pub async fn insist(endpoint: &str) -> Result<(), CommandFailure> {
    match DockerEngine::new(endpoint).ping().await {
        Err(error @ EngineError::Unreachable { .. }) => Err(away(endpoint, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Converts an error of the engine, with the doctor's words if they are more specific.
pub fn away(endpoint: &str, error: EngineError) -> CommandFailure {
    match doctor::away(endpoint, &error) {
        Some(finding) => {
            let failure = CommandFailure::new(exit_code::FAILED, anyhow::Error::new(error).context(finding.seen));
            failure.hint(finding.cure.unwrap_or_default())
        }
        None => error.into(),
    }
}

/// Returns the daemon's condition for an engine that it cannot reach.
pub fn lost(status: &Status) -> Option<&Condition> {
    status.conditions.iter().find(|condition| {
        condition.kind == ConditionKind::EngineReachable && condition.status == ConditionStatus::False
    })
}

/// Stops a running daemon that cannot reach its engine, for example because it was started before its user joined the
/// engine's group, so that a new one can be started. It does so only if no environment is up and this process can reach
/// the engine. Returns whether it stopped the daemon.
pub async fn renew_daemon(client: &ApiClient, is_silent: bool) -> Result<bool, CommandFailure> {
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
    say(is_silent, &format!("replacing the daemon (pid {pid}): it cannot reach its engine, and no site is up"));
    client.stop_daemon().await?;
    Ok(true)
}
