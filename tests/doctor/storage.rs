//! File systems: full, without inodes, read-only, with and without reflinks.

use std::path::Path;

use super::examined::{examine, examine_within};
use crate::support::World;

const MOUNTS: [&str; 1] = ["--mount"];

/// Returns a script that mounts a memory file system as the state directory.
fn mounted(world: &World, options: &str, then: &str) -> String {
    let state = world.state_dir().display().to_string();
    format!("mkdir -p {state}; mount -t tmpfs -o {options} none {state}; {then}").replace("STATE", &state)
}

#[test]
fn a_full_disk_is_a_problem_and_names_what_to_do() {
    let world = World::single("full");
    let script = mounted(&world, "size=600m", "fallocate -l 400m STATE/fill");
    let examined = examine_within(&world, &MOUNTS, &script);
    examined.found("disk").is("problem", "200 MiB of 600 MiB are free below", "ARENAD_STATE_DIR");
    let script = mounted(&world, "size=2g", "true");
    examine_within(&world, &MOUNTS, &script).is_fine("disk");
}

#[test]
fn a_disk_without_inodes_is_a_problem_however_many_bytes_are_free() {
    let world = World::single("inodes");
    let examined = examine_within(&world, &MOUNTS, &mounted(&world, "size=2g,nr_inodes=50", "true"));
    examined.found("disk").is("problem", "more files can be made", "inodes");
}

#[test]
fn a_read_only_state_directory_is_a_problem() {
    let world = World::single("readonly");
    let examined = examine_within(&world, &MOUNTS, &mounted(&world, "size=2g,ro", "true"));
    examined.found("state-dir").is("problem", "mounted read-only", "--state-dir");
    assert!(examined.is_silent_about("reflinks"), "nothing can be tried there");
}

#[test]
fn a_state_directory_without_reflinks_is_warned_of_and_one_with_them_is_not() {
    let world = World::single("reflinks");
    let examined = examine_within(&world, &MOUNTS, &mounted(&world, "size=2g", "true"));
    examined.found("reflinks").is("warning", "on tmpfs without reflinks", "arenad storage init");

    // The remedy's command, with a smaller size.
    let disk = world.root().join("disk");
    let (disk, state) = (disk.display().to_string(), world.state_dir().display().to_string());
    let script = format!(
        "truncate -s 700M {disk}; mkfs.xfs -q -f -m reflink=1 {disk}; mkdir -p {state}; mount -o loop {disk} {state}"
    );
    let examined = examine_within(&world, &MOUNTS, &script);
    examined.is_fine("reflinks");
    assert!(examined.found("reflinks").seen.contains("on xfs with reflinks"));
    assert!(is_empty(&world.state_dir()), "trying leaves nothing behind");

    let examined = examine_within(&world, &MOUNTS, &script.replace("reflink=1", "reflink=0"));
    assert_eq!(examined.found("reflinks").level, "warning", "it is tried, not told by the name of the file system");
}

#[test]
fn a_state_directory_that_is_not_there_is_not_made() {
    let world = World::single("unmade");
    let examined = examine(&world);
    examined.is_fine("state-dir");
    assert!(examined.found("state-dir").seen.ends_with("can be made (ext4)") || !world.state_dir().exists());
    assert!(!world.state_dir().exists(), "looking changes nothing");
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}
