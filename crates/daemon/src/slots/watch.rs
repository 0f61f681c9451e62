//! The failures of slots, from the reports of the instances' drivers.
//!
//! An episode is void when a container of one of its slots ends, when another generation serves, or when the slot stays
//! unhealthy. A slot that fails its probes for a moment may be slow under the load of its own client, and goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::DaemonSlots;
use super::slot_use::is_public;
use arenad_episodes::{EpisodeError, EpisodeHandle};
use arenad_instance::InstanceReport;
use arenad_model::episode::ending::VoidReason;
use arenad_model::error::describe;
use arenad_model::instance::{InstanceId, InstanceState};
use arenad_seams::ordered_watch as watched;

/// The time for which the probes of a slot may fail before its episode is void.
const UNHEALTHY_LIMIT: Duration = Duration::from_secs(60);

/// The part of a report from which a failure follows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SlotSight {
    state: InstanceState,
    generation: u64,
    ended: Option<String>,
}

impl SlotSight {
    fn of(report: &InstanceReport) -> Self {
        Self { state: report.state.clone(), generation: report.generation, ended: report.ended.clone() }
    }
}

/// Returns the failure of a slot that an episode has. `unhealthy` is the time for which the slot has been unhealthy.
fn failure(slot: &InstanceId, leased: u64, sight: &SlotSight, unhealthy: Duration) -> Option<VoidReason> {
    let (slot, other) = (slot.clone(), sight.generation != leased);
    let failed = |slot, detail: String| Some(VoidReason::InstanceFailed { slot, detail });
    match &sight.state {
        InstanceState::Failed(failure) => failed(slot, failure.reason.clone()),
        // A new daemon brings up the instances of its predecessor, whose containers go on.
        InstanceState::Down | InstanceState::Preparing | InstanceState::Starting => None,
        InstanceState::Stopping => failed(slot, "it is being taken down".to_owned()),
        InstanceState::Resetting => failed(slot, "it was reset while the episode had it".to_owned()),
        InstanceState::Ready | InstanceState::Unhealthy(_) if other => {
            let serves = sight.generation;
            failed(slot, format!("generation {serves} took the place of generation {leased}, which the episode had"))
        }
        InstanceState::Ready | InstanceState::Unhealthy(_) if sight.ended.is_some() => {
            Some(VoidReason::ContainerDied { slot, detail: sight.ended.clone().unwrap_or_default() })
        }
        InstanceState::Unhealthy(failure) if unhealthy >= UNHEALTHY_LIMIT => failed(slot, failure.reason.clone()),
        InstanceState::Ready | InstanceState::Unhealthy(_) => None,
    }
}

/// Returns the failure of a slot that no episode has, so that it is made again before the next one gets it. People see
/// to slot 1 themselves, and the preparation of an episode resets it.
fn idle_failure(slot: &InstanceId, sight: &SlotSight) -> Option<VoidReason> {
    let failed = |detail: &String| VoidReason::InstanceFailed { slot: slot.clone(), detail: detail.clone() };
    match &sight.state {
        _ if is_public(slot) => None,
        InstanceState::Failed(failure) | InstanceState::Unhealthy(failure) => Some(failed(&failure.reason)),
        _ => None,
    }
}

/// Reports the failures of a slot until its instance is removed.
pub(crate) async fn watch(
    slots: Arc<DaemonSlots>,
    episodes: EpisodeHandle,
    slot: InstanceId,
    mut reports: watched::Receiver<InstanceReport>,
) {
    let mut unhealthy_since: Option<Instant> = None;
    loop {
        let sight = SlotSight::of(&reports.borrow_and_update());
        unhealthy_since = match sight.state {
            InstanceState::Unhealthy(_) => unhealthy_since.or_else(|| Some(Instant::now())),
            _ => None,
        };
        let unhealthy = unhealthy_since.map_or(Duration::ZERO, |since| since.elapsed());
        let found = match slots.lease(&slot) {
            Some((_, leased)) => failure(&slot, leased, &sight, unhealthy),
            None if slots.is_idle(&slot) => idle_failure(&slot, &sight),
            None => None,
        };
        if let Some(reason) = found {
            match episodes.slot_failed(slot.clone(), reason).await {
                Ok(()) => {}
                Err(EpisodeError::Stopping) => return,
                // The failure takes effect when the store works again.
                Err(error) => {
                    tracing::warn!(instance.id = %slot, error = describe(&error), "a failure is not recorded")
                }
            }
        }
        let limit = unhealthy_since.map(|since| since + UNHEALTHY_LIMIT).filter(|limit| *limit > Instant::now());
        let changed = match limit {
            None => reports.changed().await,
            Some(limit) => tokio::time::timeout_at(limit, reports.changed()).await.unwrap_or(Ok(())),
        };
        if changed.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::instance::InstanceFailure;

    fn slot(number: u32) -> InstanceId {
        format!("mini/shop/{number}").parse().expect("a name")
    }

    fn trouble() -> InstanceFailure {
        InstanceFailure { reason: "it answers 500".to_owned(), hint: String::new() }
    }

    fn sight(state: InstanceState) -> SlotSight {
        SlotSight { state, generation: 3, ended: None }
    }

    fn code(sight: &SlotSight, unhealthy: Duration) -> Option<&'static str> {
        failure(&slot(1), 3, sight, unhealthy).map(|reason| reason.code())
    }

    #[test]
    fn an_episode_goes_on_while_its_generation_serves() {
        assert_eq!(code(&sight(InstanceState::Ready), Duration::ZERO), None);
        let unhealthy = sight(InstanceState::Unhealthy(trouble()));
        assert_eq!(code(&unhealthy, UNHEALTHY_LIMIT - Duration::from_millis(1)), None, "it may be slow under load");
        assert_eq!(code(&unhealthy, UNHEALTHY_LIMIT), Some("instance_failed"));
    }

    #[test]
    fn the_end_of_a_container_is_told_from_other_failures() {
        let detail = "the container of shop exited with code 137".to_owned();
        for state in [InstanceState::Ready, InstanceState::Unhealthy(trouble())] {
            let seen = SlotSight { ended: Some(detail.clone()), ..sight(state) };
            let reason = VoidReason::ContainerDied { slot: slot(1), detail: detail.clone() };
            assert_eq!(failure(&slot(1), 3, &seen, Duration::ZERO), Some(reason));
        }
        assert_eq!(code(&sight(InstanceState::Failed(trouble())), Duration::ZERO), Some("instance_failed"));
    }

    #[test]
    fn another_generation_ends_the_episode() {
        for state in [InstanceState::Ready, InstanceState::Unhealthy(trouble())] {
            let seen = SlotSight { generation: 4, ..sight(state) };
            assert_eq!(code(&seen, Duration::ZERO), Some("instance_failed"));
        }
        for state in [InstanceState::Resetting, InstanceState::Stopping] {
            assert_eq!(code(&sight(state), Duration::ZERO), Some("instance_failed"));
        }
    }

    #[test]
    fn an_instance_that_a_new_daemon_takes_up_has_not_failed() {
        for state in [InstanceState::Down, InstanceState::Preparing, InstanceState::Starting] {
            let seen = SlotSight { generation: 9, ..sight(state) };
            assert_eq!(code(&seen, Duration::ZERO), None);
        }
    }

    #[test]
    fn an_idle_slot_that_fails_is_made_again_unless_people_use_it() {
        let seen = sight(InstanceState::Failed(trouble()));
        assert_eq!(idle_failure(&slot(1), &seen), None);
        assert!(idle_failure(&slot(2), &seen).is_some());
        assert_eq!(idle_failure(&slot(2), &sight(InstanceState::Ready)), None);
    }
}
