//! A file of a container, read through the engine: nothing runs in the container, and no path leads out of it.

use std::io::Read;

use futures_util::StreamExt;

use super::{FoundValue, LocateError, SIZE_MAX, Scene, TIMEOUT, exec};
use arenad_engine::{Engine, EngineError, EngineHandle};
use arenad_model::ids::ServiceName;
use arenad_model::locator::FileLocator;
use arenad_model::locator::json::text_or_bytes;

/// Maximum number of symbolic links that are followed.
pub(super) const LINKS_MAX: usize = 8;

pub(super) async fn run(
    engine: &dyn Engine,
    scene: &Scene<'_>,
    locator: &FileLocator,
) -> Result<FoundValue, LocateError> {
    let (service, container) = scene.container(locator.service.as_deref())?;
    let ran = format!("{service}: {}", locator.path);
    let bytes = read(engine, service, container, &locator.path, SIZE_MAX).await?;
    let bytes = bytes.ok_or_else(|| LocateError::Failed(format!("{service} has no file {}", locator.path)))?;
    let notes = vec![("bytes", bytes.len().to_string())];
    Ok(FoundValue { value: text_or_bytes(bytes), ran, notes })
}

/// Returns the bytes of a file, or `None` if the file does not exist. Links are followed inside the container.
async fn read(
    engine: &dyn Engine,
    service: &ServiceName,
    container: &EngineHandle,
    path: &str,
    size_max: usize,
) -> Result<Option<Vec<u8>>, LocateError> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Some(archive) = archive(engine, container, &path, size_max).await? else { return Ok(None) };
        match entry(&archive, size_max) {
            Ok(TarEntry::File(bytes)) => return Ok(Some(bytes)),
            Ok(TarEntry::Link(target)) => path = join(&path, &target),
            Ok(TarEntry::Other) => return Err(LocateError::Failed(format!("{path} of {service} is not a file"))),
            Ok(TarEntry::TooLarge(bytes)) => {
                return Err(LocateError::TooLarge {
                    what: format!("{path} of {service} has {bytes} bytes"),
                    limit: format!("{} MiB", size_max >> 20),
                });
            }
            Err(error) => return Err(LocateError::Unavailable(format!("read the archive of {path}: {error}"))),
        }
    }
    Err(LocateError::Failed(format!("{path} of {service} is behind more than {LINKS_MAX} links")))
}

/// Returns the archive of a path, up to slightly more than the largest file that can be used.
async fn archive(
    engine: &dyn Engine,
    container: &EngineHandle,
    path: &str,
    size_max: usize,
) -> Result<Option<Vec<u8>>, LocateError> {
    // The margin covers the headers before the content, including those for long names, and the padding and end after
    // it.
    let most = size_max + (64 << 10);
    let mut archive = Vec::new();
    let mut chunks = engine.read_archive(container, path);
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => archive.extend_from_slice(&chunk),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(exec::failed(&error, TIMEOUT)),
        }
        if archive.len() > most {
            break;
        }
    }
    Ok(Some(archive))
}

/// Returns whether the engine reports that the file does not exist, as opposed to the container.
pub(super) fn is_missing(error: &EngineError) -> bool {
    matches!(error, EngineError::NotFound { message, .. } if !message.contains("No such container: "))
}

enum TarEntry {
    File(Vec<u8>),
    Link(String),
    TooLarge(u64),
    Other,
}

/// Reads the first entry of an archive, which is the requested path.
fn entry(archive: &[u8], size_max: usize) -> std::io::Result<TarEntry> {
    let mut archive = tar::Archive::new(archive);
    let Some(entry) = archive.entries()?.next() else { return Ok(TarEntry::Other) };
    let mut entry = entry?;
    let kind = entry.header().entry_type();
    if kind.is_symlink() {
        let target = entry.link_name()?.map(|target| target.to_string_lossy().into_owned());
        return Ok(target.map_or(TarEntry::Other, TarEntry::Link));
    }
    if !kind.is_file() {
        return Ok(TarEntry::Other);
    }
    if entry.size() > size_max as u64 {
        return Ok(TarEntry::TooLarge(entry.size()));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    Ok(TarEntry::File(bytes))
}

/// Returns the path to which a link leads. The engine resolves `..` inside the container.
pub(super) fn join(path: &str, target: &str) -> String {
    if target.starts_with('/') {
        return target.to_owned();
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{target}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_archive_promises_is_not_believed() {
        let mut header = tar::Header::new_gnu();
        let mut promising = |kind: tar::EntryType| {
            header.set_path("file").expect("short");
            header.set_entry_type(kind);
            header.set_size(1 << 40);
            header.set_cksum();
            let mut archive = header.as_bytes().to_vec();
            archive.extend([b'x'; 4096]);
            archive
        };
        for kind in [tar::EntryType::GNULongName, tar::EntryType::GNULongLink, tar::EntryType::XHeader] {
            assert!(entry(&promising(kind), 1 << 20).is_err(), "{kind:?}");
        }
        assert!(
            matches!(entry(&promising(tar::EntryType::Regular), 1 << 20), Ok(TarEntry::TooLarge(size)) if size == 1 << 40)
        );
        assert!(matches!(entry(&promising(tar::EntryType::GNUSparse), 1 << 20), Ok(TarEntry::Other) | Err(_)));
    }

    #[test]
    fn links_lead_from_where_they_lie() {
        assert_eq!(join("/a/b", "c"), "/a/c");
        assert_eq!(join("/a/b", "../c"), "/a/../c");
        assert_eq!(join("/a/b", "/c"), "/c");
    }
}
