//! Interference with containers and daemons without arenad, by Docker's own client and by signals.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::arena::Arena;

/// Runs Docker's client; an error about an object that is already gone is ignored.
fn docker(args: &[&str]) -> (bool, String) {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// The full ids of the containers that serve a site.
pub fn serving(arena: &Arena, site: &str) -> Vec<String> {
    arena.containers(site).into_iter().map(|(_, id)| id).collect()
}

/// The full ids of a site's other containers: its standbys, including those in preparation.
fn standing_by(arena: &Arena, site: &str) -> Vec<String> {
    let serving = serving(arena, site);
    let label = |name: &str, value: &str| format!("label=dev.arenad.{name}={value}");
    let (installation, site) = (label("installation", &arena.installation()), label("site", site));
    let filters = ["--filter", &installation, "--filter", &site, "--filter", "label=dev.arenad.role=instance"];
    let (_, listed) = docker(&[&["ps", "--quiet", "--no-trunc"], &filters[..]].concat());
    listed.lines().filter(|id| !serving.iter().any(|served| served == id)).map(str::to_owned).collect()
}

/// Returns whether a site has a container that does not serve.
pub fn has_standby(arena: &Arena, site: &str) -> bool {
    !standing_by(arena, site).is_empty()
}

/// Kills the containers that serve a site.
pub fn kill_serving(arena: &Arena, site: &str) {
    for id in serving(arena, site) {
        let (is_done, said) = docker(&["kill", &id]);
        assert!(is_done, "kill {site}: {said}");
    }
}

/// Pauses the containers that serve a site.
pub fn pause_serving(arena: &Arena, site: &str) {
    for id in serving(arena, site) {
        let (is_done, said) = docker(&["pause", &id]);
        assert!(is_done, "pause {site}: {said}");
    }
}

/// Kills or pauses all standbys. arenad may have removed or paused some meanwhile.
pub fn each_standby(arena: &Arena, site: &str, what: &str) {
    for id in standing_by(arena, site) {
        docker(&[what, &id]);
    }
}

/// Runs a Docker command on containers after a time, and optionally its opposite after another. The containers may have
/// been removed by then.
pub fn to_each(containers: &[String], what: &str, after: Duration, undone: Option<(Duration, &str)>) {
    std::thread::sleep(after);
    for id in containers {
        docker(&[what, id]);
    }
    if let Some((after, how)) = undone {
        std::thread::sleep(after);
        for id in containers {
            docker(&[how, id]);
        }
    }
}

/// Kills the daemon as `kill -9` does, and starts another, which takes up the containers.
pub fn kill_daemon(arena: &Arena) {
    arena.signal_daemon(Signal::KILL);
    arena.up_again();
}

/// Stops the daemon's process after `after`, for `time`.
pub fn stop_daemon_for(arena: &Arena, after: Duration, time: Duration) {
    std::thread::sleep(after);
    let daemon = arena.daemon();
    kill_process(daemon, Signal::STOP).expect("the daemon is stopped");
    std::thread::sleep(time);
    kill_process(daemon, Signal::CONT).expect("the daemon goes on");
}

/// Resets a site while `act` runs; returns the way of the reset, or the error.
pub fn reset_while(arena: &Arena, site: &str, act: impl FnOnce() + Send) -> Result<String, String> {
    std::thread::scope(|scope| {
        let told = scope.spawn(|| arena.try_reset(site));
        act();
        told.join().expect("the client ends")
    })
}

/// Takes everything down, and asserts that the engine has no running or reachable object of the arena.
pub fn assert_nothing_is_left(arena: &Arena) {
    let down = arena.arenad(&["down"]);
    assert!(down.status.success(), "arenad down: {}", String::from_utf8_lossy(&down.stderr));
    let filter = format!("label=dev.arenad.installation={}", arena.installation());
    for list in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
        let (is_done, listed) = docker(&[list, &["--quiet", "--filter", &filter]].concat());
        assert!(is_done && listed.is_empty(), "after `down`, docker {list:?}: {listed}");
    }
}
