//! Failures of the engine itself: its disk is full, it is stopped, killed, or hangs. The status is correct within ten
//! seconds, and the suggested remedies work.

use rustix::process::Signal;
use serde_json::Value;

use super::containers::{BASELINE, TRUTH, ails, container, recovers};
use crate::support::{OwnEngine, World, until};

/// Waits until one of the host's conditions has a status, and returns its message.
fn condition(world: &World, kind: &str, status: &str) -> String {
    let find = || {
        let shown = world.api("/v1/status").unwrap_or_default();
        let conditions = shown["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    };
    let found: Value = until(kind, TRUTH, find, |condition| condition["status"] == status);
    found["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_full_disk_is_told_and_a_reset_frees_it() {
    let engine = OwnEngine::start();
    let world = World::on(&engine, "disk");
    world.up();
    assert_eq!(condition(&world, "DiskSpace", "True"), "");
    // Allocates the large free extents first, then fills the remaining space.
    let fill = "for size in 800 200 100 50 20 10 5 2 1; do while fallocate -l ${size}m /srv/state/$size.$((n += 1)); do :; done; done; \
                dd if=/dev/zero of=/srv/state/crumbs bs=4k; exit 0";
    world.engine.docker(&["exec", &container(&world), "/bin/sh", "-c", fill]);
    let message = condition(&world, "DiskSpace", "False");
    assert!(message.contains("MiB are free below") && message.contains("docker system df"), "{message}");
    let hint = ails(&world, "No space left on device");
    assert!(hint.contains("free some disk space") && hint.contains("`arenad reset toy`"), "{hint}");
    world.run(&["status"]).code(3).prints("Low");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);
    condition(&world, "DiskSpace", "True");
    world.run(&["status"]).code(0);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_stopped_engine_is_told_and_all_works_when_it_is_back() {
    let mut engine = OwnEngine::start();
    let world = World::on(&engine, "stop");
    world.up();
    world.write("scribble");

    // An orderly stop ends the engine's containers too.
    engine.stop_dockerd(Signal::TERM);
    let message = condition(&world, "EngineReachable", "False");
    assert!(message.contains("reach the Docker engine") && message.contains("start Docker"), "{message}");
    let hint = ails(&world, "reach the Docker engine");
    assert!(hint.contains("start Docker"), "{hint}");
    world.run(&["status"]).code(3).prints("Unreachable");
    engine.start_dockerd();
    condition(&world, "EngineReachable", "True");
    let hint = ails(&world, "the container of toy exited with code");
    assert!(hint.contains("`arenad reset toy`"), "{hint}");
    world.run(&["reset", "toy"]).code(0);
    recovers(&world);

    // After a kill, the containers live on and serve; a dockerd that comes back ends them.
    engine.stop_dockerd(Signal::KILL);
    condition(&world, "EngineReachable", "False");
    assert_eq!(world.page(), BASELINE);
    world.run(&["reset", "toy"]).code(1).says("reach the Docker engine").says("hint: start Docker");
    assert_eq!(world.state(), "failed");
    let down = world.run(&["down"]).code(1).says("the daemon has stopped").says("could not be removed");
    down.says("reach the Docker engine").says("hint: ");
    assert!(world.daemon().is_none(), "the daemon has ended");
    engine.start_dockerd();
    world.up();
    recovers(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_hanging_engine_is_told_and_a_late_one_is_waited_for() {
    let mut engine = OwnEngine::start();
    let world = World::on(&engine, "hang");
    world.up();
    engine.signal(Signal::STOP);
    let message = condition(&world, "EngineReachable", "False");
    assert!(message.contains("no answer within"), "{message}");
    assert_eq!(world.page(), BASELINE, "the site itself serves on");
    engine.signal(Signal::CONT);
    condition(&world, "EngineReachable", "True");
    recovers(&world);

    // Both the daemon and the engine are stopped. The one that starts first waits for the other.
    engine.stop_dockerd(Signal::TERM);
    world.run(&["down"]).code(1).says("hint: ");
    engine.start_dockerd();
    world.run(&["down"]).code(0);
    world.assert_down();
    engine.stop_dockerd(Signal::TERM);
    world.run(&["up", &world.name]).code(1).says("hint: start Docker");
    engine.start_dockerd();
    world.up();
    recovers(&world);
    world.run(&["down"]).code(0);
    world.assert_down();
}
