//! Files in which snapshots are exported. Any bytes are refused, or each part matches its hash in the manifest, and an
//! imported snapshot is exported and imported again unchanged.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use arenad_export::{Baseline, Manifest, Next, PartKind, ReadError, ServiceImage, SnapshotReader, Writer, content_id};
use arenad_model::ids::{EnvironmentName, ServiceName, SiteName};

use crate::tape::mend_sums;
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "format.json",
        "manifest.json",
        "images.tar/000000",
        "images.tar/000001",
        "stores/web-data.tar/000000",
        "volumes/",
        "../",
        "arenad-snapshot",
        "\"version\":1",
        "\"parts\":[",
        "\"bytes\":",
        "\"pieces\":[",
        "\"digest\":null",
        "\"volumes\":{",
        "\"services\":{",
        "\0",
        "ustar\0",
        "{",
        "}",
        "77777777777",
    ],
    mend: |archive| mend_sums(archive),
    made,
    ..FuzzTarget::new("snapshots", open)
};

fn open() -> InputCheck {
    Box::new(|input| {
        // The corpus contains uncompressed content, so that mutations reach it. The unchanged bytes are tried second.
        let packed = zstd::encode_all(input, 1).expect("compressed");
        let read = read(&packed);
        if let Ok((parts, manifest)) = &read {
            assert!(parts.iter().map(|(_, content)| content.len() as u64).sum::<u64>() == manifest.bytes());
            let mut again = Vec::new();
            let mut writer = Writer::new(&mut again).expect("begins");
            for (kind, content) in parts {
                writer.begin(kind).and_then(|()| writer.write_all(content)).expect("written");
            }
            writer.finish(manifest.clone()).expect("ends");
            let again = self::read(&again).expect("what was written is read");
            assert_eq!(again.1, *manifest);
        }
        let raw = self::read(input).map(drop);
        format!("{} / {}", said(read.map(drop)), said(raw))
    })
}

fn said(read: Result<(), ReadError>) -> String {
    read.map_or_else(
        |error| arenad_model::error::describe(&error).split('`').step_by(2).collect(),
        |()| "taken".to_owned(),
    )
}

type SnapshotParts = Vec<(PartKind, Vec<u8>)>;

fn read(file: &[u8]) -> Result<(SnapshotParts, Manifest), ReadError> {
    let mut reader = SnapshotReader::new(file)?;
    let mut parts = Vec::new();
    loop {
        match reader.advance()? {
            Next::Part(kind, mut part) => {
                let mut content = Vec::new();
                if let Err(error) = part.read_to_end(&mut content) {
                    return Err(part.failure().unwrap_or(ReadError::Unreadable(error)));
                }
                parts.push((kind, content));
            }
            Next::Manifest(manifest) => return Ok((parts, *manifest)),
        }
    }
}

/// A valid snapshot, whose hashes and id match its content.
fn made() -> Vec<Vec<u8>> {
    let layers = vec![format!("sha256:{}", "1".repeat(64))];
    let image = ServiceImage { image: format!("sha256:{}", "2".repeat(64)), layers: layers.clone() };
    let volumes = BTreeMap::new();
    let manifest = Manifest {
        id: content_id("mini", "shop", [("web", layers.as_slice())], [], None),
        environment: EnvironmentName::parse("mini").expect("a name"),
        site: SiteName::parse("shop").expect("a name"),
        name: Some("before".to_owned()),
        baseline: Some(Baseline { key: "key".to_owned(), recipe: None }),
        services: BTreeMap::from([(ServiceName::parse("web").expect("a name"), image)]),
        volumes,
        fingerprint: Some("f".repeat(64)),
        id_covers_stores: false,
        digest: None,
        sessions: Vec::new(),
        size_bytes: 1,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        writer: "arenad".to_owned(),
        parts: Vec::new(),
    };
    let mut packed = Vec::new();
    let mut writer = Writer::new(&mut packed).expect("begins");
    for (kind, content) in [(PartKind::Images, "images"), (PartKind::Store("web-data".to_owned()), "tree")] {
        writer.begin(&kind).and_then(|()| writer.write_all(content.as_bytes())).expect("written");
    }
    writer.finish(manifest).expect("ends");
    vec![zstd::decode_all(packed.as_slice()).expect("what was packed")]
}
