//! The id of a snapshot: what it is derived from.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use arenad_model::hex::hex;

/// The id of a snapshot of a site, from the content ids of each service's layers, the volumes' archives (by service and
/// mount path; they are named by their SHA-256) and, where the state root holds what no image does, its fingerprint.
///
/// Shape: 16 characters of `0-9a-f`.
pub fn content_id<'a>(
    environment: &str,
    site: &str,
    layers: impl IntoIterator<Item = (&'a str, &'a [String])>,
    volumes: &BTreeMap<String, BTreeMap<String, String>>,
    fingerprint: Option<&str>,
) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{environment}/{site}"));
    for (service, layers) in layers {
        digest.update(format!("\0{service}\0{}", layers.join(",")));
    }
    digest.update(format!("\0{volumes:?}"));
    if let Some(fingerprint) = fingerprint {
        digest.update(format!("\0{fingerprint}"));
    }
    hex(&digest.finalize()[..8])
}
