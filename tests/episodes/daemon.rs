//! A daemon that takes commands about episodes: this test program, run again as a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arenad_daemon::slots::EpisodeSettings;
use arenad_daemon::{Daemon, DaemonSettings};
use arenad_engine::docker::DockerEngine;
use arenad_episodes::{EpisodeHandle, EpisodeView};
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, Owner};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::request::{EpisodeRequest, SiteWant, StartPoint};
use arenad_model::ids::{EnvironmentName, SiteId, SiteName};
use serde_json::{Value, json};

use crate::support::World;
use rustix::process::Signal;

/// The variable that names the state directory of the daemon.
const STATE_DIR: &str = "ARENAD_TEST_EPISODES";
/// The beginning of the lines that are answers.
const ANSWER: &str = "answer: ";

/// A running daemon of a world.
pub struct EpisodeDaemon<'a> {
    world: &'a World,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl<'a> EpisodeDaemon<'a> {
    /// Starts a daemon, and waits until it has restored what the last one left.
    pub fn start(world: &'a World) -> Self {
        let state_dir = world.state_dir();
        let log = File::options().create(true).append(true).open(world.root().join("episodes.log")).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["episodes::daemon::serve", "--exact", "--ignored", "--nocapture"])
            // The world recognises its daemon by this argument. As a filter it selects no test.
            .arg(&state_dir)
            .env(STATE_DIR, &state_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut daemon = Self { world, child, commands, answers };
        daemon.answer();
        daemon
    }

    #[track_caller]
    fn answer(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.answers.read_line(&mut line).unwrap();
            assert!(read > 0, "the daemon ended; its log is in {}", self.world.root().display());
            if let Some((_, answer)) = line.split_once(ANSWER) {
                return serde_json::from_str(answer).unwrap();
            }
        }
    }

    #[track_caller]
    fn say(&mut self, command: &str) -> Value {
        writeln!(self.commands, "{command}").unwrap();
        self.answer()
    }

    /// Asks for an episode, and returns its id. Each site is `NAME`, `NAME:SLOT` or `NAME@SNAPSHOT`.
    #[track_caller]
    pub fn ask(&mut self, sites: &str) -> String {
        let asked = self.say(&format!("ask {} {sites}", self.world.name));
        asked["id"].as_str().unwrap_or_else(|| panic!("{asked:#}")).to_owned()
    }

    /// Waits until an episode is active or has ended, and returns it.
    #[track_caller]
    pub fn wait(&mut self, id: &str) -> Value {
        self.say(&format!("wait {id}"))
    }

    /// Returns the state of an episode.
    #[track_caller]
    pub fn get(&mut self, id: &str) -> Value {
        self.say(&format!("get {id}"))
    }

    /// Asks for an episode and waits until it is active.
    #[track_caller]
    pub fn active(&mut self, sites: &str) -> String {
        let id = self.ask(sites);
        let episode = self.wait(&id);
        assert_eq!(episode["status"], "active", "{episode:#}");
        id
    }

    /// Ends an episode, and returns when its connections are cut.
    #[track_caller]
    pub fn release(&mut self, id: &str) {
        let released = self.say(&format!("release {id}"));
        assert_eq!(released["status"], "released", "{released:#}");
    }

    /// Ends the daemon without warning.
    pub fn kill(mut self) {
        self.world.signal_daemon(Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for EpisodeDaemon<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.world.root().join("episodes.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the daemon's log ends:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves the state directory, and executes the commands from standard input.
#[test]
#[ignore = "the other tests run it as a process"]
fn serve() {
    let Some(state_dir) = std::env::var_os(STATE_DIR).map(PathBuf::from) else { return };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let daemon = runtime.block_on(Daemon::start(DaemonSettings {
        state_dir,
        engine: Arc::new(DockerEngine::new("unix:///var/run/docker.sock")),
        block: "10.99.0.0/16".parse().unwrap(),
        parallel: None,
        standby_boots: NonZeroUsize::MIN,
        memory_reserve: 512 << 20,
        record_retention: Default::default(),
        tcp: None,
        proxy: None,
        compat: None,
        openenv: None,
        episodes: EpisodeSettings::default(),
        socket_group: None,
        background: false,
    }));
    let daemon = daemon.unwrap();
    println!("{ANSWER}{{}}");
    for line in std::io::stdin().lines() {
        let answer = runtime.block_on(execute(daemon.episodes(), &line.unwrap()));
        println!("{ANSWER}{answer}");
    }
    runtime.block_on(daemon.stop());
}

async fn execute(episodes: &EpisodeHandle, command: &str) -> Value {
    let words: Vec<&str> = command.split(' ').collect();
    let shown = match words.as_slice() {
        ["ask", environment, sites @ ..] => match episodes.ask(request(environment, sites)).await {
            Ok(receipt) => return json!({ "id": receipt.id.to_string() }),
            Err(error) => Err(error),
        },
        ["wait", id] => episodes.wait(&episode(id)).await,
        ["get", id] => episodes.get(&episode(id)),
        ["release", id] => match episodes.release(&episode(id)).await {
            Ok(()) => episodes.get(&episode(id)),
            Err(error) => Err(error),
        },
        _ => panic!("unknown command {command:?}"),
    };
    shown.map_or_else(|error| json!({ "error": error.to_string() }), |view| shown_view(&view))
}

fn episode(id: &str) -> EpisodeId {
    id.parse().unwrap()
}

fn request(environment: &str, sites: &[&str]) -> EpisodeRequest {
    let want = |text: &&str| {
        let (text, start) = match text.split_once('@') {
            Some((site, snapshot)) => (site, StartPoint::Snapshot(snapshot.to_owned())),
            None => (*text, StartPoint::Baseline),
        };
        let (site, slot) =
            text.split_once(':').map_or((text, None), |(site, slot)| (site, Some(slot.parse().unwrap())));
        let environment = EnvironmentName::parse(environment).unwrap();
        SiteWant { site: SiteId { environment, site: SiteName::parse(site).unwrap() }, slot, start }
    };
    EpisodeRequest {
        owner: Owner::parse("tests").unwrap(),
        key: None,
        sites: sites.iter().map(want).collect(),
        terms: EpisodeTerms::new(Duration::from_secs(600), Duration::from_secs(120)).unwrap(),
        labels: EpisodeLabels::default(),
        record: Default::default(),
        beginning: None,
        replays: Vec::new(),
    }
}

fn shown_view(view: &EpisodeView) -> Value {
    let ending = view.state.ending();
    let slots = view.slots.iter().map(|slot| json!([slot.instance.to_string(), slot.generation]));
    json!({
        "status": view.state.status().name(),
        "cause": ending.map(|ending| ending.code()),
        "detail": ending.map(|ending| ending.detail()),
        "slots": slots.collect::<Vec<_>>(),
    })
}
