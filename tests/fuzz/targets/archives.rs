//! Archives of images. For any bytes, an accepted archive names no image that was not reported, however an engine reads
//! it.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use arenad_images::scan::{ArchiveKind, ScanError, images, scan};
use arenad_images::watch::WorkProgress;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tape::mend_sums;
use crate::target::{FuzzTarget, InputCheck, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "manifest.json",
        "./manifest.json",
        "/manifest.json",
        "../",
        "//",
        "index.json",
        "repositories",
        "blobs/sha256/",
        "layer.tar",
        "one/layer.tar",
        "\"RepoTags\":[\"taken:latest\"],",
        "\"repotags\":",
        "\"Layers\":",
        "\"Config\":",
        "null",
        "sha256:",
        "ustar\0",
        "ustar  \0",
        "\0",
        "1",
        "2",
        "5",
        "g",
        "x",
        "L",
        "K",
        "S",
        "30 path=manifest.json\n",
        "22 GNU.sparse.name=a\n",
        "io.containerd.image.name",
        "00000000000",
        "77777777777",
    ],
    mend: |archive| mend_sums(archive),
    made,
    ..FuzzTarget::new("archives", open)
};

fn open() -> InputCheck {
    let folder = scratch();
    let path = folder.join("archive");
    Box::new(move |input| {
        let read = images(input);
        if let Ok(images) = &read {
            let reported: Vec<&str> = images.iter().flat_map(|image| &image.tags).map(String::as_str).collect();
            for tag in engine_tags(input) {
                assert!(reported.contains(&tag.as_str()), "an engine would take {tag:?}, and not only {reported:?}");
            }
        }
        // As a file, which may be compressed or a zip, the archive gives the same result.
        std::fs::write(&path, input).expect("written");
        let scanned = scan(&path, ArchiveKind::Images, &WorkProgress::default());
        if let (Ok(read), Ok(scanned)) = (&read, &scanned) {
            assert_eq!(*read, scanned.images);
        }
        let files = scan(&path, ArchiveKind::Files, &WorkProgress::default()).map(|scanned| scanned.expanded_bytes);
        format!("{} / {} / {}", kind(&read), kind(&scanned), kind(&files))
    })
}

fn kind<T>(found: &Result<T, ScanError>) -> String {
    match found {
        Ok(_) => "taken".to_owned(),
        Err(ScanError::Truncated { .. }) => "truncated".to_owned(),
        Err(ScanError::Damaged(why)) => why.split('`').step_by(2).collect(),
        Err(ScanError::Other { found, .. }) => found.split('(').next().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The tags that an engine reads: it unpacks all members into a folder, later ones over earlier ones, and then reads
/// the file with the manifest's name. Keys are case-insensitive, and the last of several counts.
fn engine_tags(input: &[u8]) -> Vec<String> {
    let mut files: HashMap<String, Vec<u8>> = HashMap::new();
    let mut archive = tar::Archive::new(Cursor::new(input));
    let Ok(entries) = archive.entries() else { return Vec::new() };
    for mut entry in entries.flatten() {
        let name = cleaned(&String::from_utf8_lossy(&entry.path_bytes()));
        let mut content = Vec::new();
        if entry.header().entry_type().is_file() && entry.read_to_end(&mut content).is_ok() {
            files.insert(name, content);
        } else if let Ok(Some(link)) = entry.link_name() {
            let link = link.to_string_lossy();
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            let to =
                if entry.header().entry_type().is_hard_link() { link.to_string() } else { format!("{folder}/{link}") };
            let linked = files.get(&cleaned(&to)).cloned();
            files.extend(linked.map(|linked| (name, linked)));
        }
    }
    let manifest = files.get("manifest.json").and_then(|text| serde_json::from_slice::<Vec<Keys>>(text).ok());
    manifest.unwrap_or_default().into_iter().flat_map(|item| item.0).collect()
}

/// Removes the parts of a path that have no effect.
fn cleaned(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The tags of an item, as Go reads it.
struct Keys(Vec<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = serde_json::Map::<String, Value>::deserialize(deserializer)?;
        let tags = object.iter().filter(|(key, _)| key.to_lowercase() == "repotags");
        let texts = |tags: &Value| serde_json::from_value::<Vec<String>>(tags.clone()).unwrap_or_default();
        Ok(Self(tags.flat_map(|(_, tags)| texts(tags)).collect()))
    }
}

/// Archives with as many images, names and manifests as the limits allow, and with many more.
fn made() -> Vec<Vec<u8>> {
    [800, 20_000].into_iter().flat_map(entangled).collect()
}

/// Archives with correct digests whose parts refer to each other many times.
fn entangled(many: usize) -> [Vec<u8>; 4] {
    let hex = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let blob = |text: &str| (format!("sha256:{}", hex(text)), text.to_owned());
    let layer = blob("layer");
    let config = blob(&json!({ "rootfs": { "diff_ids": [layer.0] } }).to_string());
    let path = |blob: &(String, String)| blob.0.replace("sha256:", "blobs/sha256/");
    let item = |tag: &str| json!({ "Config": path(&config), "RepoTags": [tag], "Layers": [path(&layer)] });
    // Indexes of indexes: each names the one below repeatedly.
    let naming = |digest: &str| json!({ "manifests": vec![json!({ "digest": digest }); many] }).to_string();
    let lowest = blob(&json!({ "config": { "digest": "sha256:00" } }).to_string());
    let middle = blob(&naming(&lowest.0));
    let upper = blob(&naming(&middle.0));
    let deep = naming(&upper.0);
    // There are as many names as images.
    let name = |number: usize| format!("shop:{number}");
    let named =
        |number: usize| json!({ "digest": lowest.0, "annotations": { "io.containerd.image.name": name(number) } });
    let names = json!({ "manifests": (0..many).map(named).collect::<Vec<_>>() }).to_string();
    let tags: Vec<String> = (0..many).map(name).collect();
    let tagged = json!([{ "Config": path(&config), "RepoTags": tags, "Layers": [path(&layer)] }]).to_string();
    let one = json!([item("shop:1")]).to_string();
    let images = json!((0..many).map(|number| item(&name(number))).collect::<Vec<_>>()).to_string();
    let blobs = [&layer, &config, &lowest, &middle, &upper].map(|blob| (path(blob), blob.1.as_str()));
    let archive = |manifest: &str, index: &str| {
        let mut archive = tar::Builder::new(Vec::new());
        let files = blobs.iter().map(|(path, text)| (path.as_str(), *text));
        for (path, text) in files.chain([("manifest.json", manifest), ("index.json", index)]) {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, path, text.as_bytes()).expect("an entry");
        }
        archive.into_inner().expect("an archive")
    };
    [archive(&one, &deep), archive(&tagged, &names), archive(&images, &deep), archive(&images, &names)]
}
