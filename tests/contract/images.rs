//! Cases about the images of containers.

use std::sync::Mutex;

use arenad_engine::{EngineError, Image};

use crate::bed::{Bed, LABEL, PATIENCE, WantedContainer, folder, piece, script, whole};

impl Bed {
    async fn image(&self, reference: &str) -> Option<Image> {
        self.engine.image(reference).await.unwrap()
    }

    fn on_base(&self, more: &str) -> String {
        format!("FROM {}\n{more}", self.named("base:1"))
    }
}

fn conflicts(error: EngineError) {
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
}

pub async fn images_are_looked_up_by_id_and_name(bed: Bed) {
    let by_id = bed.image(&bed.base).await.unwrap();
    let name = bed.named("base:1");
    assert_eq!(by_id.id, bed.base);
    assert_eq!(by_id.tags, [name.as_str()]);
    assert!(by_id.size_bytes > 0 && !by_id.layers.is_empty());
    assert_eq!(bed.image(&name).await.unwrap(), by_id);
    let short = by_id.id.strip_prefix("sha256:").unwrap();
    assert_eq!(bed.image(&short[..12]).await.unwrap(), by_id);
    assert!(bed.image(&bed.named("base")).await.is_none());
    assert!(bed.image(&bed.named("missing:1")).await.is_none());
}

pub async fn images_are_listed_by_label(bed: Bed) {
    let ids = async |label: &str, value: Option<&str>| {
        let found = bed.engine.images(label, value).await.unwrap();
        found.into_iter().map(|image| image.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(LABEL, Some(&bed.name)).await, [bed.base.as_str()]);
    assert!(ids(LABEL, None).await.contains(&bed.base));
    assert!(ids(LABEL, Some("another")).await.is_empty());
    // An image without a name is listed as well, unless it is the base of another.
    bed.engine.tag(&bed.base, &bed.named("other"), "1").await.unwrap();
    let found = bed.engine.images(LABEL, Some(&bed.name)).await.unwrap();
    let mut tags = found[0].tags.clone();
    tags.sort_unstable();
    assert_eq!(tags, [bed.named("base:1"), bed.named("other:1")]);
}

pub async fn builds_give_labels_and_run_commands(bed: Bed) {
    let dockerfile = bed.on_base("ARG WORD\nRUN echo $WORD > /word\nCOPY more /more/\nLABEL own=1\nVOLUME /data\n");
    let lines = Mutex::new(Vec::new());
    let note = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let image = bed.build_target("built", &dockerfile, &[("more", b"more")], None, &note).await.unwrap();
    assert_eq!(image.tags, [bed.named("built:1")]);
    assert_eq!((image.labels["own"].as_str(), image.labels["base"].as_str()), ("1", "yes"));
    assert_eq!(image.labels[LABEL], bed.name);
    assert_eq!(image.volumes, ["/data"]);
    let base = bed.image(&bed.base).await.unwrap();
    assert_eq!(image.layers[..base.layers.len()], base.layers);
    assert!(image.layers.len() > base.layers.len());
    assert!(!lines.lock().unwrap().is_empty());
    let handle = bed.start("one", WantedContainer { image: Some(image.id), ..WantedContainer::default() }).await;
    assert_eq!(bed.read(&handle, "/word").await, "given\n");
    assert_eq!(bed.read(&handle, "/more/more").await, "more");
}

pub async fn builds_of_the_same_are_one_image(bed: Bed) {
    let dockerfile = bed.on_base("LABEL own=1\n");
    let first = bed.build("built", &dockerfile, &[]).await.unwrap();
    let second = bed.build("built", &dockerfile, &[]).await.unwrap();
    assert_eq!(first, second);
    // Another build takes the name.
    let third = bed.build("built", &bed.on_base("LABEL own=2\n"), &[]).await.unwrap();
    assert_ne!(first.id, third.id);
    assert!(bed.image(&first.id).await.unwrap().tags.is_empty());
}

pub async fn builds_that_fail_say_why(bed: Bed) {
    let failing = bed.on_base("RUN echo the last word; exit 3\n");
    let error = bed.build("built", &failing, &[]).await.unwrap_err();
    let EngineError::Build { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("the last word") && message.contains("non-zero code: 3"), "{message}");
    assert!(bed.image(&bed.named("built:1")).await.is_none());
    let error = bed.build("built", &bed.on_base("COPY missing /\n"), &[]).await.unwrap_err();
    assert!(matches!(error, EngineError::Build { .. }), "{error:?}");
    assert!(
        bed.engine
            .containers("base", "yes")
            .await
            .unwrap()
            .iter()
            .all(|found| found.labels.get(LABEL) != Some(&bed.name))
    );
}

pub async fn builds_stop_at_their_target(bed: Bed) {
    let base = bed.named("base:1");
    let dockerfile = format!(
        "FROM {base} AS first\nRUN echo first > /first\nFROM {base}\nCOPY --from=first /first /copied\nLABEL last=yes\n"
    );
    let first = bed.build_target("first", &dockerfile, &[], Some("first"), &|_| {}).await.unwrap();
    assert!(!first.labels.contains_key("last"));
    let last = bed.build("last", &dockerfile, &[]).await.unwrap();
    let handle = bed.start("one", WantedContainer { image: Some(last.id), ..WantedContainer::default() }).await;
    assert_eq!(bed.read(&handle, "/copied").await, "first\n");
    assert_ne!(bed.sh(&handle, "test -e /first").await.code, 0);
}

pub async fn committed_images_have_files_and_labels(bed: Bed) {
    let labels = bed.labels(&[("own", "1"), ("kept", "1")]);
    let handle = bed.obedient("one", WantedContainer { labels, ..WantedContainer::default() }).await;
    bed.sh(&handle, "echo new > /new; echo changed > /base/file; rm /base/name").await;
    bed.engine.stop(&handle, PATIENCE).await.unwrap();
    let repository = bed.named("commit");
    let id = bed.engine.commit(&handle, &repository, "1", &bed.labels(&[("own", "2")])).await.unwrap();
    let image = bed.image(&id).await.unwrap();
    assert_eq!(image.id, id);
    assert_eq!(image.tags, [format!("{repository}:1")]);
    let base = bed.image(&bed.base).await.unwrap();
    assert_eq!(image.layers[..base.layers.len()], base.layers);
    assert_eq!(image.layers.len(), base.layers.len() + 1);
    for (label, value) in [("own", "2"), ("kept", "1"), ("base", "yes"), (LABEL, &bed.name)] {
        assert_eq!(image.labels[label], value);
    }
    let copy = bed.start("two", WantedContainer { image: Some(id), ..WantedContainer::default() }).await;
    assert_eq!(bed.read(&copy, "/new").await, "new\n");
    assert_eq!(bed.read(&copy, "/base/file").await, "changed\n");
    assert_ne!(bed.sh(&copy, "test -e /base/name").await.code, 0);
    // The copy's writes affect no other container.
    bed.sh(&copy, "echo other > /new").await;
    bed.engine.start(&handle).await.unwrap();
    assert_eq!(bed.read(&handle, "/new").await, "new\n");
}

pub async fn committed_images_have_nothing_of_mounts(bed: Bed) {
    let volume = bed.named("volume");
    bed.engine.create_volume(&volume, &bed.labels(&[])).await.unwrap();
    let folder = folder();
    let mut wanted = WantedContainer { tmpfs: Some("/memory".to_owned()), ..script("sleep 1000") };
    wanted.volumes.insert("/volume".to_owned(), (volume, false));
    wanted.binds.insert("/bind".to_owned(), folder.path().to_owned());
    let handle = bed.start("one", wanted).await;
    bed.sh(&handle, "echo x > /volume/x; echo x > /bind/x; echo x > /memory/x; echo x > /x").await;
    assert_eq!(crate::bed::read(&folder.path().join("x")), "x\n");
    // A running container can be committed as well.
    let id = bed.engine.commit(&handle, &bed.named("commit"), "1", &bed.labels(&[])).await.unwrap();
    let copy = bed.start("two", WantedContainer { image: Some(id), ..WantedContainer::default() }).await;
    assert_eq!(bed.sh(&copy, "test -e /x").await.code, 0);
    for path in ["/volume/x", "/bind/x", "/memory/x"] {
        assert_ne!(bed.sh(&copy, &format!("test -e {path}")).await.code, 0, "{path}");
    }
}

pub async fn a_commit_takes_its_name_over(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let repository = bed.named("commit");
    let first = bed.engine.commit(&handle, &repository, "1", &bed.labels(&[])).await.unwrap();
    let second = bed.engine.commit(&handle, &repository, "1", &bed.labels(&[])).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(bed.image(&format!("{repository}:1")).await.unwrap().id, second);
    assert!(bed.image(&first).await.unwrap().tags.is_empty());
}

pub async fn names_are_given_and_taken(bed: Bed) {
    let repository = bed.named("other");
    let name = format!("{repository}:1");
    bed.engine.tag(&bed.base, &repository, "1").await.unwrap();
    bed.engine.tag(&bed.base, &repository, "1").await.unwrap();
    assert_eq!(bed.image(&name).await.unwrap().id, bed.base);
    bed.engine.untag(&name).await.unwrap();
    bed.engine.untag(&name).await.unwrap();
    assert!(bed.image(&name).await.is_none());
    assert!(bed.image(&bed.base).await.is_some());
    bed.engine.untag(&bed.named("base:1")).await.unwrap();
    assert!(bed.image(&bed.base).await.is_none(), "with its last name an image goes");
    let error = bed.engine.tag(&bed.base, &repository, "1").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    bed.engine.remove_image(&bed.base).await.unwrap();
}

pub async fn images_in_use_stay(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    conflicts(bed.engine.remove_image(&bed.base).await.unwrap_err());
    conflicts(bed.engine.untag(&bed.named("base:1")).await.unwrap_err());
    assert_eq!(bed.image(&bed.base).await.unwrap().tags, [bed.named("base:1")]);
    // One of several names can still be removed.
    bed.engine.tag(&bed.base, &bed.named("other"), "1").await.unwrap();
    bed.engine.untag(&bed.named("other:1")).await.unwrap();
    bed.engine.remove(&handle).await.unwrap();
    bed.engine.tag(&bed.base, &bed.named("other"), "1").await.unwrap();
    bed.engine.remove_image(&bed.base).await.unwrap();
    assert!(bed.image(&bed.base).await.is_none(), "with all of its names");
}

pub async fn images_that_others_stand_on_stay(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let id = bed.engine.commit(&handle, &bed.named("commit"), "1", &bed.labels(&[])).await.unwrap();
    bed.engine.remove(&handle).await.unwrap();
    conflicts(bed.engine.remove_image(&bed.base).await.unwrap_err());
    assert_eq!(bed.image(&bed.base).await.unwrap().tags, [bed.named("base:1")]);
    bed.engine.remove_image(&id).await.unwrap();
    bed.engine.remove_image(&bed.base).await.unwrap();
}

pub async fn bases_without_a_name_go_with_the_last_that_stands_on_them(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let id = bed.engine.commit(&handle, &bed.named("commit"), "1", &bed.labels(&[])).await.unwrap();
    bed.engine.remove(&handle).await.unwrap();
    bed.engine.untag(&bed.named("base:1")).await.unwrap();
    assert!(bed.image(&bed.base).await.unwrap().tags.is_empty());
    let listed = bed.engine.images(LABEL, Some(&bed.name)).await.unwrap();
    assert_eq!(listed.into_iter().map(|image| image.id).collect::<Vec<_>>(), [id.as_str()]);
    bed.engine.remove_image(&id).await.unwrap();
    assert!(bed.image(&bed.base).await.is_none());
}

pub async fn saved_images_load_again(bed: Bed) {
    let before = bed.image(&bed.base).await.unwrap();
    let archive = whole(bed.engine.save(std::slice::from_ref(&bed.base))).await.unwrap();
    bed.engine.remove_image(&bed.base).await.unwrap();
    bed.engine.load(piece(archive), &|_| {}).await.unwrap();
    let after = bed.image(&bed.base).await.unwrap();
    assert!(after.tags.is_empty());
    assert_eq!((after.id, after.labels, after.layers), (before.id, before.labels, before.layers));
    let handle = bed.start("one", WantedContainer::default()).await;
    assert_eq!(bed.read(&handle, "/base/file").await, "of the base");
}

pub async fn what_nobody_has_cannot_be_saved_or_pulled(bed: Bed) {
    let missing = format!("sha256:{}", "0".repeat(64));
    assert!(whole(bed.engine.save(&[missing])).await.is_err());
    assert!(bed.engine.load(piece(b"no archive".to_vec()), &|_| {}).await.is_err());
    assert!(bed.engine.pull("localhost:1/missing:1", &|_| {}).await.is_err());
}
