//! Cases about paused containers.

use std::time::Duration;

use arenad_engine::{ContainerState, EngineError};

use crate::bed::{Bed, PATIENCE, WantedContainer, script, shell};

pub async fn freeze_and_thaw(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let before = bed.engine.inspect(&handle).await.unwrap();
    bed.engine.freeze(&handle).await.unwrap();
    let frozen = bed.engine.inspect(&handle).await.unwrap();
    assert_eq!(frozen.state, ContainerState::Paused);
    assert_eq!((frozen.pid, frozen.address), (before.pid, before.address));
    bed.engine.thaw(&handle).await.unwrap();
    let resumed = async {
        while bed.engine.inspect(&handle).await.unwrap().state == ContainerState::Paused {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, resumed).await.expect("it is reported as resumed in time");
    assert_eq!(bed.engine.inspect(&handle).await.unwrap(), before);
    assert_eq!(bed.sh(&handle, "exit 5").await.code, 5);
}

pub async fn freezing_what_does_not_run_is_refused(bed: Bed) {
    let created = bed.create("created", WantedContainer::default()).await;
    let error = bed.engine.freeze(&created).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
    let error = bed.engine.thaw(&created).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. } | EngineError::Refused { .. }), "{error:?}");
    let running = bed.start("running", WantedContainer::default()).await;
    let error = bed.engine.thaw(&running).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 500, .. }), "{error:?}");
    bed.engine.freeze(&running).await.unwrap();
    let error = bed.engine.freeze(&running).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
}

pub async fn frozen_containers_refuse_commands_and_starts(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    bed.engine.freeze(&handle).await.unwrap();
    let error = bed.engine.exec(&handle, &shell("true"), None, PATIENCE).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
    let error = bed.engine.start(&handle).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
}

pub async fn frozen_containers_stop(bed: Bed) {
    let handle = bed.obedient("one", WantedContainer::default()).await;
    bed.engine.freeze(&handle).await.unwrap();
    bed.engine.stop(&handle, Duration::from_secs(30)).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Exited(0));
}

pub async fn frozen_containers_are_removed(bed: Bed) {
    let handle = bed.start("one", script("sleep 1000")).await;
    bed.engine.freeze(&handle).await.unwrap();
    bed.engine.remove(&handle).await.unwrap();
    assert!(bed.engine.inspect(&handle).await.unwrap_err().is_not_found());
}
