//! The standbys that the last daemon left: taken up by this one, so that a restart costs no pool.
//!
//! The store says which were ready. What has become of them since nobody knows, so each is proven again from beginning to end
//! before it counts, one at a time and beside everything else; until then it is being made. One that was frozen is let go on
//! for that, and frozen again afterwards like any other.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::{ADOPTION_PATIENCE, Core};
use super::making::clear_away;
use super::standbys::{Ended, Finished, GIVEN_UP, Standby, WORN};
use super::trouble::Failure;
use crate::daemon::proof::{Candidate, Proof};
use crate::daemon::shared::Shared;
use crate::daemon::store::{StoredSnapshot, StoredStandby};
use crate::domain::instance::InstanceId;
use crate::domain::pool::Standing;
use crate::domain::site::Site;
use crate::engine::{ContainerState, EngineError};
use crate::launch::{self, Incarnation};
use crate::probes::describe;

impl Core {
    /// Takes up what the store knows of. What is of another snapshot than is wanted now goes.
    pub(super) async fn take_up_standbys(&mut self) -> Result<(), Failure> {
        let Some(wanted) = self.baseline.clone() else { return Ok(()) };
        for StoredStandby { made, snapshot, renewals } in self.shared.store.standbys(&self.id.to_string()).await? {
            let is_wanted = snapshot == wanted.id;
            let standing = if is_wanted { Standing::Making } else { Standing::Used { renewals: WORN } };
            self.standbys.members.insert(made, Standby { renewals, ..Standby::new(&snapshot, standing) });
            // There was a use for it.
            self.standbys.is_wanted = true;
            if is_wanted {
                let (shared, id, site) = (self.shared.clone(), self.id.clone(), self.site.clone());
                let work = take_up(shared, id, site, wanted.clone(), made, self.standbys.stop.clone());
                self.standbys.work.spawn(self.shared.tasks.track_future(async move {
                    Finished {
                        made,
                        result: work.await.map(|(incarnation, proof)| Ended::ready(incarnation, proof, 0)),
                    }
                }));
            }
        }
        self.show_standbys();
        Ok(())
    }

    /// Notes for the next daemon that a standby is ready.
    pub(super) async fn remember_standby(&self, standby: StoredStandby) {
        if let Err(error) = self.shared.store.keep_standby(&self.id, &standby).await {
            tracing::warn!(instance.id = %self.id, error = describe(&error), "the next daemon will not know of a standby");
        }
    }

    /// Takes that back, before anything is done to it.
    pub(super) async fn forget_standby(&self, made: u64) {
        if let Err(error) = self.shared.store.forget_standby(&self.id, made).await {
            // The next daemon proves it before it counts.
            tracing::warn!(instance.id = %self.id, error = describe(&error), "a standby is still noted");
        }
    }
}

/// Finds a standby's containers, lets them go on and proves them; what cannot be used is removed.
async fn take_up(
    shared: Arc<Shared>,
    id: InstanceId,
    site: Arc<Site>,
    snapshot: StoredSnapshot,
    made: u64,
    stop: CancellationToken,
) -> Result<(Incarnation, Option<Proof>), String> {
    let turn = stop.run_until_cancelled(shared.turns.standbys.turn(&|_| {})).await;
    let _turn = turn.ok_or_else(|| GIVEN_UP.to_owned())?;
    let taken_up = async {
        let engine = shared.engine.as_ref();
        let found = launch::find_containers(engine, &site, &shared.installation, &id, made).await;
        let mut incarnation = found.map_err(|error| describe(&error))?.ok_or("its containers are gone")?;
        go_on(&shared, &incarnation).await.map_err(|error| describe(&error))?;
        launch::find_addresses(engine, &site, &mut incarnation).await.map_err(|error| describe(&error))?;
        let deadline = Instant::now() + ADOPTION_PATIENCE;
        while let Err(failure) = shared.prober.round(&site.readiness.probes, &site, &incarnation, None).await {
            if Instant::now() >= deadline {
                return Err(failure.to_string());
            }
            tokio::time::sleep(site.readiness.interval).await;
        }
        let (id, site, snapshot) = (&id, &site, &snapshot);
        let candidate = Candidate { shared: &shared, id, site, snapshot, incarnation: &incarnation };
        let proof = Proof::begin(&candidate).await.map_err(|error| describe(&error))?;
        Ok((incarnation, proof))
    };
    match taken_up.await {
        Ok(taken_up) => Ok(taken_up),
        Err(reason) => {
            clear_away(&shared, &id, made).await;
            Err(reason)
        }
    }
}

/// Lets those containers go on that are frozen.
async fn go_on(shared: &Shared, incarnation: &Incarnation) -> Result<(), EngineError> {
    for handle in incarnation.containers.values() {
        if shared.engine.inspect(handle).await?.state == ContainerState::Paused {
            shared.engine.thaw(handle).await?;
        }
    }
    Ok(())
}
