//! Recreate: kill and remove the old containers, make new ones from the snapshot, wait until they are ready.
//!
//! The removal of the old containers runs while the new ones start: the engine spends a third of a second on the
//! removal, and the new containers do not depend on it. The old containers are killed first, so their memory is free
//! before the new ones need it.

use tokio::time::Instant;

use super::{ResetContext, ResetError};
use arenad_launch::{self as launch, GenerationSelector, Incarnation, Remains};
use arenad_model::cause::Cause;
use arenad_seams::fault::{self, Point};

/// Brings the instance to its snapshot and returns its containers, which have passed their readiness probes.
///
/// The generations in [`ResetContext::old`] are removed by the time it returns. Cancellation:
/// containers, networks and volumes that bear the generation's label may remain.
pub async fn recreate(context: &ResetContext<'_>) -> Result<Incarnation, ResetError> {
    let ResetContext { engine, storage, stages, blueprint, .. } = context;
    let old = Remains {
        installation: &blueprint.ownership.installation,
        instance: blueprint.id,
        role: blueprint.ownership.role,
        which: GenerationSelector::Among(context.old),
    };
    let remove = async {
        let removed = stages.time("remove", launch::remove(*engine, *storage, old)).await;
        fault::reach(Point::RecreateRemoved).await;
        removed
    };
    let (removed, made) = if blueprint.site.writes_host_data() {
        // Two servers that write to the same data folder would destroy it, so the old one is removed first.
        remove.await.map_err(ResetError::Remove)?;
        (Ok(()), make(context).await)
    } else {
        tokio::join!(remove, make(context))
    };
    let incarnation = match made {
        // The old containers may have filled the disk. They are gone by now, so a second attempt may succeed.
        Err(error) if error.cause() == Some(Cause::NoSpace) && removed.is_ok() => {
            let new = Remains { which: GenerationSelector::Only(blueprint.ownership.generation), ..old };
            launch::remove(*engine, *storage, new).await.map_err(ResetError::Remove)?;
            make(context).await?
        }
        made => made?,
    };
    removed.map_err(ResetError::Remove)?;
    Ok(incarnation)
}

/// Makes the containers of the blueprint's generation and waits until they are ready.
pub async fn make(context: &ResetContext<'_>) -> Result<Incarnation, ResetError> {
    let ResetContext { engine, prober, blueprint, stages, stage, waiting, .. } = context;
    let site = blueprint.site;
    let deadline = Instant::now() + site.readiness.timeout;
    stage("creating containers");
    let mut incarnation = stages.time("create", blueprint.create(*engine)).await?;
    fault::reach(Point::MakeCreated).await;
    stage("starting containers");
    let started = stages.time("start", launch::start(*engine, site, &mut incarnation, deadline));
    if let Err(cause) = started.await {
        return Err(ResetError::Start { cause, log: prober.log_tail(&incarnation, 15).await });
    }
    fault::reach(Point::MakeStarted).await;
    if let Some(setting) = &blueprint.clock
        && let Err(cause) = launch::check_clock(*engine, site, &incarnation, setting).await
    {
        return Err(ResetError::Start { cause, log: prober.log_tail(&incarnation, 15).await });
    }
    stage("waiting for the site");
    match stages.time("ready", prober.wait_ready(site, &incarnation, waiting)).await {
        Ok(()) => {
            fault::reach(Point::MakeProbed).await;
            Ok(incarnation)
        }
        Err(cause) => Err(ResetError::NotReady { cause, log: prober.log_tail(&incarnation, 15).await }),
    }
}
