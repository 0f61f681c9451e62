//! Converts states, kinds, ways and outcomes of the daemon to the words of the API.

use arenad_api as wire;
use arenad_changes::ChangeKind;
use arenad_digest::ItemKind;
use arenad_model::health::Depth;
use arenad_model::instance::InstanceState;
use arenad_model::locator::Value;
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

pub(super) fn difference(kind: ItemKind) -> wire::DifferenceKind {
    match kind {
        ItemKind::Store => wire::DifferenceKind::Store,
        ItemKind::Table => wire::DifferenceKind::Table,
        ItemKind::Counter => wire::DifferenceKind::Counter,
        ItemKind::Object => wire::DifferenceKind::Object,
        ItemKind::File => wire::DifferenceKind::File,
        ItemKind::Key => wire::DifferenceKind::Key,
    }
}

pub(super) fn change(kind: ChangeKind) -> wire::ItemChange {
    match kind {
        ChangeKind::Added => wire::ItemChange::Added,
        ChangeKind::Changed => wire::ItemChange::Changed,
        ChangeKind::Removed => wire::ItemChange::Removed,
    }
}

pub(super) fn probes(depth: Depth) -> wire::ProbeKind {
    match depth {
        Depth::Shallow => wire::ProbeKind::Shallow,
        Depth::Deep => wire::ProbeKind::Deep,
    }
}

pub(super) fn value(value: &Value) -> wire::ValueKind {
    match value {
        Value::Null => wire::ValueKind::Null,
        Value::Bool(_) => wire::ValueKind::Bool,
        Value::Integer(_) => wire::ValueKind::Integer,
        Value::Decimal(_) => wire::ValueKind::Decimal,
        Value::Float(_) => wire::ValueKind::Float,
        Value::Text(_) => wire::ValueKind::Text,
        Value::Bytes(_) => wire::ValueKind::Bytes,
        Value::Timestamp(_) => wire::ValueKind::Timestamp,
        Value::Json(_) => wire::ValueKind::Json,
        Value::Rows(_) => wire::ValueKind::Rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::instance::InstanceFailure;
    use arenad_model::locator::Rows;

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
        use ItemKind as K;
        for known in [K::Store, K::Table, K::Counter, K::Object, K::File, K::Key] {
            assert_eq!(difference(known).word(), known.name());
        }
        for known in Depth::ALL {
            assert_eq!(probes(known).word(), known.name());
        }
        let text = String::new;
        for known in [
            Value::Null,
            Value::Bool(true),
            Value::Integer(1),
            Value::Decimal(text()),
            Value::Float(1.0),
            Value::Text(text()),
            Value::Bytes(Vec::new()),
            Value::Timestamp(jiff::Timestamp::UNIX_EPOCH),
            Value::Json(text()),
            Value::Rows(Rows::default()),
        ] {
            assert_eq!(value(&known).word(), known.type_name());
        }
    }
}
