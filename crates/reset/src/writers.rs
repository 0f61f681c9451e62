//! The writers of a site's stores: stopping and starting them in running containers.

use super::{ResetError, control, covered};
use arenad_engine::Engine;
use arenad_launch::{self as launch, Incarnation, InspectedContainers};
use arenad_model::configure::ExecStep;
use arenad_model::site::Site;
use arenad_model::store::Writers;
use arenad_probes::{ProbeFailure, Prober};

/// Stops and starts the writers of one generation.
pub(super) struct WriterControl<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) writers: &'a Writers,
    pub(super) incarnation: &'a Incarnation,
    pub(super) inside: &'a InspectedContainers,
}

impl WriterControl<'_> {
    pub(super) async fn stop(&self) -> Result<(), ResetError> {
        self.tell("stop", &self.writers.stop).await
    }

    pub(super) async fn start(&self) -> Result<(), ResetError> {
        self.tell("start", &self.writers.start).await
    }

    /// Stops or starts the writers through their socket, or by commands if that fails.
    async fn tell(&self, word: &str, steps: &[ExecStep]) -> Result<(), ResetError> {
        if let Some(control) = &self.writers.control {
            let within = steps.iter().map(|step| step.timeout).sum();
            match control::tell(self.inside, control, word, within).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let error = arenad_model::error::describe(&error);
                    tracing::debug!(error, "commands instead of the writers' socket {}", control.socket);
                }
            }
        }
        for step in steps {
            launch::run(self.engine, self.incarnation, step).await.map_err(ResetError::Writers)?;
        }
        Ok(())
    }
}

/// The running containers whose writers are to rest for a moment.
pub struct WriterPause<'a> {
    /// The engine that runs the containers.
    pub engine: &'a dyn Engine,
    /// Runs the probes that tell whether the site is ready.
    pub prober: &'a Prober,
    /// The definition of the site, which declares the stores.
    pub site: &'a Site,
    /// The steps that stop and start the processes that write to the stores.
    pub writers: &'a Writers,
    /// The running containers of the generation.
    pub incarnation: &'a Incarnation,
    /// Called with each probe failure while the site is not ready yet.
    pub waiting: &'a (dyn Fn(&ProbeFailure) + Send + Sync),
}

impl WriterPause<'_> {
    /// Does `work` while the writers rest, and returns when the site is ready again. The caller keeps clients away.
    ///
    /// Errors: [`ResetError::Uncovered`] if a copy of the stores would not be the whole state of the site, because the
    /// containers have written to other places, or a process still holds a store. The site goes on nevertheless.
    ///
    /// Cancellation: the writers may rest for ever.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, ResetError> {
        let Self { engine, prober, site, writers, incarnation, waiting } = *self;
        let inside = InspectedContainers::of(engine, site, incarnation).await?;
        covered::check_same(engine, site, incarnation, &inside).await?;
        let control = WriterControl { engine, writers, incarnation, inside: &inside };
        let rested = async {
            control.stop().await?;
            covered::check_processes(incarnation, &inside).await?;
            Ok(work.await)
        };
        let done = rested.await;
        control.start().await?;
        if let Err(cause) = prober.wait_ready(site, incarnation, waiting).await {
            return Err(ResetError::NotReady { cause, log: prober.log_tail(incarnation, 15).await });
        }
        done
    }
}
