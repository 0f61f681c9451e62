//! Selects the images and data of an environment that a command applies to.

use std::path::Path;

use crate::cli::args::ImagesChoice;
use crate::cli::definition;
use crate::cli::failure::CommandFailure;
use arenad_model::archive::{DataSource, ImageProvenance, NeededImage, SourceArchive, full_reference};
use arenad_model::site::Environment;

/// The images and data that a command applies to.
pub(super) struct SelectedImages {
    /// The environment that the definition describes.
    pub(super) environment: Environment,
    /// The selected images of the environment.
    pub(super) images: Vec<NeededImage>,
    /// The selected data of the environment.
    pub(super) data: Vec<DataSource>,
}

impl SelectedImages {
    /// Reads the definition, and selects by the names of sites, images and data.
    pub(super) fn make(args: &ImagesChoice) -> Result<Self, CommandFailure> {
        let (name, names) = match (&args.file, &args.environment, args.names.split_first()) {
            (_, Some(name), _) => (Some(name.as_str()), args.names.as_slice()),
            (Some(_), None, _) | (None, None, None) => (None, args.names.as_slice()),
            (None, None, Some((name, names))) => (Some(name.as_str()), names),
        };
        let located = definition::locate(name, args.file.as_deref(), args.root.as_deref())?;
        let environment = definition::load(&located)?.loaded.environment;
        let (images, data) = (environment.needed_images(), environment.data.clone());
        let mut choice = Self { environment, images, data };
        if !names.is_empty() {
            choice.restrict(names)?;
        }
        Ok(choice)
    }

    fn restrict(&mut self, names: &[String]) -> Result<(), CommandFailure> {
        let environment = &self.environment;
        let is_image = |image: &NeededImage, name: &String| {
            full_reference(&image.reference) == full_reference(name)
                || image.sites.iter().any(|site| site.as_str() == name)
        };
        let is_data = |data: &DataSource, name: &String| {
            data.name == *name || environment.users_of(data).iter().any(|(site, _)| site.as_str() == name)
        };
        for name in names {
            let is_known = self.images.iter().any(|image| is_image(image, name))
                || self.data.iter().any(|data| is_data(data, name));
            if !is_known {
                let sites = environment.sites.iter().map(|site| site.name.to_string());
                let images = self.images.iter().map(|image| image.reference.clone());
                let data = self.data.iter().map(|data| data.name.clone());
                let known: Vec<String> = sites.chain(images).chain(data).collect();
                let message = format!("{} has no site, image or data `{name}`", environment.name);
                return Err(CommandFailure::usage(message).hint(format!("choose one of {}", known.join(", "))));
            }
        }
        self.images.retain(|image| names.iter().any(|name| is_image(image, name)));
        self.data.retain(|data| names.iter().any(|name| is_data(data, name)));
        Ok(())
    }

    /// Returns the archives of the selected images and data.
    pub(super) fn archives(&self) -> impl Iterator<Item = &SourceArchive> {
        let of_images = self.images.iter().filter_map(|image| match &image.origin {
            ImageProvenance::Archive(archive) => Some(archive),
            ImageProvenance::Built | ImageProvenance::Registry => None,
        });
        of_images.chain(self.data.iter().map(|data| &data.archive))
    }

    /// Checks that a file that was given with `--from` is one of the archives: by its name, or because there is only
    /// one.
    pub(super) fn check_file(&self, from: &Path) -> Result<(), CommandFailure> {
        if !from.exists() {
            return Err(CommandFailure::usage(format!("{} does not exist", from.display())));
        }
        let is_named = |archive: &SourceArchive| from.file_name().is_some_and(|name| name == archive.file.as_str());
        if from.is_dir() || self.archives().count() == 1 || self.archives().any(is_named) {
            return Ok(());
        }
        let known: Vec<&str> = self.archives().map(|archive| archive.file.as_str()).collect();
        let failure =
            CommandFailure::usage(format!("{} is not one of the archives {}", from.display(), known.join(", ")));
        Err(failure.hint("name the image or data that it belongs to"))
    }
}
