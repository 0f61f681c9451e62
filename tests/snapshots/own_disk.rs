//! The disk that `arenad up` creates: its creation, its mounts, and its removal.

use std::process::Command;

use super::home::{BASELINE, with_stores};
use crate::support::World;
use crate::support::world::CommandOutput;

/// Runs a command that may create a disk.
#[track_caller]
fn run_auto(world: &World, args: &[&str]) -> CommandOutput {
    let mut command = world.command(args);
    command.env("ARENAD_STORAGE", "auto");
    world.start_command(command).ended()
}

fn is_mounted(world: &World) -> bool {
    let stores = world.state_dir().join("stores");
    std::fs::read_to_string("/proc/self/mounts").unwrap().contains(stores.to_str().unwrap())
}

fn clones(world: &World) -> bool {
    world.run(&["storage", "status", "--json"]).code(0).json()["clones"] == true
}

/// Unmounts the disk that a failed test left mounted.
struct Unmount<'a>(&'a World);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.state_dir().join("stores")).output();
    }
}

#[test]
fn up_makes_one_carries_the_snapshots_over_and_down_leaves_no_mount() {
    let world = with_stores("owndisk");
    let _unmount = Unmount(&world);
    if clones(&world) {
        // The underlying file system can clone, so no disk is needed.
        return;
    }
    // With the setting `ask` and without a terminal, arenad reports the cost of copies and makes them.
    let mut asked = world.command(&["up", &world.name]);
    asked.env("ARENAD_STORAGE", "ask");
    world.start_command(asked).ended().code(0).says("time and space in proportion to its size").says("storage init");
    assert!(!is_mounted(&world) && !world.state_dir().join("disk.json").exists());
    world.run(&["status"]).code(0).prints("copies of sites' state are full copies");
    let baseline = world.site().unwrap()["snapshot"].clone();
    world.run(&["down"]).code(0);

    run_auto(&world, &["up", &world.name]).code(0).says("created ").says("where copies are free");
    assert!(is_mounted(&world) && clones(&world));
    assert_eq!(world.site().unwrap()["snapshot"], baseline, "it was carried over");
    world.write("scribble");
    world.run(&["reset", "toy"]).code(0);
    assert_eq!(world.page(), BASELINE);
    world.run(&["down"]).code(0);
    assert!(!is_mounted(&world), "nothing is up, so nothing stays mounted");

    // The host has restarted.
    let up = run_auto(&world, &["up", &world.name]).code(0);
    assert!(!up.err.contains("made "), "{}", up.err);
    assert!(is_mounted(&world) && world.site().unwrap()["snapshot"] == baseline);
    assert_eq!(world.page(), BASELINE);
    world.run(&["verify", "toy"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    assert!(!is_mounted(&world) && !world.state_dir().exists(), "nothing is left");
    let devices = Command::new("losetup").output().unwrap().stdout;
    let file = world.state_dir().join("stores.xfs");
    assert!(!String::from_utf8_lossy(&devices).contains(file.to_str().unwrap()), "no device is left");
}
