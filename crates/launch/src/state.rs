//! Manages the state of an incarnation outside of its containers: each outermost folder of the site's stores is a tree
//! in the state root, cloned from the snapshot's tree and mounted at the folder's path.
//!
//! A clone costs nothing where the file system shares blocks. A generation therefore gets its state regardless of its
//! size, and a mounted tree can be exchanged for a fresh clone while the containers run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use super::{GenerationSelector, LaunchError};
use arenad_engine::EngineHandle;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::store::{StateLimit, is_within};
use arenad_seams::fault::{self, Point};
use arenad_seams::inline::{self, Stop};
use arenad_storage::{ArchiveLimits, Storage, StorageError, StoreTree};

/// The time limit for hashing the state of one instance. A site can make a file of many terabytes that takes no space.
const HASH_LIMIT: Duration = Duration::from_secs(3600);

/// The state root and the snapshot from which an incarnation gets its state.
#[derive(Debug, Clone)]
pub struct StateSource<'a> {
    /// The state root that holds the snapshot's trees and receives their clones.
    pub storage: &'a Storage,
    /// The snapshot whose trees are cloned.
    pub snapshot: String,
}

/// One folder of a service that is in the state root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateMount {
    /// The service whose container has the folder.
    pub service: ServiceName,
    /// The folder's path in its container.
    pub path: String,
    /// The store name of its trees, derived from the service and the path.
    pub name: String,
    /// The limit on what the site may write there, if the file system can enforce one.
    pub limit: StateLimit,
}

impl StateMount {
    /// Returns the tree that holds this folder in a snapshot.
    pub fn of_snapshot(&self, snapshot: &str) -> Result<StoreTree, StorageError> {
        StoreTree::snapshot(snapshot, &self.name)
    }

    /// Returns the tree that is mounted in the containers created for generation `made` of the site of an instance.
    pub fn of_instance(&self, id: &InstanceId, made: u64) -> Result<StoreTree, StorageError> {
        StoreTree::instance(&id.owner(), made, &self.name)
    }
}

/// Returns the folders of a site that are in the state root, if there is one.
pub fn state_mounts(site: &Site) -> Vec<StateMount> {
    let mounts = site.state_mounts().into_iter().map(|(service, path)| {
        let name = format!("{service}{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let limit = site.state_limit(&service, &path);
        StateMount { service, path, name, limit }
    });
    mounts.collect()
}

/// Returns whether the state root covers the mount path of a volume.
pub(super) fn covers(site: &Site, service: &ServiceName, path: &str) -> bool {
    site.state_mounts().iter().any(|(of, folder)| of == service && is_within(path, folder))
}

/// Clones the snapshot's trees for a generation whose containers do not exist yet.
///
/// Shape: the folder on the host, by service and path in the container.
pub(super) async fn clone(
    source: &StateSource<'_>,
    site: &Site,
    id: &InstanceId,
    made: u64,
) -> Result<BTreeMap<ServiceName, BTreeMap<String, PathBuf>>, LaunchError> {
    let mut folders: BTreeMap<ServiceName, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for mount in state_mounts(site) {
        let tree = mount.of_instance(id, made)?;
        source.storage.clone_limited(&mount.of_snapshot(&source.snapshot)?, &tree, mount.limit).await?;
        let folder = source.storage.root().folder(&tree);
        folders.entry(mount.service).or_default().insert(mount.path, folder);
    }
    Ok(folders)
}

/// Moves the trees of the generations that are filed under an id to the trash. The containers must have been removed before.
pub(super) async fn discard(
    storage: &Storage,
    id: &InstanceId,
    which: GenerationSelector<'_>,
) -> Result<(), StorageError> {
    for tree in storage.trees().await? {
        if matches!(&tree, StoreTree::Instance { instance, generation, .. } if instance == id && which.means(*generation))
        {
            storage.discard(&tree).await?;
        }
    }
    Ok(())
}

/// Restores the snapshot's trees under the mounts of running containers, whose writers are at rest: exchanges them for
/// fresh clones if there are any, and otherwise restores the touched entries.
pub async fn exchange(
    source: &StateSource<'_>,
    site: &Site,
    id: &InstanceId,
    made: u64,
    fresh: Option<Vec<arenad_storage::Fresh>>,
) -> Result<(), StorageError> {
    let mut fresh = fresh.map(Vec::into_iter);
    for mount in state_mounts(site) {
        let live = mount.of_instance(id, made)?;
        match fresh.as_mut().and_then(Iterator::next) {
            Some(fresh) => drop(source.storage.exchange(&live, fresh).await?),
            None => {
                let restored = source.storage.restore(&live, &mount.of_snapshot(&source.snapshot)?).await?;
                tracing::debug!(?restored, "brought {live} back");
            }
        }
        fault::reach(Point::RewindExchanged).await;
    }
    Ok(())
}

/// Returns whether all touched entries of the containers' trees are known, so that no whole clones are needed.
pub fn knows_touched(source: &StateSource<'_>, site: &Site, id: &InstanceId, made: u64) -> Result<bool, StorageError> {
    for mount in state_mounts(site) {
        let (live, from) = (mount.of_instance(id, made)?, mount.of_snapshot(&source.snapshot)?);
        if !source.storage.root().knows_touched(&live, &from) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Clones the snapshot's trees for a later exchange, in the order of [`state_mounts`].
pub async fn fresh(source: &StateSource<'_>, site: &Site) -> Result<Vec<arenad_storage::Fresh>, StorageError> {
    let mut all = Vec::new();
    for mount in state_mounts(site) {
        all.push(source.storage.fresh_limited(&mount.of_snapshot(&source.snapshot)?, mount.limit).await?);
    }
    Ok(all)
}

/// Saves the state of stopped containers as the trees of a snapshot: clones trees that are in the state root already
/// and reads the others from the containers.
pub async fn save_state(
    engine: &dyn arenad_engine::Engine,
    storage: &Storage,
    site: &Site,
    containers: &BTreeMap<ServiceName, EngineHandle>,
    live: Option<(&InstanceId, u64)>,
    snapshot: &str,
) -> Result<(), LaunchError> {
    for mount in state_mounts(site) {
        let tree = mount.of_snapshot(snapshot)?;
        // Two snapshots of the same content share one id, so the tree may exist already.
        if storage.root().is_whole(&tree) {
            continue;
        }
        if let Some((id, made)) = live {
            let from = mount.of_instance(id, made)?;
            if storage.root().is_whole(&from) {
                storage.clone_tree(&from, &tree).await?;
                continue;
            }
        }
        if let Some(handle) = containers.get(&mount.service) {
            let archive = engine.read_archive(handle, &mount.path);
            storage.receive(archive, &tree, ArchiveLimits::default()).await?;
        }
    }
    Ok(())
}

/// Returns the hash of an instance's state, from which a snapshot gets its name. The containers must be stopped. `None`
/// if none of the state is in the state root.
pub async fn fingerprint(
    storage: &Storage,
    site: &Site,
    id: &InstanceId,
    made: u64,
) -> Result<Option<String>, StorageError> {
    let mut trees = Vec::new();
    for mount in state_mounts(site) {
        trees.push(mount.of_instance(id, made)?);
    }
    fingerprint_of(storage, trees).await
}

/// Returns the BLAKE3 hash (hex) of every path of the trees with its attributes and content; it does not depend on the
/// location of the trees. Missing trees are left out; `None` if all are missing.
pub async fn fingerprint_of(storage: &Storage, trees: Vec<StoreTree>) -> Result<Option<String>, StorageError> {
    let root = storage.root().clone();
    let mut folders: Vec<(String, PathBuf)> = trees
        .iter()
        .filter(|tree| root.is_whole(tree))
        .map(|tree| (tree.store().to_owned(), root.folder(tree)))
        .collect();
    if folders.is_empty() {
        return Ok(None);
    }
    folders.sort();
    hash_within(HASH_LIMIT, folders).await.map(Some)
}

/// Hashes folders on a thread that may block. The thread ends soon after the time limit, or after its caller has gone.
async fn hash_within(limit: Duration, folders: Vec<(String, PathBuf)>) -> Result<String, StorageError> {
    let failed = |path, cause| StorageError::File { doing: "read", path, cause };
    let first = folders.first().map(|(_, folder)| folder.clone()).unwrap_or_default();
    match tokio::time::timeout(limit, inline::stoppable(move |stop| hash(&folders, stop))).await {
        Ok(Ok(Ok(hash))) => Ok(hash),
        Ok(Ok(Err((path, cause)))) => Err(failed(path, cause)),
        Ok(Err(panicked)) => Err(failed(first, io::Error::other(panicked))),
        Err(_) => {
            let what = format!("its files could not be hashed within {limit:?}");
            Err(failed(first, io::Error::new(io::ErrorKind::TimedOut, what)))
        }
    }
}

fn hash(folders: &[(String, PathBuf)], stop: &Stop) -> Result<String, (PathBuf, io::Error)> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    for (name, folder) in folders {
        hasher.update(format!("{name}\0").as_bytes());
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
            let at = |error: io::Error| (folder.clone(), error);
            stop.check().map_err(|error| at(error.into()))?;
            let entry = entry.map_err(|error| at(error.into()))?;
            let found = entry.metadata().map_err(|error| at(error.into()))?;
            // Sockets are not copied; servers create them again.
            if found.file_type().is_socket() {
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let (mode, owner, group) = (found.mode(), found.uid(), found.gid());
            // The length of a folder depends on the file system.
            let length = if found.is_dir() { 0 } else { found.len() };
            hasher.update(path.as_os_str().as_bytes());
            hasher.update(format!("\0{mode:o} {owner}:{group} {} {length}\0", found.rdev()).as_bytes());
            let wrong = |error| (entry.path().to_owned(), error);
            if found.is_symlink() {
                hasher.update(std::fs::read_link(entry.path()).map_err(wrong)?.as_os_str().as_bytes());
            } else if found.is_file() {
                let mut file = File::open(entry.path()).map_err(wrong)?;
                loop {
                    stop.check().map_err(|error| wrong(error.into()))?;
                    let read = file.read(&mut piece).map_err(wrong)?;
                    if read == 0 {
                        break;
                    }
                    hasher.update(&piece[..read]);
                }
            }
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Longer than any machine needs to notice that work is to stop.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_file_without_end_is_not_hashed_beyond_the_limit_or_without_its_caller() {
        let folder = tempfile::tempdir().expect("a folder");
        let huge = File::create(folder.path().join("huge")).expect("a file");
        huge.set_len(8 << 40).expect("a hole of eight terabytes");
        let folders = || vec![("state".to_owned(), folder.path().to_owned())];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let error = runtime.block_on(hash_within(Duration::from_millis(200), folders())).expect_err("it takes hours");
        let cause = arenad_model::error::describe(&error);
        assert!(cause.contains("could not be hashed within 200ms"), "{cause}");
        let abandoned =
            async { tokio::time::timeout(Duration::from_millis(200), hash_within(PATIENCE * 60, folders())).await };
        runtime.block_on(abandoned).expect_err("its caller has gone");
        let begun = Instant::now();
        // The runtime waits for its blocking threads.
        runtime.shutdown_timeout(PATIENCE);
        assert!(begun.elapsed() < PATIENCE, "a thread still hashes");
    }

    #[test]
    fn the_hash_is_that_of_names_attributes_and_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders = [("state".to_owned(), folder.path().to_owned())];
        let now = || hash(&folders, &Stop::default()).expect("a hash");
        let empty = now();
        // More than is read at once.
        let mut content = vec![7; (1 << 20) + 5];
        std::fs::write(folder.path().join("file"), &content).expect("a file");
        let before = now();
        content.push(7);
        std::fs::write(folder.path().join("file"), &content).expect("a file");
        let longer = now();
        content.pop();
        std::fs::write(folder.path().join("file"), &content).expect("a file");
        assert_eq!(now(), before);
        std::fs::rename(folder.path().join("file"), folder.path().join("other")).expect("another name");
        assert!(empty != before && longer != before && now() != before);
    }
}
