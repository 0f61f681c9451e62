//! Images of a simulated engine and its registry, and the assignment of names to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::errors::{conflict, not_found, short};
use super::files::{FileNode, FileTree, Layer, normal, put};
use super::layers;
use super::world::{EngineWorld, StoredImage};
use arenad_engine::{EngineError, Image};
use arenad_model::hex::hex;

/// An image, as described by a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FakeImage {
    /// Name of the image; without a tag, the tag is `latest`.
    pub reference: String,
    /// Name of the program in its containers, as passed to [`super::FakeEngine::install_program`]. If it is empty, the
    /// containers do nothing.
    pub program: String,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// Paths that the image declares as volumes.
    pub volumes: Vec<String>,
    /// Files of the image, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Environment variables of its containers.
    pub environment: BTreeMap<String, String>,
    /// Default command of its containers.
    pub command: Vec<String>,
}

impl FakeImage {
    /// Creates an image without files.
    pub fn new(reference: &str, program: &str) -> Self {
        Self { reference: reference.to_owned(), program: program.to_owned(), ..Self::default() }
    }
}

/// The configuration whose digest is the image's ID; the layers are part of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Config {
    pub(super) config: Runtime,
    pub(super) rootfs: RootFs,
    /// Distinguishes images with the same content that were created at different times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) container: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Runtime {
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) volumes: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) env: Vec<String>,
    #[serde(default)]
    pub(super) cmd: Vec<String>,
    /// Name of the program; real engines ignore this field.
    #[serde(default)]
    pub(super) program: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RootFs {
    pub(super) r#type: String,
    pub(super) diff_ids: Vec<String>,
}

impl StoredImage {
    /// Creates an image from layers, without labels and names.
    pub(super) fn of_layers(contents: Vec<Arc<Layer>>) -> Self {
        let mut files = FileTree::new();
        for layer in &contents {
            for (path, change) in layer.iter() {
                match change {
                    Some(node) => put(&mut files, path, node.clone()),
                    None => drop(files.remove(path)),
                }
            }
        }
        Self {
            parent: None,
            labels: BTreeMap::new(),
            layers: contents.iter().map(|layer| layers::digest(layer)).collect(),
            contents,
            files: Arc::new(files),
            volumes: Vec::new(),
            program: String::new(),
            environment: BTreeMap::new(),
            command: Vec::new(),
            container: None,
        }
    }

    /// Returns the image with another layer on top, unless the layer is empty.
    pub(super) fn with_layer(&self, layer: Layer) -> Self {
        let mut contents = self.contents.clone();
        if !layer.is_empty() {
            contents.push(Arc::new(layer));
        }
        let stacked = Self::of_layers(contents);
        Self { layers: stacked.layers, contents: stacked.contents, files: stacked.files, ..self.clone() }
    }

    pub(super) fn config(&self) -> String {
        let config = Config {
            config: Runtime {
                labels: self.labels.clone(),
                volumes: self.volumes.iter().map(|path| (path.clone(), BTreeMap::new())).collect(),
                env: self.environment.iter().map(|(key, value)| format!("{key}={value}")).collect(),
                cmd: self.command.clone(),
                program: self.program.clone(),
            },
            rootfs: RootFs { r#type: "layers".to_owned(), diff_ids: self.layers.clone() },
            container: self.container.clone(),
        };
        serde_json::to_string(&config).unwrap_or_default()
    }

    fn size_bytes(&self) -> u64 {
        self.contents.iter().flat_map(|layer| layer.values().flatten()).map(FileNode::size).sum()
    }
}

/// Returns a reference with its tag.
fn full(reference: &str) -> String {
    match reference.rsplit_once(':') {
        Some((_, tag)) if !tag.contains('/') => reference.to_owned(),
        _ => format!("{reference}:latest"),
    }
}

impl EngineWorld {
    /// Stores an image under the digest of its configuration, and returns that digest.
    pub(super) fn keep_image(&mut self, image: StoredImage) -> String {
        let id = format!("sha256:{}", hex(&Sha256::digest(image.config())));
        self.holdings.images.entry(id.clone()).or_insert(image);
        id
    }

    /// Gives an image a name. An image that has the name already loses it.
    pub(super) fn name_image(&mut self, reference: &str, id: &str) {
        self.holdings.tags.insert(full(reference), id.to_owned());
    }

    pub(super) fn add_image(&mut self, image: &FakeImage) -> String {
        let mut files = FileTree::new();
        for (path, content) in &image.files {
            put(&mut files, &normal(path), FileNode::file(content.clone()));
        }
        let layer: Layer = files.into_iter().map(|(path, node)| (path, Some(node))).collect();
        let stored = StoredImage {
            labels: image.labels.clone(),
            volumes: image.volumes.clone(),
            program: image.program.clone(),
            environment: image.environment.clone(),
            command: image.command.clone(),
            ..StoredImage::of_layers(vec![Arc::new(layer)])
        };
        let id = self.keep_image(stored);
        self.name_image(&image.reference, &id);
        id
    }

    /// Finds an image by its ID, a prefix of the ID, or a name.
    pub(super) fn image_id(&self, reference: &str) -> Option<String> {
        if self.holdings.images.contains_key(reference) {
            return Some(reference.to_owned());
        }
        if let Some(id) = self.holdings.tags.get(&full(reference)) {
            return Some(id.clone());
        }
        let digits = reference.strip_prefix("sha256:").unwrap_or(reference);
        let is_short_id = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut found =
            self.holdings.images.keys().filter(|id| is_short_id && id["sha256:".len()..].starts_with(digits));
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    pub(super) fn find_image(&self, reference: &str) -> Option<(String, StoredImage)> {
        let id = self.image_id(reference)?;
        let image = self.holdings.images.get(&id)?.clone();
        Some((id, image))
    }

    fn names(&self, id: &str) -> Vec<String> {
        self.holdings.tags.iter().filter(|(_, named)| *named == id).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn image(&self, reference: &str) -> Option<Image> {
        let (id, image) = self.find_image(reference)?;
        Some(Image {
            tags: self.names(&id),
            size_bytes: image.size_bytes(),
            id,
            labels: image.labels,
            layers: image.layers,
            volumes: image.volumes,
            is_named_by_manifest: false,
        })
    }

    /// Returns the images with a label. Like Docker's list, the result has no layers and volumes, and omits unnamed
    /// images that other images are based on.
    pub(super) fn images(&self, label: &str, value: Option<&str>) -> Vec<Image> {
        let is_meant =
            |image: &StoredImage| image.labels.get(label).is_some_and(|found| value.is_none_or(|value| found == value));
        let found = self.holdings.images.iter().filter(|(_, image)| is_meant(image));
        let listed = found.filter_map(|(id, image)| {
            let tags = self.names(id);
            (!tags.is_empty() || !self.has_children(id)).then(|| Image {
                id: id.clone(),
                tags,
                labels: image.labels.clone(),
                size_bytes: image.size_bytes(),
                layers: Vec::new(),
                volumes: Vec::new(),
                is_named_by_manifest: false,
            })
        });
        listed.collect()
    }

    fn has_children(&self, id: &str) -> bool {
        self.holdings.images.values().any(|image| image.parent.as_deref() == Some(id))
    }

    fn user(&self, id: &str) -> Option<&str> {
        let mut users = self.holdings.containers.iter().filter(|(_, container)| container.image == id);
        users.next().map(|(user, _)| user.as_str())
    }

    pub(super) fn tag(&mut self, doing: &str, id: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        let found = self.image_id(id).ok_or_else(|| not_found(doing, format!("No such image: {id}")))?;
        self.name_image(&format!("{repository}:{tag}"), &found);
        Ok(())
    }

    /// Removes a name, or an image by its ID, with the rules of Docker without `--force`.
    pub(super) fn remove_reference(&mut self, doing: &str, reference: &str) -> Result<(), EngineError> {
        let Some(id) = self.image_id(reference) else {
            return Err(not_found(doing, format!("No such image: {reference}")));
        };
        let names = self.names(&id);
        let user = self.user(&id).map(|user| short(user).to_owned());
        let shown = short(&id).to_owned();
        let name = full(reference);
        if names.contains(&name) {
            if let (1, Some(user)) = (names.len(), &user) {
                let message = format!(
                    "conflict: unable to remove repository reference \"{reference}\" (must force) - container {user} is \
                     using its referenced image {shown}"
                );
                return Err(conflict(doing, message));
            }
            self.holdings.tags.remove(&name);
            // An image that other images are based on remains without a name.
            if names.len() > 1 || self.has_children(&id) {
                return Ok(());
            }
            self.forget_image(&id);
            return Ok(());
        }
        if names.len() > 1 {
            let message = format!(
                "conflict: unable to delete {shown} (must be forced) - image is referenced in multiple repositories"
            );
            return Err(conflict(doing, message));
        }
        if let Some(user) = user {
            let message = format!(
                "conflict: unable to delete {shown} (must be forced) - image is being used by container {user}"
            );
            return Err(conflict(doing, message));
        }
        if self.has_children(&id) {
            let message =
                format!("conflict: unable to delete {shown} (cannot be forced) - image has dependent child images");
            return Err(conflict(doing, message));
        }
        for name in names {
            self.holdings.tags.remove(&name);
        }
        self.forget_image(&id);
        Ok(())
    }

    /// Removes an image, and the images that it is based on if they have no name and no other use.
    fn forget_image(&mut self, id: &str) {
        let mut next = Some(id.to_owned());
        while let Some(id) = next {
            let parent = self.holdings.images.remove(&id).and_then(|image| image.parent);
            next = parent
                .filter(|parent| self.names(parent).is_empty())
                .filter(|parent| self.user(parent).is_none() && !self.has_children(parent));
        }
    }

    /// Removes an image with all of its names, in the same steps as the Docker engine.
    pub(super) fn remove_image(&mut self, doing: &str, id: &str) -> Result<(), EngineError> {
        let names = match self.image(id) {
            Some(image) if image.tags.len() > 1 => image.tags,
            Some(_) => vec![id.to_owned()],
            None => return Ok(()),
        };
        for name in names {
            match self.remove_reference(doing, &name) {
                Err(error) if error.is_not_found() => {}
                result => result?,
            }
        }
        Ok(())
    }

    pub(super) fn commit(
        &mut self,
        doing: &str,
        handle: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError> {
        let id = self.find(doing, handle)?;
        let number = self.count();
        let container = self.container(doing, &id)?;
        let Some((parent, base)) = self.find_image(&container.image) else {
            return Err(not_found(doing, format!("No such image: {}", container.image)));
        };
        let mut all_labels = container.labels.clone();
        all_labels.extend(labels.clone());
        let image = StoredImage {
            parent: Some(parent),
            labels: all_labels,
            environment: container.environment.clone(),
            command: container.command.clone(),
            container: Some(format!("{id} {number}")),
            ..base.with_layer(container.layer.clone())
        };
        let committed = self.keep_image(image);
        self.name_image(name, &committed);
        self.emit(&id, "commit", &[]);
        Ok(committed)
    }

    pub(super) fn pull(&mut self, doing: &str, reference: &str) -> Result<(), EngineError> {
        let Some(image) = self.registry.get(&full(reference)).or_else(|| self.registry.get(reference)).cloned() else {
            let message =
                format!("pull access denied for {reference}, repository does not exist or may require 'docker login'");
            return Err(not_found(doing, message));
        };
        self.add_image(&FakeImage { reference: full(reference), ..image });
        Ok(())
    }
}
