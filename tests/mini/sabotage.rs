//! Standbys of the forge that another process changes an instant before the reset. For every kind of store, and whether
//! or not the change has reached a disk, the change is reported and the standby does not serve.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::arena::Arena;

/// The time limit for the preparation of a standby on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The changes, and the differences that name them.
const CHANGES: [(&[&str], &str); 4] = [
    (
        &[
            "psql",
            "-h",
            "/run/forge",
            "-U",
            "forge",
            "forge",
            "-c",
            "update projects set description = 'x' where id = 1",
        ],
        "table projects",
    ),
    // A sequence writes to the log for 32 numbers at once, so this number is not written to any file.
    (
        &["psql", "-h", "/run/forge", "-U", "forge", "forge", "-c", "select nextval('projects_id_seq')"],
        "counter projects_id_seq",
    ),
    // A key is only in memory.
    (&["valkey-cli", "-s", "/run/forge/valkey.sock", "set", "sabotage", "1"], "key sabotage"),
    (&["sh", "-c", "echo sabotage >/data/sabotage"], "files: sabotage"),
];

#[test]
fn a_standby_that_is_changed_in_any_store_does_not_serve() {
    let arena = Arena::up(&["gitlab"]);
    let before = arena.exec("gitlab", &["/srv/forge/dump"]);
    arena.reset("gitlab");
    for (command, _) in CHANGES {
        change_standby(&arena, command);
        assert_ne!(arena.reset("gitlab"), "swap", "after {command:?}");
    }
    assert!(arena.exec("gitlab", &["/srv/forge/dump"]) == before, "the baseline is back");
    let events = String::from_utf8(arena.arenad(&["events"]).stdout).expect("text");
    for (command, named) in CHANGES {
        let is_named = |line: &str| line.contains("discarded: differs from its snapshot") && line.contains(named);
        assert!(events.lines().any(is_named), "{command:?} is named in:\n{events}");
    }
    // After a swap, no connection of arenad is left on the database server of the serving containers.
    standby(&arena);
    assert_eq!(arena.reset("gitlab"), "swap");
    let others = "select count(*) from pg_stat_activity where usename = 'reader'";
    let deadline = Instant::now() + PATIENCE;
    let count = || arena.exec("gitlab", &["psql", "-h", "/run/forge", "-U", "forge", "forge", "-Atc", others]);
    while count().trim() != "0" {
        assert!(Instant::now() < deadline, "a connection of ours stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs a command in the container of a standby. A standby that answers late, or in which a check found the change
/// before the command ended, is removed meanwhile; then another is prepared.
fn change_standby(arena: &Arena, command: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let standby = standby(arena);
        let output = Command::new("docker").args(["exec", &standby]).args(command).output().expect("docker runs");
        if output.status.success() {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(Instant::now() < deadline, "{command:?}: {}: {said}", output.status);
    }
}

/// Waits for a running standby and returns its container.
fn standby(arena: &Arena) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status: Value = serde_json::from_slice(&arena.arenad(&["status", "--json"]).stdout).expect("JSON");
        let site = &status["environments"][0]["sites"][0];
        let members = site["standbys"]["members"].as_array().cloned().unwrap_or_default();
        if let [member] = members.as_slice()
            && member["state"] == "running"
        {
            let installation = status["daemon"]["installation"].as_str().expect("an installation");
            let filters = [
                format!("label=dev.arenad.installation={installation}"),
                format!("label=dev.arenad.generation={}", member["generation"]),
            ];
            let args = ["ps", "--quiet", "--filter", &filters[0], "--filter", &filters[1]];
            let output = Command::new("docker").args(args).output().expect("docker runs");
            return String::from_utf8_lossy(&output.stdout).trim().to_owned();
        }
        assert!(Instant::now() < deadline, "no standby: {}", site["standbys"]);
        std::thread::sleep(Duration::from_millis(300));
    }
}
