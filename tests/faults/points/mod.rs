//! A failure occurs at every point of every way of resetting, of keeping standbys and of taking snapshots;
//! `arenad_seams::fault` names these points. After any failure at any point, a reset that reported success serves only
//! the baseline, the next reset works, and nothing is left over.
//!
//! `ARENAD_TEST_LONG=1` combines every failure with every point. Without it the failures alternate, so that each point has
//! one of them. The daemon, which fails most often in practice, is killed at every point.

mod clones;
mod harm;
mod leftovers;
mod trial;
mod ways;

use arenad_seams::fault::Point;

use harm::Harm;
use trial::FaultTrial;
use ways::{FaultOperation, ways_to};

/// Ways on a site that keeps no standby.
const ALONE: &[FaultOperation] =
    &[FaultOperation::Rewind, FaultOperation::Recreate, FaultOperation::Take, FaultOperation::Baseline];
/// Ways on a site that keeps one standby.
const WITH_ONE: &[FaultOperation] =
    &[FaultOperation::Swap, FaultOperation::SwapFrozen, FaultOperation::Renew, FaultOperation::Pool];
/// Ways on a site that keeps two standbys: one runs, and the other is frozen.
const WITH_TWO: &[FaultOperation] = &[FaultOperation::Freeze, FaultOperation::Thaw];

const OTHERS: &[Harm] = &[Harm::Containers, Harm::Processes, Harm::Disk];

/// The engine is killed only at every third point unless everything is combined, because it takes seconds to come back.
const ENGINE_AT: usize = 3;

fn is_long() -> bool {
    std::env::var_os("ARENAD_TEST_LONG").is_some()
}

/// Causes failures at all points of these ways: all combinations in the long run, otherwise one failure per point in
/// turn.
fn break_at_all(label: &str, standbys: usize, ways: &[FaultOperation], harms: &[Harm]) {
    let mut trial = FaultTrial::new(label, standbys, harms == [Harm::Engine]);
    let points = Point::ALL.iter().flat_map(|point| ways_to(*point).iter().map(|way| (*point, *way)));
    for (turn, (point, way)) in points.filter(|(_, way)| ways.contains(way)).enumerate() {
        let in_turn = match harms {
            [Harm::Engine] if !turn.is_multiple_of(ENGINE_AT) => &[],
            _ => &harms[turn % harms.len()..][..1],
        };
        for harm in if is_long() { harms } else { in_turn } {
            trial.run(point, way, *harm);
        }
    }
    trial.end();
}

#[test]
fn the_daemon_is_killed_at_every_point_of_resets_and_snapshots() {
    break_at_all("points-daemon", 0, ALONE, &[Harm::Daemon]);
}

#[test]
fn the_daemon_is_killed_at_every_point_of_standbys() {
    break_at_all("points-daemon-one", 1, WITH_ONE, &[Harm::Daemon]);
}

#[test]
fn the_daemon_is_killed_at_every_point_of_freezing() {
    break_at_all("points-daemon-two", 2, WITH_TWO, &[Harm::Daemon]);
}

#[test]
fn what_serves_dies_or_has_no_room_at_every_point_of_resets_and_snapshots() {
    break_at_all("points-others", 0, ALONE, OTHERS);
}

#[test]
fn what_serves_dies_or_has_no_room_at_every_point_of_standbys() {
    break_at_all("points-others-one", 1, WITH_ONE, OTHERS);
}

#[test]
fn what_serves_dies_or_has_no_room_at_every_point_of_freezing() {
    break_at_all("points-others-two", 2, WITH_TWO, OTHERS);
}

#[test]
fn the_engine_is_killed_at_points_of_resets_and_snapshots() {
    break_at_all("points-engine", 0, ALONE, &[Harm::Engine]);
}

#[test]
fn the_engine_is_killed_at_points_of_standbys() {
    break_at_all("points-engine-one", 1, WITH_ONE, &[Harm::Engine]);
}

#[test]
fn the_engine_is_killed_at_points_of_freezing() {
    break_at_all("points-engine-two", 2, WITH_TWO, &[Harm::Engine]);
}
