//! Probes, which test an instance in the way its users would and report precisely what is not yet ready.
//!
//! Every probe opens a new connection, because a pooled one could belong to an earlier container.
//!
//! The crate depends on `engine` and `launch` for containers, on `site-client` for HTTP and on `confined` for SQL.
//! Start reading at [`Prober`].

mod client;
mod http;
mod log;
mod sql;
pub mod sql_worker;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use arenad_engine::{ContainerHealth, ContainerState, Engine, EngineError, EngineHandle};
use arenad_launch::Incarnation;
use arenad_model::cause::Cause;
use arenad_model::error::describe;
use arenad_model::ids::ServiceName;
use arenad_model::probe::{Probe, ProbeKind};
use arenad_model::site::Site;
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

pub use self::client::account_words;
pub use self::http::{HttpExchange, ProbeResponse, exchange, innermost, judge, read};
pub use self::sql::{FirstValue, KeptConnection, SqlFailure, SqlSession, run_statement};

/// The failure of a probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{probe}: {reason}")]
pub struct ProbeFailure {
    /// Name of the failed probe.
    pub probe: String,
    /// Description of the difference between the expected and the actual result.
    pub reason: String,
    /// The cause, if a person can take specific action against it.
    pub cause: Option<Cause>,
}

/// The difference between a probe's expectation and its observation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Unmet {
    text: String,
    cause: Option<Cause>,
}

impl Unmet {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// Replaces the text by the result of `text`, which puts it into a larger context.
    #[must_use]
    pub fn told(self, text: impl FnOnce(&str) -> String) -> Self {
        Self { text: text(&self.text), ..self }
    }

    /// Adds the cause that a site's program states in a text, unless there is one already.
    fn stated(self, text: &str) -> Self {
        Self { cause: self.cause.or_else(|| Cause::stated_by_program(text)), ..self }
    }
}

impl From<String> for Unmet {
    fn from(text: String) -> Self {
        Self { text, cause: None }
    }
}

impl From<&str> for Unmet {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<EngineError> for Unmet {
    fn from(error: EngineError) -> Self {
        Self { cause: error.cause(), text: describe(&error) }
    }
}

impl From<SqlFailure> for Unmet {
    fn from(failure: SqlFailure) -> Self {
        Self { cause: failure.cause(), text: failure.to_string() }
    }
}

/// The reason why an instance did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// The time limit was reached.
    #[error("not ready after {waited:.1?}: {last}")]
    TimedOut {
        /// Time from the beginning of the wait until it was given up.
        waited: Duration,
        /// The failure of the last complete round.
        last: ProbeFailure,
    },
    /// A container ended before the instance was ready.
    #[error("the container of {service} exited with code {code}{}", if *oom_killed { " (out of memory)" } else { "" })]
    Ended {
        /// Name of the container's service.
        service: String,
        /// The container's exit code.
        code: i64,
        /// Whether the kernel killed the container because of its memory limit.
        oom_killed: bool,
    },
    /// The engine could not inspect a container.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl NotReady {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::TimedOut { last, .. } => last.cause,
            Self::Ended { oom_killed, .. } => oom_killed.then_some(Cause::OutOfMemory),
            Self::Engine(error) => error.cause(),
        }
    }
}

/// Runs the probes of sites. Clones share the memory of log probes.
#[derive(Clone)]
pub struct Prober {
    engine: Arc<dyn Engine>,
    http: SiteClient,
    logs: log::LogMemory,
}

impl Prober {
    /// Returns a prober that reaches containers through `dialer`.
    pub fn new(engine: Arc<dyn Engine>, dialer: Dialer) -> Self {
        Self { engine, http: SiteClient::new(dialer), logs: log::LogMemory::default() }
    }

    /// Returns the HTTP client with which probes reach sites.
    pub fn http(&self) -> &SiteClient {
        &self.http
    }

    /// Runs one probe. `limit` can shorten the probe's own time-out.
    pub async fn run(
        &self,
        probe: &Probe,
        site: &Site,
        incarnation: &Incarnation,
        limit: Option<Duration>,
    ) -> Result<(), ProbeFailure> {
        let limit = limit.map_or(probe.timeout, |limit| limit.min(probe.timeout));
        let failure = |Unmet { text, cause }| ProbeFailure { probe: probe.name.clone(), reason: text, cause };
        match tokio::time::timeout(limit, self.look(&probe.kind, site, incarnation, limit)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(unmet)) => Err(failure(unmet)),
            Err(_) => Err(failure(format!("no answer within {limit:?}").into())),
        }
    }

    /// Runs all probes of a site concurrently. Errors: the first failure in the order of the definition.
    pub async fn round(
        &self,
        probes: &[Probe],
        site: &Site,
        incarnation: &Incarnation,
        limit: Option<Duration>,
    ) -> Result<(), ProbeFailure> {
        let probes = probes.iter().map(|probe| self.run(probe, site, incarnation, limit));
        futures_util::future::join_all(probes).await.into_iter().collect()
    }

    /// Waits until all start-up probes pass in one round. `waiting` is called with the failure of each round.
    pub async fn wait_ready(
        &self,
        site: &Site,
        incarnation: &Incarnation,
        waiting: &(dyn Fn(&ProbeFailure) + Send + Sync),
    ) -> Result<(), NotReady> {
        let begun = Instant::now();
        let deadline = begun + site.readiness.timeout;
        let mut next_look = begun + Duration::from_millis(500);
        let mut last: Option<ProbeFailure> = None;
        loop {
            // The deadline can cut a round short, but every round gets at least ten milliseconds.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
            let Err(failure) = self.round(&site.readiness.probes, site, incarnation, Some(left)).await else {
                return Ok(());
            };
            waiting(&failure);
            if Instant::now() >= next_look {
                self.still_running(site, incarnation).await?;
                next_look = Instant::now() + Duration::from_millis(500);
            }
            if Instant::now() >= deadline {
                // A round that was cut short is less informative than the previous one.
                return Err(NotReady::TimedOut { waited: begun.elapsed(), last: last.unwrap_or(failure) });
            }
            last = Some(failure);
            tokio::time::sleep(pause_after(begun.elapsed(), site.readiness.interval)).await;
        }
    }

    /// Checks that no container of the instance has ended, because a site without it never becomes ready.
    pub async fn still_running(&self, site: &Site, incarnation: &Incarnation) -> Result<(), NotReady> {
        for service in &site.services {
            let Some(handle) = incarnation.containers.get(&service.name) else {
                continue;
            };
            let status = self.engine.inspect(handle).await?;
            let is_one_shot = !incarnation.addresses.contains_key(&service.name);
            match status.state {
                ContainerState::Exited(0) if is_one_shot => {}
                ContainerState::Exited(code) => {
                    let service = service.name.to_string();
                    return Err(NotReady::Ended { service, code, oom_killed: status.oom_killed });
                }
                ContainerState::Dead => {
                    let service = service.name.to_string();
                    return Err(NotReady::Ended { service, code: -1, oom_killed: status.oom_killed });
                }
                ContainerState::Created | ContainerState::Running | ContainerState::Paused => {}
            }
        }
        Ok(())
    }

    async fn look(
        &self,
        kind: &ProbeKind,
        site: &Site,
        incarnation: &Incarnation,
        limit: Duration,
    ) -> Result<(), Unmet> {
        match kind {
            ProbeKind::Http(probe) => http::look(&self.http, probe, incarnation).await,
            ProbeKind::Tcp { service, port } => {
                let socket = incarnation.socket(service, *port).ok_or_else(|| no_address(service.as_str()))?;
                let dialed = self.http.dialer().dial(socket).await;
                dialed.map(drop).map_err(|error| format!("connect to {socket}: {error}").into())
            }
            ProbeKind::Sql { database, query, equals } => {
                let database = site.databases.get(database).ok_or("the database is not declared")?;
                let value = run_statement(self.engine.as_ref(), database, incarnation, query).await?;
                match (equals, value) {
                    (Some(expected), Some(Some(found))) if found == *expected => Ok(()),
                    (Some(expected), found) => {
                        Err(format!("`{query}` yields {}, expected {expected:?}", sql::shown(found.as_ref())).into())
                    }
                    (None, Some(_)) => Ok(()),
                    (None, None) => Err(format!("`{query}` yields no row").into()),
                }
            }
            ProbeKind::Exec { service, command, contains } => {
                let handle = container(incarnation, service)?;
                let output = self.engine.exec(handle, command, None, limit).await?;
                if output.code != 0 {
                    let said = last_line(&output.stderr).or_else(|| last_line(&output.stdout)).unwrap_or_default();
                    let text = format!("`{}` exited with code {}: {said}", command.join(" "), output.code);
                    return Err(Unmet { text, cause: Cause::stated_by_program(said) });
                }
                match contains {
                    Some(text) if !output.stdout.contains(text.as_str()) => {
                        Err(format!("`{}` did not print {text:?}", command.join(" ")).into())
                    }
                    _ => Ok(()),
                }
            }
            ProbeKind::Log { service, pattern } => {
                let handle = container(incarnation, service)?;
                let now = Timestamp::now().as_second();
                self.logs.has_line(self.engine.as_ref(), handle, incarnation.started_at, pattern, now).await
            }
            ProbeKind::DockerHealth { service } => {
                let handle = container(incarnation, service)?;
                let status = self.engine.inspect(handle).await?;
                match status.health {
                    ContainerHealth::Healthy => Ok(()),
                    ContainerHealth::Starting => Err("its health check has not passed yet".into()),
                    ContainerHealth::Unhealthy => Err("its health check fails".into()),
                    ContainerHealth::None => Err("it has no health check".into()),
                }
            }
        }
    }

    /// Returns the last lines of every container's log, for error messages.
    pub async fn log_tail(&self, incarnation: &Incarnation, lines: u32) -> String {
        let mut text = String::new();
        for (service, handle) in &incarnation.containers {
            for line in log::tail(self.engine.as_ref(), handle, lines).await {
                text.push_str(&format!("\n    {service} | {line}"));
            }
        }
        text
    }
}

/// The minimum pause between two rounds.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// Returns the pause before the next round: a twentieth of the time waited so far, so that the delay is at most 5 %,
/// but never more than the definition's interval.
fn pause_after(waited: Duration, interval: Duration) -> Duration {
    (waited / 20).max(LEAST_PAUSE).min(interval)
}

fn no_address(service: &str) -> String {
    format!("{service} has no address: its container is not running")
}

fn container<'a>(incarnation: &'a Incarnation, service: &ServiceName) -> Result<&'a EngineHandle, Unmet> {
    incarnation.containers.get(service).ok_or_else(|| format!("{service} has no container").into())
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_wait_up_to_the_interval() {
        let interval = Duration::from_millis(100);
        let pause = |waited| pause_after(Duration::from_millis(waited), interval).as_millis();
        assert_eq!((pause(0), pause(400), pause(60_000)), (10, 20, 100));
        assert_eq!(pause_after(Duration::ZERO, Duration::from_millis(5)).as_millis(), 5);
    }
}
