//! The steps of a baseline's configuration, and the requests that warm it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use arenad_engine::Engine;
use arenad_launch::{self as launch, CommandError, Incarnation};
use arenad_model::cause::Cause;
use arenad_model::configure::{ConfigureAction, ConfigureStep, HttpStep, Unless};
use arenad_model::error::describe;
use arenad_model::site::Site;
use arenad_probes::{HttpExchange, NotReady, Prober, SqlFailure, Unmet, exchange, run_statement};

/// The pause before a failed step is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// The reason why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A command could not be run, or reported a failure.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A request did not receive the response that the step expects.
    #[error("{0}")]
    Http(Unmet),
    /// A database refused a statement.
    #[error("{0}")]
    Sql(SqlFailure),
    /// The step names a database that the site does not declare.
    #[error("database {0} is not declared")]
    NoDatabase(String),
    /// A container ended, or could not be inspected, after a failed attempt.
    #[error("{ended}; {attempt}")]
    Ended {
        /// The container and how it ended.
        ended: NotReady,
        /// The failure of the attempt, on one line.
        attempt: String,
    },
    /// Every attempt failed until the time was up.
    #[error("tried {attempts} times in {:.0} s; the last failure: {}", took.as_secs_f64(), describe(last))]
    Tried {
        /// The number of attempts; more than one. Each attempt of a step that is not idempotent may have left part of
        /// its work.
        attempts: u32,
        /// The time from the first attempt to the end of the last.
        took: Duration,
        /// The failure of the last attempt.
        last: Box<StepError>,
    },
}

impl StepError {
    /// Returns the cause, if a person can take specific action against it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Command(error) => error.cause(),
            Self::Http(unmet) => unmet.cause(),
            Self::Sql(error) => error.cause(),
            Self::NoDatabase(_) => None,
            Self::Ended { ended, .. } => ended.cause(),
            Self::Tried { last, .. } => last.cause(),
        }
    }

    fn ended(attempt: &str) -> impl FnOnce(NotReady) -> Self {
        let attempt = attempt.to_owned();
        move |ended| Self::Ended { ended, attempt }
    }
}

/// Runs one configuration step and retries it for as long as the definition says. `input` is the standard input of a step
/// that has one. After each failed attempt that is followed by another, `tell` receives the number of attempts and the
/// failure.
pub(crate) async fn configure(
    engine: &dyn Engine,
    prober: &Prober,
    site: &Site,
    incarnation: &Incarnation,
    step: &ConfigureStep,
    input: Option<Bytes>,
    tell: &(dyn Fn(u32, &str) + Send + Sync),
) -> Result<(), StepError> {
    if let Some(unless) = &step.unless
        && passes(prober, site, incarnation, unless).await?
    {
        return Ok(());
    }
    let begun = Instant::now();
    let deadline = begun + step.retry_for;
    let mut attempt: u32 = 1;
    loop {
        let outcome = match &step.action {
            ConfigureAction::Exec(step) => {
                let ran = launch::run_with_input(engine, incarnation, step, input.clone()).await;
                ran.map_err(StepError::from)
            }
            ConfigureAction::Http(step) => http(prober, incarnation, step).await,
            ConfigureAction::Sql { database, statement } => match site.databases.get(database) {
                Some(database) => {
                    let done = run_statement(engine, database, incarnation, statement).await;
                    done.map(drop).map_err(StepError::Sql)
                }
                None => Err(StepError::NoDatabase(database.clone())),
            },
        };
        let Err(failure) = outcome else { return Ok(()) };
        // A container that has ended does not recover, so further attempts would be useless.
        let ended = match Instant::now() < deadline {
            true => prober.still_running(site, incarnation).await.err(),
            false => None,
        };
        match ended {
            Some(ended) => return Err(tried(attempt, begun.elapsed(), StepError::ended(&describe(&failure))(ended))),
            None if Instant::now() >= deadline => return Err(tried(attempt, begun.elapsed(), failure)),
            None => {}
        }
        tell(attempt, &describe(&failure));
        tokio::time::sleep(RETRY_PAUSE).await;
        attempt += 1;
    }
}

fn tried(attempts: u32, took: Duration, last: StepError) -> StepError {
    match attempts {
        1 => last,
        _ => StepError::Tried { attempts, took, last: Box::new(last) },
    }
}

/// Whether a step's probe passes in time.
///
/// Errors: [`StepError::Ended`] if a container ends meanwhile.
async fn passes(prober: &Prober, site: &Site, incarnation: &Incarnation, unless: &Unless) -> Result<bool, StepError> {
    let deadline = Instant::now() + unless.within;
    loop {
        let Err(failure) = prober.run(&unless.probe, site, incarnation, None).await else {
            return Ok(true);
        };
        prober.still_running(site, incarnation).await.map_err(StepError::ended(&failure.to_string()))?;
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Sends a request whose response must have one of the step's status codes.
pub async fn http(prober: &Prober, incarnation: &Incarnation, step: &HttpStep) -> Result<(), StepError> {
    let request = HttpExchange {
        service: &step.service,
        port: step.port,
        method: &step.method,
        path: &step.path,
        headers: &step.headers,
        body: step.body.as_deref(),
    };
    let answer = tokio::time::timeout(step.timeout, exchange(prober.http(), incarnation, &request))
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {:?}", step.timeout).into()));
    let failed = |unmet: Unmet| StepError::Http(unmet.told(|text| format!("{} {}: {text}", step.method, step.path)));
    let answer = answer.map_err(failed)?;
    if step.status.contains(&answer.status) {
        Ok(())
    } else {
        Err(failed(format!("status {}, expected {:?}", answer.status, step.status).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_attempts_are_counted() {
        let said = |attempts, took| tried(attempts, took, StepError::Http("why".into())).to_string();
        assert_eq!(said(1, Duration::from_secs(1)), "why");
        assert_eq!(said(12, Duration::from_millis(60_200)), "tried 12 times in 60 s; the last failure: why");
    }
}
