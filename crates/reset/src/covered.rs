//! Checks that everything that a rewind does not restore is unchanged. The state is recorded before the first client
//! and compared before a rewind counts.
//!
//! ```text
//!   made, ready, warmed ─► note_pristine ─► clients ─► writers stopped ─► check_at_rest ─► exchange ─► ready ─► check_covered
//! ```
//! `arenad_model::coverage` decides which differences matter; this module observes. A site whose definition rules out
//! rewinds is not observed.

use std::sync::Arc;

use super::ResetError;
use arenad_engine::Engine;
use arenad_launch::{Incarnation, InsideError, InspectedContainers};
use arenad_model::coverage::{self, Traces};
use arenad_model::site::Site;
use arenad_model::snapshot::VolumeFiles;

/// Returns the reason why containers of a site can never be rewound, if it is known before a rewind is tried.
///
/// `volumes` are the volumes of which the snapshot keeps archives, by service and mount path; an image may declare
/// some.
pub fn hindrance(site: &Site, volumes: &VolumeFiles, incarnation: Option<&Incarnation>) -> Option<String> {
    let volumes =
        volumes.iter().flat_map(|(service, paths)| paths.keys().map(|path| (service.as_str(), path.as_str())));
    let gaps = coverage::declared_gaps(site, volumes);
    if !gaps.is_empty() {
        return Some(coverage::told(&gaps));
    }
    let is_unknown = incarnation.is_some_and(|incarnation| incarnation.pristine.is_none());
    is_unknown
        .then(|| "the content of its containers outside of the stores before the first client is unknown".to_owned())
}

/// Records the content of containers outside their stores, before a client has reached them. If they cannot be
/// inspected, they are never rewound.
pub async fn note_pristine(engine: &dyn Engine, site: &Site, incarnation: &mut Incarnation) {
    if site.rewinds().is_none() || site.stores.is_empty() {
        return;
    }
    let looked = async { InspectedContainers::of(engine, site, incarnation).await?.traces(engine).await };
    incarnation.pristine = match looked.await {
        Ok(traces) => Some(Arc::new(traces)),
        Err(error) => {
            let error = arenad_model::error::describe(&error);
            tracing::warn!(site.name = %site.name, error, "these containers will not be rewound");
            None
        }
    };
}

/// Checks that the containers hold outside of their stores what they held before the first client.
///
/// Errors: `ResetError::Uncovered` names the differences.
pub async fn check_covered(engine: &dyn Engine, site: &Site, incarnation: &Incarnation) -> Result<(), ResetError> {
    check_same(engine, site, incarnation, &InspectedContainers::of(engine, site, incarnation).await?).await
}

/// Checks the same as [`check_covered`], for containers that `inside` has already found.
pub(super) async fn check_same(
    engine: &dyn Engine,
    site: &Site,
    incarnation: &Incarnation,
    inside: &InspectedContainers,
) -> Result<(), ResetError> {
    let (pristine, now) = (pristine(incarnation)?, inside.traces(engine).await?);
    let gaps = coverage::gaps(&site.scratch, pristine.as_ref(), &now);
    if gaps.is_empty() { Ok(()) } else { Err(ResetError::Uncovered(gaps)) }
}

/// Checks that stopped writers are at rest: no process holds a store open, and every process ran before the first
/// client. Then empties the scratch folders that a rewind empties.
pub(super) async fn check_at_rest(incarnation: &Incarnation, inside: &InspectedContainers) -> Result<(), ResetError> {
    check_processes(incarnation, inside).await?;
    Ok(inside.empty_scratch().await?)
}

/// Checks that stopped writers are at rest, and changes nothing.
pub(super) async fn check_processes(incarnation: &Incarnation, inside: &InspectedContainers) -> Result<(), ResetError> {
    let pristine = pristine(incarnation)?;
    let gaps = inside.processes(pristine.as_ref()).await?;
    if gaps.is_empty() { Ok(()) } else { Err(ResetError::Uncovered(gaps)) }
}

fn pristine(incarnation: &Incarnation) -> Result<Arc<Traces>, InsideError> {
    incarnation.pristine.clone().ok_or(InsideError::NotNoted)
}
