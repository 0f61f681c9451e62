//! Cases about the volumes of containers.

use std::collections::BTreeMap;

use arenad_engine::labels;
use arenad_engine::{EngineError, EngineHandle};

use crate::bed::{Bed, LABEL, PATIENCE, WantedContainer};

async fn with_volume(bed: &Bed, part: &str, volume: &str, read_only: bool) -> EngineHandle {
    let volumes = BTreeMap::from([("/data".to_owned(), (volume.to_owned(), read_only))]);
    bed.obedient(part, WantedContainer { volumes, ..WantedContainer::default() }).await
}

async fn volume(bed: &Bed) -> String {
    let name = bed.named("volume");
    bed.engine.create_volume(&name, &bed.labels(&[])).await.unwrap();
    name
}

pub async fn volumes_are_found_by_label(bed: Bed) {
    let name = volume(&bed).await;
    let found = bed.engine.volumes(LABEL, &bed.name).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), &found[0].labels), (name.as_str(), &bed.labels(&[])));
    assert!(bed.engine.volumes(LABEL, "another").await.unwrap().is_empty());
}

pub async fn volumes_that_are_there_stay_as_they_are(bed: Bed) {
    let name = volume(&bed).await;
    let handle = with_volume(&bed, "one", &name, false).await;
    bed.sh(&handle, "echo kept > /data/x").await;
    bed.engine.create_volume(&name, &bed.labels(&[("more", "yes")])).await.unwrap();
    assert_eq!(bed.read(&handle, "/data/x").await, "kept\n");
    assert_eq!(bed.engine.volumes(LABEL, &bed.name).await.unwrap()[0].labels, bed.labels(&[]));
}

pub async fn volumes_in_use_stay(bed: Bed) {
    let name = volume(&bed).await;
    let handle = with_volume(&bed, "one", &name, false).await;
    let in_use = |error: EngineError| assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
    in_use(bed.engine.remove_volume(&name).await.unwrap_err());
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    in_use(bed.engine.remove_volume(&name).await.unwrap_err());
    bed.engine.remove(&handle).await.unwrap();
    bed.engine.remove_volume(&name).await.unwrap();
    bed.engine.remove_volume(&name).await.unwrap();
    assert!(bed.engine.volumes(LABEL, &bed.name).await.unwrap().is_empty());
}

pub async fn volumes_outlive_their_containers(bed: Bed) {
    let name = volume(&bed).await;
    let first = with_volume(&bed, "one", &name, false).await;
    bed.sh(&first, "echo kept > /data/x").await;
    bed.engine.remove(&first).await.unwrap();
    let second = with_volume(&bed, "two", &name, false).await;
    assert_eq!(bed.read(&second, "/data/x").await, "kept\n");
}

pub async fn volumes_are_shared(bed: Bed) {
    let name = volume(&bed).await;
    let first = with_volume(&bed, "one", &name, false).await;
    let second = with_volume(&bed, "two", &name, false).await;
    bed.sh(&first, "echo shared > /data/x").await;
    assert_eq!(bed.read(&second, "/data/x").await, "shared\n");
}

pub async fn volumes_of_the_image_go_with_the_container(bed: Bed) {
    let dockerfile = format!("FROM {}\nCOPY file /data/file\nVOLUME /data\n", bed.named("base:1"));
    let image = bed.build("volumes", &dockerfile, &[("file", b"of the image")]).await.unwrap();
    assert_eq!(image.volumes, ["/data"]);
    let handle =
        bed.start("one", WantedContainer { image: Some(image.id.clone()), ..WantedContainer::default() }).await;
    let volumes = bed.engine.inspect(&handle).await.unwrap().volumes;
    let anonymous = volumes["/data"].clone();
    assert_eq!(bed.read(&handle, "/data/file").await, "of the image");
    bed.engine.remove(&handle).await.unwrap();
    // Another container that names the anonymous volume gets a new, empty one.
    let volumes = BTreeMap::from([("/data".to_owned(), (anonymous.clone(), false))]);
    let handle = bed.start("two", WantedContainer { volumes, ..WantedContainer::default() }).await;
    assert_ne!(bed.sh(&handle, "test -e /data/file").await.code, 0);
    bed.engine.remove(&handle).await.unwrap();
    bed.engine.remove_volume(&anonymous).await.unwrap();
}

pub async fn builders_get_the_files_of_the_image(bed: Bed) {
    let dockerfile = format!("FROM {}\nCOPY file /data/file\n", bed.named("base:1"));
    let image = bed.build("filled", &dockerfile, &[("file", b"of the image")]).await.unwrap();
    for (role, is_filled) in [(labels::ROLE_INSTANCE, false), (labels::ROLE_BUILDER, true)] {
        let name = bed.named(role);
        bed.engine.create_volume(&name, &bed.labels(&[])).await.unwrap();
        let wanted = WantedContainer {
            image: Some(image.id.clone()),
            labels: BTreeMap::from([(labels::ROLE.to_owned(), role.to_owned())]),
            volumes: BTreeMap::from([("/data".to_owned(), (name, false))]),
            ..WantedContainer::default()
        };
        let handle = bed.start(role, wanted).await;
        assert_eq!(bed.sh(&handle, "test -e /data/file").await.code == 0, is_filled, "{role}");
    }
}

pub async fn read_only_volumes_are_not_written(bed: Bed) {
    let name = volume(&bed).await;
    let handle = with_volume(&bed, "one", &name, true).await;
    assert_ne!(bed.sh(&handle, "echo x > /data/x").await.code, 0);
}
