//! Derivation of a snapshot's id from its content.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use arenad_model::hex::hex;

/// Returns the id of a site's snapshot, derived from the content ids of each service's layers, the volume archives and
/// the fingerprint of the state root.
///
/// The archives are listed by service and mount path and named by their SHA-256. The fingerprint is included only if
/// the state root holds data that no image holds.
///
/// Shape: 16 characters of `0-9a-f`.
pub fn content_id<'a>(
    environment: &str,
    site: &str,
    layers: impl IntoIterator<Item = (&'a str, &'a [String])>,
    volumes: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, String>)>,
    fingerprint: Option<&str>,
) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{environment}/{site}"));
    for (service, layers) in layers {
        digest.update(format!("\0{service}\0{}", layers.join(",")));
    }
    let volumes: BTreeMap<&str, &BTreeMap<String, String>> = volumes.into_iter().collect();
    digest.update(format!("\0{volumes:?}"));
    if let Some(fingerprint) = fingerprint {
        digest.update(format!("\0{fingerprint}"));
    }
    hex(&digest.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_those_of_earlier_versions() {
        let layers = ["sha256:a".to_owned(), "sha256:b".to_owned()];
        let archives = BTreeMap::from([("/data".to_owned(), "x.tar.zst".to_owned())]);
        let id =
            |fingerprint| content_id("mini", "shop", [("web", layers.as_slice())], [("web", &archives)], fingerprint);
        assert_eq!((id(None), id(Some("f"))), ("774191e332ecc8a4".to_owned(), "a2d6ba5fa557db11".to_owned()));
    }
}
