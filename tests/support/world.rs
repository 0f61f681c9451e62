//! A world: a project folder with a toy environment, a state directory, and the program run on both.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::engine::TestEngine;
use super::http::{self, HttpResponse};
use super::last_lines::last_lines;
use super::own_engine::OwnEngine;
use super::wait::{PATIENCE, until, within};

/// The time limit of a command, after which the test fails.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// The range of free ports: below the range that the system uses for outgoing connections.
const PORTS: std::ops::Range<u16> = 12_000..30_000;

/// The result of a command.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// The text on standard output.
    pub out: String,
    /// The text on standard error.
    pub err: String,
}

impl CommandOutput {
    /// Asserts an exit code.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that standard error contains a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in:\n{}", self.err);
        self
    }

    /// Asserts that standard output contains a text.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in:\n{}", self.out);
        self
    }

    /// Parses standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.out) {
            Ok(value) => value,
            Err(error) => panic!("{error} in:\n{}\nstderr:\n{}", self.out, self.err),
        }
    }
}

/// A command that has been started and may still run.
pub struct RunningCommand {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl RunningCommand {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The process of arenad itself, if the command enters the namespaces of the test's own engine first: its only child.
    /// `None` before it has begun, and after its end.
    pub fn within_namespaces(&self) -> Option<Pid> {
        let way_in = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{way_in}/task/{way_in}/children")).ok()?;
        Pid::from_raw(children.trim().parse().ok()?)
    }

    /// Returns whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("look after the command").is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(mut self) -> CommandOutput {
        let deadline = Instant::now() + COMMAND_LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("look after the command") {
                break status;
            }
            if Instant::now() >= deadline {
                self.child.kill().expect("end the command");
                let said = std::fs::read_to_string(&self.err).unwrap_or_default();
                panic!("a command does not end; it said:\n{said}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        CommandOutput {
            code: status.code().unwrap_or(-1),
            out: std::fs::read_to_string(&self.out).unwrap_or_default(),
            err: std::fs::read_to_string(&self.err).unwrap_or_default(),
        }
    }
}

/// A project folder, an installation, and its engine.
pub struct World {
    /// The environment's name, which only a [`World::twin`] shares.
    pub name: String,
    /// The public port of the site `toy`.
    pub port: u16,
    /// The engine of its containers.
    pub engine: TestEngine,
    /// The prefix of every command, which enters the namespaces of the test's own engine.
    prefix: Vec<String>,
    namespace: Option<PathBuf>,
    folder: TempDir,
    commands: std::cell::Cell<u32>,
}

impl World {
    /// A world whose site has one container on the machine's engine.
    pub fn single(label: &str) -> Self {
        Self::new(label, "single", TestEngine::of_the_machine(), Vec::new())
    }

    /// A world whose site has an application and its database on the machine's engine.
    pub fn pair(label: &str) -> Self {
        Self::new(label, "pair", TestEngine::of_the_machine(), Vec::new())
    }

    /// Another installation of this world's environment, whose site has one container on the machine's engine.
    pub fn twin(&self) -> Self {
        Self::defined(self.name.clone(), "single", TestEngine::of_the_machine(), Vec::new())
    }

    /// A world whose site has one container on an engine of the test's own, in that engine's namespaces.
    pub fn on(engine: &OwnEngine, label: &str) -> Self {
        let mut world = Self::new(label, "single", engine.client(), engine.way_in());
        world.namespace = Some(engine.network_namespace());
        world
    }

    /// A world whose site has one container on the machine's engine. All its commands run as another user, whose only
    /// group is the engine's.
    pub fn as_user(label: &str, user: u32) -> Self {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let group = std::fs::metadata("/var/run/docker.sock").expect("the engine's socket").gid();
        let identity = [format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()];
        let prefix = ["setpriv".to_owned()].into_iter().chain(identity).collect();
        let world = Self::new(label, "single", TestEngine::of_the_machine(), prefix);
        let owned = Command::new("chown").args(["-R", &user.to_string()]).arg(world.folder.path()).status();
        assert!(owned.expect("run chown").success());
        std::fs::set_permissions(world.folder.path(), PermissionsExt::from_mode(0o755)).expect("open the folder");
        world
    }

    /// A world without a definition, on the machine's engine.
    pub fn bare(label: &str) -> Self {
        Self::empty(unique_name(label), TestEngine::of_the_machine(), Vec::new())
    }

    fn empty(name: String, engine: TestEngine, prefix: Vec<String>) -> Self {
        let world = Self {
            name,
            port: free_port(),
            engine,
            prefix,
            namespace: None,
            folder: tempfile::tempdir().expect("a folder"),
            commands: std::cell::Cell::new(0),
        };
        for folder in ["environments", "compose", "said"] {
            std::fs::create_dir_all(world.folder.path().join(folder)).expect("a folder");
        }
        world
    }

    fn new(label: &str, toy: &str, engine: TestEngine, prefix: Vec<String>) -> Self {
        Self::defined(unique_name(label), toy, engine, prefix)
    }

    fn defined(name: String, toy: &str, engine: TestEngine, prefix: Vec<String>) -> Self {
        let world = Self::empty(name, engine, prefix);
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let toy_folder = world.folder.path().join("compose/toy");
        copy(&fixtures.join("toy"), &toy_folder);
        install_busybox(&toy_folder.join("root/bin"));
        // No layer is shared with another world, because a build fails if another world purges a shared layer
        // meanwhile.
        std::fs::write(toy_folder.join("root/srv/name"), &world.name).expect("write a file");
        for kind in ["environment", "compose"] {
            let text = std::fs::read_to_string(fixtures.join(format!("{toy}.{kind}.yaml"))).expect("a fixture");
            let text = text.replace("@NAME@", &world.name).replace("@PORT@", &world.port.to_string());
            std::fs::write(world.file(kind), text).expect("write a definition");
        }
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The path of a definition file: `environment` or `compose`.
    pub fn file(&self, kind: &str) -> PathBuf {
        let folder = if kind == "environment" { "environments" } else { kind };
        self.folder.path().join(folder).join(format!("{}.yaml", self.name))
    }

    /// Changes a definition file.
    #[track_caller]
    pub fn edit(&self, kind: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.file(kind)).expect("a definition");
        assert!(text.contains(from), "no {from:?} in:\n{text}");
        std::fs::write(self.file(kind), text.replace(from, to)).expect("write a definition");
    }

    /// The label of every object of this world.
    pub fn label(&self) -> String {
        format!("dev.arenad.environment={}", self.name)
    }

    /// Returns a command of the program in this world.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let program = env!("CARGO_BIN_EXE_arenad");
        let mut command = match self.prefix.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_") || name == "DOCKER_HOST") {
            command.env_remove(variable);
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("ARENAD_STATE_DIR", self.state_dir())
            .env("ARENAD_STORAGE", "plain")
            .env("ARENAD_PROXY", "127.0.0.1:0")
            .env("ARENAD_COMPAT", "127.0.0.1:0")
            .stdin(Stdio::null());
        if let Some(host) = self.engine.host() {
            // Entering other namespaces loses the current folder.
            command.env("DOCKER_HOST", host).env("ARENAD_ROOT", self.folder.path());
        }
        command
    }

    /// Starts a command of arenad without waiting for its end.
    pub fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> RunningCommand {
        self.start_command(self.command(args))
    }

    /// Writes the task file of this world's environment, whose name stands for `@NAME@`.
    pub fn write_tasks(&self, text: &str) {
        self.write_tasks_of(&self.name, text);
    }

    /// Writes the task file of an environment of this folder, whose name stands for `@NAME@`.
    pub fn write_tasks_of(&self, environment: &str, text: &str) {
        let folder = self.root().join("environments").join(environment).join("tasks");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("toy.yaml"), text.replace("@NAME@", environment)).expect("a file");
    }

    /// Starts a command. The daemon that it starts stops at the fault points that have a file in `faults`.
    pub fn start_with_faults(&self, args: &[&str], faults: &Path) -> RunningCommand {
        let mut command = self.command(args);
        command.env("ARENAD_FAULTS", faults);
        self.start_command(command)
    }

    /// Starts a command that the test has prepared.
    pub fn start_command(&self, mut command: Command) -> RunningCommand {
        let number = self.commands.get();
        self.commands.set(number + 1);
        let said = |kind: &str| self.folder.path().join(format!("said/{number}.{kind}"));
        let (out, err) = (said("out"), said("err"));
        let child = command
            .stdout(File::create(&out).expect("a file"))
            .stderr(File::create(&err).expect("a file"))
            .spawn()
            .expect("start the program");
        RunningCommand { child, out, err }
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.start(args).ended()
    }

    /// Resets the site, which must succeed, and returns the strategy that was used.
    #[track_caller]
    pub fn reset(&self) -> String {
        let answer = self.run(&["reset", "toy", "--json"]).code(0).json();
        let operation = &answer["operations"][0];
        assert_eq!(operation["state"], "done", "{operation:#}");
        operation["reset"]["strategy"].as_str().unwrap_or_default().to_owned()
    }

    /// Runs `arenad up` of this world's environment, which must succeed.
    #[track_caller]
    pub fn up(&self) -> CommandOutput {
        self.run(&["up", &self.name]).code(0)
    }

    /// Returns the API's answer for a path, or `None` while no daemon answers.
    pub fn api(&self, path: &str) -> Option<Value> {
        let answer = http::get_unix(&self.state_dir().join("arenad.sock"), path)?;
        serde_json::from_str(&answer.body).ok()
    }

    /// The site `toy` as `arenad status --json` shows it.
    pub fn site(&self) -> Option<Value> {
        let status = self.api("/v1/status")?;
        let environments = status["environments"].as_array()?;
        let environment = environments.iter().find(|found| found["name"] == self.name.as_str())?;
        environment["sites"].as_array()?.iter().find(|site| site["name"] == "toy").cloned()
    }

    /// The full ids of the containers that serve in a slot of the site; none if nothing serves there.
    pub fn containers_of_slot(&self, slot: u64) -> Vec<String> {
        let site = self.site().unwrap_or_default();
        let found = site["slots"].as_array().into_iter().flatten().find(|found| found["number"] == slot);
        match (found, slot) {
            (Some(found), _) => list(&found["containers"], "id"),
            (None, 1) => list(&site["containers"], "id"),
            (None, _) => Vec::new(),
        }
    }

    /// The site's state; `-` if there is no site.
    pub fn state(&self) -> String {
        let site = self.site().unwrap_or_default();
        site["state"].as_str().unwrap_or("-").to_owned()
    }

    /// Fetches a page of the site through the gateway.
    pub fn get(&self, path: &str) -> Option<HttpResponse> {
        match &self.namespace {
            Some(namespace) => http::get_within(namespace, self.port, path),
            None => http::get(self.port, path),
        }
    }

    /// The network namespace of the test's own engine; `None` in a world on the machine's engine.
    pub fn namespace(&self) -> Option<&Path> {
        self.namespace.as_deref()
    }

    /// Returns the text that the site has stored; panics unless it answers 200.
    #[track_caller]
    pub fn page(&self) -> String {
        let answer = self.get("/cgi-bin/page").expect("an answer of the gateway");
        assert_eq!(answer.status, 200, "{}\n{}", answer.head, answer.body);
        answer.body
    }

    /// Makes the site store a word.
    #[track_caller]
    pub fn write(&self, word: &str) {
        let answer = self.get(&format!("/cgi-bin/write?{word}")).expect("an answer of the gateway");
        assert_eq!(answer.body, "written\n", "{}", answer.head);
        assert!(self.page().contains(word));
    }

    /// Returns the daemon's process, if it is alive.
    pub fn daemon(&self) -> Option<Pid> {
        let state_dir = self.state_dir().display().to_string();
        let mentions = |pid: i32, file: &str| {
            let text = std::fs::read(format!("/proc/{pid}/{file}"));
            text.is_ok_and(|text| String::from_utf8_lossy(&text).contains(&state_dir))
        };
        let pid = if self.namespace.is_some() {
            // The lock contains the process id inside the namespace.
            let all = std::fs::read_dir("/proc").expect("the processes").flatten();
            all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid| mentions(*pid, "cmdline"))
        } else {
            let text = std::fs::read_to_string(self.state_dir().join("lock")).ok()?;
            // The process id alone could have been reused. A zombie has neither arguments nor variables, and a daemon in
            // the foreground has the directory from its variables.
            text.trim().parse().ok().filter(|pid| mentions(*pid, "cmdline") || mentions(*pid, "environ"))
        };
        Pid::from_raw(pid?)
    }

    /// Sends the daemon a signal and waits until it is gone. Without a daemon, does nothing.
    pub fn signal_daemon(&self, signal: Signal) {
        let Some(pid) = self.daemon() else { return };
        // The process may have ended meanwhile.
        let _ = kill_process(pid, signal);
        within("the daemon's end", PATIENCE, || self.daemon().is_none().then_some(()));
    }

    /// Prints what the last commands wrote to standard error; daemons in the foreground log there.
    fn print_last_errors(&self) {
        let next = self.commands.get();
        for number in next.saturating_sub(3)..next {
            let said = last_lines(&self.folder.path().join(format!("said/{number}.err")), 10);
            if !said.is_empty() {
                eprintln!("command {number} ends with:\n{said}");
            }
        }
    }

    /// Kills the daemon before its containers are removed, as its user: this process may lack the right.
    fn kill_daemon(&self, pid: Pid) {
        let _ = match self.prefix.split_first() {
            None => kill_process(pid, Signal::KILL).is_ok(),
            Some((first, rest)) => {
                let pid = pid.as_raw_nonzero().to_string();
                Command::new(first).args(rest).args(["kill", "-KILL", &pid]).status().is_ok_and(|ended| ended.success())
            }
        };
        let deadline = Instant::now() + PATIENCE;
        while self.daemon().is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.daemon().is_some() {
            eprintln!("the daemon {} of {} could not be ended", pid.as_raw_nonzero(), self.name);
        }
    }

    /// Asserts that the engine has the serving containers and the snapshots' images, and no other object of this world;
    /// that the site is ready, and stores no more than its baseline.
    #[track_caller]
    pub fn assert_whole(&self, volumes: usize) {
        let site = self.site().expect("the site is up");
        assert_eq!(site["state"], "ready", "{site:#}");
        let mut serving: Vec<String> = list(&site["containers"], "id");
        serving.sort_unstable();
        assert_eq!(self.engine.containers(&self.label()), serving, "containers");
        // A former standby keeps the names from its creation; its generation dates from its promotion.
        let mut attached: Vec<String> = serving.iter().flat_map(|id| self.engine.networks_of(id)).collect();
        attached.dedup();
        assert_eq!(self.engine.networks(&self.label()), attached, "networks");
        let mut mounted: Vec<String> = serving.iter().flat_map(|id| self.engine.volumes_of(id)).collect();
        mounted.sort_unstable();
        mounted.dedup();
        assert_eq!(self.engine.volumes(&self.label()), mounted, "volumes");
        assert_eq!(mounted.len(), volumes, "{mounted:?}");
        self.assert_snapshots_whole();
    }

    /// Asserts that the engine's snapshot images and the archives in the state directory are exactly those of the known
    /// snapshots, except for snapshots whose images are known to be missing.
    #[track_caller]
    pub fn assert_snapshots_whole(&self) {
        let snapshots = self.api("/v1/snapshots").expect("the snapshots");
        let snapshots = snapshots["snapshots"].as_array().expect("a list").clone();
        let there = snapshots.iter().filter(|snapshot| snapshot["missing_since"].is_null());
        let images = there.flat_map(|snapshot| snapshot["images"].as_object().cloned().unwrap_or_default());
        let mut named: Vec<String> = images.filter_map(|(_, id)| id.as_str().map(str::to_owned)).collect();
        named.sort_unstable();
        named.dedup();
        // A commit that was running when a daemon was killed may end after the next daemon's first check. Its image is
        // removed later, like every image that is not in use.
        until("images of snapshots", PATIENCE * 4, || self.engine.images(&self.label()), |images| *images == named);
        let partial: Vec<String> = self.archives().into_iter().filter(|name| !name.ends_with(".tar")).collect();
        assert!(partial.is_empty(), "half-written archives: {partial:?}");
    }

    /// The files of volumes that belong to snapshots.
    pub fn archives(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.state_dir().join("volumes")) else {
            return Vec::new();
        };
        folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Asserts that only snapshots are left: no container, network, volume, port, process or socket.
    #[track_caller]
    pub fn assert_down(&self) {
        assert_eq!(self.engine.containers(&self.label()), [""; 0], "containers");
        assert_eq!(self.engine.networks(&self.label()), [""; 0], "networks");
        assert_eq!(self.engine.volumes(&self.label()), [""; 0], "volumes");
        assert!(self.daemon().is_none(), "the daemon still runs");
        assert!(!self.state_dir().join("arenad.sock").exists(), "the socket is still there");
        // The kernel releases the lock of a killed process before its sockets.
        within("the public port is free", PATIENCE, || std::net::TcpListener::bind(("127.0.0.1", self.port)).ok());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the daemon's log ends:\n{}", last_lines(&self.state_dir().join("arenad.log"), 25));
            self.print_last_errors();
        }
        // A daemon in the namespaces of the test's own engine ends with that engine.
        if self.namespace.is_none()
            && let Some(pid) = self.daemon()
        {
            self.kill_daemon(pid);
        }
        self.engine.sweep(&self.label(), &format!("arenad-toy/{}*", self.name));
    }
}

/// Returns the texts under a key of the objects in a list.
pub fn list(objects: &Value, key: &str) -> Vec<String> {
    let objects = objects.as_array().cloned().unwrap_or_default();
    objects.iter().filter_map(|object| object[key].as_str().map(str::to_owned)).collect()
}

/// Returns a name that no other world on this host has, in this process or another. Several tests use the same label.
fn unique_name(label: &str) -> String {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    format!("t{}-{}-{label}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns a port that is not in use. Each call continues the search, so that tests of one run never get the same port.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let span = PORTS.end - PORTS.start;
    let offset = u16::try_from(std::process::id() % u32::from(span)).unwrap_or_default();
    for _ in 0..span {
        let port = PORTS.start + (offset + NEXT.fetch_add(1, Ordering::Relaxed)) % span;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free")
}

/// Installs busybox with a link for each of its commands.
pub fn install_busybox(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let program = folder.join("busybox");
    std::fs::copy("/bin/busybox", &program).expect("a static busybox; scripts/test-tools.sh installs it");
    // The original lists the names, because another thread's fork may still hold the copy open for writing.
    let names = Command::new("/bin/busybox").arg("--list").output().expect("run busybox").stdout;
    for name in String::from_utf8_lossy(&names).lines().filter(|name| *name != "busybox") {
        std::os::unix::fs::symlink("busybox", folder.join(name)).expect("a link");
    }
}

/// Copies a folder and everything in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a kind").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copy a file");
        }
    }
}
