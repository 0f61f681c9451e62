//! The steps of a baseline's configuration, and the requests that warm it.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::site::{ConfigureAction, ConfigureStep, HttpStep, Site, Unless};
use crate::engine::Engine;
use crate::launch::{self, Incarnation};
use crate::probes::{HttpExchange, Prober, describe, exchange, run_statement};

/// The pause before a failing step is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// Runs one configuration step, trying again for as long as the definition says.
pub async fn configure(
    engine: &dyn Engine,
    prober: &Prober,
    site: &Site,
    incarnation: &Incarnation,
    step: &ConfigureStep,
) -> Result<(), String> {
    if let Some(unless) = &step.unless
        && passes(prober, site, incarnation, unless).await?
    {
        return Ok(());
    }
    let deadline = Instant::now() + step.retry_for;
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
        match outcome {
            Err(reason) if Instant::now() < deadline => {
                // A container that has ended does not come up in its own time.
                if let Err(ended) = prober.still_running(site, incarnation).await {
                    return Err(format!("{ended}; {reason}"));
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            outcome => return outcome,
        }
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
