//! Converts states, ways and outcomes of the model to the words of the API.

use arenad_api as wire;
use arenad_model::instance::InstanceState;
use arenad_model::pool::Standing;
use arenad_model::reset::{ResetOutcome, ResetWay};
use arenad_model::verify::ComparisonExtent;

pub(super) fn state(state: &InstanceState) -> wire::InstanceState {
    match state {
        InstanceState::Down => wire::InstanceState::Down,
        InstanceState::Preparing => wire::InstanceState::Preparing,
        InstanceState::Starting => wire::InstanceState::Starting,
        InstanceState::Ready => wire::InstanceState::Ready,
        InstanceState::Unhealthy(_) => wire::InstanceState::Unhealthy,
        InstanceState::Resetting => wire::InstanceState::Resetting,
        InstanceState::Stopping => wire::InstanceState::Stopping,
        InstanceState::Failed(_) => wire::InstanceState::Failed,
    }
}

pub(super) fn standby(standing: Standing) -> wire::StandbyState {
    match standing {
        Standing::Making => wire::StandbyState::Making,
        Standing::Running => wire::StandbyState::Running,
        Standing::Frozen => wire::StandbyState::Frozen,
        Standing::Used { .. } => wire::StandbyState::Used,
    }
}

pub(super) fn way(way: ResetWay) -> wire::ResetWay {
    match way {
        ResetWay::Keep => wire::ResetWay::Keep,
        ResetWay::Untouched => wire::ResetWay::Untouched,
        ResetWay::Swap => wire::ResetWay::Swap,
        ResetWay::Rewind => wire::ResetWay::Rewind,
        ResetWay::Recreate => wire::ResetWay::Recreate,
    }
}

pub(super) fn outcome(outcome: ResetOutcome) -> wire::ResetOutcome {
    match outcome {
        ResetOutcome::Done => wire::ResetOutcome::Done,
        ResetOutcome::Failed => wire::ResetOutcome::Failed,
        ResetOutcome::Cancelled => wire::ResetOutcome::Cancelled,
        ResetOutcome::Interrupted => wire::ResetOutcome::Interrupted,
    }
}

pub(super) fn extent(extent: ComparisonExtent) -> wire::Extent {
    match extent {
        ComparisonExtent::Everything => wire::Extent::Everything,
        ComparisonExtent::Moved => wire::Extent::Moved,
        ComparisonExtent::Nothing => wire::Extent::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::instance::InstanceFailure;

    #[test]
    fn the_words_of_the_api_are_those_of_the_model() {
        use InstanceState as S;
        let trouble = || InstanceFailure { reason: String::new(), hint: String::new() };
        let troubled = [S::Unhealthy(trouble()), S::Failed(trouble())];
        for known in
            [S::Down, S::Preparing, S::Starting, S::Ready, S::Resetting, S::Stopping].into_iter().chain(troubled)
        {
            assert_eq!(state(&known).word(), known.name());
        }
        for standing in [Standing::Making, Standing::Running, Standing::Frozen, Standing::Used { renewals: 1 }] {
            assert_eq!(standby(standing).word(), standing.name());
        }
        use ResetWay as W;
        for known in [W::Keep, W::Untouched, W::Swap, W::Rewind, W::Recreate] {
            assert_eq!(way(known).word(), known.name());
        }
        use ResetOutcome as O;
        for known in [O::Done, O::Failed, O::Cancelled, O::Interrupted] {
            assert_eq!(outcome(known).word(), known.name());
        }
        for known in [ComparisonExtent::Everything, ComparisonExtent::Moved, ComparisonExtent::Nothing] {
            assert_eq!(extent(known).word(), known.name());
        }
    }
}
