//! Cases about calls whose callers are dropped.

use std::time::Duration;

use arenad_engine::ContainerState;
use futures_util::FutureExt;

use crate::bed::{Bed, LABEL, PATIENCE, WantedContainer, script};

pub async fn a_create_whose_caller_goes_away_is_found_by_its_label(bed: Bed) {
    bed.network("net").await;
    for (number, patience) in [0, 1, 2, 5, 10, 20].into_iter().enumerate() {
        let part = format!("one-{number}");
        let wanted = WantedContainer { network: Some(bed.named("net")), ..WantedContainer::default() };
        let creating = bed.try_create(&part, wanted);
        let _ = tokio::time::timeout(Duration::from_millis(patience), creating).await;
        // The container may or may not appear. If it does, its name is taken from the beginning, and its labels find it
        // in the end.
        let made = bed
            .try_create(&part, WantedContainer { network: Some(bed.named("net")), ..WantedContainer::default() })
            .await;
        let looking = async {
            loop {
                let mut found = bed.engine.containers(LABEL, &bed.name).await.unwrap();
                found.retain(|found| found.name == bed.named(&part));
                if !found.is_empty() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("not found; {made:?}"));
        assert_eq!(found.len(), 1, "{made:?}");
        if let Ok(handle) = made {
            assert_eq!(found[0].handle, handle);
        }
    }
}

pub async fn a_stop_whose_caller_goes_away_goes_on(bed: Bed) {
    let handle = bed.start("one", script("sleep 1000")).await;
    {
        let mut stopping = Box::pin(bed.engine.stop(&handle, Duration::from_secs(2)));
        let sent = tokio::time::timeout(Duration::from_secs(1), &mut stopping).await;
        assert!(sent.is_err() && (&mut stopping).now_or_never().is_none(), "it waits for the grace period");
    }
    assert_eq!(bed.state(&handle).await, ContainerState::Running);
    let code = tokio::time::timeout(PATIENCE, bed.ended(&handle)).await.unwrap();
    assert_eq!(code, 137);
}
