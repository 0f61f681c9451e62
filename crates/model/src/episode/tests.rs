//! The table of states and events, and the diagram that is drawn from it.

use super::ending::{EpisodeEnding, ExpiryCause, ReleaseCause, VoidReason};
use super::{EpisodeEvent, EpisodeRefusal, EpisodeState, EpisodeStatus};

fn states() -> Vec<EpisodeState> {
    use EpisodeState as S;
    vec![
        S::Queued,
        S::Preparing,
        S::Active,
        S::Frozen,
        S::Ended(EpisodeEnding::Released(ReleaseCause::Client)),
        S::Ended(EpisodeEnding::Expired(ExpiryCause::Ttl)),
        S::Ended(EpisodeEnding::Void(VoidReason::PreparationTimedOut)),
    ]
}

fn events() -> Vec<(&'static str, EpisodeEvent)> {
    use EpisodeEvent as E;
    vec![
        ("Granted", E::Granted),
        ("Prepared", E::Prepared),
        ("Frozen", E::Frozen),
        ("Unfrozen", E::Unfrozen),
        ("WaitEnded", E::WaitEnded),
        ("TtlEnded", E::TtlEnded),
        ("Released", E::Released(ReleaseCause::HoldClosed)),
        ("Failed", E::Failed(VoidReason::EnvironmentDown)),
        ("DaemonRestarted", E::DaemonRestarted),
    ]
}

fn refusal(refusal: &EpisodeRefusal) -> &'static str {
    match refusal {
        EpisodeRefusal::Waiting => "-waiting",
        EpisodeRefusal::Preparing => "-preparing",
        EpisodeRefusal::AlreadyGranted => "-already-granted",
        EpisodeRefusal::NotFrozen => "-not-frozen",
        EpisodeRefusal::Ended(_) => "-ended",
        EpisodeRefusal::AlreadyHeld
        | EpisodeRefusal::NotHeld
        | EpisodeRefusal::Overdue
        | EpisodeRefusal::TtlTooLong { .. }
        | EpisodeRefusal::Unknown => "-unexpected",
    }
}

/// Columns: the state, the event, and the state that follows, or the refusal with a leading `-`.
const TABLE: &str = "
    queued     Granted          preparing
    queued     Prepared         -waiting
    queued     Frozen           -waiting
    queued     Unfrozen         -waiting
    queued     WaitEnded        expired
    queued     TtlEnded         -waiting
    queued     Released         released
    queued     Failed           void
    queued     DaemonRestarted  queued
    preparing  Granted          -already-granted
    preparing  Prepared         active
    preparing  Frozen           -preparing
    preparing  Unfrozen         -preparing
    preparing  WaitEnded        -already-granted
    preparing  TtlEnded         -preparing
    preparing  Released         released
    preparing  Failed           void
    preparing  DaemonRestarted  void
    active     Granted          -already-granted
    active     Prepared         -already-granted
    active     Frozen           frozen
    active     Unfrozen         -not-frozen
    active     WaitEnded        -already-granted
    active     TtlEnded         expired
    active     Released         released
    active     Failed           void
    active     DaemonRestarted  active
    frozen     Granted          -already-granted
    frozen     Prepared         -already-granted
    frozen     Frozen           frozen
    frozen     Unfrozen         active
    frozen     WaitEnded        -already-granted
    frozen     TtlEnded         expired
    frozen     Released         released
    frozen     Failed           void
    frozen     DaemonRestarted  frozen
    released   Granted          -ended
    released   Prepared         -ended
    released   Frozen           -ended
    released   Unfrozen         -ended
    released   WaitEnded        -ended
    released   TtlEnded         -ended
    released   Released         -ended
    released   Failed           -ended
    released   DaemonRestarted  -ended
    expired    Granted          -ended
    expired    Prepared         -ended
    expired    Frozen           -ended
    expired    Unfrozen         -ended
    expired    WaitEnded        -ended
    expired    TtlEnded         -ended
    expired    Released         -ended
    expired    Failed           -ended
    expired    DaemonRestarted  -ended
    void       Granted          -ended
    void       Prepared         -ended
    void       Frozen           -ended
    void       Unfrozen         -ended
    void       WaitEnded        -ended
    void       TtlEnded         -ended
    void       Released         -ended
    void       Failed           -ended
    void       DaemonRestarted  -ended
";

#[test]
fn every_pair_of_state_and_event_moves_as_the_table_says() {
    let table: Vec<Vec<&str>> = TABLE.lines().map(|line| line.split_whitespace().collect()).collect();
    let lines: Vec<&[&str]> = table.iter().map(Vec::as_slice).filter(|line| !line.is_empty()).collect();
    let mut seen = 0;
    for state in states() {
        for (name, event) in events() {
            let from = state.status().name();
            let line = lines.iter().find(|line| line[0] == from && line[1] == name);
            let expected = line.unwrap_or_else(|| panic!("no line for {from} and {name}"))[2];
            let moved = match state.after(event) {
                Ok(next) => next.status().name(),
                Err(refused) => refusal(&refused),
            };
            assert_eq!(moved, expected, "{from} after {name}");
            seen += 1;
        }
    }
    assert_eq!((seen, lines.len()), (63, 63), "one line for each pair");
}

#[test]
fn an_end_keeps_the_cause_of_its_event() {
    let released = EpisodeState::Active.after(EpisodeEvent::Released(ReleaseCause::HoldClosed));
    assert_eq!(released, Ok(EpisodeState::Ended(EpisodeEnding::Released(ReleaseCause::HoldClosed))));
    let void = EpisodeState::Frozen.after(EpisodeEvent::Failed(VoidReason::EnvironmentDown)).expect("possible");
    assert_eq!(void.ending(), Some(&EpisodeEnding::Void(VoidReason::EnvironmentDown)));
    let late = void.after(EpisodeEvent::Released(ReleaseCause::Client));
    assert_eq!(late, Err(EpisodeRefusal::Ended(EpisodeEnding::Void(VoidReason::EnvironmentDown))));
}

#[test]
fn every_name_is_read_back() {
    for state in states() {
        assert_eq!(EpisodeStatus::named(state.status().name()), Some(state.status()));
    }
    assert_eq!(EpisodeStatus::named("ended"), None);
}

#[test]
fn the_diagram_is_the_one_that_after_draws() {
    let drawn = crate::diagram::drawn(
        &states(),
        &events(),
        |state: &EpisodeState| state.status().name(),
        |state, event| state.after(event.clone()).ok(),
    );
    assert!(include_str!("states.md") == drawn, "crates/model/src/episode/states.md has to be:\n{drawn}");
}
