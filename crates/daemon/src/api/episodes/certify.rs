//! The certificates of evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;

use super::shown;
use crate::api::Api;
use crate::api::error::ApiError;
use arenad_certificate::{
    CertifiedEpisode, CertifiedSite, CertifiedSnapshot, CertifiedStatement, CertifiedStore, JudgedEvidence, Judgement,
};
use arenad_digest::Digest;
use arenad_episodes::EpisodeView;
use arenad_instance::InstanceHandle;
use arenad_instance::proof::ProofCandidate;
use arenad_model::error::describe;
use arenad_model::snapshot::Snapshot;

/// The time limit for the digests of the stores of a site, for which the episode stays frozen.
const DIGESTS_LIMIT: Duration = Duration::from_secs(60);

/// Returns the certificate of a verdict, and the evidence that it was made from. The verdict is worth more than its
/// certificate: if none can be issued, there is none, and the log has the reason.
pub(super) async fn certified(
    api: &Api,
    view: &EpisodeView,
    handles: &[InstanceHandle],
    evidence: JudgedEvidence,
    judgement: Judgement,
) -> Result<(Option<Value>, JudgedEvidence), ApiError> {
    let sites = join_all(handles.iter().map(|handle| site(api, handle))).await;
    let (episode, certifier) = (episode(api, view), api.certifier.clone());
    // Evidence can be large, and it is judged once more.
    let issued = tokio::task::spawn_blocking(move || {
        let stated = CertifiedStatement::of(episode, sites, &evidence, &judgement).map_err(|error| describe(&error));
        let signed = stated.and_then(|statement| certifier.sign(statement).map_err(|error| describe(&error)));
        let document = signed.and_then(|signed| serde_json::to_value(signed).map_err(|error| error.to_string()));
        (document, evidence)
    });
    let (document, evidence) = issued.await.map_err(ApiError::internal)?;
    let document = document.inspect_err(|error| {
        tracing::error!(episode.id = %view.id, error, "the verdict on episode {} has no certificate", view.id);
    });
    Ok((document.ok(), evidence))
}

fn episode(api: &Api, view: &EpisodeView) -> CertifiedEpisode {
    let request = &view.request;
    CertifiedEpisode {
        id: view.id.to_string(),
        environment: shown::environment(view).to_owned(),
        owner: request.owner.to_string(),
        labels: request.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        asked_at: view.asked_at.to_string(),
        granted_at: view.granted_at.map(|at| at.to_string()),
        judged_at: Timestamp::now().to_string(),
        installation: api.shared.installation.clone(),
        arenad: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

async fn site(api: &Api, handle: &InstanceHandle) -> CertifiedSite {
    let generation = handle.report().generation;
    let snapshot = match handle.report().snapshot {
        Some(id) => api.shared.store.snapshot(&id).await.ok().flatten(),
        None => None,
    };
    let (stores, unread) = match stores(api, handle, snapshot.as_ref()).await {
        Ok(_) if handle.report().generation != generation => (BTreeMap::new(), Some("it was reset".to_owned())),
        Ok(stores) => (stores, None),
        Err(reason) => (BTreeMap::new(), Some(reason)),
    };
    CertifiedSite {
        site: handle.site.name.to_string(),
        instance: handle.id.to_string(),
        generation,
        snapshot: snapshot.map(certified_snapshot),
        stores,
        unread,
    }
}

fn certified_snapshot(snapshot: Snapshot) -> CertifiedSnapshot {
    CertifiedSnapshot {
        id: snapshot.id.to_string(),
        name: snapshot.name,
        recipe: snapshot.recipe,
        images: snapshot.images.into_iter().map(|(service, image)| (service.to_string(), image)).collect(),
    }
}

/// Returns the digests of a site's stores, or the reason why there are none.
async fn stores(
    api: &Api,
    handle: &InstanceHandle,
    snapshot: Option<&Snapshot>,
) -> Result<BTreeMap<String, CertifiedStore>, String> {
    let report = handle.report();
    let (Some(snapshot), Some(incarnation)) = (snapshot, &report.incarnation) else {
        return Err("it has no snapshot".to_owned());
    };
    let candidate = ProofCandidate { shared: &api.shared, id: &handle.id, site: &handle.site, snapshot, incarnation };
    if !candidate.can_be_proven() {
        return Err("it declares no stores that can be compared".to_owned());
    }
    match tokio::time::timeout(DIGESTS_LIMIT, candidate.digests()).await {
        Ok(Ok((reference, present))) => Ok(certified_stores(&reference, &present)),
        Ok(Err(error)) => Err(describe(&error)),
        Err(_) => Err(format!("they were not read within {} s", DIGESTS_LIMIT.as_secs())),
    }
}

fn certified_stores(reference: &Digest, present: &Digest) -> BTreeMap<String, CertifiedStore> {
    let of = |digest: &Digest, name: &String| digest.stores.get(name).map(arenad_digest::StoreContent::total);
    let names: BTreeSet<&String> = reference.stores.keys().chain(present.stores.keys()).collect();
    let store = |name: &String| CertifiedStore { snapshot: of(reference, name), judged: of(present, name) };
    names.into_iter().map(|name| (name.clone(), store(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_digest::{StoreContent, TableDigest};

    #[test]
    fn a_store_that_was_written_to_has_two_digests() {
        let content = |hash: &str| StoreContent {
            tables: BTreeMap::from([("orders".to_owned(), TableDigest { count: 1, hash: hash.to_owned() })]),
            ..StoreContent::default()
        };
        let digest = |stores: &[(&str, &str)]| Digest {
            declared: String::new(),
            stores: stores.iter().map(|(name, hash)| ((*name).to_owned(), content(hash))).collect(),
        };
        let found = certified_stores(&digest(&[("db", "a"), ("media", "b")]), &digest(&[("db", "c"), ("media", "b")]));
        assert_ne!(found["db"].snapshot, found["db"].judged);
        assert_eq!(found["media"].snapshot, found["media"].judged);
        assert_eq!(found["media"].judged.as_ref().map(String::len), Some(64));
        assert_eq!(found["media"].judged, Some(content("b").total()));
        let gone = certified_stores(&digest(&[("db", "a")]), &digest(&[]));
        assert!(gone["db"].snapshot.is_some() && gone["db"].judged.is_none());
    }
}
