//! The folders whose content the configuration's commands get on their standard input.

use std::path::Path;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::BaselineError;
use arenad_build_context::{self as context, ContextError, PackedContext};
use arenad_model::site::Site;

/// Packs a folder on a thread that may block.
pub(crate) async fn pack_off_thread(
    folder: &Path,
    pack: impl FnOnce() -> Result<PackedContext, ContextError> + Send + 'static,
) -> Result<PackedContext, ContextError> {
    let panicked = |error| ContextError::Read { path: folder.to_owned(), cause: std::io::Error::other(error) };
    arenad_seams::inline::blocking(pack).await.map_err(panicked)?
}

/// The packed folders of a site's configuration, each read once: the hash is that of the bytes that the command gets.
pub(crate) struct StepInputs(Vec<Option<(Bytes, String)>>);

impl StepInputs {
    /// Reads the folders of all steps.
    ///
    /// Errors: [`BaselineError::Input`] if a folder cannot be read.
    pub(crate) async fn pack(site: &Site) -> Result<Self, BaselineError> {
        let mut packed = Vec::new();
        for step in &site.baseline.configure {
            let Some(input) = &step.input else {
                packed.push(None);
                continue;
            };
            let folder = input.folder.clone();
            let read = pack_off_thread(&input.folder, move || context::pack_folder(&folder)).await;
            let PackedContext { archive, inputs } =
                read.map_err(|cause| BaselineError::Input { step: step.name.clone(), cause })?;
            packed.push(Some((Bytes::from(archive), inputs)));
        }
        Ok(Self(packed))
    }

    /// Returns the archive for the step at a position.
    pub(crate) fn archive(&self, step: usize) -> Option<Bytes> {
        self.0.get(step)?.as_ref().map(|(archive, _)| archive.clone())
    }

    /// Adds the content of the folders to the hash of a baseline. The hashes of sites without such a folder stay unchanged.
    pub(crate) fn add_to(&self, digest: &mut Sha256) {
        for (step, (_, hash)) in self.0.iter().enumerate().filter_map(|(step, input)| Some((step, input.as_ref()?))) {
            digest.update(format!("\0input {step}={hash}"));
        }
    }
}
