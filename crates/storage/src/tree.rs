//! The names of trees and their folders.

use std::fmt;
use std::path::{Path, PathBuf};

use super::StorageError;
use arenad_model::instance::InstanceId;
use arenad_model::snapshot::SnapshotId;

/// The maximum length of a snapshot's or store's name, in bytes.
const NAME_MAX: usize = 100;

/// One store of a snapshot or of a generation of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StoreTree {
    /// `snapshots/SNAPSHOT/STORE`: never changes.
    Snapshot {
        /// The id of the snapshot.
        snapshot: SnapshotId,
        /// The name of the store.
        store: String,
    },
    /// `instances/ENVIRONMENT.SITE.NUMBER/gGENERATION/STORE`: mounted into containers.
    Instance {
        /// The id that the generation is filed under ([`InstanceId::owner`]).
        instance: InstanceId,
        /// The number of the generation.
        generation: u64,
        /// The name of the store.
        store: String,
    },
}

impl StoreTree {
    /// Creates the name of a snapshot's tree.
    ///
    /// Errors: [`StorageError::Name`] if a name is not valid for a folder.
    pub fn snapshot(snapshot: &str, store: &str) -> Result<Self, StorageError> {
        Ok(Self::Snapshot { snapshot: name(snapshot)?.into(), store: name(store)? })
    }

    /// Creates the name of the tree of an instance's generation.
    ///
    /// Errors: [`StorageError::Name`] if the name of the store is not valid for a folder.
    pub fn instance(instance: &InstanceId, generation: u64, store: &str) -> Result<Self, StorageError> {
        Ok(Self::Instance { instance: instance.clone(), generation, store: name(store)? })
    }

    /// Returns the name of the store.
    pub fn store(&self) -> &str {
        match self {
            Self::Snapshot { store, .. } | Self::Instance { store, .. } => store,
        }
    }

    /// Returns the path of the tree's parent folder, relative to the state root.
    pub(super) fn parent(&self) -> PathBuf {
        match self {
            Self::Snapshot { snapshot, .. } => Path::new(SNAPSHOTS).join(snapshot.as_str()),
            Self::Instance { instance, generation, .. } => {
                Path::new(INSTANCES).join(instance_folder(instance)).join(format!("g{generation}"))
            }
        }
    }

    /// Returns the path of the tree's folder, relative to the state root.
    pub(super) fn folder(&self) -> PathBuf {
        self.parent().join(self.store())
    }

    /// Returns the path of the file that exists while the tree's content is exchanged. Its name cannot be a store's,
    /// because it begins with a dot.
    pub(super) fn mark(&self) -> PathBuf {
        self.parent().join(format!(".{}{MARK}", self.store()))
    }
}

/// The name of the folder of snapshots.
pub(super) const SNAPSHOTS: &str = "snapshots";
/// The name of the folder of instances.
pub(super) const INSTANCES: &str = "instances";
/// The suffix of the names of marks.
pub(super) const MARK: &str = ".exchanging";

fn instance_folder(instance: &InstanceId) -> String {
    format!("{}.{}.{}", instance.environment, instance.site, instance.number)
}

/// Parses the name of an instance's folder.
pub(super) fn parse_instance(folder: &str) -> Option<InstanceId> {
    // Names of environments and sites have neither dots nor slashes.
    folder.replace('.', "/").parse().ok()
}

fn name(text: &str) -> Result<String, StorageError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_sound = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.len() <= NAME_MAX
        && text.bytes().all(is_plain);
    if is_sound { Ok(text.to_owned()) } else { Err(StorageError::Name(text.to_owned())) }
}

impl fmt::Display for StoreTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder().display())
    }
}
