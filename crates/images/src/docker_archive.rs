//! Parses the archives that `docker save` writes: a `manifest.json` that names configurations, layers and tags, in two
//! layouts.
//!
//! Before Docker 25, a layer is `<id>/layer.tar` and a configuration is `<digest>.json`. Since then, both are
//! `blobs/sha256/<digest>`, and an `index.json` names manifests as well. The ID of an image is the digest of its
//! configuration or, in engines that keep images in containerd, the digest of its manifest.

mod format;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::format::{DockerManifestItem, NAMING, OciConfig, OciManifest, Unambiguous};
use super::member::{MemberHeader, MemberKind, MemberNames};
use super::scan::ScanError;
use arenad_model::archive::full_reference;
use arenad_model::hex::hex;

/// Maximum size of a JSON file that is kept, in bytes; configurations have some kilobytes.
const TEXT_MAX: u64 = 4 << 20;

/// Maximum size of all JSON files that are kept, in bytes.
const TEXTS_MAX: usize = 64 << 20;

/// Maximum number of images in an archive. [`DESCRIPTORS_MAX`] limits the number of manifests that all of its indexes
/// name. Both are bounded because each image is searched for in all manifests.
const IMAGES_MAX: usize = 1000;
const DESCRIPTORS_MAX: usize = 5000;

/// Maximum number of names of all images.
const TAGS_MAX: usize = 10_000;

/// Maximum depth of nested indexes.
const INDEXES_MAX: u8 = 4;

/// Folder of the layers and configurations in the newer layout.
const BLOBS: &str = "blobs/sha256/";

/// An image in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedImage {
    /// IDs that an engine may assign to the image: first the digest of its configuration, then those of its manifests.
    pub ids: Vec<String>,
    /// Names of the image, as the archive writes them.
    pub tags: Vec<String>,
    /// Content IDs of the layers, lowest first.
    pub layers: Vec<String>,
}

impl ArchivedImage {
    /// Returns whether the image has the name.
    pub(crate) fn is_called(&self, reference: &str) -> bool {
        self.tags.iter().any(|tag| full_reference(tag) == full_reference(reference))
    }

    /// Returns the image's ID in most engines.
    pub(crate) fn id(&self) -> &str {
        self.ids.first().map_or("", String::as_str)
    }
}

/// A walk through an archive, with everything that it has seen so far.
#[derive(Default)]
pub(crate) struct ImageArchiveWalk {
    /// Size that the entries occupy in the tar archive, in bytes.
    pub expanded_bytes: u64,
    is_begun: bool,
    names: MemberNames,
    files: HashMap<String, BlobDigest>,
    texts: HashMap<String, Vec<u8>>,
    texts_size: usize,
}

struct BlobDigest {
    digest: String,
    is_gzip: bool,
}

/// An entry that is being read.
pub(crate) struct EntryRecord {
    path: String,
    digest: Sha256,
    first: [u8; 2],
    size: u64,
    is_file: bool,
    text: Option<Vec<u8>>,
}

impl EntryRecord {
    /// Adds the next piece of the entry's content.
    pub(crate) fn take(&mut self, piece: &[u8]) {
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

impl ImageArchiveWalk {
    /// Returns whether no entry has been seen yet.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_begun
    }

    /// Counts an entry of any archive.
    pub(crate) fn pass(&mut self, size: u64) {
        self.is_begun = true;
        self.expanded_bytes =
            self.expanded_bytes.saturating_add(size.div_ceil(512).saturating_add(1).saturating_mul(512));
    }

    /// Begins an entry of an archive of images.
    ///
    /// Errors: `Damaged` if the entry makes the archive ambiguous.
    pub(crate) fn begin(&mut self, member: MemberHeader, size: u64) -> Result<EntryRecord, ScanError> {
        self.pass(size);
        self.names.add(&member).map_err(|ambiguity| ScanError::Damaged(ambiguity.to_string()))?;
        let MemberHeader { path, kind } = member;
        let is_small = size <= TEXT_MAX && self.texts_size.saturating_add(size as usize) <= TEXTS_MAX;
        let may_be_text = path.ends_with(".json") || path.starts_with(BLOBS);
        let text = (is_small && may_be_text).then(Vec::new);
        let is_file = kind == MemberKind::File;
        Ok(EntryRecord { path, digest: Sha256::new(), first: [0; 2], size: 0, is_file, text })
    }

    /// Ends an entry whose content has been read.
    pub(crate) fn end(&mut self, record: EntryRecord) {
        let EntryRecord { path, digest, first, is_file, text, .. } = record;
        if !is_file {
            return;
        }
        if let Some(text) = text.filter(|text| matches!(text.first(), Some(b'{' | b'['))) {
            self.texts_size += text.len();
            self.texts.insert(path.clone(), text);
        }
        self.files.insert(path, BlobDigest { digest: hex(&digest.finalize()), is_gzip: first == [0x1f, 0x8b] });
    }

    /// Returns the images, after comparing the content of the archive with the digests in its names.
    pub(crate) fn images(&self) -> Result<Vec<ArchivedImage>, ScanError> {
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
        if let Some(link) = self.names.links().find(|link| !self.files.contains_key(self.names.follow(link))) {
            return Err(ScanError::Damaged(format!("the link `{link}` leads to no file")));
        }
        self.json::<Unambiguous>("manifest.json")?;
        let items: Vec<DockerManifestItem> = self.json("manifest.json")?;
        let tags: usize = items.iter().flat_map(|item| &item.repo_tags).map(Vec::len).sum();
        if items.len() > IMAGES_MAX || tags > TAGS_MAX {
            let what = format!("`manifest.json` has {} images with {tags} names", items.len());
            return Err(ScanError::Damaged(format!("{what}; at most {IMAGES_MAX} with {TAGS_MAX} are read")));
        }
        if self.files.contains_key("index.json") {
            self.json::<Unambiguous>("index.json")?;
            let index: OciManifest = self.json("index.json")?;
            let leads = self.leads(&index)?;
            let images = self.all(&items, &leads)?;
            check_index_names(&index, &images)?;
            return Ok(images);
        }
        self.all(&items, &Leads::new())
    }

    fn all(&self, items: &[DockerManifestItem], leads: &Leads) -> Result<Vec<ArchivedImage>, ScanError> {
        // A configuration that several images share is read once.
        let mut configs = HashMap::new();
        items.iter().map(|item| self.image(item, leads, &mut configs)).collect()
    }

    /// Returns the configurations that each manifest of an index leads to, directly or through nested manifests.
    fn leads(&self, index: &OciManifest) -> Result<Leads, ScanError> {
        let mut read = HashMap::new();
        let mut left = DESCRIPTORS_MAX;
        let mut leads = Leads::new();
        for manifest in &index.manifests {
            let (mut seen, mut configs) = (HashSet::new(), HashSet::new());
            let mut next = vec![manifest.digest.clone()];
            left = left.checked_sub(1).ok_or_else(too_many)?;
            for _ in 0..INDEXES_MAX {
                let mut inner = Vec::new();
                for digest in next.drain(..).filter(|digest| seen.insert(digest.clone())).collect::<Vec<_>>() {
                    let Some(found) = self.manifest(&digest, &mut read, &mut left)? else { continue };
                    configs.extend(found.config.as_ref().map(|config| config.digest.clone()));
                    inner.extend(found.manifests.iter().map(|manifest| manifest.digest.clone()));
                }
                next = inner;
            }
            leads.push((manifest.digest.clone(), configs));
        }
        Ok(leads)
    }

    /// Returns a manifest by its digest, or `None` if the archive does not contain it. Each manifest is parsed once.
    fn manifest<'a>(
        &self,
        digest: &str,
        read: &'a mut HashMap<String, Option<OciManifest>>,
        left: &mut usize,
    ) -> Result<Option<&'a OciManifest>, ScanError> {
        if !read.contains_key(digest) {
            let path = digest.replacen("sha256:", BLOBS, 1);
            let found = self.texts.get(&path).and_then(|text| serde_json::from_slice::<OciManifest>(text).ok());
            let named = found.as_ref().map_or(0, |found| found.manifests.len());
            *left = left.checked_sub(named).ok_or_else(too_many)?;
            read.insert(digest.to_owned(), found);
        }
        Ok(read.get(digest).and_then(Option::as_ref))
    }

    fn image<'a>(
        &self,
        item: &'a DockerManifestItem,
        leads: &Leads,
        configs: &mut HashMap<&'a str, OciConfig>,
    ) -> Result<ArchivedImage, ScanError> {
        let digest = &self.seen(&item.config)?.digest;
        let name = item.config.strip_suffix(".json").unwrap_or(digest);
        if name != digest {
            return Err(ScanError::Damaged(format!("the content of `{}` has the digest {digest}", item.config)));
        }
        let config = match configs.entry(&item.config) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(self.json(&item.config)?),
        };
        let layers = &config.rootfs.diff_ids;
        if layers.len() != item.layers.len() {
            let (says, names) = (layers.len(), item.layers.len());
            return Err(ScanError::Damaged(format!("the image has {says} layers, `manifest.json` names {names}")));
        }
        for (path, layer) in item.layers.iter().zip(layers) {
            let seen = self.seen(path)?;
            // A layer's ID is the digest of its uncompressed content. The engine compares the IDs of compressed layers
            // when it unpacks them.
            if !seen.is_gzip && !path.starts_with(BLOBS) && format!("sha256:{}", seen.digest) != *layer {
                return Err(ScanError::Damaged(format!("the content of `{path}` is not the layer {layer}")));
            }
        }
        let config = format!("sha256:{digest}");
        let mut ids = vec![config.clone()];
        ids.extend(leads.iter().filter(|(_, found)| found.contains(&config)).map(|(digest, _)| digest.clone()));
        ids.dedup();
        Ok(ArchivedImage { ids, tags: item.repo_tags.clone().unwrap_or_default(), layers: layers.clone() })
    }

    /// Returns a file of the archive, following links.
    fn seen(&self, path: &str) -> Result<&BlobDigest, ScanError> {
        let missing = || ScanError::Damaged(format!("`manifest.json` names `{path}`, which is not there"));
        self.files.get(self.names.follow(path)).ok_or_else(missing)
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, ScanError> {
        let unreadable = |why: String| ScanError::Damaged(format!("`{path}` cannot be read: {why}"));
        let text = self.texts.get(path).ok_or_else(|| unreadable("it is too large, or no JSON".to_owned()))?;
        serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))
    }
}

/// The manifests of an index, each with the digests of the configurations that it leads to.
type Leads = Vec<(String, HashSet<String>)>;

fn too_many() -> ScanError {
    ScanError::Damaged(format!("its indexes name more than {DESCRIPTORS_MAX} manifests"))
}

/// Checks that an index gives images only names that `manifest.json` also gives them.
fn check_index_names(index: &OciManifest, images: &[ArchivedImage]) -> Result<(), ScanError> {
    let tags: HashSet<String> = images.iter().flat_map(|image| &image.tags).map(|tag| full_reference(tag)).collect();
    let short: HashSet<&str> = tags.iter().filter_map(|tag| tag.rsplit_once(':')).map(|(_, short)| short).collect();
    let is_known = |name: &str| {
        let plain = name.strip_prefix("docker.io/").map(|name| name.strip_prefix("library/").unwrap_or(name));
        let is_tag = |name: &str| tags.contains(&full_reference(name));
        short.contains(name) || is_tag(name) || plain.is_some_and(is_tag)
    };
    let annotations = index.manifests.iter().flat_map(|manifest| &manifest.annotations);
    let mut names = annotations.filter(|(key, _)| NAMING.contains(&key.as_str())).map(|(_, name)| name);
    match names.find(|name| !is_known(name)) {
        Some(name) => {
            let name = name.escape_debug();
            Err(ScanError::Damaged(format!("`index.json` names an image `{name}`, and `manifest.json` does not")))
        }
        None => Ok(()),
    }
}
