//! Cases about the life of containers.

use std::time::Duration;

use arenad_engine::{ContainerHealth, ContainerState, CpuWeight, EngineError, EngineHandle};

use crate::bed::{Bed, LABEL, OBEYS, PATIENCE, WantedContainer, folder, script, shell};

pub async fn the_engine_says_what_it_is(bed: Bed) {
    bed.engine.ping().await.unwrap();
    let details = bed.engine.details().await.unwrap();
    assert!(!details.id.is_empty());
    assert_eq!(bed.engine.details().await.unwrap().id, details.id);
    assert_eq!(bed.engine.version().await.unwrap(), details.version);
    assert!(details.version.api.starts_with("1."), "{details:?}");
    assert!(details.time.is_some());
}

pub async fn create_is_refused_where_the_name_is_taken(bed: Bed) {
    let first = bed.create("one", WantedContainer::default()).await;
    let error = bed.try_create("one", WantedContainer::default()).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
    assert!(!error.is_transient());
    bed.engine.remove(&first).await.unwrap();
    bed.create("one", WantedContainer::default()).await;
}

pub async fn create_is_refused_without_its_image(bed: Bed) {
    let image = Some(format!("sha256:{}", "0".repeat(64)));
    let error = bed.try_create("one", WantedContainer { image, ..WantedContainer::default() }).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

pub async fn create_is_refused_without_the_folder_that_it_mounts(bed: Bed) {
    let folder = folder();
    let mut wanted = WantedContainer::default();
    wanted.binds.insert("/data".to_owned(), folder.path().join("missing"));
    let error = bed.try_create("one", wanted).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 400, .. }), "{error:?}");
}

pub async fn create_without_its_network_starts_nothing(bed: Bed) {
    let wanted = WantedContainer { network: Some(bed.named("missing")), ..WantedContainer::default() };
    let handle = bed.create("one", wanted).await;
    let error = bed.engine.start(&handle).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_ne!(bed.state(&handle).await, ContainerState::Running);
}

pub async fn created_containers_bear_the_labels_of_their_image_and_their_own(bed: Bed) {
    let labels = bed.labels(&[("own", "1"), ("base", "overridden")]);
    let handle = bed.create("one", WantedContainer { labels, ..WantedContainer::default() }).await;
    let found = bed.engine.containers("own", "1").await.unwrap();
    let found = found.iter().find(|found| found.handle == handle).unwrap();
    assert_eq!(found.labels["base"], "overridden");
    let handle = bed.create("two", WantedContainer::default()).await;
    let found = bed.engine.containers(LABEL, &bed.name).await.unwrap();
    let found = found.iter().find(|found| found.handle == handle).unwrap();
    assert_eq!(found.labels["base"], "yes");
}

pub async fn containers_are_found_by_label_whatever_they_do(bed: Bed) {
    let created = bed.create("created", WantedContainer::default()).await;
    let running = bed.start("running", WantedContainer::default()).await;
    let ended = bed.start("ended", script("exit 0")).await;
    bed.ended(&ended).await;
    let frozen = bed.start("frozen", WantedContainer::default()).await;
    bed.engine.freeze(&frozen).await.unwrap();
    let found = bed.engine.containers(LABEL, &bed.name).await.unwrap();
    for (handle, part, is_running) in
        [(created, "created", false), (running, "running", true), (ended, "ended", false), (frozen, "frozen", true)]
    {
        let found = found.iter().find(|found| found.handle == handle).unwrap();
        assert_eq!((found.name.as_str(), found.running), (bed.named(part).as_str(), is_running));
        assert_eq!(found.image, bed.base);
        assert!(found.created > 1_700_000_000, "{found:?}");
        assert!(found.ports.is_empty());
    }
    assert_eq!(found.len(), 4);
    assert!(bed.engine.containers(LABEL, "another").await.unwrap().is_empty());
}

pub async fn running_lists_what_runs(bed: Bed) {
    let created = bed.create("created", WantedContainer::default()).await;
    let running = bed.start("running", WantedContainer::default()).await;
    let found = bed.engine.running().await.unwrap();
    let is_listed = |handle: &EngineHandle| found.iter().any(|found| found.handle == *handle);
    assert!(is_listed(&running) && !is_listed(&created));
}

pub async fn start_and_stop_are_idempotent(bed: Bed) {
    let handle = bed.obedient("one", WantedContainer::default()).await;
    bed.engine.start(&handle).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Running);
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Exited(0));
    bed.engine.start(&handle).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Running);
    let never = bed.create("two", WantedContainer::default()).await;
    bed.engine.stop(&never, PATIENCE).await.unwrap();
    assert_eq!(bed.state(&never).await, ContainerState::Created);
}

pub async fn a_process_that_ends_by_itself_leaves_its_code(bed: Bed) {
    let handle = bed.start("one", script("exit 3")).await;
    assert_eq!(bed.ended(&handle).await, 3);
    let status = bed.engine.inspect(&handle).await.unwrap();
    assert_eq!((status.pid, status.address, status.oom_killed), (None, None, false));
}

pub async fn stop_leaves_the_code_of_the_process(bed: Bed) {
    let handle = bed.start("one", script(&format!("echo set; {}", OBEYS.replace("exit 0", "exit 7")))).await;
    bed.until_said(&handle, "set").await;
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Exited(7));
}

pub async fn stop_kills_after_the_grace_period(bed: Bed) {
    // The first process of a container receives only signals for which it has a handler.
    let handle = bed.start("one", script("sleep 1000")).await;
    let before = tokio::time::Instant::now();
    bed.engine.stop(&handle, Duration::from_secs(2)).await.unwrap();
    assert!(before.elapsed() >= Duration::from_secs(2));
    assert_eq!(bed.state(&handle).await, ContainerState::Exited(137));
}

pub async fn what_is_not_there_is_not_found(bed: Bed) {
    let (engine, none) = (&bed.engine, EngineHandle("0".repeat(64)));
    assert!(engine.start(&none).await.unwrap_err().is_not_found());
    assert!(engine.stop(&none, PATIENCE).await.unwrap_err().is_not_found());
    assert!(engine.freeze(&none).await.unwrap_err().is_not_found());
    assert!(engine.thaw(&none).await.unwrap_err().is_not_found());
    assert!(engine.weigh(&none, CpuWeight::Serving).await.unwrap_err().is_not_found());
    assert!(engine.exec(&none, &shell("true"), None, PATIENCE).await.unwrap_err().is_not_found());
    assert!(engine.commit(&none, &bed.named("commit"), "1", &bed.labels(&[])).await.unwrap_err().is_not_found());
    let error = engine.inspect(&none).await.unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().contains("No such container: "), "{error}");
}

pub async fn remove_is_idempotent_and_takes_running_containers(bed: Bed) {
    for (part, starts) in [("created", false), ("running", true)] {
        let handle = bed.create(part, WantedContainer::default()).await;
        if starts {
            bed.engine.start(&handle).await.unwrap();
        }
        bed.engine.remove(&handle).await.unwrap();
        assert!(bed.engine.inspect(&handle).await.unwrap_err().is_not_found());
        bed.engine.remove(&handle).await.unwrap();
    }
    assert!(bed.engine.containers(LABEL, &bed.name).await.unwrap().is_empty());
}

pub async fn inspect_says_what_a_container_does(bed: Bed) {
    let volume = bed.named("volume");
    bed.engine.create_volume(&volume, &bed.labels(&[])).await.unwrap();
    let mut wanted = script(&format!("echo set; {OBEYS}"));
    wanted.volumes.insert("/data".to_owned(), (volume.clone(), false));
    let handle = bed.create("one", wanted).await;
    let status = bed.engine.inspect(&handle).await.unwrap();
    assert_eq!(status.handle, handle);
    assert_eq!((status.state, status.pid, status.address), (ContainerState::Created, None, None));
    assert_eq!(status.health, ContainerHealth::None);
    assert_eq!(status.volumes.into_iter().collect::<Vec<_>>(), [("/data".to_owned(), volume)]);
    bed.engine.start(&handle).await.unwrap();
    let status = bed.engine.inspect(&handle).await.unwrap();
    assert_eq!(status.state, ContainerState::Running);
    assert!(status.pid.is_some() && status.address.is_some());
    bed.until_said(&handle, "set").await;
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    let status = bed.engine.inspect(&handle).await.unwrap();
    assert_eq!((status.state, status.pid, status.address), (ContainerState::Exited(0), None, None));
}

pub async fn health_checks_pass(bed: Bed) {
    let test = ["CMD", "test", "-e", "/base/file"].map(str::to_owned).to_vec();
    let handle = bed.create("one", WantedContainer { health: Some(test), ..script("sleep 1000") }).await;
    bed.engine.start(&handle).await.unwrap();
    let looking = async {
        while bed.engine.inspect(&handle).await.unwrap().health != ContainerHealth::Healthy {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("healthy in time");
}

pub async fn weight_changes_at_any_time(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    bed.engine.weigh(&handle, CpuWeight::Background).await.unwrap();
    bed.engine.start(&handle).await.unwrap();
    bed.engine.weigh(&handle, CpuWeight::Serving).await.unwrap();
    assert_eq!(bed.state(&handle).await, ContainerState::Running);
}

pub async fn files_outlive_a_stop_and_memory_does_not(bed: Bed) {
    let handle =
        bed.obedient("one", WantedContainer { tmpfs: Some("/memory".to_owned()), ..WantedContainer::default() }).await;
    bed.sh(&handle, "echo kept > /kept; echo lost > /memory/lost").await;
    assert_eq!(bed.read(&handle, "/memory/lost").await, "lost\n");
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    bed.engine.start(&handle).await.unwrap();
    assert_eq!(bed.read(&handle, "/kept").await, "kept\n");
    assert_ne!(bed.sh(&handle, "cat /memory/lost").await.code, 0);
}
