//! What a rewind does not bring back: noted before the first client, checked before a rewind counts.
//!
//! ```text
//!   made, ready, warmed ─► note_pristine ─► clients ─► writers stopped ─► check_at_rest ─► exchange ─► ready ─► check_covered
//! ```
//! `domain::coverage` decides; this looks. A site that cannot be rewound is not looked at.

use std::sync::Arc;

use super::ResetError;
use arenad_engine::Engine;
use arenad_launch::{Incarnation, Inside, InsideError};
use arenad_model::coverage::{self, Traces};
use arenad_model::site::Site;
use arenad_model::snapshot::VolumeFiles;

/// Why containers of a site are never rewound, as far as it is known before that is tried. `volumes`: those that the
/// snapshot keeps archives of, by service and mount path; an image may declare some.
pub fn hindrance(site: &Site, volumes: &VolumeFiles, incarnation: Option<&Incarnation>) -> Option<String> {
    let volumes =
        volumes.iter().flat_map(|(service, paths)| paths.keys().map(|path| (service.as_str(), path.as_str())));
    let gaps = coverage::declared_gaps(site, volumes);
    if !gaps.is_empty() {
        return Some(coverage::told(&gaps));
    }
    let is_unknown = incarnation.is_some_and(|incarnation| incarnation.pristine.is_none());
    is_unknown.then(|| "nobody knows what its containers held outside of the stores before the first client".to_owned())
}

/// Notes what containers hold outside of their stores. No client has reached them yet. Where that cannot be looked at they
/// are not rewound later on.
pub async fn note_pristine(engine: &dyn Engine, site: &Site, incarnation: &mut Incarnation) {
    if site.rewinds().is_none() || site.stores.is_empty() {
        return;
    }
    let looked = async { Inside::of(engine, site, incarnation).await?.traces(engine).await };
    incarnation.pristine = match looked.await {
        Ok(traces) => Some(Arc::new(traces)),
        Err(error) => {
            let error = arenad_model::error::describe(&error);
            tracing::warn!(site.name = %site.name, error, "these containers will not be rewound");
            None
        }
    };
}

/// Insists that what the containers hold outside of their stores is what they held before the first client.
pub async fn check_covered(engine: &dyn Engine, site: &Site, incarnation: &Incarnation) -> Result<(), ResetError> {
    check_same(engine, site, incarnation, &Inside::of(engine, site, incarnation).await?).await
}

/// The same, once the containers are known.
pub(super) async fn check_same(
    engine: &dyn Engine,
    site: &Site,
    incarnation: &Incarnation,
    inside: &Inside,
) -> Result<(), ResetError> {
    let (pristine, now) = (pristine(incarnation)?, inside.traces(engine).await?);
    let gaps = coverage::gaps(&site.scratch, pristine.as_ref(), &now);
    if gaps.is_empty() { Ok(()) } else { Err(ResetError::Uncovered(gaps)) }
}

/// Insists that stopped writers are at rest: no process holds a store open, and none runs that did not before the first
/// client. Then empties the scratch that is to be emptied.
pub(super) async fn check_at_rest(incarnation: &Incarnation, inside: &Inside) -> Result<(), ResetError> {
    let pristine = pristine(incarnation)?;
    let gaps = inside.processes(pristine.as_ref()).await?;
    if !gaps.is_empty() {
        return Err(ResetError::Uncovered(gaps));
    }
    Ok(inside.empty_scratch().await?)
}

fn pristine(incarnation: &Incarnation) -> Result<Arc<Traces>, InsideError> {
    incarnation.pristine.clone().ok_or(InsideError::NotNoted)
}
