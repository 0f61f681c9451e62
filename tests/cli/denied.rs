//! A user who is not in the engine's group, and one who has just joined it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::user::{self, USER};
use crate::support::World;
use crate::support::wait::{PATIENCE, within};
use crate::support::world::RunningCommand;

/// Starts a daemon as an earlier `up` of a user outside the group left it.
fn daemon_outside_the_group(world: &World) -> RunningCommand {
    let state_dir = world.state_dir().display().to_string();
    let daemon = user::start(world, &["serve", "--background", "--state-dir", &state_dir]);
    within("the daemon's answer", PATIENCE, || world.api("/v1/status"));
    daemon
}

/// Waits until the daemon has exited.
fn is_gone(world: &World, mut daemon: RunningCommand) {
    within("the daemon's end", PATIENCE, || daemon.has_ended().then_some(()));
    assert!(world.daemon().is_none());
}

#[test]
fn a_failing_test_leaves_no_daemon_of_another_user() {
    let mut pid = None;
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let world = World::as_user("failing", USER);
        let _daemon = daemon_outside_the_group(&world);
        pid = world.daemon();
        panic!("a test fails");
    }));
    assert!(failed.is_err());
    // A zombie has no command line.
    let file = format!("/proc/{}/cmdline", pid.expect("a daemon").as_raw_nonzero());
    assert!(std::fs::read(file).unwrap_or_default().is_empty(), "the daemon still runs");
}

#[test]
fn without_permission_nothing_is_started_and_the_way_to_get_it_is_told() {
    let world = World::as_user("outside", USER);
    let refused =
        user::run(&world, &["up", &world.name]).code(1).says("this user may not open").says("Permission denied");
    refused.says("usermod -aG").says("newgrp").says("log in again");
    assert!(world.daemon().is_none(), "no daemon is left behind");
    assert!(!world.state_dir().join("arenad.db").exists());
    user::run(&world, &["down"]).code(0).says("nothing is up");
    user::run(&world, &["df"]).code(1).says("usermod -aG");
    assert!(world.daemon().is_none());
}

#[test]
fn a_daemon_without_its_engine_can_be_ended_and_is_replaced() {
    let world = World::as_user("joined", USER);
    // Without containers, the daemon only has to exit.
    let daemon = daemon_outside_the_group(&world);
    let text = |kind: &str| {
        let path = world.file(kind);
        json!({ "path": path, "text": std::fs::read_to_string(&path).unwrap() })
    };
    let up = json!({
        "root": world.root(), "variables": {}, "dotenv": null,
        "environment": text("environment"), "compose": text("compose"),
    });
    put(&world, &format!("/v1/environments/{}", world.name), &up);
    within("the site's failure", PATIENCE, || (world.state() == "failed").then_some(()));
    user::run(&world, &["up", &world.name]).code(1).says("this user may not open").says("usermod -aG");
    let down = user::run(&world, &["down"]).code(0).says(&format!("taking down {}: toy", world.name));
    down.says("the daemon has stopped").says("usermod -aG");
    is_gone(&world, daemon);

    // The daemon does not notice that the user joins the group.
    let daemon = daemon_outside_the_group(&world);
    world.up().says("replacing the daemon");
    assert_eq!(world.state(), "ready");
    drop(daemon);

    // Containers exist, and the daemon cannot reach them: it exits, and the record of them is kept.
    let pid = world.daemon().unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    within("the daemon's end", PATIENCE, || world.daemon().is_none().then_some(()));
    let daemon = daemon_outside_the_group(&world);
    let down = user::run(&world, &["down", "--purge", "--yes"]).code(1);
    let down = down.says("could not be removed").says(&format!("networks and volumes of {}/toy", world.name));
    down.says("the snapshots ").says("images that were built here").says("then `arenad down --purge` removes them");
    is_gone(&world, daemon);
    assert_ne!(world.engine.containers(&world.label()), [""; 0], "they run on");
    assert!(world.state_dir().join("arenad.db").exists(), "what knows them is kept");
    user::run(&world, &["down"]).code(1).says("this user may not open");

    world.run(&["down", "--purge", "--yes"]).code(0).says("nothing is up any more");
    world.assert_down();
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
    assert!(!world.state_dir().join("arenad.db").exists());
}

fn put(world: &World, path: &str, body: &serde_json::Value) {
    let client = reqwest::Client::builder().unix_socket(world.state_dir().join("arenad.sock")).no_proxy();
    let request = client.build().unwrap().put(format!("http://arenad{path}")).json(body);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async { request.send().await.unwrap().status() });
    assert_eq!(answer.as_u16(), 202);
}

/// Returns the entries of a folder that other users may read, except the trees of sites' stores.
fn left_open(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let seen = std::fs::symlink_metadata(&path).unwrap();
        if seen.is_dir() && path.file_name().is_none_or(|name| name != "stores") {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        if seen.mode() & 0o077 != 0 && !seen.is_symlink() {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_state_directory_is_closed_to_other_users_whoever_makes_it() {
    let world = World::single("closed");
    world.up();
    assert_eq!(left_open(&world.state_dir()), Vec::<PathBuf>::new(), "made by `up`");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    assert_eq!(left_open(&world.state_dir()), Vec::<PathBuf>::new(), "with a snapshot");
    world.run(&["down"]).code(0);
    // The folder as an earlier version left it.
    std::fs::create_dir_all(world.state_dir().join("volumes")).unwrap();
    for name in ["", "arenad.db", "arenad.log", "volumes"] {
        let path = world.state_dir().join(name);
        let open = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
    }
    world.up();
    assert_eq!(left_open(&world.state_dir()), Vec::<PathBuf>::new(), "corrected at the start");
    world.page();
}

#[test]
fn a_folder_of_somebody_else_does_not_become_the_state_directory() {
    let world = World::single("foreign");
    std::fs::create_dir(world.state_dir()).unwrap();
    std::fs::write(world.state_dir().join("thesis.tex"), "").unwrap();
    std::fs::set_permissions(world.state_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.run(&["serve"]).code(1).says("what is in it is not arenad's");
    assert_eq!(world.state_dir().metadata().unwrap().mode() & 0o777, 0o755);
}
