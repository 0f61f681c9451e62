//! The JSON files of an archive of images.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Unknown fields are rejected, because Go would read `repotags` as `RepoTags`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DockerManifestItem {
    pub(super) config: String,
    pub(super) repo_tags: Option<Vec<String>>,
    pub(super) layers: Vec<String>,
    #[serde(rename = "Parent")]
    _parent: Option<IgnoredAny>,
    #[serde(rename = "LayerSources")]
    _layer_sources: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct OciConfig {
    pub(super) rootfs: OciRootFs,
}

#[derive(Deserialize)]
pub(super) struct OciRootFs {
    pub(super) diff_ids: Vec<String>,
}

/// An index of manifests, or a manifest.
#[derive(Deserialize)]
pub(super) struct OciManifest {
    #[serde(default)]
    pub(super) manifests: Vec<OciDescriptor>,
    pub(super) config: Option<OciDescriptor>,
}

#[derive(Deserialize)]
pub(super) struct OciDescriptor {
    pub(super) digest: String,
    #[serde(default)]
    pub(super) annotations: HashMap<String, String>,
}

/// The annotations from which engines that keep images in containerd take an image's name or only its tag.
pub(super) const NAMING: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

/// JSON that Go and Rust read in the same way: Go ignores case in keys, and uses the last of several equal keys.
pub(super) struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without ambiguous keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let is_new = keys.insert(key.to_ascii_lowercase());
            if !is_new || !key.is_ascii() {
                return Err(A::Error::custom(format!("the key `{}` is ambiguous", key.escape_debug())));
            }
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }
}
