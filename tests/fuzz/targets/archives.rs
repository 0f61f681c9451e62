//! Archives of images. Whatever the bytes: an archive that is taken names no image that was not reported, however an engine reads it.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use arenad::images::scan::{Kind, ScanError, images, scan};
use arenad::images::watch::Watch;
use serde_json::Value;

use crate::tape::mend_sums;
use crate::target::{Check, Target, scratch};

pub const TARGET: Target = Target {
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
    ..Target::new("archives", open)
};

fn open() -> Check {
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
        // As a file, which may be compressed or a zip, the same is found.
        std::fs::write(&path, input).expect("written");
        let scanned = scan(&path, Kind::Images, &Watch::default());
        if let (Ok(read), Ok(scanned)) = (&read, &scanned) {
            assert_eq!(*read, scanned.images);
        }
        let files = scan(&path, Kind::Files, &Watch::default()).map(|scanned| scanned.expanded_bytes);
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

/// The tags that an engine takes: it unpacks everything into a folder, the later over the earlier, and reads what has the manifest's
/// name then, its keys in capital or small letters, the last of several.
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

/// A path without what says nothing.
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
