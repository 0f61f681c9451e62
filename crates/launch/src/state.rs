//! The state of an incarnation that lies outside of its containers: for each outermost folder of the site's stores, a tree of
//! the state root, cloned from the snapshot's and mounted where the folder is.
//!
//! A clone costs nothing where the file system shares blocks, so a generation gets its state however large it is, and
//! what is mounted can be exchanged for a fresh clone while the containers run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{LaunchError, Which};
use arenad_engine::EngineHandle;
use arenad_model::ids::ServiceName;
use arenad_model::instance::InstanceId;
use arenad_model::site::Site;
use arenad_model::store::{StateLimit, is_within};
use arenad_seams::fault::{self, Point};
use arenad_storage::{Limits, Storage, StorageError, Tree};

/// Where an incarnation's state comes from.
#[derive(Debug, Clone)]
pub struct StateSource<'a> {
    /// The state root.
    pub storage: &'a Storage,
    /// The snapshot whose trees are cloned.
    pub snapshot: String,
}

/// One folder of a service that lies in the state root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateMount {
    /// The service.
    pub service: ServiceName,
    /// The folder's path in its container.
    pub path: String,
    /// What its trees are called.
    pub name: String,
    /// How much the site may write there, where that can be limited.
    pub limit: StateLimit,
}

impl StateMount {
    /// The tree of a snapshot.
    pub fn of_snapshot(&self, snapshot: &str) -> Result<Tree, StorageError> {
        Tree::snapshot(snapshot, &self.name)
    }

    /// The tree of the containers that were made for a generation.
    pub fn of_instance(&self, id: &InstanceId, made: u64) -> Result<Tree, StorageError> {
        Tree::instance(id, made, &self.name)
    }
}

/// The folders of a site that lie in the state root, where there is one.
pub fn state_mounts(site: &Site) -> Vec<StateMount> {
    let mounts = site.state_mounts().into_iter().map(|(service, path)| {
        let name = format!("{service}{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let limit = site.state_limit(&service, &path);
        StateMount { service, path, name, limit }
    });
    mounts.collect()
}

/// Whether a volume's place is covered by the state root.
pub(super) fn covers(site: &Site, service: &ServiceName, path: &str) -> bool {
    site.state_mounts().iter().any(|(of, folder)| of == service && is_within(path, folder))
}

/// Clones the snapshot's trees for the containers of a generation, which are not there yet. Shape: by service and path in
/// the container, the folder on the host.
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

/// Puts the trees of an instance's generations into the trash; their containers are gone.
pub(super) async fn discard(storage: &Storage, id: &InstanceId, which: Which<'_>) -> Result<(), StorageError> {
    for tree in storage.trees().await? {
        if matches!(&tree, Tree::Instance { instance, generation, .. } if instance == id && which.means(*generation)) {
            storage.discard(&tree).await?;
        }
    }
    Ok(())
}

/// Brings the snapshot's trees back under the mounts of running containers, whose writers are at rest: by fresh clones where
/// there are any, and by what was touched where not.
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

/// Whether all that was touched of the containers' trees is known, so that no whole clones are needed.
pub fn knows_touched(source: &StateSource<'_>, site: &Site, id: &InstanceId, made: u64) -> Result<bool, StorageError> {
    for mount in state_mounts(site) {
        let (live, from) = (mount.of_instance(id, made)?, mount.of_snapshot(&source.snapshot)?);
        if !source.storage.root().knows_touched(&live, &from) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Clones the snapshot's trees for an exchange to come, in the order of [`state_mounts`].
pub async fn fresh(source: &StateSource<'_>, site: &Site) -> Result<Vec<arenad_storage::Fresh>, StorageError> {
    let mut all = Vec::new();
    for mount in state_mounts(site) {
        all.push(source.storage.fresh_limited(&mount.of_snapshot(&source.snapshot)?, mount.limit).await?);
    }
    Ok(all)
}

/// Keeps the state of stopped containers as the trees of a snapshot: cloned where it lies in the state root already, and
/// read out of the containers where it does not.
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
        // The same content taken twice is one snapshot.
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
            storage.receive(archive, &tree, Limits::default()).await?;
        }
    }
    Ok(())
}

/// What the state of an instance is, for the name of a snapshot. Its containers are stopped. `None`: none of it lies in the
/// state root.
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

/// BLAKE3 (hex) over every path of trees with its attributes and its content: the same wherever they lie. Those that are
/// not there are left out; `None` if all are.
pub async fn fingerprint_of(storage: &Storage, trees: Vec<Tree>) -> Result<Option<String>, StorageError> {
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
    let hashed = arenad_seams::inline::blocking(move || hash(&folders)).await;
    match hashed {
        Ok(Ok(hash)) => Ok(Some(hash)),
        Ok(Err((path, cause))) => Err(StorageError::File { doing: "read", path, cause }),
        Err(error) => {
            Err(StorageError::File { doing: "read", path: PathBuf::new(), cause: std::io::Error::other(error) })
        }
    }
}

fn hash(folders: &[(String, PathBuf)]) -> Result<String, (PathBuf, std::io::Error)> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let mut hasher = blake3::Hasher::new();
    for (name, folder) in folders {
        hasher.update(format!("{name}\0").as_bytes());
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
            let at = |error: std::io::Error| (folder.clone(), error);
            let entry = entry.map_err(|error| at(error.into()))?;
            let found = entry.metadata().map_err(|error| at(error.into()))?;
            // Sockets do not travel; servers make them anew.
            if found.file_type().is_socket() {
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let (mode, owner, group) = (found.mode(), found.uid(), found.gid());
            // How long a folder is depends on the file system.
            let length = if found.is_dir() { 0 } else { found.len() };
            hasher.update(path.as_os_str().as_bytes());
            hasher.update(format!("\0{mode:o} {owner}:{group} {} {length}\0", found.rdev()).as_bytes());
            let wrong = |error| (entry.path().to_owned(), error);
            if found.is_symlink() {
                hasher.update(std::fs::read_link(entry.path()).map_err(wrong)?.as_os_str().as_bytes());
            } else if found.is_file() {
                let file = std::fs::File::open(entry.path()).map_err(wrong)?;
                hasher.update_reader(file).map_err(wrong)?;
            }
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}
