//! The steps of a baseline's configuration, and the requests that warm it.

use std::time::Duration;

use tokio::time::Instant;

use arenad_engine::Engine;
use arenad_launch::{self as launch, Incarnation};
use arenad_model::error::describe;
use arenad_model::site::{ConfigureAction, ConfigureStep, HttpStep, Site, Unless};
use arenad_probes::{HttpExchange, Prober, exchange, run_statement};

/// The pause before a failing step is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// Runs one configuration step, trying again for as long as the definition says. `tell` hears of each attempt that failed:
/// how many there have been, and why the last one did.
pub async fn configure(
    engine: &dyn Engine,
    prober: &Prober,
    site: &Site,
    incarnation: &Incarnation,
    step: &ConfigureStep,
    tell: &(dyn Fn(u32, &str) + Send + Sync),
) -> Result<(), String> {
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
                launch::run(engine, incarnation, step).await.map_err(|error| describe(&error))
            }
            ConfigureAction::Http(step) => http(prober, incarnation, step).await,
            ConfigureAction::Sql { database, statement } => match site.databases.get(database) {
                Some(database) => {
                    let done = run_statement(engine, database, incarnation, statement).await;
                    done.map(drop).map_err(|error| error.to_string())
                }
                None => Err(format!("database {database} is not declared")),
            },
        };
        let Err(reason) = outcome else { return Ok(()) };
        // A container that has ended does not come up in its own time.
        let ended = match Instant::now() < deadline {
            true => prober.still_running(site, incarnation).await.err(),
            false => None,
        };
        match ended {
            Some(ended) => return Err(tried(attempt, begun.elapsed(), &format!("{ended}; {reason}"))),
            None if Instant::now() >= deadline => return Err(tried(attempt, begun.elapsed(), &reason)),
            None => {}
        }
        tell(attempt, &reason);
        tokio::time::sleep(RETRY_PAUSE).await;
        attempt += 1;
    }
}

/// How often a step was tried, before the last reason: one that is not idempotent may have left its first half each time.
fn tried(attempts: u32, took: Duration, reason: &str) -> String {
    match attempts {
        1 => reason.to_owned(),
        _ => format!("tried {attempts} times in {:.0} s; the last failure: {reason}", took.as_secs_f64()),
    }
}

/// Whether a step's probe passes in time; an error if a container ends meanwhile.
async fn passes(prober: &Prober, site: &Site, incarnation: &Incarnation, unless: &Unless) -> Result<bool, String> {
    let deadline = Instant::now() + unless.within;
    loop {
        let Err(failure) = prober.run(&unless.probe, site, incarnation, None).await else {
            return Ok(true);
        };
        prober.still_running(site, incarnation).await.map_err(|ended| format!("{ended}; {failure}"))?;
        if Instant::now() >= deadline {
            return Ok(false);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Sends a request that must be answered with one of the step's status codes.
pub async fn http(prober: &Prober, incarnation: &Incarnation, step: &HttpStep) -> Result<(), String> {
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
        .map_err(|_| format!("{} {}: no answer within {:?}", step.method, step.path, step.timeout))?
        .map_err(|error| format!("{} {}: {error}", step.method, step.path))?;
    if step.status.contains(&answer.status) {
        Ok(())
    } else {
        Err(format!("{} {}: status {}, expected {:?}", step.method, step.path, answer.status, step.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_attempts_are_counted() {
        assert_eq!(tried(1, Duration::from_secs(1), "why"), "why");
        assert_eq!(tried(12, Duration::from_millis(60_200), "why"), "tried 12 times in 60 s; the last failure: why");
    }
}
