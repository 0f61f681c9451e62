//! The manifest: a description of the snapshot and of the parts of its file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{PIECE_BYTES, content_id};
use arenad_model::ids::{EnvironmentName, ServiceName, SiteName, is_snapshot_name};

/// The format version that is written; no other version is read.
pub const VERSION: u32 = 1;

/// The longest manifest that is written or accepted, in bytes. The piece hashes of 500 GiB take 4 MiB of it, the digest
/// most of the rest.
pub const MANIFEST_BYTES_MAX: u64 = 32 << 20;

/// The longest digest that is written, in bytes; a digest names every file of a site.
pub const DIGEST_BYTES_MAX: usize = 24 << 20;

/// The largest part that is accepted, in bytes; no known site has one this large.
const PART_BYTES_MAX: u64 = 4 << 40;

/// JSON that stays unparsed until it is used; kept as text, it takes no more memory than its length.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Serializes a value to JSON text.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// The description of a snapshot and of the parts of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The snapshot's id, 16 hexadecimal digits; [`content_id`] derives it from the content.
    pub id: String,
    /// The name of the environment that the snapshot belongs to.
    #[serde(serialize_with = "names::write", deserialize_with = "names::environment")]
    pub environment: EnvironmentName,
    /// The name of the site that the snapshot belongs to.
    #[serde(serialize_with = "names::write", deserialize_with = "names::site")]
    pub site: SiteName,
    /// The name given to the snapshot; `None` for an unnamed one.
    pub name: Option<String>,
    /// The inputs that the snapshot was made from; `None` unless it is a baseline.
    pub baseline: Option<Baseline>,
    /// The image of each service, by the service's name.
    #[serde(serialize_with = "names::write_keys", deserialize_with = "names::by_service")]
    pub services: BTreeMap<ServiceName, ServiceImage>,
    /// The file name of each volume's archive, by service and mount path.
    #[serde(serialize_with = "names::write_keys", deserialize_with = "names::by_service")]
    pub volumes: BTreeMap<ServiceName, BTreeMap<String, String>>,
    /// The BLAKE3 hash over all trees of the state root; `None` if the snapshot has no trees.
    pub fingerprint: Option<String>,
    /// Whether the id covers the trees; it does if they hold data that no image holds.
    pub id_covers_stores: bool,
    /// The digest of the stores, if one has been taken.
    pub digest: Option<RawJson>,
    /// The sessions of signed-in accounts: account, place and session.
    pub sessions: Vec<(String, String, RawJson)>,
    /// The size that the snapshot adds to the images it was made from, in bytes.
    pub size_bytes: u64,
    /// The time when the snapshot was taken.
    pub created_at: String,
    /// The program that wrote the file.
    pub writer: String,
    /// The parts of the file, in order.
    pub parts: Vec<SnapshotPart>,
}

/// The names in a manifest: text in JSON, which is parsed when the manifest is read.
mod names {
    use super::*;

    pub(super) fn write<S: Serializer>(name: &impl fmt::Display, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(name)
    }

    pub(super) fn environment<'de, D: Deserializer<'de>>(input: D) -> Result<EnvironmentName, D::Error> {
        EnvironmentName::parse(&String::deserialize(input)?).map_err(D::Error::custom)
    }

    pub(super) fn site<'de, D: Deserializer<'de>>(input: D) -> Result<SiteName, D::Error> {
        SiteName::parse(&String::deserialize(input)?).map_err(D::Error::custom)
    }

    pub(super) fn write_keys<S: Serializer, T: Serialize>(
        by_service: &BTreeMap<ServiceName, T>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_map(by_service.iter().map(|(service, value)| (service.as_str(), value)))
    }

    pub(super) fn by_service<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        input: D,
    ) -> Result<BTreeMap<ServiceName, T>, D::Error> {
        ServiceName::parse_keys(BTreeMap::<String, T>::deserialize(input)?).map_err(D::Error::custom)
    }
}

/// The inputs that a baseline was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// SHA-256 over the relevant parts of the definition and the images' ids.
    pub key: String,
    /// The same hash over the sources of the images instead of their ids, which is equal on hosts that built the images
    /// separately; `None` for baselines from versions that did not record it.
    pub recipe: Option<String>,
}

/// The image of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceImage {
    /// The image's id in the engine that saved it.
    pub image: String,
    /// The content ids of the image's layers, lowest first.
    pub layers: Vec<String>,
}

/// One part of the file: an archive that is stored in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPart {
    /// The part's name, in the form that [`PartKind`] displays and parses.
    pub name: String,
    /// The part's length, in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of each piece, in order.
    pub pieces: Vec<String>,
}

/// The kind of a part, with the name of the volume archive or tree that it holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind {
    /// The images of all services, in one archive.
    Images,
    /// The archive of a volume, identified by its file name.
    Volume(String),
    /// A tree of the state root, identified by its name.
    Store(String),
}

impl PartKind {
    /// Parses the name of a part; returns `None` if no kind of part has such a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
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

/// Returns whether `file` has the form `SHA256.tar`; archives of volumes are named by their content.
fn is_volume(file: &str) -> bool {
    file.strip_suffix(".tar").is_some_and(|digest| is_hex(digest, 64))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// The longest name of a store, in characters.
const STORE_NAME_MAX: usize = 80;

/// Returns whether `name` is a plain file name that cannot lead to another folder and, with its ending, fits into the
/// oldest kind of tar header.
fn is_plain(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.len() <= STORE_NAME_MAX
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_inner)
}

/// The reason why a manifest is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// A value does not have the required form.
    #[error("the manifest's {what} is `{found}`, which is none")]
    Form {
        /// The kind of value, such as `image` or `mount path`.
        what: &'static str,
        /// The invalid value, cut to 100 characters.
        found: String,
    },
    /// The parts do not match the volumes, images and stores that the manifest names.
    #[error("the manifest speaks of {0}, but not once among the file's parts")]
    Parts(String),
    /// The id differs from the one that the content yields.
    #[error("the content has the id {found}, the manifest says {says}")]
    Id {
        /// The id that the manifest states.
        says: String,
        /// The id that the content yields.
        found: String,
    },
}

impl Manifest {
    /// Checks that every value has the required form, that the parts match, and that the id follows from the content.
    pub fn check(&self) -> Result<(), ManifestError> {
        self.check_forms()?;
        self.check_parts()?;
        let layers = self.services.iter().map(|(name, service)| (name.as_str(), service.layers.as_slice()));
        let fingerprint = self.fingerprint.as_deref().filter(|_| self.id_covers_stores);
        let volumes = self.volumes.iter().map(|(service, paths)| (service.as_str(), paths));
        let found = content_id(self.environment.as_str(), self.site.as_str(), layers, volumes, fingerprint);
        if found == self.id { Ok(()) } else { Err(ManifestError::Id { says: self.id.clone(), found }) }
    }

    fn check_forms(&self) -> Result<(), ManifestError> {
        let insist = |holds: bool, what: &'static str, found: &str| match holds {
            true => Ok(()),
            false => Err(ManifestError::Form { what, found: found.chars().take(100).collect() }),
        };
        insist(is_hex(&self.id, 16), "id", &self.id)?;
        insist(!self.services.is_empty(), "list of services", "[]")?;
        if let Some(name) = &self.name {
            insist(is_snapshot_name(name), "name", name)?;
        }
        for service in self.services.values() {
            let is_digest = |text: &str| text.strip_prefix("sha256:").is_some_and(|digest| is_hex(digest, 64));
            insist(is_digest(&service.image), "image", &service.image)?;
            service.layers.iter().try_for_each(|layer| insist(is_digest(layer), "layer", layer))?;
        }
        for (path, file) in self.volumes.values().flatten() {
            insist(path.starts_with('/'), "mount path", path)?;
            insist(is_volume(file), "volume archive", file)?;
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

    /// Returns the parts with their kinds; parts with an unknown name are left out.
    pub fn kinds(&self) -> impl Iterator<Item = (PartKind, &SnapshotPart)> {
        self.parts.iter().filter_map(|part| Some((PartKind::parse(&part.name)?, part)))
    }

    /// Returns the names of the trees that the file holds.
    pub fn stores(&self) -> Vec<String> {
        let stores = self.kinds().filter_map(|(kind, _)| match kind {
            PartKind::Store(name) => Some(name),
            PartKind::Images | PartKind::Volume(_) => None,
        });
        stores.collect()
    }

    /// Returns the total length of all parts, in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}
