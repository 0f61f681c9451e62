//! Checks that there is enough disk space before a write.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ImagesError;

/// Space that is left free; with less, databases and the engine itself fail in unpredictable ways.
const RESERVE_BYTES: u64 = 512 << 20;

/// The space that a planned write needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Folder that is written to; it need not exist yet.
    pub folder: PathBuf,
    /// Number of bytes that are written.
    pub bytes: u64,
}

/// Returns the peak space that loading needs, in bytes: the engine first unpacks the archive beside its images, then
/// creates layers from it, and only then removes the unpacked files.
pub fn of_loading(expanded_bytes: u64) -> u64 {
    expanded_bytes.saturating_mul(2)
}

/// Checks that there is space for all needs together; needs on the same file system add up. A folder that cannot be
/// examined is on another machine and is not checked.
pub fn check(doing: &str, needs: &[Need]) -> Result<(), ImagesError> {
    let mut found: Vec<(u64, &Need, u64)> = Vec::new();
    for need in needs {
        let Some(existing) = need.folder.ancestors().find_map(|folder| fs::metadata(folder).ok().map(|m| (folder, m)))
        else {
            continue;
        };
        let device = existing.1.dev();
        match found.iter_mut().find(|(known, _, _)| *known == device) {
            Some((_, _, sum)) => *sum += need.bytes,
            None => found.push((device, need, need.bytes)),
        }
    }
    for (_, need, sum) in found {
        let Some(free) = free_bytes(&need.folder) else { continue };
        if sum.saturating_add(RESERVE_BYTES) > free {
            return Err(ImagesError::NoSpace {
                doing: doing.to_owned(),
                folder: need.folder.clone(),
                needed: shown(sum + RESERVE_BYTES),
                free: shown(free),
            });
        }
    }
    Ok(())
}

/// Returns the number of bytes that can be written below a folder or its nearest existing ancestor.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = folder.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns a size in a form for users.
pub(crate) fn shown(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        bytes if bytes < 1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        bytes => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_on_one_file_system_add_up_and_folders_need_not_exist() {
        let folder = std::env::temp_dir().join("not/there/yet");
        let free = free_bytes(&folder).expect("the folder above exists");
        let need = |bytes| Need { folder: folder.clone(), bytes };
        assert!(check("try", &[need(1)]).is_ok());
        let most = free.saturating_sub(RESERVE_BYTES) / 2 + (1 << 30);
        let error = check("try", &[need(most), need(most)]).expect_err("together they are too much");
        assert!(error.to_string().starts_with("try: "), "{error}");
    }
}
