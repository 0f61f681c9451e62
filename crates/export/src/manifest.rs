//! The manifest: what the snapshot is, and what its file holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{PIECE_BYTES, content_id};
use arenad_model::ids::{EnvironmentName, ServiceName, SiteName};

/// The version of the form that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// The longest manifest that is written and taken, in bytes. The hashes of 500 GiB take 4 MiB of it, the digest most of the rest.
pub const MANIFEST_BYTES_MAX: u64 = 32 << 20;

/// The longest digest that is written, in bytes: it names every file of a site.
pub const DIGEST_BYTES_MAX: usize = 24 << 20;

/// The largest part that is taken, in bytes: more than any site is known to have.
const PART_BYTES_MAX: u64 = 4 << 40;

/// JSON that is only understood where it is used: as a text it takes no more memory than it is long.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// The JSON of a value.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Its text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// What the snapshot is, and what its file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The snapshot's id.
    pub id: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The name that it was given.
    pub name: Option<String>,
    /// From what it was made, if it is a baseline.
    pub baseline: Option<Baseline>,
    /// The image of each service.
    pub services: BTreeMap<String, Service>,
    /// The archive of each volume, by service and mount path.
    pub volumes: BTreeMap<String, BTreeMap<String, String>>,
    /// BLAKE3 over all trees of the state root; none where it has none.
    pub fingerprint: Option<String>,
    /// Whether the id covers the trees, because they hold what no image does.
    pub id_covers_stores: bool,
    /// The digest of its stores, if one has been taken.
    pub digest: Option<RawJson>,
    /// Who was signed in: account, place and session.
    pub sessions: Vec<(String, String, RawJson)>,
    /// What it adds to the images that it was made from, in bytes.
    pub size_bytes: u64,
    /// When it was taken.
    pub created_at: String,
    /// What wrote the file.
    pub writer: String,
    /// What the file holds, in order.
    pub parts: Vec<Part>,
}

/// From what a baseline was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// SHA-256 over the definition's relevant parts and the images' ids.
    pub key: String,
    /// The same over what the images are made from, which is equal on hosts that built them apart; none for baselines of
    /// versions that did not note it.
    pub recipe: Option<String>,
}

/// The image of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The image's id in the engine that it was saved from.
    pub image: String,
    /// The content ids of its layers, lowest first.
    pub layers: Vec<String>,
}

/// A part of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name, a [`PartKind`].
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// BLAKE3 of each of its pieces, in order.
    pub pieces: Vec<String>,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// The images of all services.
    Images,
    /// The archive of a volume, by the name of its file.
    Volume(String),
    /// A tree of the state root, by its name.
    Store(String),
}

impl PartKind {
    /// What a part of that name is.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "images.tar" {
            return Some(Self::Images);
        }
        if let Some(file) = name.strip_prefix("volumes/") {
            return is_volume(file).then(|| Self::Volume(file.to_owned()));
        }
        let store = name.strip_prefix("stores/")?.strip_suffix(".tar")?;
        is_plain(store).then(|| Self::Store(store.to_owned()))
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Images => f.write_str("images.tar"),
            Self::Volume(file) => write!(f, "volumes/{file}"),
            Self::Store(store) => write!(f, "stores/{store}.tar"),
        }
    }
}

/// `SHA256.tar`: archives of volumes are named by their content.
fn is_volume(file: &str) -> bool {
    file.strip_suffix(".tar").is_some_and(|digest| is_hex(digest, 64))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// A name that is a file's and leads nowhere else. With its ending it fits into a tar header of the oldest kind.
fn is_plain(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.len() <= 80
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_inner)
}

/// Why a manifest does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Something in it has not the form that it must have.
    #[error("the manifest's {what} is `{found}`, which is none")]
    Form {
        /// What.
        what: &'static str,
        /// What stands there.
        found: String,
    },
    /// Its parts are not those that it speaks of.
    #[error("the manifest speaks of {0}, but not once among the file's parts")]
    Parts(String),
    /// The id is not that of the content.
    #[error("the content has the id {found}, the manifest says {says}")]
    Id {
        /// What the manifest says.
        says: String,
        /// What the content yields.
        found: String,
    },
}

impl Manifest {
    /// Insists that everything in it has the form that it must have, and that the id is that of what it names.
    pub fn check(&self) -> Result<(), ManifestError> {
        self.check_forms()?;
        self.check_parts()?;
        let layers = self.services.iter().map(|(name, service)| (name.as_str(), service.layers.as_slice()));
        let fingerprint = self.fingerprint.as_deref().filter(|_| self.id_covers_stores);
        let found = content_id(&self.environment, &self.site, layers, &self.volumes, fingerprint);
        if found == self.id { Ok(()) } else { Err(ManifestError::Id { says: self.id.clone(), found }) }
    }

    fn check_forms(&self) -> Result<(), ManifestError> {
        let insist = |holds: bool, what: &'static str, found: &str| match holds {
            true => Ok(()),
            false => Err(ManifestError::Form { what, found: found.chars().take(100).collect() }),
        };
        insist(is_hex(&self.id, 16), "id", &self.id)?;
        insist(EnvironmentName::parse(&self.environment).is_ok(), "environment", &self.environment)?;
        insist(SiteName::parse(&self.site).is_ok(), "site", &self.site)?;
        insist(!self.services.is_empty(), "list of services", "[]")?;
        if let Some(name) = &self.name {
            insist(is_plain(name), "name", name)?;
        }
        for (name, service) in &self.services {
            insist(ServiceName::parse(name).is_ok(), "service", name)?;
            let is_digest = |text: &str| text.strip_prefix("sha256:").is_some_and(|digest| is_hex(digest, 64));
            insist(is_digest(&service.image), "image", &service.image)?;
            service.layers.iter().try_for_each(|layer| insist(is_digest(layer), "layer", layer))?;
        }
        for (service, paths) in &self.volumes {
            insist(ServiceName::parse(service).is_ok(), "service", service)?;
            for (path, file) in paths {
                insist(path.starts_with('/'), "mount path", path)?;
                insist(is_volume(file), "volume archive", file)?;
            }
        }
        for part in &self.parts {
            insist(PartKind::parse(&part.name).is_some(), "part", &part.name)?;
            insist(part.bytes <= PART_BYTES_MAX, "length of a part", &part.bytes.to_string())?;
            let pieces = part.bytes.div_ceil(PIECE_BYTES);
            insist(part.pieces.len() as u64 == pieces, "number of pieces", &part.pieces.len().to_string())?;
            part.pieces.iter().try_for_each(|piece| insist(is_hex(piece, 64), "piece", piece))?;
        }
        Ok(())
    }

    fn check_parts(&self) -> Result<(), ManifestError> {
        let mut kinds: Vec<PartKind> = self.kinds().map(|(kind, _)| kind).collect();
        kinds.sort();
        let mut expected: BTreeSet<PartKind> =
            self.volumes.values().flat_map(BTreeMap::values).map(|file| PartKind::Volume(file.clone())).collect();
        expected.insert(PartKind::Images);
        let has_stores = kinds.iter().any(|kind| matches!(kind, PartKind::Store(_)));
        if has_stores != self.fingerprint.is_some() || (self.id_covers_stores && !has_stores) {
            return Err(ManifestError::Parts("stores".to_owned()));
        }
        for (before, after) in kinds.iter().zip(kinds.iter().skip(1)) {
            if before == after {
                return Err(ManifestError::Parts(before.to_string()));
            }
        }
        let found: BTreeSet<PartKind> = kinds.into_iter().filter(|kind| !matches!(kind, PartKind::Store(_))).collect();
        match expected.symmetric_difference(&found).next() {
            Some(part) => Err(ManifestError::Parts(part.to_string())),
            None => Ok(()),
        }
    }

    /// The parts with what they are; those of another name are left out.
    pub fn kinds(&self) -> impl Iterator<Item = (PartKind, &Part)> {
        self.parts.iter().filter_map(|part| Some((PartKind::parse(&part.name)?, part)))
    }

    /// The names of the trees.
    pub fn stores(&self) -> Vec<String> {
        let stores = self.kinds().filter_map(|(kind, _)| match kind {
            PartKind::Store(name) => Some(name),
            PartKind::Images | PartKind::Volume(_) => None,
        });
        stores.collect()
    }

    /// How long all parts are together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}
