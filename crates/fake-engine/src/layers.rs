//! Layers as tar archives, and images in the form of `docker save`.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::files::{FileNode, Layer, NodeContent, normal, parent, read_tar};
use super::images::Config;
use super::world::{EngineWorld, StoredImage};
use arenad_model::hex::hex;

/// Prefix of the name of a removed file in a layer's archive.
const WHITEOUT: &str = ".wh.";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ManifestItem {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Returns the content ID of a layer: the digest of its archive.
pub(super) fn digest(layer: &Layer) -> String {
    format!("sha256:{}", hex(&Sha256::digest(pack(layer))))
}

fn header(kind: tar::EntryType, node: &FileNode) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(node.mode);
    header.set_uid(node.uid.into());
    header.set_gid(node.gid.into());
    header.set_mtime(node.modified);
    header.set_size(node.size());
    header
}

fn pack(layer: &Layer) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, change) in layer {
        let name = path.trim_start_matches('/');
        // Writing to memory does not fail, and tar's GNU format has room for the names of the files.
        let _ = match change {
            None => {
                let folder = parent(path).trim_start_matches('/');
                let file = path.rsplit('/').next().unwrap_or_default();
                let slash = if folder.is_empty() { "" } else { "/" };
                let mut header = header(tar::EntryType::Regular, &FileNode::file(""));
                archive.append_data(&mut header, format!("{folder}{slash}{WHITEOUT}{file}"), io::empty())
            }
            Some(node) => match &node.content {
                NodeContent::File(bytes) => {
                    archive.append_data(&mut header(tar::EntryType::Regular, node), name, bytes.as_ref())
                }
                NodeContent::Folder => {
                    let mut header = header(tar::EntryType::Directory, node);
                    archive.append_data(&mut header, format!("{name}/"), io::empty())
                }
                NodeContent::Link(target) => {
                    archive.append_link(&mut header(tar::EntryType::Symlink, node), name, target)
                }
            },
        };
    }
    archive.into_inner().unwrap_or_default()
}

fn unpack(archive: &[u8]) -> io::Result<Layer> {
    let entries = read_tar(archive)?.into_iter().map(|(path, node)| {
        let path = normal(&path);
        let name = path.rsplit('/').next().unwrap_or_default();
        match name.strip_prefix(WHITEOUT) {
            Some(removed) => (format!("{}/{removed}", parent(&path)), None),
            None => (path, Some(node)),
        }
    });
    Ok(entries.filter(|(path, _)| !path.is_empty()).collect())
}

arenad_model::text_error! {
    /// The message of an engine about an archive of images.
    pub(super) struct ArchiveError;
}

impl EngineWorld {
    /// Returns the images with these IDs as one archive.
    ///
    /// Errors: returned if one of the images does not exist.
    pub(super) fn save(&self, ids: &[String]) -> Result<Vec<u8>, ArchiveError> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut items = Vec::new();
        let mut written = BTreeMap::new();
        let append = |archive: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8]| {
            let mut header = header(tar::EntryType::Regular, &FileNode::file(content.to_vec()));
            archive.append_data(&mut header, name, content).map_err(|error| error.to_string())
        };
        for id in ids {
            let (id, image) = self.find_image(id).ok_or_else(|| format!("No such image: {id}"))?;
            let config = format!("{}.json", id.trim_start_matches("sha256:"));
            append(&mut archive, &config, image.config().as_bytes())?;
            let mut layers = Vec::new();
            for (digest, layer) in image.layers.iter().zip(&image.contents) {
                let name = format!("{}/layer.tar", digest.trim_start_matches("sha256:"));
                if written.insert(name.clone(), ()).is_none() {
                    append(&mut archive, &name, &pack(layer))?;
                }
                layers.push(name);
            }
            items.push(ManifestItem { config, repo_tags: None, layers });
        }
        let manifest = serde_json::to_vec(&items).map_err(|error| error.to_string())?;
        append(&mut archive, "manifest.json", &manifest)?;
        archive.into_inner().map_err(|error| error.to_string().into())
    }

    /// Adds the images of an archive, with the names that the archive gives them.
    pub(super) fn load(&mut self, archive: &[u8]) -> Result<(), ArchiveError> {
        let damaged = |error: io::Error| format!("invalid archive: {error}");
        let files: BTreeMap<String, FileNode> = read_tar(archive).map_err(damaged)?.into_iter().collect();
        let read = |name: &str| -> Result<Bytes, ArchiveError> {
            match files.get(name).map(|node| &node.content) {
                Some(NodeContent::File(bytes)) => Ok(bytes.clone()),
                _ => Err(format!("invalid archive: no {name}").into()),
            }
        };
        let json = |error: serde_json::Error| format!("invalid archive: {error}");
        let items: Vec<ManifestItem> = serde_json::from_slice(&read("manifest.json")?).map_err(json)?;
        let mut loaded = Vec::new();
        for item in items {
            let config: Config = serde_json::from_slice(&read(&item.config)?).map_err(json)?;
            let mut contents = Vec::new();
            for name in &item.layers {
                contents.push(Arc::new(unpack(&read(name)?).map_err(damaged)?));
            }
            let pair = |text: &String| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            let image = StoredImage {
                labels: config.config.labels,
                volumes: config.config.volumes.into_keys().collect(),
                program: config.config.program,
                environment: config.config.env.iter().filter_map(pair).collect(),
                command: config.config.cmd,
                container: config.container,
                ..StoredImage::of_layers(contents)
            };
            if image.layers != config.rootfs.diff_ids {
                return Err("invalid archive: a layer's content is not what the configuration names".into());
            }
            loaded.push((image, item.repo_tags.unwrap_or_default()));
        }
        for (image, tags) in loaded {
            let id = self.keep_image(image);
            for tag in tags {
                self.name_image(&tag, &id);
            }
        }
        Ok(())
    }
}
