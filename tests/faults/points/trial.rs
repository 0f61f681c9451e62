//! A site whose daemon stops at fault points, and the assertions after a failure there.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use arenad_seams::fault::Point;
use rustix::process::Signal;

use super::harm::{Harm, kill_containers};
use super::is_long;
use super::leftovers::{left_in_state_root, left_over, mounts_below};
use super::ways::FaultOperation;
use crate::support::wait::PATIENCE;
use crate::support::world::{CommandOutput, RunningCommand, list};
use crate::support::{OwnEngine, World, until, within};

const BASELINE: &str = "toy\nconfigured\n";

/// The time limit for an operation to reach a point.
const COMES_WITHIN: Duration = Duration::from_secs(90);

/// The time limit for leftovers to be removed: two passes of reconciliation, which are a minute apart.
const GOES_WITHIN: Duration = Duration::from_secs(180);

/// The site's declarations about its state; `@STANDBYS@` is replaced by the number of standbys.
const STORES: &str = "    reset: { standby: @STANDBYS@ }
    stores:
      notes:
        kind: directory
        path: /srv/state
        volatile: [ { file: \".probe.*\", reason: its own probe writes it and removes it } ]
    writers:
      stop: [ { command: [/bin/true] } ]
      start: [ { command: [/bin/true] } ]
    baseline:\n";

/// The configuration step that distinguishes one baseline from another.
fn step(baseline: usize) -> String {
    format!("true {baseline} && echo configured")
}

/// A site whose daemon stops at fault points.
pub struct FaultTrial {
    world: World,
    /// The engine of the site, if the trials kill it.
    engine: Option<OwnEngine>,
    faults: PathBuf,
    /// The number of standbys that it keeps.
    standbys: usize,
    /// The number of trials so far.
    round: usize,
    /// The number of its baselines so far.
    baselines: usize,
}

impl FaultTrial {
    /// Creates a site that keeps this many standbys, either on an engine of its own or with its state directory on a
    /// small disk.
    pub fn new(label: &str, standbys: usize, has_engine: bool) -> Self {
        let engine = has_engine.then(OwnEngine::start);
        let world = engine.as_ref().map_or_else(|| World::single(label), |engine| World::on(engine, label));
        world.edit("environment", "    baseline:\n", &STORES.replace("@STANDBYS@", &standbys.to_string()));
        world.edit("environment", "echo configured", &step(0));
        let faults = world.root().join("faults");
        std::fs::create_dir(&faults).expect("a folder");
        if engine.is_none() {
            std::fs::create_dir(world.state_dir()).expect("a folder");
            let state = world.state_dir().display().to_string();
            let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "arenad-test", &state]).status();
            assert!(mounted.is_ok_and(|status| status.success()), "a small disk");
        }
        let trial = Self { world, engine, faults, standbys, round: 0, baselines: 0 };
        trial.up();
        // Standbys are prepared only once a site is used.
        trial.recovers("nothing");
        trial
    }

    /// Starts `arenad up` with a daemon that stops at fault points.
    fn start_up(&self) -> RunningCommand {
        // The disk is smaller than arenad recommends.
        self.world.start_with_faults(&["up", &self.world.name, "--force"], &self.faults)
    }

    #[track_caller]
    fn up(&self) {
        self.start_up().ended().code(0);
    }

    /// Stops the daemon and starts another.
    fn replace_daemon(&self) {
        self.world.signal_daemon(Signal::TERM);
        self.up();
    }

    fn reset(&self) -> RunningCommand {
        self.world.start(&["reset", "toy"])
    }

    /// Brings an operation to a point, causes a failure there, and lets the operation continue; afterwards the site
    /// must recover.
    pub fn run(&mut self, point: Point, way: FaultOperation, harm: Harm) {
        let moment = format!("{harm} at {point} of {way:?}");
        let begun = Instant::now();
        self.round += 1;
        self.world.write("scribble");
        let before = self.world.page();
        self.await_standbys(&moment);
        if way == FaultOperation::SwapFrozen {
            self.replace_daemon();
            until("a frozen standby", PATIENCE, || self.standby_states(), |states| *states == ["frozen"]);
        }

        let client = self.bring_to(point, way);
        harm.strike(&self.world, self.engine.as_mut());
        self.let_go(point);
        let is_done = client.is_some_and(|client| {
            let said = client.ended();
            assert!(said.code == 0 || said.err.contains("error: "), "{moment}: {}", said.err);
            said.code == 0
        });

        // This also holds while the engine or the disk is away. A reset that failed or was interrupted may have left
        // the old containers serving.
        self.assert_honest(&moment, &before, !way.is_reset() || !is_done);
        harm.repair(&self.world, self.engine.as_mut());
        if harm == Harm::Daemon || way == FaultOperation::Baseline {
            self.up();
            self.assert_honest(&moment, &before, way != FaultOperation::Baseline && !(way.is_reset() && is_done));
        }
        if way == FaultOperation::Take {
            self.assert_taken_whole(&moment, &before, is_done);
        }
        self.recovers(&moment);
        if self.has_taken() {
            self.world.run(&["snapshot", "rm", &self.taken()]).code(0);
        }
        eprintln!("{moment}: {:.1} s", begun.elapsed().as_secs_f64());
    }

    /// Starts a way and waits until an operation has reached a point of it; returns the waiting client.
    #[track_caller]
    fn bring_to(&mut self, point: Point, way: FaultOperation) -> Option<RunningCommand> {
        File::create(self.faults.join(point.name())).expect("a file");
        let client = self.set_out(way);
        let reached = self.faults.join(format!("{point}.reached"));
        within(&format!("{point} of {way:?}"), COMES_WITHIN, || std::fs::remove_file(&reached).ok());
        client
    }

    fn let_go(&self, point: Point) {
        std::fs::remove_file(self.faults.join(point.name())).expect("remove a file");
    }

    /// Corrupts the clone that the operation at a point uses; returns the client's output, if there is a client.
    pub fn corrupt(&mut self, point: Point, way: FaultOperation) -> Option<CommandOutput> {
        self.round += 1;
        self.world.write("scribble");
        self.await_standbys(&format!("{point} of {way:?}"));
        let client = self.bring_to(point, way);
        let notes = self.clone_in_the_making().join("toy-srv-state/notes");
        std::fs::write(&notes, "configured, forged\n").expect("write into a clone");
        self.let_go(point);
        client.map(RunningCommand::ended)
    }

    /// The folder of the generation in preparation: of a standby, or else of the next serving containers.
    fn clone_in_the_making(&self) -> PathBuf {
        let site = self.world.site().unwrap_or_default();
        let members = site["standbys"]["members"].as_array().cloned().unwrap_or_default();
        // A standby in removal counts as one in preparation, too.
        let making = members.iter().rfind(|member| member["state"] == "making");
        let folder = self.world.state_dir().join(format!("stores/instances/{}.toy.1", self.world.name));
        let newest = || {
            let all = std::fs::read_dir(&folder).expect("a folder").flatten();
            all.filter_map(|entry| entry.file_name().to_str()?.strip_prefix('g')?.parse().ok()).max()
        };
        let generation = making.map_or_else(newest, |making| making["generation"].as_u64()).expect("a generation");
        folder.join(format!("g{generation}"))
    }

    /// Asserts the number of events that contain a text.
    #[track_caller]
    pub fn assert_told(&self, text: &str, count: usize) {
        let events = self.world.run(&["events"]).code(0).out;
        let found = events.lines().filter(|line| line.contains(text)).count();
        assert_eq!(found, count, "{text:?} in:\n{events}");
    }

    /// Asserts that clients receive no page of the site.
    #[track_caller]
    pub fn assert_refuses(&self) {
        assert_eq!(self.world.get("/cgi-bin/page").expect("an answer of the gateway").status, 503);
    }

    /// Starts a way; returns the client that waits for its end, if there is one.
    fn set_out(&mut self, way: FaultOperation) -> Option<RunningCommand> {
        match way {
            FaultOperation::Swap
            | FaultOperation::SwapFrozen
            | FaultOperation::Rewind
            | FaultOperation::Renew
            | FaultOperation::Thaw => Some(self.reset()),
            FaultOperation::Recreate => {
                kill_containers(&self.world);
                Some(self.reset())
            }
            FaultOperation::Pool | FaultOperation::Freeze => {
                self.world.engine.docker(&["kill", &self.standby()]);
                None
            }
            FaultOperation::Take => Some(self.world.start(&["snapshot", "take", "toy", "--name", &self.taken()])),
            FaultOperation::Baseline => {
                self.world.edit("environment", &step(self.baselines), &step(self.baselines + 1));
                self.baselines += 1;
                Some(self.start_up())
            }
        }
    }

    /// Waits for the configured number of standbys, all of them ready and at most one of them running.
    #[track_caller]
    pub fn await_standbys(&self, moment: &str) {
        until(
            &format!("standbys before {moment}"),
            PATIENCE,
            || self.standby_states(),
            |states| {
                let count = |wanted: &str| states.iter().filter(|state| *state == wanted).count();
                let running = count("running");
                states.len() == self.standbys && running <= 1 && running + count("frozen") == self.standbys
            },
        );
    }

    fn standby_states(&self) -> Vec<String> {
        list(&self.world.site().unwrap_or_default()["standbys"]["members"], "state")
    }

    /// The container of a ready standby.
    fn standby(&self) -> String {
        // A standby whose container ended with the engine stays a member until the daemon notices.
        within("a standby that runs", PATIENCE, || {
            let site = self.world.site().unwrap_or_default();
            let generation = format!("label=dev.arenad.generation={}", site["standbys"]["members"][0]["generation"]);
            let ours = format!("label={}", self.world.label());
            let found = self.world.engine.docker(&["ps", "--quiet", "--filter", &generation, "--filter", &ours]);
            (!found.is_empty()).then_some(found)
        })
    }

    /// The name of the snapshot that this round takes.
    fn taken(&self) -> String {
        format!("taken{}", self.round)
    }

    fn has_taken(&self) -> bool {
        let snapshots = self.world.api("/v1/snapshots").unwrap_or_default();
        list(&snapshots["snapshots"], "name").contains(&self.taken())
    }

    /// Checks that completed work is visible and that incomplete work is not half visible. A site without an answer
    /// passes.
    #[track_caller]
    fn assert_honest(&self, moment: &str, before: &str, may_be_old: bool) {
        let answer = self.world.get("/cgi-bin/page").filter(|answer| answer.status == 200);
        if let Some(answer) = answer {
            // A container that dies while it answers has sent only the beginning of the answer.
            let is_honest = BASELINE.starts_with(&answer.body) || (may_be_old && before.starts_with(&answer.body));
            assert!(is_honest, "{moment}: clients see {:?}", answer.body);
        }
    }

    /// Asserts that an existing snapshot has the content of the site at its time.
    #[track_caller]
    fn assert_taken_whole(&self, moment: &str, before: &str, is_done: bool) {
        if self.has_taken() {
            let back = self.world.run(&["reset", "toy", "--to", &self.taken()]);
            assert_eq!(back.code, 0, "the snapshot of {moment}: {}", back.err);
            assert_eq!(self.world.page(), before, "the snapshot of {moment}");
            self.world.run(&["verify", "toy"]).code(0);
        } else {
            assert!(!is_done, "{moment}: it was said to be taken");
        }
    }

    /// Asserts that the next reset works.
    #[track_caller]
    pub fn recovers(&self, moment: &str) {
        let again = self.reset().ended();
        assert_eq!(again.code, 0, "the reset after {moment}: {}", again.err);
        assert_eq!(self.world.page(), BASELINE, "{moment}");
        self.world.run(&["verify", "toy"]).code(0);
    }

    /// Asserts that the trials left no object behind, then takes everything down and asserts that no object is left at
    /// all.
    pub fn end(self) {
        if !is_long() {
            // A running daemon checks the objects that it found at its start only once.
            self.replace_daemon();
        }
        until("nothing is left over", GOES_WITHIN, || left_over(&self.world), Vec::is_empty);
        self.world.run(&["down"]).code(0);
        self.world.assert_down();
        assert_eq!(left_in_state_root(&self.world), [""; 0]);
        let table = self.engine.as_ref().map_or("/proc/self/mountinfo".into(), OwnEngine::mount_table);
        let table = std::fs::read_to_string(table).expect("the mounts");
        let folders = self.engine.iter().map(OwnEngine::data).chain([self.world.state_dir()]);
        let mounts: Vec<String> = folders.flat_map(|folder| mounts_below(&table, &folder)).collect();
        assert_eq!(mounts, [""; 0]);
    }
}

impl Drop for FaultTrial {
    fn drop(&mut self) {
        self.world.signal_daemon(Signal::KILL);
        if self.engine.is_some() {
            return;
        }
        if std::thread::panicking() {
            // The disk is unmounted before the world would print the log.
            let log = std::fs::read_to_string(self.world.state_dir().join("arenad.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the daemon's log ends:\n{}", lines[lines.len().saturating_sub(25)..].join("\n"));
        }
        // The unmount is lazy, because processes that a failed test left running may still use the disk.
        let _ = Command::new("umount").arg("--lazy").arg(self.world.state_dir()).status();
    }
}
