//! Something dies at every point of every way of resetting, all of which `arenad::fault` names. Whatever it is and wherever it
//! happens: nothing but the baseline is served after a reset that was said to be done, the next reset works, and nothing stays
//! behind.
//!
//! `ARENAD_TEST_LONG=1` breaks everything at every point. Without it the points take turns, so that each is broken in one way
//! and each way at some; what is killed most often in life, the daemon, is killed at all of them.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use arenad::fault::Point;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::wait::PATIENCE;
use crate::support::world::{Running, list};
use crate::support::{World, within};

const BASELINE: &str = "toy\nconfigured\n";

/// How long it may take until something comes to a point.
const COMES_WITHIN: Duration = Duration::from_secs(90);

/// What a site is told about its state; `@STANDBY@` is how many of it stand by.
const STORES: &str = "    reset: { standby: @STANDBY@ }
    stores:
      notes:
        kind: directory
        path: /srv/state
        volatile: [ { file: \".probe.*\", reason: its own probe writes it and removes it } ]
    writers:
      stop: [ { command: [/bin/true] } ]
      start: [ { command: [/bin/true] } ]
    baseline:\n";

/// How a point is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A reset that a standby is ready for.
    Swap,
    /// A reset without.
    Rewind,
    /// A reset of something whose container is gone.
    Recreate,
    /// A pool whose standby has died: another is made.
    Pool,
}

/// The way that leads to a point; `None`: tests of their own break things there.
fn way_to(point: Point) -> Option<Way> {
    Some(match point {
        Point::SwapChosen | Point::SwapThawed | Point::SwapVerified | Point::SwapRecorded | Point::SwapSwitched => {
            Way::Swap
        }
        Point::ResetHeld
        | Point::ResetRecorded
        | Point::RewindRecorded
        | Point::RewindStopped
        | Point::RewindExchanged
        | Point::RewindStarted
        | Point::RewindProbed
        | Point::RewindVerified
        | Point::Routed => Way::Rewind,
        Point::RecreateRecorded
        | Point::RecreateRemoved
        | Point::RecreateVerified
        | Point::MakeCreated
        | Point::MakeStarted
        | Point::MakeProbed => Way::Recreate,
        Point::StandbyForgotten | Point::StandbyRecorded | Point::StandbyProven | Point::StandbyKept => Way::Pool,
        // What is expected to be reset is not frozen for a minute; `crash.rs` kills at each stage of a baseline.
        Point::StandbyFrozen | Point::StandbyThawed | Point::SnapshotCommitted | Point::SnapshotSaved => return None,
    })
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// `kill -9` of the daemon.
    Daemon,
    /// `kill -9` of all containers of the site.
    Containers,
    /// `kill -9` of what serves in them, by the kernel and not by the engine.
    Processes,
    /// The disk with the state directory is full.
    Disk,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A site whose daemon stops at points.
struct Trial {
    world: World,
    faults: PathBuf,
}

impl Trial {
    /// A site that keeps as many standbys, with its state directory on a small disk of its own.
    fn new(label: &str, standby: usize) -> Self {
        let world = World::single(label);
        world.edit("environment", "    baseline:\n", &STORES.replace("@STANDBY@", &standby.to_string()));
        let faults = world.root().join("faults");
        std::fs::create_dir(&faults).expect("a folder");
        std::fs::create_dir(world.state_dir()).expect("a folder");
        let state = world.state_dir().display().to_string();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "arenad-test", &state]).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a small disk");
        let trial = Self { world, faults };
        trial.up();
        // Standbys are made where they are of use.
        trial.recovers("nothing");
        trial
    }

    /// `arenad up` with a daemon that looks for points.
    #[track_caller]
    fn up(&self) {
        // Its disk is smaller than anybody's should be.
        let mut command = self.world.command(&["up", &self.world.name, "--force"]);
        command.env("ARENAD_FAULTS", &self.faults);
        self.world.start_command(command).ended().code(0);
    }

    fn reset(&self) -> Running {
        self.world.start(&["reset", "toy"])
    }

    fn members(&self) -> Vec<Value> {
        let site = self.world.site().unwrap_or_default();
        site["standbys"]["members"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for one standby that is ready, and no others.
    #[track_caller]
    fn await_standby(&self, moment: &str) {
        within(&format!("a standby after {moment}"), PATIENCE, || {
            let members = self.members();
            let is_ready = |member: &Value| member["state"] == "running" || member["state"] == "frozen";
            (members.len() == 1 && members.iter().all(is_ready)).then_some(())
        });
    }

    /// The containers of standbys.
    fn standbys(&self) -> Vec<String> {
        let serving = list(&self.world.site().unwrap_or_default()["containers"], "id");
        let mut all = self.world.engine.containers(&self.world.label());
        all.retain(|id| !serving.contains(id));
        all
    }

    /// Brings something to a point, breaks something there, and lets it go on; then everything must be well again.
    fn run(&self, point: Point, way: Way, harm: Harm) {
        let moment = format!("{harm} at {point}");
        let begun = Instant::now();
        let stop = self.faults.join(point.name());
        let reached = self.faults.join(format!("{point}.reached"));
        self.world.write("scribble");
        if matches!(way, Way::Swap | Way::Pool) {
            self.await_standby("the last round");
        }
        File::create(&stop).expect("a file");
        let client = match way {
            Way::Swap | Way::Rewind => Some(self.reset()),
            Way::Recreate => {
                self.harm(Harm::Containers);
                Some(self.reset())
            }
            Way::Pool => {
                self.world.engine.docker(&["kill", &self.standbys()[0]]);
                None
            }
        };
        within(&format!("{point}"), COMES_WITHIN, || reached.exists().then_some(()));
        self.harm(harm);
        std::fs::remove_file(&stop).expect("remove a file");
        let said = client.map(Running::ended);
        let is_done = said.as_ref().is_some_and(|said| said.code == 0);
        if let Some(said) = said.filter(|said| said.code != 0) {
            assert!(said.err.contains("error: "), "{moment}: {}", said.err);
        }
        self.repair(harm);
        let _ = std::fs::remove_file(&reached);
        if harm == Harm::Daemon {
            self.up();
        }
        // What was done is seen, and what was not is not seen half done: a container that was killed afterwards serves nothing.
        if let Some(answer) = self.world.get("/cgi-bin/page").filter(|answer| is_done && answer.status == 200) {
            assert_eq!(answer.body, BASELINE, "{moment}");
        }
        self.recovers(&moment);
        eprintln!("{moment}: {:.1} s", begun.elapsed().as_secs_f64());
    }

    /// The next reset works, and there is nothing that should not be.
    fn recovers(&self, moment: &str) {
        let again = self.reset().ended();
        assert_eq!(again.code, 0, "the reset after {moment}: {}", again.err);
        assert_eq!(self.world.page(), BASELINE, "{moment}");
        self.world.run(&["verify", "toy"]).code(0);
    }

    fn harm(&self, harm: Harm) {
        let label = self.world.label();
        match harm {
            Harm::Daemon => self.world.signal_daemon(Signal::KILL),
            Harm::Containers => {
                for id in self.world.engine.containers(&label) {
                    // Some have not been started yet.
                    let _ = self.world.engine.try_docker(&["kill", &id]);
                }
            }
            Harm::Processes => {
                for id in self.world.engine.containers(&label) {
                    let pid = self.world.engine.try_docker(&["inspect", "--format", "{{.State.Pid}}", &id]);
                    let pid = pid.ok().and_then(|pid| pid.trim().parse().ok()).and_then(rustix::process::Pid::from_raw);
                    if let Some(pid) = pid {
                        let _ = rustix::process::kill_process(pid, Signal::KILL);
                    }
                }
            }
            Harm::Disk => {
                let mut file = File::create(self.world.state_dir().join("filler")).expect("a file");
                while file.write_all(&[0; 1 << 16]).is_ok() {}
            }
        }
    }

    fn repair(&self, harm: Harm) {
        if harm == Harm::Disk {
            std::fs::remove_file(self.world.state_dir().join("filler")).expect("remove a file");
        }
    }

    /// Takes everything down; nothing is left.
    fn end(self) {
        self.world.run(&["down"]).code(0);
        self.world.assert_down();
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.world.signal_daemon(Signal::KILL);
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.world.state_dir().join("arenad.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the daemon's log ends:\n{}", lines[lines.len().saturating_sub(25)..].join("\n"));
        }
        // Lazily: what a test that failed has left running may still be in it.
        let _ = Command::new("umount").arg("--lazy").arg(self.world.state_dir()).status();
    }
}

fn is_long() -> bool {
    std::env::var_os("ARENAD_TEST_LONG").is_some()
}

/// Breaks something at all points of these ways: in every way in the long run, in one of those in turn otherwise.
fn break_at_all(label: &str, standby: usize, ways: &[Way], harms: &[Harm]) {
    let trial = Trial::new(label, standby);
    let points = Point::ALL.iter().filter_map(|point| Some((*point, way_to(*point)?)));
    for (turn, (point, way)) in points.filter(|(_, way)| ways.contains(way)).enumerate() {
        let one = [harms[turn % harms.len()]];
        for harm in if is_long() { harms } else { &one } {
            trial.run(point, way, *harm);
        }
    }
    trial.end();
}

const OTHERS: [Harm; 3] = [Harm::Containers, Harm::Processes, Harm::Disk];

#[test]
fn the_daemon_is_killed_at_every_point_of_resets_in_place_and_anew() {
    break_at_all("points-daemon", 0, &[Way::Rewind, Way::Recreate], &[Harm::Daemon]);
}

#[test]
fn the_daemon_is_killed_at_every_point_of_standbys() {
    break_at_all("points-daemon-pool", 1, &[Way::Swap, Way::Pool], &[Harm::Daemon]);
}

#[test]
fn what_serves_dies_or_has_no_room_at_every_point_of_resets_in_place_and_anew() {
    break_at_all("points-others", 0, &[Way::Rewind, Way::Recreate], &OTHERS);
}

#[test]
fn what_serves_dies_or_has_no_room_at_every_point_of_standbys() {
    break_at_all("points-others-pool", 1, &[Way::Swap, Way::Pool], &OTHERS);
}
