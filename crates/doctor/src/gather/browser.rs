//! Finds the headless browser, and tests that it renders a page in the confinement in which locators use it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::program;
use crate::facts::BrowserState;
use arenad_chromium::try_browser;
use arenad_model::browser::PROGRAMS;

pub(super) async fn look() -> BrowserState {
    let Some(path) = PROGRAMS.iter().find_map(|name| program(name)) else { return BrowserState::Missing };
    let folder = match ScratchFolder::new() {
        Ok(folder) => folder,
        Err(error) => return BrowserState::Fails { path, reason: format!("make a folder for its profile: {error}") },
    };
    match try_browser(&path, &folder.0).await {
        Ok(version) => BrowserState::Works { path, version },
        Err(none) => BrowserState::Fails { path, reason: none.to_string() },
    }
}

/// A folder for one run, which is removed when this is dropped.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("arenad-doctor-{:016x}", rand::random::<u64>()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // If the removal fails, the rest stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
