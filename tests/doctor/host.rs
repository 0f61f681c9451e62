//! The system around the engine, and the output for people.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::examined::{command, examine, examine_by, examine_within, without_build};
use crate::support::World;

#[test]
fn a_host_without_chromium_is_warned_of() {
    let world = World::single("browser");
    let mut bare = command(&world);
    bare.env("PATH", "");
    examine_by(&world, bare).found("browser").is("warning", "no Chromium on PATH", "apt-get install chromium");

    let folder = world.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("chromium");
    std::fs::write(&program, "#!/bin/sh\necho 'cannot open shared object file: libnss3.so' >&2\nexit 127\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut uncaged = command(&world);
    uncaged.env("PATH", &folder);
    examine_by(&world, uncaged).found("browser").is("warning", "bwrap is not installed", "apt-get install");
    symlink("/usr/bin/bwrap", folder.join("bwrap")).unwrap();
    let mut broken = command(&world);
    broken.env("PATH", &folder);
    let found = examine_by(&world, broken).found("browser");
    found.is("warning", "it ended at once: cannot open shared object", "apt-get install");
}

#[test]
fn a_clock_that_was_set_back_is_found_by_the_daemons_files() {
    let world = World::single("clock");
    std::fs::create_dir(world.state_dir()).unwrap();
    let file = File::create(world.state_dir().join("arenad.db")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    examine(&world).found("clock").is("warning", "the clock has been set back", "timedatectl");
    file.set_modified(SystemTime::now()).unwrap();
    assert_ne!(examine(&world).found("clock").level, "warning");
}

#[test]
fn few_file_handles_and_a_missing_freezer_are_warned_of() {
    let world = World::single("kernel");
    let script = "ulimit -n 1024; umount -l /sys/fs/cgroup/freezer 2>/dev/null || umount -l /sys/fs/cgroup";
    let examined = examine_within(&world, &["--mount"], script);
    examined.found("open-files").is("warning", "1024 files", "ulimit -n");
    assert_eq!(examined.found("cgroups").level, "warning");
}

#[test]
fn a_daemon_that_holds_the_lock_and_does_not_answer_is_warned_of() {
    let world = World::single("silent");
    std::fs::create_dir(world.state_dir()).unwrap();
    let lock = world.state_dir().join("lock");
    std::fs::write(&lock, "4321\n").unwrap();
    let held = File::open(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    examine(&world).found("daemon").is("warning", "a daemon (pid 4321) holds the state directory", "end that process");
}

#[test]
fn an_image_that_is_neither_here_nor_built_is_warned_of() {
    let world = World::single("image");
    without_build(&world);
    let reference = format!("arenad-toy/{}:1", world.name);
    examine(&world).found("images").is(
        "warning",
        &format!("{reference} is not here"),
        &format!("docker pull {reference}"),
    );
}

#[test]
fn people_read_areas_levels_and_cures() {
    let world = World::single("words");
    let ran = world.run(&["doctor", &world.name]);
    for heading in ["engine\n", "storage\n", "capacity\n", "network\n", "host\n", "images\n"] {
        assert!(ran.out.contains(heading), "{}", ran.out);
    }
    assert!(
        ran.out.contains("  ok       Docker ") && ran.out.contains("\nimages\n  note     still to be built: "),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\x1b'), "colour is for terminals");
    // Without an environment, the doctor examines only the host.
    let ran = world.run(&["doctor"]);
    assert!(!ran.out.contains("(for toy)") && ran.out.contains("`arenad doctor mini` also checks"), "{}", ran.out);
    let report = world.run(&["doctor", "--json"]).json();
    assert!(report["environment"].is_null() && report["level"].is_string(), "{report:#}");
    world.run(&["doctor", "nothing-like-it"]).code(2).says("nothing-like-it");
    assert!(!world.state_dir().exists(), "no daemon was started for it");
}
