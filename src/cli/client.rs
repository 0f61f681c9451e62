//! The client of the API, over the socket or TCP. It starts a daemon if a command needs one and none answers.

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
use super::failure::{CommandFailure, from_problem};
use super::reach::{self, DaemonAddress, Silence};
use super::{engine, exit_code, secrets};
use arenad_api::episodes::{EpisodeStartRequest, IDEMPOTENCY_KEY, StartedEpisode};
use arenad_api::{self as wire, Problem};

/// The time limit within which it must become clear whether a silent daemon is starting up or shutting down.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// The time limit for a daemon's start-up: it reconciles before it answers.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The time limit for a daemon to answer that it is present.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// The number of characters that are shown of an answer that does not come from arenad.
const FOREIGN_MAX: usize = 200;

/// The pause between two attempts to reach a daemon that is starting up or shutting down.
const LOOK_PAUSE: Duration = Duration::from_millis(25);
/// Starts a program without the files that a shell script numbers. The daemon outlives the command that starts it, so a
/// lock that a script holds around `arenad up` (`flock`) would never be released.
const START_ALONE: &str = r#"exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec "$0" "$@""#;

/// Returns the directory that holds the daemon's files.
pub fn state_dir(global: &Global) -> anyhow::Result<PathBuf> {
    if let Some(given) = &global.state_dir {
        return std::path::absolute(given).with_context(|| format!("use the state directory {}", given.display()));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/arenad"));
    }
    let state_home = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = state_home.or_else(home).context("find a state directory: HOME is not set; pass --state-dir")?;
    Ok(base.join("arenad"))
}

/// An API client of one daemon.
pub struct ApiClient {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    state_dir: PathBuf,
    place: DaemonAddress,
}

impl ApiClient {
    /// Returns a client for the daemon that the options name, without sending a request.
    pub fn new(global: &Global) -> Result<Self, CommandFailure> {
        let state_dir = state_dir(global)?;
        let builder = reqwest::Client::builder().no_proxy();
        let place = match global.host.as_deref() {
            Some(url) if url.starts_with("http://") => DaemonAddress::Http(url.trim_end_matches('/').to_owned()),
            Some(url) => {
                let Some(path) = url.strip_prefix("unix://") else {
                    return Err(CommandFailure::usage(format!("`{url}` is neither unix:///path nor http://host:port")));
                };
                DaemonAddress::Socket(PathBuf::from(path))
            }
            None => DaemonAddress::Local { state_dir: state_dir.clone() },
        };
        let (builder, base) = match (&place, place.socket()) {
            (DaemonAddress::Http(url), _) => (builder, url.clone()),
            (_, Some(socket)) => (builder.unix_socket(socket), "http://arenad".to_owned()),
            (_, None) => (builder, "http://arenad".to_owned()),
        };
        let http = builder.build().context("prepare the HTTP client")?;
        Ok(Self { http, base, token: secrets::token(global)?, state_dir, place })
    }

    /// Returns the directory of the daemon's files, provided that the daemon runs on this machine.
    pub fn state_dir(&self) -> &PathBuf {
        &self.state_dir
    }

    /// Returns whether the daemon is this machine's, found by its state directory. Only such a daemon is started and
    /// stopped.
    pub fn is_local(&self) -> bool {
        matches!(self.place, DaemonAddress::Local { .. })
    }

    /// Returns whether the daemon may be on another machine.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, DaemonAddress::Http(_))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Returns whether a daemon answers; `false` if it is certain that none runs. Any other state, such as a socket
    /// that this user may not open or an address at which another program answers, is a failure.
    pub async fn is_running(&self) -> Result<bool, CommandFailure> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            match self.look().await {
                Ok(()) => return Ok(true),
                Err(Silence::NobodyListens { .. }) if self.is_local() => return Ok(false),
                // The daemon is starting up or shutting down, which is decided within moments.
                Err(Silence::NotListening { .. }) if Instant::now() < deadline => tokio::time::sleep(LOOK_PAUSE).await,
                Err(silence) => return Err(self.place.failure(&silence)),
            }
        }
    }

    /// Requests the version, which has no side effects and which every arenad answers.
    async fn look(&self) -> Result<(), Silence> {
        let asked = self.request(Method::GET, "/v1/version").timeout(LOOK_LIMIT).send().await;
        let answer = asked.map_err(|error| self.place.silence(&error, LOOK_LIMIT))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.place.silence(&error, LOOK_LIMIT))?;
        // A daemon that requires a token is also an arenad; the command's own request reports the missing token.
        let is_arenad = match status.is_success() {
            true => serde_json::from_str::<wire::Version>(&text).is_ok(),
            false => serde_json::from_str::<Problem>(&text).is_ok(),
        };
        if is_arenad { Ok(()) } else { Err(foreign(status, &text)) }
    }

    /// Sends a request and parses the answer as JSON.
    pub async fn json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, CommandFailure> {
        self.read(self.answer(self.request(method, path)).await?).await
    }

    /// Sends a request with a JSON body and parses the answer as JSON.
    pub async fn send<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, CommandFailure> {
        self.read(self.answer(self.request(method, path).json(body)).await?).await
    }

    /// Asks for an episode. Repetitions with the same key get the same episode.
    pub async fn ask_for_episode(
        &self,
        wanted: &EpisodeStartRequest,
        key: Option<&str>,
    ) -> Result<StartedEpisode, CommandFailure> {
        self.send_with_key("/v1/episodes", wanted, key).await
    }

    /// Asks for an episode that the connection of the request holds, and returns the answer, which is a stream of events.
    pub async fn start_held(&self, wanted: &EpisodeStartRequest) -> Result<Response, CommandFailure> {
        self.answer(self.request(Method::POST, "/v1/episodes").json(wanted)).await
    }

    /// Sends a POST request that can be repeated with its key.
    pub async fn send_with_key<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        key: Option<&str>,
    ) -> Result<T, CommandFailure> {
        let request = self.request(Method::POST, path).json(body);
        let request = match key {
            Some(key) => request.header(IDEMPOTENCY_KEY, key),
            None => request,
        };
        self.read(self.answer(request).await?).await
    }

    /// Sends a DELETE request, whose answer has no body.
    pub async fn delete(&self, path: &str) -> Result<(), CommandFailure> {
        self.answer(self.request(Method::DELETE, path)).await.map(drop)
    }

    /// Sends a request and discards the body of the answer.
    pub async fn run<B: Serialize>(&self, method: Method, path: &str, body: &B) -> Result<(), CommandFailure> {
        self.answer(self.request(method, path).json(body)).await.map(drop)
    }

    /// Sends a request and returns the answer, whose body may be a stream.
    pub async fn stream(&self, path: &str) -> Result<Response, CommandFailure> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Sends a body, which may be a stream, with a PUT request, and parses the answer as JSON.
    pub async fn put_for<T: DeserializeOwned>(&self, path: &str, content: reqwest::Body) -> Result<T, CommandFailure> {
        self.read(self.answer(self.request(Method::PUT, path).body(content)).await?).await
    }

    /// Sends a body, which may be a stream, with a PUT request.
    pub async fn put(&self, path: &str, content: reqwest::Body) -> Result<(), CommandFailure> {
        self.answer(self.request(Method::PUT, path).body(content)).await.map(drop)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, CommandFailure> {
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

    async fn read<T: DeserializeOwned>(&self, answer: Response) -> Result<T, CommandFailure> {
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.unanswered(&error))?;
        match serde_json::from_str(&text) {
            Ok(value) => Ok(value),
            Err(_) if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() => {
                Err(self.place.failure(&foreign(status, &text)))
            }
            Err(error) => Err(anyhow::Error::from(error).context("parse the daemon's answer").into()),
        }
    }

    /// Converts a transport error into a failure. Only [`Self::look`] has a time limit of its own; the operating system
    /// limits the wait for a connection.
    fn unanswered(&self, error: &reqwest::Error) -> CommandFailure {
        self.place.failure(&self.place.silence(error, START_PATIENCE))
    }

    /// Returns the status from `GET /v1/status`.
    pub async fn status(&self) -> Result<wire::Status, CommandFailure> {
        self.json(Method::GET, "/v1/status").await
    }

    /// Ensures that a daemon answers, and starts one in the background if none runs. It checks beforehand that the
    /// engine can be used, so that no useless daemon is left behind. Without `daemon`, the variables of this process
    /// determine how the daemon is started. Returns whether this call started the daemon.
    pub async fn ensure_daemon(
        &self,
        engine: &EngineArgs,
        daemon: Option<&DaemonArgs>,
    ) -> Result<bool, CommandFailure> {
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
                (Some(child), _) => child.try_wait().context("check whether the daemon still runs")?,
                (None, Silence::NobodyListens { .. }) => {
                    engine::insist(&engine.engine).await?;
                    child = Some(self.spawn_daemon(engine, daemon, &log_path)?);
                    None
                }
                // A daemon that another `arenad up` has just started will answer; one that is shutting down will
                // release the lock.
                (None, Silence::NotListening { .. } | Silence::TimedOut(_) | Silence::BrokeOff(_)) => None,
                (None, silence) => return Err(self.place.failure(silence)),
            };
            let failed = match ended {
                Some(status) if status.code() == Some(i32::from(exit_code::BUSY)) => {
                    child = None;
                    None
                }
                Some(status) => Some(format!("the daemon exited ({status}) before it answered")),
                None if Instant::now() >= deadline => {
                    Some(format!("the daemon did not answer within {START_PATIENCE:?}"))
                }
                None => None,
            };
            if let Some(message) = failed {
                let text = format!("{message}\n{}", log_tail(&log_path));
                let failure = CommandFailure::new(exit_code::FAILED, anyhow::anyhow!("{}", text.trim_end()));
                return Err(failure.hint(format!("see its log {}", log_path.display())));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Starts a daemon in the background. It exits with [`exit_code::BUSY`] if another one holds the lock.
    fn spawn_daemon(&self, engine: &EngineArgs, daemon: Option<&DaemonArgs>, log_path: &Path) -> anyhow::Result<Child> {
        arenad_folders::make_private(&self.state_dir)
            .with_context(|| format!("create the state directory {}", self.state_dir.display()))?;
        let log = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(log_path)
            .with_context(|| format!("open the daemon's log {}", log_path.display()))?;
        let parallel = daemon.and_then(|daemon| daemon.parallel);
        let proxy = daemon.and_then(|daemon| daemon.proxy);
        let compat = daemon.and_then(|daemon| daemon.compat);
        let program = std::env::current_exe().context("find arenad's executable")?;
        std::process::Command::new("/bin/sh")
            .args(["-c", START_ALONE])
            .arg(program)
            .args(["serve", "--background", "--engine", &engine.engine])
            .args(daemon.iter().flat_map(|daemon| ["--subnets".to_owned(), daemon.subnets.to_string()]))
            .args(parallel.iter().flat_map(|number| ["--parallel".to_owned(), number.to_string()]))
            .args(proxy.iter().flat_map(|proxy| ["--proxy".to_owned(), proxy.to_string()]))
            .args(compat.iter().flat_map(|compat| ["--compat".to_owned(), compat.to_string()]))
            .arg("--state-dir")
            .arg(&self.state_dir)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start the daemon with /bin/sh")
    }

    /// Stops a daemon that was started for a single request, unless it has environments that are up.
    pub async fn leave(&self, was_running: bool) -> Result<(), CommandFailure> {
        if was_running || !self.is_local() {
            return Ok(());
        }
        let status = self.status().await?;
        if status.environments.is_empty() && status.daemon.background { self.stop_daemon().await } else { Ok(()) }
    }

    /// Requests the daemon to stop, and waits until it has.
    pub async fn stop_daemon(&self) -> Result<(), CommandFailure> {
        self.run(Method::POST, "/v1/shutdown", &serde_json::json!({})).await?;
        let deadline = Instant::now() + START_PATIENCE;
        // The daemon releases the lock last.
        while self.is_locked() {
            if Instant::now() >= deadline {
                let failure = CommandFailure::new(
                    exit_code::FAILED,
                    anyhow::anyhow!("the daemon did not stop within {START_PATIENCE:?}"),
                );
                return Err(failure.hint(format!("see its log {}", self.state_dir.join("arenad.log").display())));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Returns whether a daemon holds the state directory, whether it answers or not.
    pub fn is_locked(&self) -> bool {
        reach::holder(&self.state_dir).is_some()
    }
}

/// Describes an answer that no arenad gives.
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
