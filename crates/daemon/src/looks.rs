//! Removes looks of generations that do not serve any more, and rows of snapshots that do not exist any more. Nothing
//! reads them; this duty only frees their space.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;
use arenad_store::StoreError;

/// Removes what no request can reach.
pub(crate) async fn forget(shared: Arc<SharedParts>) {
    let needed = async {
        let store = &shared.store;
        let snapshots: BTreeSet<String> =
            store.snapshots().await?.into_iter().map(|snapshot| snapshot.id.to_string()).collect();
        let mut serving = BTreeMap::new();
        for environment in store.environments().await? {
            let instances = store.instances(environment.name.as_str()).await?;
            serving.extend(instances.into_iter().filter_map(|found| Some((found.id, found.serving?.generation))));
        }
        Ok::<_, StoreError>((snapshots, serving))
    };
    let (snapshots, serving) = match needed.await {
        Ok(needed) => needed,
        Err(error) => {
            tracing::warn!(error = describe(&error), "old looks could not be removed");
            return;
        }
    };
    let looks = shared.state_dir.looks();
    let removed = tokio::task::spawn_blocking(move || looks.retain(&snapshots, &serving)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "old looks could not be removed");
    }
}
