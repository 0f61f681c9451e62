//! Cases about the networks of containers.

use arenad_engine::EngineError;

use crate::bed::{Bed, LABEL, PATIENCE, WantedContainer};

pub async fn networks_are_found_by_label_and_their_ranges_are_taken(bed: Bed) {
    let (name, subnet) = bed.network("one").await;
    let found = bed.engine.networks(LABEL, &bed.name).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), &found[0].labels), (name.as_str(), &bed.labels(&[])));
    assert!(bed.engine.subnets().await.unwrap().contains(&subnet));
    assert!(bed.engine.networks(LABEL, "another").await.unwrap().is_empty());
}

pub async fn a_range_that_overlaps_is_refused(bed: Bed) {
    let (_, subnet) = bed.network("one").await;
    let error = bed.engine.create_network(&bed.named("two"), subnet, false, &bed.labels(&[])).await.unwrap_err();
    let EngineError::Refused { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("overlap"), "{message}");
    assert!(!error.is_transient());
}

pub async fn networks_in_use_stay(bed: Bed) {
    let (name, _) = bed.network("one").await;
    let handle = bed.create("one", WantedContainer { network: Some(name.clone()), ..WantedContainer::default() }).await;
    bed.engine.start(&handle).await.unwrap();
    let error = bed.engine.remove_network(&name).await.unwrap_err();
    assert!(error.has_active_endpoints(), "{error:?}");
    bed.engine.freeze(&handle).await.unwrap();
    assert!(bed.engine.remove_network(&name).await.is_err());
    // A stopped container has no endpoint.
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    bed.engine.remove_network(&name).await.unwrap();
    assert!(bed.engine.networks(LABEL, &bed.name).await.unwrap().is_empty());
    assert!(bed.engine.start(&handle).await.unwrap_err().is_not_found());
}

pub async fn removing_a_network_is_idempotent(bed: Bed) {
    let (name, subnet) = bed.network("one").await;
    bed.engine.remove_network(&name).await.unwrap();
    bed.engine.remove_network(&name).await.unwrap();
    assert!(!bed.engine.subnets().await.unwrap().contains(&subnet));
}

pub async fn two_networks_may_have_one_name(bed: Bed) {
    let (name, _) = bed.network("one").await;
    bed.network("one").await;
    assert_eq!(bed.engine.networks(LABEL, &bed.name).await.unwrap().len(), 2);
    bed.engine.remove_network(&name).await.unwrap();
    assert!(bed.engine.networks(LABEL, &bed.name).await.unwrap().is_empty(), "both are removed");
}
