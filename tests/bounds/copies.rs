//! SQLite databases are copied before they are read. A database that is too large, and a disk without room for the copy,
//! are reported with their cause and a hint; the site's next reset works.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::World;
use crate::support::world::{CommandOutput, list};

/// The page of the toy site's baseline.
const BASELINE: &str = "toy\nconfigured\n";

/// A user who has no account, in whose installation there is no state root: files are read through the engine.
const USER: u32 = 47_111;

/// Makes a small database.
const MAKE: &str = "import sqlite3, sys\n\
    d = sqlite3.connect(sys.argv[1]); d.execute('create table t (a)'); d.execute('insert into t values (42)'); d.commit()";

/// A locator of the database's only value.
const LOCATOR: &str = "sql(lite): SELECT a FROM t";

/// The reason for which a hole of five gigabytes is not copied.
const TOO_LARGE: &str = "copy the database: /srv/state/lite.db of toy has 5368709120 bytes, which is more than 4 GiB";

/// Declares a database, which the toy site's image has, and compares it.
fn declare(world: &World) {
    let path = world.root().join("compose/toy/root/srv/state/lite.db");
    let made = Command::new("python3").args(["-c", MAKE]).arg(path).status();
    assert!(made.unwrap().success());
    let declared = "    databases: { lite: { engine: sqlite, path: /srv/state/lite.db } }\n    \
                    stores: { lite: { kind: sqlite, path: /srv/state/lite.db } }\n    baseline:\n";
    world.edit("environment", "    baseline:\n", declared);
}

/// A small file system in memory over a folder; it is unmounted when the value is dropped.
struct Small(PathBuf);

impl Small {
    /// Mounts it, writable for a user.
    fn over(folder: &Path, user: u32) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let options = format!("size=1m,mode=0700,uid={user}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder).status();
        assert!(mount.unwrap().success());
        Self(folder.to_owned())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Runs a script as root in the site's container, as a compromised site would.
fn within(world: &World, script: &str) {
    let id = list(&world.site().unwrap()["containers"], "id").remove(0);
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", script]);
}

fn verified(world: &World) -> CommandOutput {
    world.run(&["verify", "toy"])
}

fn located(world: &World) -> CommandOutput {
    world.run(&["locate", "toy", LOCATOR, "--json"])
}

/// Insists that a locator finds no value for a reason, and on a part of the hint.
#[track_caller]
fn refused(world: &World, reason: &str, hint: &str) {
    let refused = located(world).code(1);
    let said: Value = serde_json::from_str(&refused.err).unwrap_or_else(|error| panic!("{error}: {}", refused.err));
    assert!(said["error"].as_str().unwrap_or_default().contains(reason), "{said:#}");
    assert!(said["hint"].as_str().unwrap_or_default().contains(hint), "{said:#}");
}

/// Insists that a reset brings the baseline back, and that the database can be read again.
#[track_caller]
fn recovers(world: &World) {
    world.reset();
    assert_eq!(world.page(), BASELINE);
    verified(world).code(0);
    assert_eq!(located(world).code(0).json()["value"], 42);
}

/// Insists that both ways of reading name a full disk with what to do, and that the next reset works.
fn a_full_disk_is_told(world: &World, user: u32) {
    let copies = Small::over(&world.state_dir().join("copies"), user);
    let databases = Small::over(&world.state_dir().join("locators/databases"), user);
    within(world, "dd if=/dev/urandom of=/srv/state/lite.db bs=64k count=64");
    verified(world).code(1).says("No space left on device").says("free some disk space");
    refused(world, "would take more than half of the", "`arenad df`");
    // The copies of the baseline's database fit.
    recovers(world);
    for folder in [&copies, &databases] {
        let left = std::fs::read_dir(&folder.0).unwrap().count();
        assert_eq!(left, 0, "{} has copies", folder.0.display());
    }
}

#[test]
fn what_cannot_be_copied_through_the_engine_is_told_with_a_hint() {
    let world = World::as_user("copies-engine", USER);
    declare(&world);
    world.up();
    world.run(&["status"]).prints("there is no state root");
    assert_eq!(located(&world).code(0).json()["value"], 42);
    // A hole of five gigabytes.
    within(&world, "dd if=/dev/zero of=/srv/state/lite.db bs=1 count=0 seek=5368709120");
    verified(&world).code(1).says("the database has more than 4096 MiB").says("remove or shorten the file");
    refused(&world, TOO_LARGE, "remove or shorten the file");
    recovers(&world);
    a_full_disk_is_told(&world, USER);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn what_cannot_be_copied_from_the_state_root_is_told_with_a_hint() {
    let world = World::single("copies-root");
    declare(&world);
    world.up();
    within(&world, "dd if=/dev/zero of=/srv/state/lite.db bs=1 count=0 seek=5368709120");
    refused(&world, TOO_LARGE, "remove or shorten the file");
    recovers(&world);
    a_full_disk_is_told(&world, 0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}
