//! Archives in both layouts, and archives that do not fit together.

use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::super::scan::images;
use super::*;

/// An archive that is assembled by hand: names are neither checked nor made canonical.
struct HandmadeArchive(Builder<Vec<u8>>);

impl HandmadeArchive {
    /// An archive with an image, but without its manifest.
    fn of_an_image() -> Self {
        let mut archive = Self(Builder::new(Vec::new()));
        archive.file(&config_name(), config().as_bytes());
        archive.entry("one/", EntryType::Directory, "", b"");
        archive.file("one/layer.tar", LAYER);
        archive
    }

    fn whole() -> Self {
        let mut archive = Self::of_an_image();
        archive.file("manifest.json", manifest(Value::Null).to_string().as_bytes());
        archive
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, EntryType::Regular, "", content);
    }

    fn entry(&mut self, name: &str, kind: EntryType, link: &str, content: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_link_name_literal(link).expect("a link");
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        self.0.append(&header, content).expect("an entry");
    }

    fn read(self) -> Result<Vec<ArchivedImage>, ScanError> {
        images(self.0.into_inner().expect("an archive").as_slice())
    }

    #[track_caller]
    fn refused(self, attack: &str) {
        let error = self.read().expect_err(attack);
        assert!(matches!(error, ScanError::Damaged(_)), "{attack}: {error}");
    }
}

const LAYER: &[u8] = b"layer";

fn config() -> String {
    let layer = format!("sha256:{}", hex(&Sha256::digest(LAYER)));
    json!({ "rootfs": { "type": "layers", "diff_ids": [layer] } }).to_string()
}

fn config_name() -> String {
    format!("{}.json", hex(&Sha256::digest(config())))
}

fn manifest(tags: Value) -> Value {
    json!([{ "Config": config_name(), "RepoTags": tags, "Layers": ["one/layer.tar"] }])
}

fn taken() -> String {
    manifest(json!(["taken:latest"])).to_string()
}

#[test]
fn an_image_without_a_name_takes_none() {
    let images = HandmadeArchive::whole().read().expect("an image");
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].tags, [""; 0]);
}

#[test]
fn a_second_manifest_is_refused_however_its_name_is_written() {
    let names = [
        "manifest.json",
        "./manifest.json",
        "/manifest.json",
        ".//manifest.json",
        "././manifest.json",
        "a/../manifest.json",
        "one/../manifest.json",
        "one//../manifest.json",
        "./one/.././manifest.json",
        "..",
        "manifest.json/",
    ];
    for name in names {
        let mut archive = HandmadeArchive::whole();
        archive.file(name, taken().as_bytes());
        archive.refused(name);
        // In the reverse order, the first file would be overwritten.
        let mut archive = HandmadeArchive::of_an_image();
        archive.file(name, taken().as_bytes());
        archive.file("manifest.json", manifest(Value::Null).to_string().as_bytes());
        archive.refused(name);
    }
}

#[test]
fn a_manifest_by_way_of_links_is_refused() {
    for (kind, link) in
        [(EntryType::Symlink, "other.json"), (EntryType::Symlink, "one/../other.json"), (EntryType::Link, "other.json")]
    {
        let mut archive = HandmadeArchive::of_an_image();
        archive.file("other.json", taken().as_bytes());
        archive.entry("manifest.json", kind, link, b"");
        archive.refused(link);
    }
    // A link to a folder, through which the manifest is written.
    for link in [".", "..", "one/..", "../x.tar"] {
        let mut archive = HandmadeArchive::whole();
        archive.entry("way.tar", EntryType::Symlink, link, b"");
        archive.file("way.tar/manifest.json", taken().as_bytes());
        archive.refused(link);
    }
    for kind in [EntryType::Fifo, EntryType::Char, EntryType::GNUSparse, EntryType::Continuous] {
        let mut archive = HandmadeArchive::whole();
        archive.entry("other", kind, "", b"");
        archive.refused("neither a file nor a folder");
    }
}

#[test]
fn entries_that_readers_find_at_different_places_are_refused() {
    let mut archive = HandmadeArchive::whole();
    archive.entry("folder/", EntryType::Directory, "", &[0; 512]);
    archive.refused("a folder with content");
    for (records, attack) in [
        (vec![("path", "manifest.json"), ("path", "other")], "a name twice"),
        (vec![("GNU.sparse.name", "manifest.json")], "a sparse file's name"),
    ] {
        let mut archive = HandmadeArchive::of_an_image();
        let records = records.iter().map(|(key, value)| (*key, value.as_bytes()));
        archive.0.append_pax_extensions(records).expect("an extended header");
        archive.file("other", taken().as_bytes());
        archive.file("manifest.json", manifest(Value::Null).to_string().as_bytes());
        archive.refused(attack);
    }
}

#[test]
fn keys_that_go_reads_as_others_are_refused() {
    let with = |text: &str| {
        let manifest = manifest(Value::Null).to_string();
        manifest.replacen("\"Layers\"", &format!("{text},\"Layers\""), 1)
    };
    for text in [
        r#""repotags":["taken:latest"]"#,
        r#""RepoTags":["taken:latest"]"#,
        r#""repoTag\u017f":["taken:latest"]"#,
        r#""Other":1"#,
    ] {
        let mut archive = HandmadeArchive::of_an_image();
        archive.file("manifest.json", with(text).as_bytes());
        archive.refused(text);
    }
    let mut archive = HandmadeArchive::of_an_image();
    archive.file("manifest.json", with(r#""Parent":"sha256:00","LayerSources":{"sha256:00":{"size":1}}"#).as_bytes());
    archive.read().expect("what `docker save` writes");
}

#[test]
fn an_index_gives_no_name_that_the_manifest_does_not_give() {
    let with = |tags: Value, index: &str| {
        let mut archive = HandmadeArchive::of_an_image();
        archive.file("manifest.json", manifest(tags).to_string().as_bytes());
        archive.file("index.json", index.as_bytes());
        archive
    };
    let named = |name: &str, short: &str| {
        let annotations = json!({ NAMING[0]: name, NAMING[1]: short });
        json!({ "manifests": [{ "digest": "sha256:00", "annotations": annotations }] }).to_string()
    };
    let tags = || json!(["shop:1"]);
    with(tags(), &named("docker.io/library/shop:1", "1")).read().expect("what `docker save` writes");
    with(Value::Null, &named("docker.io/library/shop:1", "1")).refused("a name");
    with(tags(), &named("docker.io/library/taken:1", "1")).refused("another name");
    with(tags(), &named("shop:1", "latest")).refused("another tag");
    let twice =
        r#"{"manifests":[],"Manifests":[{"digest":"sha256:00","annotations":{"io.containerd.image.name":"a:1"}}]}"#;
    with(Value::Null, twice).refused("two lists");
}

#[test]
fn layers_may_be_linked_and_names_may_begin_with_the_folder() {
    let mut archive = HandmadeArchive(Builder::new(Vec::new()));
    archive.entry("./", EntryType::Directory, "", b"");
    archive.file(&format!("./{}", config_name()), config().as_bytes());
    archive.file("./two/layer.tar", LAYER);
    archive.entry("./one/layer.tar", EntryType::Symlink, "../two/layer.tar", b"");
    archive.file("./manifest.json", manifest(Value::Null).to_string().as_bytes());
    assert_eq!(archive.read().expect("an image").len(), 1);
    let mut archive = HandmadeArchive::whole();
    archive.entry("three/layer.tar", EntryType::Symlink, "../four/layer.tar", b"");
    archive.refused("a link to nothing");
}
