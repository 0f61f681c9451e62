//! What `docker save` writes: a `manifest.json` that names configurations, layers and tags, in two layouts.
//!
//! Before Docker 25 a layer is `<id>/layer.tar` and a configuration `<digest>.json`; since then both are
//! `blobs/sha256/<digest>`, and an `index.json` names manifests as well. The id of an image is the digest of its
//! configuration, or, in engines that keep images in containerd, that of its manifest.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::scan::ScanError;
use crate::domain::archive::full_reference;
use crate::domain::hex::hex;

/// The largest JSON that is kept, in bytes: configurations have some kilobytes.
const TEXT_MAX: u64 = 4 << 20;

/// How much JSON is kept in all, in bytes.
const TEXTS_MAX: usize = 64 << 20;

/// How many entries an archive of images may have; an image has at most 127 layers.
const ENTRIES_MAX: usize = 100_000;

/// The folder of the newer layout.
const BLOBS: &str = "blobs/sha256/";

/// An image in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedImage {
    /// The ids that an engine may give it: the digest of its configuration first, then those of its manifests.
    pub ids: Vec<String>,
    /// Its names.
    pub tags: Vec<String>,
    /// The content ids of its layers, lowest first.
    pub layers: Vec<String>,
}

impl ArchivedImage {
    /// Whether it has that name.
    pub fn is_called(&self, reference: &str) -> bool {
        self.tags.iter().any(|tag| full_reference(tag) == full_reference(reference))
    }

    /// Its id in most engines.
    pub fn id(&self) -> &str {
        self.ids.first().map_or("", String::as_str)
    }
}

/// A walk through an archive: what has been seen.
#[derive(Default)]
pub struct Walk {
    /// How large the entries are in all.
    pub expanded_bytes: u64,
    count: usize,
    files: HashMap<String, Seen>,
    links: HashMap<String, String>,
    texts: HashMap<String, Vec<u8>>,
    texts_size: usize,
}

struct Seen {
    digest: String,
    is_gzip: bool,
}

/// An entry that is being read.
pub struct EntryRecord {
    path: String,
    digest: Sha256,
    first: [u8; 2],
    size: u64,
    link: Option<String>,
    text: Option<Vec<u8>>,
}

impl EntryRecord {
    /// Takes the next piece of its content.
    pub fn take(&mut self, piece: &[u8]) {
        if self.size == 0 {
            self.first = [piece[0], piece.get(1).copied().unwrap_or_default()];
        }
        self.size += piece.len() as u64;
        self.digest.update(piece);
        if let Some(text) = &mut self.text {
            text.extend_from_slice(piece);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ManifestItem {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct Config {
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

/// An index of manifests, or a manifest.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    config: Option<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

impl Walk {
    /// Whether nothing has been seen yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// An entry begins.
    pub fn begin(&mut self, path: &str, size: u64, link: Option<String>) -> EntryRecord {
        self.count += 1;
        self.expanded_bytes += size.next_multiple_of(512) + 512;
        let path = path.trim_start_matches("./").to_owned();
        let is_small = size <= TEXT_MAX && self.texts_size.saturating_add(size as usize) <= TEXTS_MAX;
        let may_be_text = path.ends_with(".json") || path.starts_with(BLOBS);
        let text = (is_small && may_be_text).then(Vec::new);
        EntryRecord { path, digest: Sha256::new(), first: [0; 2], size: 0, link, text }
    }

    /// An entry has been read.
    pub fn end(&mut self, record: EntryRecord) {
        let EntryRecord { path, digest, first, link, text, .. } = record;
        // What has more entries holds no images, or images that are then said to lack a file.
        if self.files.len() + self.links.len() >= ENTRIES_MAX {
            return;
        }
        if let Some(link) = link {
            self.links.insert(path, link);
            return;
        }
        if let Some(text) = text.filter(|text| matches!(text.first(), Some(b'{' | b'['))) {
            self.texts_size += text.len();
            self.texts.insert(path.clone(), text);
        }
        self.files.insert(path, Seen { digest: hex(&digest.finalize()), is_gzip: first == [0x1f, 0x8b] });
    }

    /// The images, once everything in the archive has been compared with the name it goes by.
    pub fn images(&self) -> Result<Vec<ArchivedImage>, ScanError> {
        for (path, seen) in &self.files {
            if path.strip_prefix(BLOBS).is_some_and(|name| name != seen.digest) {
                return Err(ScanError::Damaged(format!("the content of `{path}` has the digest {}", seen.digest)));
            }
        }
        if !self.files.contains_key("manifest.json") {
            let found = match self.files.contains_key("index.json") {
                true => "an OCI layout without `manifest.json`, as no `docker save` writes it",
                false => "an archive of other files, or the end with `manifest.json` is missing",
            };
            return Err(ScanError::Other { wanted: "images", found: found.to_owned() });
        }
        let items: Vec<ManifestItem> = self.json("manifest.json")?;
        items.iter().map(|item| self.image(item)).collect()
    }

    fn image(&self, item: &ManifestItem) -> Result<ArchivedImage, ScanError> {
        let digest = &self.seen(&item.config)?.digest;
        let name = item.config.strip_suffix(".json").unwrap_or(digest);
        if name != digest {
            return Err(ScanError::Damaged(format!("the content of `{}` has the digest {digest}", item.config)));
        }
        let config: Config = self.json(&item.config)?;
        let layers = config.rootfs.diff_ids;
        if layers.len() != item.layers.len() {
            let (says, names) = (layers.len(), item.layers.len());
            return Err(ScanError::Damaged(format!("the image has {says} layers, `manifest.json` names {names}")));
        }
        for (path, layer) in item.layers.iter().zip(&layers) {
            let seen = self.seen(path)?;
            // A layer's id is that of its content uncompressed; the engine compares it when it has unpacked it.
            if !seen.is_gzip && !path.starts_with(BLOBS) && format!("sha256:{}", seen.digest) != *layer {
                return Err(ScanError::Damaged(format!("the content of `{path}` is not the layer {layer}")));
            }
        }
        let config = format!("sha256:{digest}");
        let mut ids = vec![config.clone()];
        if self.files.contains_key("index.json") {
            let index: Manifest = self.json("index.json")?;
            let of_image = index.manifests.iter().filter(|manifest| self.leads_to(&manifest.digest, &config, 3));
            ids.extend(of_image.map(|manifest| manifest.digest.clone()));
            ids.dedup();
        }
        Ok(ArchivedImage { ids, tags: item.repo_tags.clone().unwrap_or_default(), layers })
    }

    /// Whether a manifest, or one in an index of manifests, has that configuration.
    fn leads_to(&self, manifest: &str, config: &str, depth: u8) -> bool {
        let path = manifest.replacen("sha256:", BLOBS, 1);
        let Some(found) = self.texts.get(&path).and_then(|text| serde_json::from_slice::<Manifest>(text).ok()) else {
            return false;
        };
        found.config.is_some_and(|found| found.digest == config)
            || (depth > 0 && found.manifests.iter().any(|inner| self.leads_to(&inner.digest, config, depth - 1)))
    }

    /// A file of the archive, through the links by which older engines save a layer only once.
    fn seen(&self, path: &str) -> Result<&Seen, ScanError> {
        let mut path = path.to_owned();
        for _ in 0..8 {
            match (self.files.get(&path), self.links.get(&path)) {
                (Some(seen), _) => return Ok(seen),
                (None, Some(link)) => path = beside(&path, link),
                (None, None) => break,
            }
        }
        Err(ScanError::Damaged(format!("`manifest.json` names `{path}`, which is not there")))
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, ScanError> {
        let unreadable = |why: String| ScanError::Damaged(format!("`{path}` cannot be read: {why}"));
        let text = self.texts.get(path).ok_or_else(|| unreadable("it is too large, or no JSON".to_owned()))?;
        serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))
    }
}

/// Where a link leads that stands at a path: relative to its folder if it says so, else to the archive's root.
fn beside(path: &str, link: &str) -> String {
    if !link.starts_with("..") {
        return link.trim_start_matches("./").to_owned();
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}
