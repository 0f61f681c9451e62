//! Archives of images and data, for content that no registry provides.

use std::path::PathBuf;

use super::ids::{ServiceName, SiteName};
use super::service::{MountSpec, ServiceSpec};
use super::site::Environment;

/// A file that is downloaded from a mirror or supplied by the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceArchive {
    /// The file name, without a folder.
    pub file: String,
    /// The approximate size, in bytes. `None` means that the definition does not state it.
    pub size_bytes: Option<u64>,
    /// The SHA-256 (hex) of the file. If it is `None`, the hash of the first copy that arrives is recorded and required
    /// of every later copy.
    pub sha256: Option<String>,
    /// The URLs, in the order in which they are tried. If there are none, the operator has to supply the file.
    pub mirrors: Vec<String>,
}

/// An image of the Compose file, as the environment file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// The reference, as written in the Compose file.
    pub reference: String,
    /// The archive, in the format of `docker save`. `None` means that the image comes from a registry.
    pub archive: Option<SourceArchive>,
    /// The approximate size in the engine, in bytes. `None` means that the definition does not state it.
    pub loaded_bytes: Option<u64>,
}

/// A file that services mount, or an archive of folders that they mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSource {
    /// The name in the environment file.
    pub name: String,
    /// The archive that contains the data.
    pub archive: SourceArchive,
    /// The place to which the data is written for the services.
    pub placement: Placement,
}

/// The destination of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// The file is copied under its own name into this folder. The path is absolute and below the environment's root.
    Folder(PathBuf),
    /// The file is unpacked. The list has at least one part.
    Unpacked(Vec<Unpacking>),
}

/// A folder of an archive and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacking {
    /// The folder in the archive, without slashes at its ends. An empty text means the whole archive.
    pub from: String,
    /// The folder that receives the content. The path is absolute and below the environment's root.
    pub to: PathBuf,
}

impl DataSource {
    /// Returns the paths that exist once the data is in place: one file, or one folder for each part.
    pub fn results(&self) -> Vec<PathBuf> {
        match &self.placement {
            Placement::Folder(folder) => vec![folder.join(&self.archive.file)],
            Placement::Unpacked(parts) => parts.iter().map(|part| part.to.clone()).collect(),
        }
    }
}

/// The origin of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageProvenance {
    /// The image is built by arenad.
    Built,
    /// The image is pulled from a registry.
    Registry,
    /// The image is loaded from an archive.
    Archive(SourceArchive),
}

/// An image that an environment needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededImage {
    /// The reference, as written in the Compose file.
    pub reference: String,
    /// The origin of the image.
    pub origin: ImageProvenance,
    /// The approximate size in the engine, in bytes. `None` means that the definition does not state it.
    pub loaded_bytes: Option<u64>,
    /// The sites that need the image.
    pub sites: Vec<SiteName>,
}

impl Environment {
    /// Returns the images that the services of all sites need, each once, in the order of the sites.
    pub fn needed_images(&self) -> Vec<NeededImage> {
        let mut needed: Vec<NeededImage> = Vec::new();
        for (site, service) in self.sites.iter().flat_map(|site| site.services.iter().map(move |spec| (site, spec))) {
            let wanted = full_reference(&service.image);
            match needed.iter_mut().find(|known| full_reference(&known.reference) == wanted) {
                Some(known) if known.sites.contains(&site.name) => {}
                Some(known) => known.sites.push(site.name.clone()),
                None => needed.push(self.needed_image(service, &site.name)),
            }
        }
        needed
    }

    fn needed_image(&self, service: &ServiceSpec, site: &SiteName) -> NeededImage {
        let wanted = full_reference(&service.image);
        let source = self.images.iter().find(|source| full_reference(&source.reference) == wanted);
        let origin = match (source.and_then(|source| source.archive.clone()), &service.build) {
            (Some(archive), _) => ImageProvenance::Archive(archive),
            (None, Some(_)) => ImageProvenance::Built,
            (None, None) => ImageProvenance::Registry,
        };
        NeededImage {
            reference: service.image.clone(),
            origin,
            loaded_bytes: source.and_then(|source| source.loaded_bytes),
            sites: vec![site.clone()],
        }
    }

    /// Returns the services that mount the data, each with its site.
    pub fn users_of(&self, data: &DataSource) -> Vec<(SiteName, ServiceName)> {
        let results = data.results();
        let is_used = |mount: &MountSpec| match mount {
            MountSpec::Bind { source, .. } | MountSpec::Data { source, .. } => {
                results.iter().any(|result| source.starts_with(result) || result.starts_with(source))
            }
            MountSpec::Volume { .. } | MountSpec::Tmpfs { .. } => false,
        };
        let services = self.sites.iter().flat_map(|site| site.services.iter().map(move |spec| (site, spec)));
        let users = services.filter(|(_, spec)| spec.mounts.iter().any(is_used));
        users.map(|(site, spec)| (site.name.clone(), spec.name.clone())).collect()
    }
}

/// Returns the reference with its tag, which is `latest` if the reference has neither a tag nor a digest.
pub fn full_reference(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    if name.contains([':', '@']) { reference.to_owned() } else { format!("{reference}:latest") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_without_a_tag_means_the_latest() {
        let cases = [
            ("shop", "shop:latest"),
            ("shop:1", "shop:1"),
            ("registry.test:5000/team/shop", "registry.test:5000/team/shop:latest"),
            ("registry.test/shop@sha256:00", "registry.test/shop@sha256:00"),
        ];
        for (reference, full) in cases {
            assert_eq!(full_reference(reference), full);
        }
    }
}
