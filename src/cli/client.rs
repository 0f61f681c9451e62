//! The API's client: over the socket or TCP, starting a daemon where one is wanted and none answers.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::Context;
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::args::{DaemonArgs, EngineArgs, Global};
use super::failure::{Failure, from_problem};
use super::reach::{self, Place, Silence};
use super::{engine, exit_code};
use crate::wire::{self, Problem};

/// How long a daemon that comes up, or ends, may leave it open which of both.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// How long a daemon may take to come up: it reconciles before it answers.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long a daemon may take to say that it is there.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// How much of an answer that is no arenad's is shown.
const FOREIGN_MAX: usize = 200;

/// The pause between two looks for a daemon that is coming up or going away.
const LOOK_PAUSE: Duration = Duration::from_millis(25);

/// Where the daemon keeps its files.
pub fn state_dir(global: &Global) -> anyhow::Result<PathBuf> {
    if let Some(given) = &global.state_dir {
        return std::path::absolute(given).with_context(|| format!("use the state directory {}", given.display()));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/arenad"));
    }
    let state_home = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = state_home.or_else(home).context("find a state directory: HOME is not set; give --state-dir")?;
    Ok(base.join("arenad"))
}

/// A client of one daemon.
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    state_dir: PathBuf,
    place: Place,
}

impl Client {
    /// A client for the daemon that the options name; nothing is sent yet.
    pub fn new(global: &Global) -> Result<Self, Failure> {
        let state_dir = state_dir(global)?;
        let builder = reqwest::Client::builder().no_proxy();
        let place = match global.host.as_deref() {
            Some(url) if url.starts_with("http://") => Place::Http(url.trim_end_matches('/').to_owned()),
            Some(url) => {
                let Some(path) = url.strip_prefix("unix://") else {
                    return Err(Failure::usage(format!("`{url}` is neither unix:///path nor http://host:port")));
                };
                Place::Socket(PathBuf::from(path))
            }
            None => Place::Local { state_dir: state_dir.clone() },
        };
        let (builder, base) = match (&place, place.socket()) {
            (Place::Http(url), _) => (builder, url.clone()),
            (_, Some(socket)) => (builder.unix_socket(socket), "http://arenad".to_owned()),
            (_, None) => (builder, "http://arenad".to_owned()),
        };
        let http = builder.build().context("prepare the HTTP client")?;
        Ok(Self { http, base, token: global.token.clone(), state_dir, place })
    }

    /// Where this client's daemon keeps its files, if it is on this machine.
    pub fn state_dir(&self) -> &PathBuf {
        &self.state_dir
    }

    /// Whether the daemon is this machine's, found by its state directory. Only such a one is started and stopped.
    pub fn is_local(&self) -> bool {
        matches!(self.place, Place::Local { .. })
    }

    /// Whether the daemon may be on another machine.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, Place::Http(_))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Whether a daemon answers; `false` where it is certain that none runs. Anything else, such as a socket that this user
    /// may not open or an address at which something else answers, is a failure.
    pub async fn is_running(&self) -> Result<bool, Failure> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            match self.look().await {
                Ok(()) => return Ok(true),
                Err(Silence::NobodyListens { .. }) if self.is_local() => return Ok(false),
                // One that comes up or is on its way out: which of both is soon decided.
                Err(Silence::NotListening { .. }) if Instant::now() < deadline => tokio::time::sleep(LOOK_PAUSE).await,
                Err(silence) => return Err(self.place.failure(&silence)),
            }
        }
    }

    /// Asks for the version, which every arenad tells without effect.
    async fn look(&self) -> Result<(), Silence> {
        let asked = self.request(Method::GET, "/v1/version").timeout(LOOK_LIMIT).send().await;
        let answer = asked.map_err(|error| self.place.silence(&error, LOOK_LIMIT))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.place.silence(&error, LOOK_LIMIT))?;
        // One that wants a token is an arenad too; the command's own request gets to hear that.
        let is_arenad = match status.is_success() {
            true => serde_json::from_str::<wire::Version>(&text).is_ok(),
            false => serde_json::from_str::<Problem>(&text).is_ok(),
        };
        if is_arenad { Ok(()) } else { Err(foreign(status, &text)) }
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Failure> {
        self.read(self.answer(self.request(method, path)).await?).await
    }

    /// Sends a request with a JSON body and reads the answer as JSON.
    pub async fn send<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        self.read(self.answer(self.request(method, path).json(body)).await?).await
    }

    /// Sends a request whose answer has no body that matters.
    pub async fn run<B: Serialize>(&self, method: Method, path: &str, body: &B) -> Result<(), Failure> {
        self.answer(self.request(method, path).json(body)).await.map(drop)
    }

    /// Sends a request and hands out the answer, whose body may be a stream.
    pub async fn stream(&self, path: &str) -> Result<Response, Failure> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Sends a body that may be a stream.
    pub async fn put(&self, path: &str, content: reqwest::Body) -> Result<(), Failure> {
        self.answer(self.request(Method::PUT, path).body(content)).await.map(drop)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let answer = request.send().await.map_err(|error| self.unanswered(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => Err(from_problem(problem)),
            Err(_) => Err(self.place.failure(&foreign(status, &text))),
        }
    }

    async fn read<T: DeserializeOwned>(&self, answer: Response) -> Result<T, Failure> {
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.unanswered(&error))?;
        match serde_json::from_str(&text) {
            Ok(value) => Ok(value),
            Err(_) if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() => {
                Err(self.place.failure(&foreign(status, &text)))
            }
            Err(error) => Err(anyhow::Error::from(error).context("understand the daemon's answer").into()),
        }
    }

    /// Only a look has a limit of its own; the operating system's ends the wait for a connection.
    fn unanswered(&self, error: &reqwest::Error) -> Failure {
        self.place.failure(&self.place.silence(error, START_PATIENCE))
    }

    /// The status, as `GET /v1/status` has it.
    pub async fn status(&self) -> Result<wire::Status, Failure> {
        self.json(Method::GET, "/v1/status").await
    }

    /// Makes sure that a daemon answers: starts one in the background if none runs. An engine that cannot be used is found
    /// out before, so that no daemon is left behind that can do nothing. Without `daemon`, the variables of this process say how it
    /// is started. Says whether this call started the daemon.
    pub async fn ensure_daemon(&self, engine: &EngineArgs, daemon: Option<&DaemonArgs>) -> Result<bool, Failure> {
        if !self.is_local() {
            return self.is_running().await.map(|_| false);
        }
        let mut child: Option<Child> = None;
        let log_path = self.state_dir.join("arenad.log");
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            let silence = match self.look().await {
                Ok(()) => return Ok(child.is_some()),
                Err(silence) => silence,
            };
            let ended = match (&mut child, &silence) {
                (Some(child), _) => child.try_wait().context("look after the daemon")?,
                (None, Silence::NobodyListens { .. }) => {
                    engine::insist(&engine.engine).await?;
                    child = Some(self.spawn_daemon(engine, daemon, &log_path)?);
                    None
                }
                // One that another `arenad up` started at this moment will answer; one on its way out will let go.
                (None, Silence::NotListening { .. } | Silence::TimedOut(_) | Silence::BrokeOff(_)) => None,
                (None, silence) => return Err(self.place.failure(silence)),
            };
            let failed = match ended {
                Some(status) if status.code() == Some(i32::from(exit_code::BUSY)) => {
                    child = None;
                    None
                }
                Some(status) => Some(format!("the daemon ended ({status}) before it answered")),
                None if Instant::now() >= deadline => {
                    Some(format!("the daemon does not answer after {START_PATIENCE:?}"))
                }
                None => None,
            };
            if let Some(message) = failed {
                let text = format!("{message}\n{}", log_tail(&log_path));
                let failure = Failure::new(exit_code::FAILED, anyhow::anyhow!("{}", text.trim_end()));
                return Err(failure.hint(format!("its log is {}", log_path.display())));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Starts a daemon in the background. It ends with [`exit_code::BUSY`] where another holds the lock.
    fn spawn_daemon(&self, engine: &EngineArgs, daemon: Option<&DaemonArgs>, log_path: &Path) -> anyhow::Result<Child> {
        crate::folders::make_private(&self.state_dir)
            .with_context(|| format!("make the state directory {}", self.state_dir.display()))?;
        let log = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(log_path)
            .with_context(|| format!("open the daemon's log {}", log_path.display()))?;
        let parallel = daemon.and_then(|daemon| daemon.parallel);
        let program = std::env::current_exe().context("find arenad's own program")?;
        std::process::Command::new(program)
            .args(["serve", "--background", "--engine", &engine.engine])
            .args(daemon.iter().flat_map(|daemon| ["--subnets".to_owned(), daemon.subnets.to_string()]))
            .args(parallel.iter().flat_map(|number| ["--parallel".to_owned(), number.to_string()]))
            .arg("--state-dir")
            .arg(&self.state_dir)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start the daemon")
    }

    /// Stops a daemon that was started for one question, unless it has something to look after.
    pub async fn leave(&self, was_running: bool) -> Result<(), Failure> {
        if was_running || !self.is_local() {
            return Ok(());
        }
        let status = self.status().await?;
        if status.environments.is_empty() && status.daemon.background { self.stop_daemon().await } else { Ok(()) }
    }

    /// Asks the daemon to stop and waits until it has.
    pub async fn stop_daemon(&self) -> Result<(), Failure> {
        self.run(Method::POST, "/v1/shutdown", &serde_json::json!({})).await?;
        let deadline = Instant::now() + START_PATIENCE;
        // The lock is the last thing that it lets go of.
        while self.is_locked() {
            if Instant::now() >= deadline {
                let failure = Failure::new(exit_code::FAILED, anyhow::anyhow!("the daemon does not stop"));
                return Err(failure.hint(format!("its log is {}", self.state_dir.join("arenad.log").display())));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Whether a daemon holds the state directory, answering or not.
    pub fn is_locked(&self) -> bool {
        reach::holder(&self.state_dir).is_some()
    }
}

/// An answer that no arenad gives.
fn foreign(status: reqwest::StatusCode, text: &str) -> Silence {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(FOREIGN_MAX).collect();
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    Silence::Foreign(format!("it answered {status}{text}"))
}

fn log_tail(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].iter().map(|line| format!("    {line}\n")).collect()
}
