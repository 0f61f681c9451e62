//! Bugs in arenad itself: a panic at a stage of an operation is a failure with a cause, and the next reset works.

use crate::support::World;

const BASELINE: &str = "toy\nconfigured\n";

#[test]
fn after_a_panic_at_any_stage_the_next_reset_works() {
    let world = World::single("panics");
    let faults = world.root().join("faults");
    std::fs::create_dir(&faults).expect("a folder");
    world.start_with_faults(&["up", &world.name], &faults).ended().code(0);
    for point in [
        "reset-held",
        "recreate-recorded",
        "recreate-removed",
        "make-created",
        "make-started",
        "make-probed",
        "recreate-verified",
        "routed",
    ] {
        world.write("scribble");
        std::fs::write(faults.join(point), "panic").expect("written");
        let broken = world.run(&["reset", "toy"]);
        assert!(!faults.join(point).exists(), "{point} is on the way of a reset");
        let said = format!("{}{}", broken.out, broken.err);
        assert!(broken.code == 1 && said.contains(&format!("a test wants a panic at {point}")), "{point}: {said}");
        assert!(["failed", "ready"].contains(&world.state().as_str()), "{point}: {}", world.state());
        world.run(&["reset", "toy"]).code(0);
        assert_eq!(world.page(), BASELINE, "after a panic at {point}");
    }
    let events = world.run(&["events", "--json"]).out;
    assert_eq!(events.matches("instance.panicked").count(), 8, "{events}");
    world.run(&["down"]).code(0);
    world.assert_down();
}
