//! Snapshots: stored, immutable states of a site, from which instances are created and to which they are reset.
//!
//! A baseline is the snapshot that every episode of a site starts from. It is identified by the inputs from which it
//! was made. A named snapshot is taken on request. A snapshot may be both: a named snapshot of an unchanged site has
//! the content, and therefore the id, of the site's baseline. A copy holds the state of a running episode for its forks;
//! it has neither a name nor inputs, and goes when no fork needs it any more.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use jiff::Timestamp;

use crate::episode::ids::EpisodeId;
use crate::hex::hex;
use crate::ids::{EnvironmentName, ServiceName, SiteName};

/// The id of a snapshot, derived from its content: snapshots with equal ids are identical.
///
/// Shape: 16 characters of `0-9a-f`. The conversion from text does not check this: an id is derived from
/// content, read from the store, or read from the manifest of an imported file, whose shape the import checks. The id of
/// a copy for forks is random, because hashing the content would take longer than copying it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SnapshotId {
    /// Makes an id from random bytes.
    pub fn from_random(bytes: [u8; 8]) -> Self {
        Self(hex(&bytes))
    }
}

impl From<String> for SnapshotId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.0
    }
}

/// Ids are looked up, compared and shown as text in many places. This conversion cannot turn a text into an id.
impl Deref for SnapshotId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The archives of a snapshot's volumes: file name in the state directory, by service and mount path.
pub type VolumeFiles = BTreeMap<ServiceName, BTreeMap<String, String>>;

/// A stored, immutable state of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The id by which the store and the state root know the snapshot.
    pub id: SnapshotId,
    /// The environment that the site belongs to.
    pub environment: EnvironmentName,
    /// The site whose state it is.
    pub site: SiteName,
    /// The hash of the inputs that the snapshot was made from; `None` unless it is a baseline.
    pub baseline_key: Option<String>,
    /// The name that a user gave the snapshot.
    pub name: Option<String>,
    /// The committed image of each service.
    pub images: BTreeMap<ServiceName, String>,
    /// The archives of the snapshot's volumes.
    pub volumes: VolumeFiles,
    /// The names of the trees of the state root that belong to the snapshot.
    pub state: Vec<String>,
    /// The hash of the inputs, independent of the host that built the images; `None` unless the snapshot is a baseline.
    pub recipe: Option<String>,
    /// The episode whose state the snapshot holds, for its forks; `None` unless it is such a copy.
    pub copied_from: Option<EpisodeId>,
    /// Whether the snapshot was imported from a file.
    pub is_imported: bool,
    /// The size that the snapshot adds to the images it was made from, in bytes.
    pub size_bytes: u64,
    /// The time when the snapshot was taken.
    pub created_at: Timestamp,
}

impl Snapshot {
    /// Returns whether episodes start from the snapshot, as opposed to one that was only taken on request.
    pub fn is_baseline(&self) -> bool {
        self.baseline_key.is_some()
    }

    /// Returns whether the snapshot is a copy for the forks of an episode. It belongs to them, so people neither see nor
    /// use it.
    pub fn is_copy(&self) -> bool {
        self.copied_from.is_some()
    }

    /// Whether containers that were made from the snapshot differ from those of another one in their stores alone.
    pub fn has_containers_of(&self, other: &Self) -> bool {
        (&self.images, &self.volumes) == (&other.images, &other.volumes)
    }

    /// Returns whether the snapshot is of that site.
    pub fn is_of(&self, environment: &str, site: &str) -> bool {
        self.environment.as_str() == environment && self.site.as_str() == site
    }

    /// Returns the file names of the archives of the snapshot's volumes.
    pub fn archives(&self) -> impl Iterator<Item = &String> + Clone {
        self.volumes.values().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_containers_of_the_snapshot_that_its_episode_started_from() {
        let name = |text: &str| ServiceName::parse(text).expect("a name");
        let baseline = Snapshot {
            id: SnapshotId::from_random([1; 8]),
            environment: EnvironmentName::parse("mini").expect("a name"),
            site: SiteName::parse("shop").expect("a name"),
            baseline_key: Some("key".to_owned()),
            name: None,
            images: BTreeMap::from([(name("web"), "sha256:1".to_owned())]),
            volumes: VolumeFiles::new(),
            state: vec!["web-data".to_owned()],
            recipe: None,
            copied_from: None,
            is_imported: false,
            size_bytes: 1,
            created_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(baseline.id.as_str(), "0101010101010101");
        let episode = EpisodeId::from_random([2; 10]);
        let copy = Snapshot {
            id: SnapshotId::from_random([3; 8]),
            baseline_key: None,
            copied_from: Some(episode),
            ..baseline.clone()
        };
        assert!(copy.is_copy() && !baseline.is_copy() && !copy.is_baseline());
        assert!(copy.has_containers_of(&baseline));
        let images = BTreeMap::from([(name("web"), "sha256:2".to_owned())]);
        assert!(!Snapshot { images, ..copy.clone() }.has_containers_of(&baseline), "committed anew");
        let volumes = VolumeFiles::from([(name("web"), BTreeMap::from([("/data".to_owned(), "a.tar".to_owned())]))]);
        assert!(!Snapshot { volumes, ..copy }.has_containers_of(&baseline));
    }
}
