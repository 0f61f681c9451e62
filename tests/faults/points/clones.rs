//! A clone that differs from its snapshot, whatever damaged it, is found and named before it serves.

use arenad_seams::fault::Point;

use super::trial::FaultTrial;
use super::ways::FaultOperation;

/// The expected difference, by store and file.
const NAMED: &str = "differs from its snapshot: notes: notes";

#[test]
fn a_corrupt_clone_is_named_and_does_not_serve() {
    let mut trial = FaultTrial::new("points-clones", 0, false);
    // A rewind that finds such a clone makes new containers.
    let said = trial.corrupt(Point::RewindExchanged, FaultOperation::Rewind).expect("a client");
    let said = said.code(0).prints("toy: no faster strategy was possible: the rewind failed: ").prints(NAMED);
    assert!(said.out.contains("recreate"), "{}", said.out);
    trial.recovers("a corrupt clone of a rewind");
    // New containers have no further fallback.
    let said = trial.corrupt(Point::MakeCreated, FaultOperation::Recreate).expect("a client");
    said.code(1).says(NAMED).says("hint: ");
    trial.assert_refuses();
    trial.recovers("a corrupt clone of new containers");
    trial.end();
}

#[test]
fn a_standby_of_a_corrupt_clone_is_named_and_made_anew() {
    let mut trial = FaultTrial::new("points-clones-one", 1, false);
    let told = format!("could not be created: {NAMED}");
    trial.corrupt(Point::RewindExchanged, FaultOperation::Renew);
    trial.await_standbys("a corrupt clone of what has served");
    trial.assert_told(&told, 1);
    trial.corrupt(Point::MakeCreated, FaultOperation::Pool);
    trial.await_standbys("a corrupt clone of a new standby");
    trial.assert_told(&told, 2);
    trial.recovers("corrupt clones of standbys");
    trial.end();
}
