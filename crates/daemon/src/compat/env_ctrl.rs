//! Performs env-ctrl's commands on one slot of a site.
//!
//! A site of arenad keeps no state when it is stopped, so a restart is a reset. Stopping is refused: the site's public
//! port would close, and only `arenad up` could open it again.

use std::time::Duration;

use tokio::time::Instant;

use super::answer::CompatServer;
use super::subject::ResetTargets;
use crate::api::ApiError;
use arenad_compat::address::EnvCtrlCommand;
use arenad_compat::board::SiteReadiness;
use arenad_compat::env_ctrl::{self as control, EnvCtrlReply};
use arenad_instance::{InstanceHandle, OperationOutcome};
use arenad_model::request_queue::Want;

/// The time for which a command with `wait=1` waits. env-ctrl waits for a minute too.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn perform(
    server: &CompatServer,
    targets: ResetTargets,
    command: EnvCtrlCommand,
    waits: bool,
) -> Result<EnvCtrlReply, ApiError> {
    let [instance] = targets.instances.as_slice() else { return Err(ApiError::not_found("this site")) };
    let instance = instance.clone();
    let name = &instance.site.name;
    match command {
        EnvCtrlCommand::Status => Ok(status(server, &targets, &instance).await),
        EnvCtrlCommand::Init => {
            let readiness = server.resets.settled(&server.api, &targets, Instant::now()).await;
            Ok(ended(&readiness, &instance, "is ready; its configuration is part of its baseline"))
        }
        EnvCtrlCommand::Start => start(server, &targets, &instance, waits).await,
        EnvCtrlCommand::Stop => {
            Ok(control::outcome(false, &format!("{name} is stopped by `arenad down {name}` alone")))
        }
        EnvCtrlCommand::Restart | EnvCtrlCommand::Reset => {
            server.resets.ask(&server.api, targets.clone()).await?;
            if !waits {
                return Ok(control::outcome(true, &format!("the reset of {name} has begun")));
            }
            let readiness = server.resets.settled(&server.api, &targets, Instant::now() + PATIENCE).await;
            Ok(ended(&readiness, &instance, "was reset"))
        }
    }
}

async fn status(server: &CompatServer, targets: &ResetTargets, instance: &InstanceHandle) -> EnvCtrlReply {
    let readiness = server.resets.settled(&server.api, targets, Instant::now()).await;
    let report = instance.report();
    let services = instance.site.services.iter().map(|service| service.name.as_str());
    let message = match &readiness {
        SiteReadiness::Ready => format!("{} is ready", instance.site.name),
        SiteReadiness::Failed { reason } => reason.clone(),
        SiteReadiness::Ongoing => {
            let stage = report.stage.or(report.waiting_for).map(|stage| format!(": {stage}")).unwrap_or_default();
            format!("{} is {}{stage}", instance.site.name, report.state.name())
        }
    };
    control::status(&readiness, &report.state, services, &message)
}

/// Brings the site up unless it is ready.
async fn start(
    server: &CompatServer,
    targets: &ResetTargets,
    instance: &InstanceHandle,
    waits: bool,
) -> Result<EnvCtrlReply, ApiError> {
    let name = &instance.site.name;
    let readiness = server.resets.settled(&server.api, targets, Instant::now()).await;
    if readiness == SiteReadiness::Ready {
        return Ok(ended(&readiness, instance, "is ready"));
    }
    let ticket = instance.ask(Want::Up).await?;
    if !waits {
        return Ok(control::outcome(true, &format!("the start of {name} has begun")));
    }
    let Ok(outcome) = tokio::time::timeout(PATIENCE, ticket.wait()).await else {
        return Ok(ended(&SiteReadiness::Ongoing, instance, ""));
    };
    if let OperationOutcome::Failed(failure) = outcome {
        return Ok(control::outcome(false, &format!("{name} did not start: {}; {}", failure.reason, failure.hint)));
    }
    let readiness = server.resets.settled(&server.api, targets, Instant::now()).await;
    Ok(ended(&readiness, instance, "is ready"))
}

/// Returns the reply to a command that has ended, or for which the client no longer waits.
fn ended(readiness: &SiteReadiness, instance: &InstanceHandle, done: &str) -> EnvCtrlReply {
    let name = &instance.site.name;
    match readiness {
        SiteReadiness::Ready => control::outcome(true, &format!("{name} {done}")),
        SiteReadiness::Failed { reason } => control::outcome(false, reason),
        SiteReadiness::Ongoing => control::outcome(false, &format!("{name} is not ready yet")),
    }
}
