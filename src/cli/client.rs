//! The API's client: over the socket or TCP, starting a daemon where one is wanted and none answers.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::Context;
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::args::{EngineArgs, Global};
use super::exit_code;
use super::failure::{Failure, from_problem};
use crate::wire::{self, Problem};

/// How long a daemon may take to come up: it reconciles before it answers.
const START_PATIENCE: Duration = Duration::from_secs(60);

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
    /// Whether the daemon is another machine's or was named: then none is started.
    is_given: bool,
}

impl Client {
    /// A client for the daemon that the options name; nothing is sent yet.
    pub fn new(global: &Global) -> Result<Self, Failure> {
        let state_dir = state_dir(global)?;
        let builder = reqwest::Client::builder().no_proxy();
        let given = global.host.as_deref();
        let (builder, base) = match given {
            Some(url) if url.starts_with("http://") => (builder, url.trim_end_matches('/').to_owned()),
            Some(url) => {
                let Some(path) = url.strip_prefix("unix://") else {
                    return Err(Failure::usage(format!("`{url}` is neither unix:///path nor http://host:port")));
                };
                (builder.unix_socket(PathBuf::from(path)), "http://arenad".to_owned())
            }
            None => (builder.unix_socket(state_dir.join("arenad.sock")), "http://arenad".to_owned()),
        };
        let http = builder.build().context("prepare the HTTP client")?;
        Ok(Self { http, base, token: global.token.clone(), state_dir, is_given: given.is_some() })
    }

    /// Where this client's daemon keeps its files, if it is on this machine.
    pub fn state_dir(&self) -> &PathBuf {
        &self.state_dir
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Whether a daemon answers.
    pub async fn is_running(&self) -> bool {
        let asked = self.request(Method::GET, "/v1/version").timeout(Duration::from_secs(5)).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Failure> {
        let answer = self.answer(self.request(method, path)).await?;
        Ok(answer.json().await.context("understand the daemon's answer")?)
    }

    /// Sends a request with a JSON body and reads the answer as JSON.
    pub async fn send<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let answer = self.answer(self.request(method, path).json(body)).await?;
        Ok(answer.json().await.context("understand the daemon's answer")?)
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
        let answer = request.send().await.map_err(|error| self.unreachable(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => Err(from_problem(problem)),
            Err(_) => Err(Failure::new(exit_code::FAILED, anyhow::anyhow!("the daemon answered {status}: {text}"))),
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        let place = if self.is_given { self.base.clone() } else { self.state_dir.display().to_string() };
        let error = anyhow::Error::new(error.without_url());
        if self.is_given {
            return Failure::new(exit_code::FAILED, error.context(format!("reach the daemon at {place}")));
        }
        Failure::new(exit_code::FAILED, anyhow::anyhow!("no daemon runs on {place}"))
            .hint("`arenad up` starts one; `arenad serve` runs one in the foreground")
    }

    /// The status, as `GET /v1/status` has it.
    pub async fn status(&self) -> Result<wire::Status, Failure> {
        self.json(Method::GET, "/v1/status").await
    }

    /// Makes sure that a daemon answers: starts one in the background if none does.
    pub async fn ensure_daemon(&self, engine: &EngineArgs) -> Result<(), Failure> {
        if self.is_running().await {
            return Ok(());
        }
        if self.is_given {
            let failure = Failure::new(exit_code::FAILED, anyhow::anyhow!("no daemon answers at {}", self.base));
            return Err(failure.hint("start it there with `arenad serve`, or unset ARENAD_HOST"));
        }
        std::fs::create_dir_all(&self.state_dir)
            .with_context(|| format!("make the state directory {}", self.state_dir.display()))?;
        let log_path = self.state_dir.join("arenad.log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log_path)
            .with_context(|| format!("open the daemon's log {}", log_path.display()))?;
        let deadline = Instant::now() + START_PATIENCE;
        let mut daemon: Option<Child> = None;
        while !self.is_running().await {
            let ended = match &mut daemon {
                Some(daemon) => daemon.try_wait().context("look after the daemon")?,
                // A daemon that another `arenad up` started at this moment will answer; one on its way out will let go.
                None if self.is_locked() => None,
                None => {
                    daemon = Some(self.spawn_daemon(engine, &log)?);
                    None
                }
            };
            let failed = match ended {
                Some(status) if status.code() == Some(i32::from(exit_code::BUSY)) => {
                    daemon = None;
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
        Ok(())
    }

    /// Starts a daemon in the background. It ends with [`exit_code::BUSY`] where another holds the lock.
    fn spawn_daemon(&self, engine: &EngineArgs, log: &File) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("find arenad's own program")?;
        std::process::Command::new(program)
            .args(["serve", "--background", "--engine", &engine.engine])
            .args(["--subnets", &engine.subnets.to_string()])
            .args(engine.parallel.iter().flat_map(|number| ["--parallel".to_owned(), number.to_string()]))
            .arg("--state-dir")
            .arg(&self.state_dir)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.try_clone().context("use the daemon's log")?)
            .spawn()
            .context("start the daemon")
    }

    /// Stops a daemon that was started for one question, unless it has something to look after.
    pub async fn leave(&self, was_running: bool) -> Result<(), Failure> {
        if was_running {
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
        let Ok(file) = File::open(self.state_dir.join("lock")) else {
            return false;
        };
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
    }
}

fn log_tail(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].iter().map(|line| format!("    {line}\n")).collect()
}
