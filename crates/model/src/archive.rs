//! The archives that images and data come in, where no registry has them.

use std::path::PathBuf;

use super::ids::{ServiceName, SiteName};
use super::site::{Environment, MountSpec, ServiceSpec};

/// A file that is downloaded, or brought along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Its name, without a folder.
    pub file: String,
    /// About how large it is, in bytes; `None`: nobody has said.
    pub size_bytes: Option<u64>,
    /// SHA-256 (hex) of its content; `None`: that of the first copy that arrives is remembered.
    pub sha256: Option<String>,
    /// URLs, in the order in which they are tried; none: it has to be brought along.
    pub mirrors: Vec<String>,
}

/// What the environment file says about an image of the Compose file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// The reference, as the Compose file writes it.
    pub reference: String,
    /// The archive, in the form of `docker save`; `None`: a registry has the image.
    pub archive: Option<Archive>,
    /// About how large it is in the engine, in bytes; `None`: nobody has said.
    pub loaded_bytes: Option<u64>,
}

/// A file that services mount, or an archive of folders that they mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSource {
    /// The name in the environment file.
    pub name: String,
    /// The archive to download.
    pub archive: Archive,
    /// The place in the service to which the data is written.
    pub placement: Placement,
}

/// Where a data file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// As it is, under its own name, into this folder; absolute, below the environment's root.
    Folder(PathBuf),
    /// Unpacked. At least one part.
    Unpacked(Vec<Unpacking>),
}

/// A folder of an archive, and where its content goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacking {
    /// The folder in the archive, without slashes at its ends; empty is the whole archive.
    pub from: String,
    /// The folder that gets the content; absolute, below the environment's root.
    pub to: PathBuf,
}

impl DataSource {
    /// What there is when the data is there: one file, or one folder for each part.
    pub fn results(&self) -> Vec<PathBuf> {
        match &self.placement {
            Placement::Folder(folder) => vec![folder.join(&self.archive.file)],
            Placement::Unpacked(parts) => parts.iter().map(|part| part.to.clone()).collect(),
        }
    }
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// arenad builds it.
    Built,
    /// A registry has it.
    Registry,
    /// It is loaded from an archive.
    Archive(Archive),
}

/// An image that an environment needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededImage {
    /// The reference, as the Compose file writes it.
    pub reference: String,
    /// Where it comes from.
    pub origin: Origin,
    /// About how large it is in the engine, in bytes; `None`: nobody has said.
    pub loaded_bytes: Option<u64>,
    /// The sites that need it.
    pub sites: Vec<SiteName>,
}

impl Environment {
    /// The images that the services of all sites need, each once, in the order of the sites.
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
            (Some(archive), _) => Origin::Archive(archive),
            (None, Some(_)) => Origin::Built,
            (None, None) => Origin::Registry,
        };
        NeededImage {
            reference: service.image.clone(),
            origin,
            loaded_bytes: source.and_then(|source| source.loaded_bytes),
            sites: vec![site.clone()],
        }
    }

    /// The sites with a service that mounts what the data becomes, and those services.
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

/// A reference with the tag that it means where it names none.
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
