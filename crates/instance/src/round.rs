//! One round of probes on a serving instance, followed by an inspection of its containers if a probe fails.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::shared::SharedParts;
use arenad_engine::ContainerState;
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::health::{Depth, Miss};
use arenad_model::site::Site;

/// A round that has ended.
pub(super) struct ProbeRound {
    /// The set of probes that were run.
    pub depth: Depth,
    /// When the round began.
    pub at: Timestamp,
    /// The duration of the round.
    pub took: Duration,
    /// The result of the probes and of the inspection.
    pub sight: RoundResult,
}

impl ProbeRound {
    /// Creates the round of a task that panicked; it counts as missed.
    pub(super) fn broken_off(depth: Depth, error: &JoinError) -> Self {
        let sight = RoundResult::Missed(Miss { reason: format!("the probes broke off: {error}"), cause: None });
        Self { depth, at: Timestamp::now(), took: Duration::ZERO, sight }
    }
}

/// The result of a round.
pub(super) enum RoundResult {
    Fine,
    /// A probe failed, and the containers run.
    Missed(Miss),
    /// A container does not run.
    Gone(Miss),
}

/// Runs the probes of one depth; a site without such probes passes.
pub(super) async fn run(
    shared: Arc<SharedParts>,
    site: Arc<Site>,
    incarnation: Incarnation,
    depth: Depth,
) -> ProbeRound {
    let at = Timestamp::now();
    let begun = Instant::now();
    let sight = sight(&shared, &site, &incarnation, depth).await;
    ProbeRound { depth, at, took: begun.elapsed(), sight }
}

async fn sight(shared: &SharedParts, site: &Site, incarnation: &Incarnation, depth: Depth) -> RoundResult {
    let Some(health) = site.health.at(depth) else { return RoundResult::Fine };
    let probed = shared.prober.round(&health.probes, site, incarnation, Some(health.timeout)).await;
    let Err(failure) = probed else { return RoundResult::Fine };
    for (service, handle) in &incarnation.containers {
        let gone =
            |what: &str, cause| RoundResult::Gone(Miss { reason: format!("the container of {service} {what}"), cause });
        let is_one_shot = !incarnation.addresses.contains_key(service);
        match shared.engine.inspect(handle).await {
            Ok(status) => match status.state {
                ContainerState::Running => {}
                ContainerState::Exited(0) if is_one_shot => {}
                ContainerState::Paused => return gone("is paused", Some(Cause::Paused)),
                ContainerState::Exited(code) if status.oom_killed => {
                    let what = format!("exited with code {code} (out of memory)");
                    return gone(&what, Some(Cause::OutOfMemory));
                }
                ContainerState::Exited(code) => return gone(&format!("exited with code {code}"), None),
                ContainerState::Created => return gone("was not started", None),
                ContainerState::Dead => return gone("is being removed", None),
            },
            Err(error) if error.is_not_found() => return gone("is gone", None),
            Err(error) => {
                let reason = format!("{failure}; {}", describe(&error));
                return RoundResult::Missed(Miss { reason, cause: failure.cause.or_else(|| error.cause()) });
            }
        }
    }
    RoundResult::Missed(Miss { reason: failure.to_string(), cause: failure.cause })
}
