//! A mini environment of the test's own: a copy of the definition with free ports, a state directory, the binary.

#[path = "last_lines.rs"]
mod last_lines;
#[path = "shared_arena.rs"]
pub mod shared;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

use self::last_lines::last_lines;

/// The time limit for a standby on a busy machine.
const STANDBY_LIMIT: Duration = Duration::from_secs(300);

/// Held while an environment is brought up.
static TURN: Mutex<()> = Mutex::new(());

/// The number of the next arena's range of own ports of slots.
static NEXT_SHIFT: AtomicU16 = AtomicU16::new(0);

/// The arenas that are up at the same time: any number of them, or a single one that is alone.
struct Presence {
    present: usize,
    is_alone: bool,
}

static PRESENCE: Mutex<Presence> = Mutex::new(Presence { present: 0, is_alone: false });
static DEPARTURE: Condvar = Condvar::new();

/// A place among the arenas that are up.
struct Place;

impl Place {
    /// Waits until no arena is up that must be alone, or until no arena is up if this one must be.
    fn take(alone: bool) -> Self {
        let presence = PRESENCE.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |presence: &mut Presence| presence.is_alone || (alone && presence.present > 0);
        let mut presence = DEPARTURE.wait_while(presence, must_wait).unwrap_or_else(PoisonError::into_inner);
        presence.present += 1;
        presence.is_alone = alone;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut presence = PRESENCE.lock().unwrap_or_else(PoisonError::into_inner);
        presence.present -= 1;
        presence.is_alone = false;
        drop(presence);
        DEPARTURE.notify_all();
    }
}

/// A mini environment; it is taken down when the value is dropped.
pub struct Arena {
    root: TempDir,
    state: TempDir,
    status: Value,
    /// The requested sites; empty for all.
    sites: Vec<String>,
    /// Additional environment variables of the daemon.
    variables: Vec<(String, String)>,
    program: PathBuf,
    /// Given back last, after the environment was taken down. `None` for the shared arena, whose users take places.
    _place: Option<Place>,
}

impl Arena {
    /// Brings the named sites up, or all if none is named.
    pub fn up(sites: &[&str]) -> Self {
        Self::up_edited(sites, |definition| definition)
    }

    /// Brings the named sites up with another build of the program.
    pub fn up_by(program: &Path, sites: &[&str]) -> Self {
        let mut arena = Self::down(false);
        program.clone_into(&mut arena.program);
        arena.bring_up(sites)
    }

    /// Brings sites up with a modified environment file.
    pub fn up_edited(sites: &[&str], edit: impl FnOnce(String) -> String) -> Self {
        let arena = Self::down(false);
        arena.edit(edit);
        arena.bring_up(sites)
    }

    /// Brings sites up with a modified environment file while no other arena is up. For tests that keep all processors
    /// busy for minutes: beside them, and beside each other, time limits of sites and requests would be exceeded.
    pub fn up_alone(sites: &[&str], edit: impl FnOnce(String) -> String) -> Self {
        let arena = Self::down(true);
        arena.edit(edit);
        arena.bring_up(sites)
    }

    /// Brings sites up with modified environment and Compose files.
    pub fn up_edited_with_compose(
        sites: &[&str],
        edit: impl FnOnce(String) -> String,
        edit_compose: impl FnOnce(String) -> String,
    ) -> Self {
        let arena = Self::down(false);
        arena.edit(edit);
        let file = arena.root.path().join("compose/mini.yaml");
        let compose = std::fs::read_to_string(&file).expect("the Compose file");
        std::fs::write(&file, edit_compose(compose)).expect("the Compose file");
        arena.bring_up(sites)
    }

    /// Brings all sites up with a modified environment file, after `prepare` has run on the arena.
    pub fn prepared(prepare: impl FnOnce(&Self), edit: impl FnOnce(String) -> String) -> Self {
        let arena = Self::down(false);
        prepare(&arena);
        arena.edit(edit);
        arena.bring_up(&[])
    }

    /// Brings all sites up as [`Self::prepared`] does, with a daemon whose environment has these variables.
    pub fn prepared_with(
        variables: &[(&str, &str)],
        prepare: impl FnOnce(&Self),
        edit: impl FnOnce(String) -> String,
    ) -> Self {
        let mut arena = Self::down(false);
        arena.set_variables(variables);
        prepare(&arena);
        arena.edit(edit);
        arena.bring_up(&[])
    }

    fn edit(&self, edit: impl FnOnce(String) -> String) {
        let file = self.root.path().join("environments/mini.yaml");
        let definition = std::fs::read_to_string(&file).expect("the definition");
        std::fs::write(&file, edit(definition)).expect("the definition");
    }

    /// Brings the named sites up with a daemon whose environment has these variables.
    pub fn up_with(variables: &[(&str, &str)], sites: &[&str]) -> Self {
        let mut arena = Self::down(false);
        arena.set_variables(variables);
        arena.bring_up(sites)
    }

    fn set_variables(&mut self, variables: &[(&str, &str)]) {
        self.variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    }

    fn down(alone: bool) -> Self {
        Self::placed(Some(Place::take(alone)))
    }

    fn placed(place: Option<Place>) -> Self {
        Self {
            _place: place,
            root: copy_definition(),
            state: folder(),
            status: Value::Null,
            sites: Vec::new(),
            variables: Vec::new(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_arenad")),
        }
    }

    fn bring_up(mut self, sites: &[&str]) -> Self {
        self.sites = sites.iter().map(ToString::to_string).collect();
        // The first arena builds the images; the others find them.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        self.up_again();
        drop(turn);
        self.status = self.status();
        self
    }

    /// Brings the same sites up again, with another daemon if the last one has ended.
    pub fn up_again(&self) {
        let mut args = vec!["up", "mini"];
        args.extend(self.sites.iter().map(String::as_str));
        let output = self.arenad(&args);
        assert!(output.status.success(), "arenad up: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The installation's id, which is a label of every object that arenad creates.
    pub fn installation(&self) -> String {
        self.status["daemon"]["installation"].as_str().unwrap_or("none").to_owned()
    }

    /// Runs the `arenad` program on this arena.
    pub fn arenad(&self, args: &[&str]) -> Output {
        self.command(&self.program).args(args).output().expect("arenad runs")
    }

    /// Returns a command with the folder and the environment of this arena.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root.path())
            .env("ARENAD_STATE_DIR", self.state.path().join("state"))
            .env("ARENAD_STORAGE", "plain")
            .env("ARENAD_PROXY", "none")
            .env("ARENAD_COMPAT", "127.0.0.1:0")
            .env_remove("ARENAD_HOST")
            .envs(self.variables.iter().cloned());
        command
    }

    /// Begins a command with further variables.
    pub fn begun(&self, variables: &[(&str, &str)], args: &[&str]) -> Child {
        let mut command = self.command(&self.program);
        command.envs(variables.iter().copied()).args(args).spawn().expect("arenad runs")
    }

    /// Runs arenad, which must succeed, and parses its JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.arenad(args);
        assert!(output.status.success(), "arenad {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Resets a site, which must succeed, and returns the strategy that was used.
    #[track_caller]
    pub fn reset(&self, site: &str) -> String {
        let answer = self.json(&["reset", site, "--json"]);
        let operation = &answer["operations"][0];
        assert_eq!(operation["state"], "done", "{operation:#}");
        // A failing test shows this output, which contains the reason for another strategy.
        println!("{site}: {}", operation["reset"]);
        operation["reset"]["strategy"].as_str().expect("a way").to_owned()
    }

    /// Resets a site and returns the strategy that was used, or the error.
    pub fn try_reset(&self, site: &str) -> Result<String, String> {
        let output = self.arenad(&["reset", site, "--json"]);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let operation = &answer["operations"][0];
        if output.status.success() && operation["state"] == "done" {
            return Ok(operation["reset"]["strategy"].as_str().expect("a way").to_owned());
        }
        Err(format!("{} {}", operation["reason"], String::from_utf8_lossy(&output.stderr)))
    }

    /// Waits for a standby of a site.
    #[track_caller]
    pub fn await_standby(&self, site: &str) {
        let deadline = Instant::now() + STANDBY_LIMIT;
        loop {
            let status = self.status();
            let standbys = &Self::site(&status, site)["standbys"];
            let members = standbys["members"].as_array().cloned().unwrap_or_default();
            if members.iter().any(|member| member["state"] == "running" || member["state"] == "frozen") {
                return;
            }
            assert!(Instant::now() < deadline, "no standby of {site}: {standbys:#}");
            // Each look is a process.
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Returns the current status and ignores the exit code, because a site is up even while a probe on a busy machine
    /// runs late.
    fn status(&self) -> Value {
        serde_json::from_slice(&self.arenad(&["status", "--json"]).stdout).expect("JSON")
    }

    fn site<'a>(status: &'a Value, site: &str) -> &'a Value {
        let sites = status["environments"][0]["sites"].as_array().expect("sites");
        sites.iter().find(|found| found["name"] == site).expect("the site is up")
    }

    /// Returns the site's public URL.
    pub fn url(&self, site: &str) -> String {
        Self::site(&self.status, site)["url"].as_str().expect("a URL").to_owned()
    }

    /// The image of the site's service.
    pub fn image(&self, site: &str) -> String {
        let config = self.json(&["config", "mini", "--json"]);
        config["compose"]["services"][site]["image"].as_str().expect("an image").to_owned()
    }

    /// Runs a command in the site's current container.
    pub fn exec(&self, site: &str, command: &[&str]) -> String {
        self.exec_in(site, site, command)
    }

    /// The site's current containers: service and id.
    pub fn containers(&self, site: &str) -> Vec<(String, String)> {
        let containers = Self::site(&self.status(), site)["containers"].as_array().expect("containers").clone();
        let text = |container: &Value, key: &str| container[key].as_str().expect("a text").to_owned();
        containers.iter().map(|container| (text(container, "service"), text(container, "id"))).collect()
    }

    /// Runs a command in the current container of one service of a site.
    pub fn exec_in(&self, site: &str, service: &str, command: &[&str]) -> String {
        let containers = self.containers(site);
        let (_, id) = containers.iter().find(|(name, _)| name == service).expect("the service runs");
        let output = Command::new("docker").args(["exec", id]).args(command).output().expect("docker runs");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a script in a fresh container of the site's image, which has no network.
    pub fn run(&self, site: &str, script: &str) -> String {
        let image = self.image(site);
        let output = Command::new("docker")
            .args(["run", "--rm", "--network", "none", &image, "sh", "-c", script])
            .output()
            .expect("docker runs");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The folder of the daemon's files.
    pub fn state_dir(&self) -> PathBuf {
        self.state.path().join("state")
    }

    /// Kills the site's only container, as a crash would.
    pub fn kill(&self, site: &str) {
        let output = Command::new("docker").args(["kill", &self.container(site)]).output().expect("docker runs");
        assert!(output.status.success(), "kill {site}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Stops the daemon and waits until it has ended; the sites continue to run.
    pub fn stop_daemon(&self) {
        self.signal_daemon(rustix::process::Signal::TERM);
    }

    /// Sends the daemon a signal that ends it, and waits until it has.
    pub fn signal_daemon(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.daemon(), signal).expect("the daemon is signalled");
        // The daemon releases the lock last.
        let lock = std::fs::File::open(self.state_dir().join("lock")).expect("the daemon's lock");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared).expect("the daemon has ended");
    }

    /// Returns the daemon's process id.
    pub fn daemon(&self) -> rustix::process::Pid {
        let pid = std::fs::read_to_string(self.state_dir().join("lock")).expect("the daemon's lock");
        pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("the daemon's pid")
    }

    fn container(&self, site: &str) -> String {
        let containers = Self::site(&self.status(), site)["containers"].as_array().expect("containers").clone();
        containers[0]["id"].as_str().expect("a container").to_owned()
    }

    /// Runs a statement without the site's knowledge.
    pub fn sql(&self, site: &str, statement: &str) {
        self.exec(site, &["mariadb", "shop", "-e", statement]);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the daemon's log ends:\n{}", last_lines(&self.state_dir().join("arenad.log"), 25));
        }
        let installation = self.installation();
        let output = self.arenad(&["down"]);
        if !output.status.success() && !std::thread::panicking() {
            panic!("arenad down: {}", String::from_utf8_lossy(&output.stderr));
        }
        let _ = Command::new("sh").args(["-c", &removal_of_snapshots(&installation)]).status();
    }
}

/// Returns a command of the shell that removes the snapshots of an installation: `down --purge` would also remove the
/// built images, which other tests share.
fn removal_of_snapshots(installation: &str) -> String {
    let label = format!("label=dev.arenad.installation={installation}");
    format!(
        "docker images -q --filter {label} --filter label=dev.arenad.role=snapshot | sort -u | xargs -r docker rmi -f >/dev/null 2>&1"
    )
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns the definition with own ports of slots that are free for the first ten slots.
///
/// Further slots have the ports behind them, which are below those that the system gives to sockets.
fn with_free_slot_ports(definition: &str) -> String {
    let base = Regex::new(r"ports: \{ base: (\d+), stride: 10 \}").expect("a pattern");
    let bases: Vec<u16> = base.captures_iter(definition).map(|found| found[1].parse().expect("a port")).collect();
    assert!(bases.len() > 2, "the own ports are found: {bases:?}");
    let is_free = |shift: &u16| {
        let ports = bases.iter().flat_map(|base| (0..10).map(move |slot| base + shift + 10 * slot));
        ports.into_iter().all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    // Each process begins elsewhere, so that two that choose at the same time seldom choose the same ports. Within a process
    // each arena has others, because their ports are open only once they are up.
    let begin = u16::try_from(std::process::id() % 100).expect("small");
    let mut shifts = (0..100).map(|_| (begin + NEXT_SHIFT.fetch_add(1, Ordering::Relaxed)) % 100 * 100);
    let shift = shifts.find(is_free).expect("free ports");
    let moved = |found: &regex::Captures<'_>| {
        let base: u16 = found[1].parse().expect("a port");
        format!("ports: {{ base: {}, stride: 10 }}", base + shift)
    };
    base.replace_all(definition, moved).into_owned()
}

/// Copies `environments/mini.yaml`, its tasks and `compose/`, with other public ports.
fn copy_definition() -> TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = folder();
    let copied = Command::new("cp").arg("-a").arg(source.join("compose")).arg(root.path()).status();
    assert!(copied.is_ok_and(|status| status.success()), "the definition is copied");
    std::fs::create_dir(root.path().join("environments")).expect("a folder");
    let tasks = source.join("environments/mini");
    let copied = Command::new("cp").arg("-a").arg(tasks).arg(root.path().join("environments")).status();
    assert!(copied.is_ok_and(|status| status.success()), "the tasks are copied");

    let files = ["environments/mini.yaml", "compose/mini.yaml"];
    let mut texts = files.map(|file| std::fs::read_to_string(source.join(file)).expect("the definition"));
    let public = Regex::new(r"public: \{ port: (\d+)").expect("a pattern");
    let ports: BTreeSet<String> = public.captures_iter(&texts[0]).map(|found| found[1].to_owned()).collect();
    assert!(ports.len() > 2, "the public ports are found: {ports:?}");
    // The listeners are held until all ports are chosen, so that no port is chosen twice.
    let mut listeners = Vec::new();
    for port in ports {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let free = listener.local_addr().expect("an address").port().to_string();
        listeners.push(listener);
        let whole = Regex::new(&format!(r"\b{port}\b")).expect("a pattern");
        texts = texts.map(|text| whole.replace_all(&text, &free).into_owned());
    }
    drop(listeners);
    texts[0] = with_free_slot_ports(&texts[0]);
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(root.path().join(file), text).expect("the copy");
    }
    root
}
