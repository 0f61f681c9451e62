//! Manages the volumes of an incarnation: creates them empty, fills them from the snapshot's archives and saves them to
//! archives when a snapshot is taken.
//!
//! A committed image contains the container's file system but not its volumes, whether the Compose file or the image
//! itself declares them (database images do). Both kinds are therefore saved as tar archives through the engine, and
//! each incarnation gets volumes of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tempfile::TempPath;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use super::{Blueprint, LaunchError, state};
use arenad_engine::{Engine, EngineError, EngineHandle, labels};
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::service::MountSpec;
use arenad_model::site::Site;

/// The maximum size of a volume's archive, in bytes. Holes count, and a site decides how large they are.
const VOLUME_MAX: u64 = 64 << 30;

/// The archive files of a snapshot's volumes, by service and mount path.
pub type SavedVolumes = BTreeMap<ServiceName, BTreeMap<String, PathBuf>>;

/// The engine's name of each volume and whether it is read-only, by service and mount path.
type Volumes = BTreeMap<ServiceName, BTreeMap<String, (String, bool)>>;

/// Returns the name of the volume that a service mounts at a path and whether it is read-only. Services that mount the
/// same declared volume share its name.
fn volume_part(site: &Site, service: &ServiceName, path: &str) -> (String, bool) {
    let declared =
        site.service(service).into_iter().flat_map(|service| &service.mounts).find_map(|mount| match mount {
            MountSpec::Volume { name, target, read_only } if target == path => {
                Some((format!("vol-{name}"), *read_only))
            }
            _ => None,
        });
    declared
        .unwrap_or_else(|| (format!("vol-{service}{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "-")), false))
}

/// Creates the volumes that the Compose file declares and those that the snapshot has archives of.
pub(super) async fn create(engine: &dyn Engine, blueprint: &Blueprint<'_>) -> Result<Volumes, LaunchError> {
    let declared = blueprint.site.services.iter().flat_map(|service| {
        service.mounts.iter().filter_map(|mount| match mount {
            MountSpec::Volume { target, .. } => Some((service.name.clone(), target.clone())),
            _ => None,
        })
    });
    let saved =
        blueprint.volumes.iter().flat_map(|(service, paths)| paths.keys().map(|path| (service.clone(), path.clone())));
    // Folders in the state root are mounted from there and need no volume.
    let is_state =
        |place: &(ServiceName, String)| blueprint.state.is_some() && state::covers(blueprint.site, &place.0, &place.1);
    let wanted: BTreeSet<(ServiceName, String)> = declared.chain(saved).filter(|place| !is_state(place)).collect();
    let mut made = BTreeSet::new();
    let mut volumes = Volumes::new();
    for (service, path) in wanted {
        let (part, read_only) = volume_part(blueprint.site, &service, &path);
        let mut name = blueprint.name(Some(&part));
        if blueprint.ownership.role == labels::ROLE_BUILDER {
            name.push_str("-builder");
        }
        if made.insert(name.clone()) {
            let mut labels = blueprint.ownership.labels();
            labels.insert(labels::MOUNT_TARGET.to_owned(), path.clone());
            engine.create_volume(&name, &labels).await?;
        }
        volumes.entry(service).or_default().insert(path, (name, read_only));
    }
    Ok(volumes)
}

/// Unpacks the snapshot's archives into containers that are created but not started.
pub(super) async fn fill(
    engine: &dyn Engine,
    blueprint: &Blueprint<'_>,
    containers: &BTreeMap<ServiceName, EngineHandle>,
) -> Result<(), LaunchError> {
    let mut filled = BTreeSet::new();
    for (service, paths) in &blueprint.volumes {
        let Some(handle) = containers.get(service) else {
            continue;
        };
        for (path, file) in paths {
            if blueprint.state.is_some() && state::covers(blueprint.site, service, path) {
                continue;
            }
            if !filled.insert(volume_part(blueprint.site, service, path).0) {
                continue;
            }
            let archive = tokio::fs::File::open(file).await.map_err(|cause| LaunchError::Archive {
                doing: "open the volume archive",
                path: file.clone(),
                cause,
            })?;
            engine.write_archive(handle, parent(path), Box::pin(ReaderStream::new(archive))).await?;
        }
    }
    Ok(())
}

/// Returns the folder to unpack an archive in: an archive of `/var/lib/mysql` holds `mysql/…`, so its parent.
fn parent(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// Saves the volumes of stopped containers as archives in `folder`, named by their content.
///
/// Shape: the archives by service and mount path, each a file `<SHA-256>.tar`. A file under its final name is complete:
/// it is written under another name and then renamed.
pub async fn save_volumes(
    engine: &dyn Engine,
    site: &Site,
    containers: &BTreeMap<ServiceName, EngineHandle>,
    folder: &Path,
) -> Result<SavedVolumes, LaunchError> {
    let mut saved = SavedVolumes::new();
    let mut by_volume: BTreeMap<String, PathBuf> = BTreeMap::new();
    for service in &site.services {
        let Some(handle) = containers.get(&service.name) else {
            continue;
        };
        for (path, volume) in engine.inspect(handle).await?.volumes {
            let file = match by_volume.get(&volume) {
                Some(file) => file.clone(),
                None => save(engine.read_archive(handle, &path), &path, folder, VOLUME_MAX).await?,
            };
            by_volume.insert(volume, file.clone());
            saved.entry(service.name.clone()).or_default().insert(path, file);
        }
    }
    Ok(saved)
}

/// Keeps the archive of a folder under the name of its content, if it has no more than `most` bytes.
async fn save(
    mut archive: impl Stream<Item = Result<Bytes, EngineError>> + Unpin,
    path: &str,
    folder: &Path,
    most: u64,
) -> Result<PathBuf, LaunchError> {
    let at = |doing| {
        move |path: &Path| {
            let path = path.to_owned();
            move |cause| LaunchError::Archive { doing, path, cause }
        }
    };
    tokio::fs::create_dir_all(folder).await.map_err(at("make the folder")(folder))?;
    let partial = TempPath::try_from_path(folder.join(format!("{:016x}.partial", rand::random::<u64>())));
    // Gone with its owner unless it gets its name: a site decides how much there is of it.
    let partial = partial.map_err(at("make the volume archive")(folder))?;
    let mut file = tokio::fs::File::create(&partial).await.map_err(at("make the volume archive")(&partial))?;
    let (mut digest, mut left) = (Sha256::new(), most);
    while let Some(chunk) = archive.next().await {
        let chunk = chunk?;
        left = left.checked_sub(chunk.len() as u64).ok_or_else(|| {
            at("write the volume archive")(&partial)(io::Error::other(format!("{path} holds more than {most} bytes")))
        })?;
        digest.update(&chunk);
        file.write_all(&chunk).await.map_err(at("write the volume archive")(&partial))?;
    }
    file.sync_all().await.map_err(at("write the volume archive")(&partial))?;
    let file = folder.join(format!("{}.tar", hex(&digest.finalize())));
    partial.persist(&file).map_err(|error| at("name the volume archive")(&file)(error.error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn archives_are_kept_up_to_a_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive =
            || futures_util::stream::iter([Ok(Bytes::from_static(&[7; 600])), Ok(Bytes::from_static(&[7; 400]))]);
        let error = save(archive(), "/data", folder.path(), 999).await.expect_err("too long");
        assert!(format!("{error:?}").contains("/data holds more than 999 bytes"), "{error:?}");
        let left = || std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left(), 0, "nothing of it");
        let kept = save(archive(), "/data", folder.path(), 1000).await.expect("it fits");
        assert_eq!(save(archive(), "/data", folder.path(), 1000).await.expect("the same content"), kept);
        assert_eq!((std::fs::metadata(&kept).expect("a file").len(), left()), (1000, 1));
    }

    #[test]
    fn archives_are_unpacked_one_level_up() {
        assert_eq!(parent("/var/lib/mysql"), "/var/lib");
        assert_eq!(parent("/var/lib/mysql/"), "/var/lib");
        assert_eq!(parent("/data"), "/");
    }
}
