use std::collections::BTreeMap;
use std::io::{Read, Write};

use sha2::{Digest, Sha256};

use super::*;
use arenad_model::ids::{EnvironmentName, ServiceName, SiteName};

fn web() -> ServiceName {
    ServiceName::parse("web").expect("a name")
}

fn manifest() -> Manifest {
    let layers = vec![format!("sha256:{}", "1".repeat(64))];
    let services =
        BTreeMap::from([(web(), ServiceImage { image: format!("sha256:{}", "2".repeat(64)), layers: layers.clone() })]);
    let volumes = BTreeMap::new();
    Manifest {
        id: content_id("mini", "shop", [("web", layers.as_slice())], [], None),
        environment: EnvironmentName::parse("mini").expect("a name"),
        site: SiteName::parse("shop").expect("a name"),
        name: None,
        baseline: Some(Baseline { key: "key".to_owned(), recipe: None }),
        services,
        volumes,
        fingerprint: Some("f".repeat(64)),
        id_covers_stores: false,
        digest: None,
        sessions: Vec::new(),
        size_bytes: 1,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        writer: "arenad".to_owned(),
        parts: Vec::new(),
    }
}

/// Returns bytes that do not compress.
fn noise(length: u64) -> Vec<u8> {
    let mut content = vec![0; length as usize];
    blake3::Hasher::new().finalize_xof().fill(&mut content);
    content
}

fn written(parts: &[(PartKind, &[u8])], manifest: Manifest) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).expect("begins");
    for (kind, content) in parts {
        writer.begin(kind).expect("begins a part");
        writer.write_all(content).expect("takes it");
    }
    writer.finish(manifest).expect("ends");
    file
}

fn parts(images: &[u8]) -> [(PartKind, &[u8]); 2] {
    [(PartKind::Images, images), (PartKind::Store("web-data".to_owned()), b"tree")]
}

/// Parts with their contents, in the order of the file.
type Contents = Vec<(PartKind, Vec<u8>)>;

fn read(file: &[u8]) -> Result<(Contents, Manifest), ReadError> {
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

#[test]
fn what_is_written_is_read_whatever_its_length() {
    for length in [1, 511, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES] {
        let images = noise(length);
        let (found, manifest) = read(&written(&parts(&images), manifest())).expect("it is whole");
        assert!(found[0].1 == images && found[1].1 == b"tree", "{length}");
        assert_eq!(manifest.parts[0].pieces.len() as u64, length.div_ceil(PIECE_BYTES));
    }
}

#[test]
fn parts_may_be_passed_over_at_any_point() {
    let images = noise(PIECE_BYTES + 7);
    let file = written(&parts(&images), manifest());
    for taken in [0, 1, 4096, images.len()] {
        let mut reader = SnapshotReader::new(file.as_slice()).expect("begins");
        let Ok(Next::Part(PartKind::Images, mut part)) = reader.advance() else { panic!("the images come first") };
        part.read_exact(&mut vec![0; taken]).expect("reads");
        let Ok(Next::Part(PartKind::Store(name), _)) = reader.advance() else { panic!("then the tree") };
        assert_eq!(name, "web-data");
        assert!(matches!(reader.advance(), Ok(Next::Manifest(_))));
    }
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_refused() {
    let images = noise(PIECE_BYTES + 4000);
    let file = written(&parts(&images), manifest());
    let near_the_end = file.len() - 200..file.len();
    for length in (0..file.len()).step_by(file.len() / 29).chain(near_the_end) {
        let error = read(&file[..length]).expect_err("it was cut off");
        assert!(matches!(error, ReadError::Truncated { .. }), "{length} of {}: {error:?}", file.len());
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let images = noise(20_000);
    let file = written(&parts(&images), manifest());
    let whole = read(&file).expect("it is whole");
    for at in (0..file.len()).step_by(41) {
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        // Some bits of the compression headers have no meaning, so flipping them may change nothing.
        if let Ok(found) = read(&changed) {
            assert!(found.0 == whole.0 && found.1 == whole.1, "byte {at}");
        }
    }
}

#[test]
fn an_id_that_is_not_that_of_the_content_is_refused() {
    let id = |manifest: Manifest| match read(&written(&parts(b"images"), manifest)) {
        Err(ReadError::Manifest(error)) => error,
        other => panic!("{other:?}"),
    };
    let wrong = Manifest { id: "0123456789abcdef".to_owned(), ..manifest() };
    assert!(matches!(id(wrong), ManifestError::Id { .. }));
    let moved = Manifest { site: SiteName::parse("forum").expect("a name"), ..manifest() };
    assert!(matches!(id(moved), ManifestError::Id { .. }));
    let covered = Manifest { id_covers_stores: true, ..manifest() };
    assert!(matches!(id(covered), ManifestError::Id { .. }));
    let unproven = Manifest { fingerprint: None, ..manifest() };
    assert!(matches!(id(unproven), ManifestError::Parts(_)));
    let volumes = BTreeMap::from([(web(), BTreeMap::from([("/data".to_owned(), format!("{}.tar", "3".repeat(64)))]))]);
    let lacking = Manifest { volumes, ..manifest() };
    assert!(matches!(id(lacking), ManifestError::Parts(_)));
    for path in ["../../etc/passwd", "x/y.tar", "/etc/passwd", ""] {
        let volumes = BTreeMap::from([(web(), BTreeMap::from([("/data".to_owned(), path.to_owned())]))]);
        let hostile = Manifest { volumes, ..manifest() };
        assert!(matches!(id(hostile), ManifestError::Form { what: "volume archive", .. }), "{path}");
    }
}

#[test]
fn names_that_nothing_can_have_are_refused() {
    let text = serde_json::to_value(manifest()).expect("JSON");
    assert_eq!(serde_json::from_value::<Manifest>(text.clone()).expect("a manifest"), manifest());
    for field in ["environment", "site"] {
        let mut changed = text.clone();
        changed[field] = "../etc".into();
        let error = serde_json::from_value::<Manifest>(changed).expect_err("the name is invalid");
        assert!(error.to_string().contains(&format!("{field} names are")), "{error}");
    }
    for field in ["services", "volumes"] {
        let mut changed = text.clone();
        changed[field]["a/b"] =
            if field == "services" { text["services"]["web"].clone() } else { serde_json::json!({}) };
        let error = serde_json::from_value::<Manifest>(changed).expect_err("the name is invalid");
        assert!(error.to_string().contains("service names are"), "{error}");
    }
    let named = |name: String| Manifest { name: Some(name), ..manifest() };
    assert!(read(&written(&parts(b"images"), named("x".repeat(64)))).is_ok());
    for name in ["x".repeat(65), "a/b".to_owned(), String::new()] {
        let error = read(&written(&parts(b"images"), named(name))).expect_err("the name is invalid");
        assert!(matches!(error, ReadError::Manifest(ManifestError::Form { what: "name", .. })), "{error:?}");
    }
}

/// Returns a compressed archive of the given members, valid or not.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, *content).expect("appends");
    }
    zstd::encode_all(archive.into_inner().expect("ends").as_slice(), 1).expect("compresses")
}

#[test]
fn what_no_writer_would_have_written_is_refused() {
    let format = br#"{"format":"arenad-snapshot","version":1}"#;
    let refused = |members: &[(&str, &[u8])]| read(&archive(members)).expect_err("it is refused");
    assert!(matches!(refused(&[]), ReadError::Other(_)));
    assert!(matches!(refused(&[("repositories", b"{}")]), ReadError::Other(_)));
    assert!(matches!(read(b"no archive at all"), Err(ReadError::Other(_) | ReadError::Damaged(_))));
    let newer = refused(&[("format.json", br#"{"format":"arenad-snapshot","version":2}"#)]);
    assert!(matches!(newer, ReadError::Version { found: 2 }), "{newer:?}");
    let hostile =
        ["../../etc/passwd", "/etc/passwd", "stores/../x.tar/000000", "stores/.x.tar/000000", "images.tar/000001"];
    for name in hostile.into_iter().chain(["volumes/x.tar/000000", "images.tar", "stores/a/b.tar/000000"]) {
        let error = refused(&[("format.json", format), (name, b"x")]);
        assert!(matches!(&error, ReadError::Damaged(what) if what.contains(name)), "{name}: {error:?}");
    }
    let twice = [("format.json", format.as_slice()), ("images.tar/000000", b"a"), ("images.tar/000001", b"b")];
    assert!(matches!(refused(&twice), ReadError::Damaged(_)), "only the last piece is shorter");
    assert!(matches!(refused(&twice[..2]), ReadError::Truncated { .. }), "there is no manifest");
}

#[test]
fn what_follows_the_end_is_refused() {
    let whole = written(&parts(b"images"), manifest());
    let more = [whole.as_slice(), &zstd::encode_all(b"more".as_slice(), 1).expect("compresses")].concat();
    assert!(matches!(read(&more), Err(ReadError::Damaged(_))));
}

/// Returns a digest that makes a manifest longer than `length`.
fn long_digest(length: u64) -> Option<RawJson> {
    Some(RawJson::of(&"0".repeat(length as usize)).expect("JSON"))
}

#[test]
fn a_manifest_that_is_too_long_is_neither_written_nor_read() {
    let long = Manifest { digest: long_digest(MANIFEST_BYTES_MAX), ..manifest() };
    let mut writer = Writer::new(Vec::new()).expect("begins");
    writer.begin(&PartKind::Images).expect("begins a part");
    let error = writer.finish(long.clone()).expect_err("it is too long");
    assert!(error.to_string().contains("at most"), "{error}");
    // Other programs may write such a manifest, which compresses to a few kilobytes.
    let mut header = tar::Header::new_ustar();
    let text = serde_json::to_vec(&long).expect("JSON");
    header.set_entry_type(tar::EntryType::Regular);
    header.set_path(MANIFEST).expect("a name");
    header.set_mode(0o600);
    header.set_size(text.len() as u64);
    header.set_cksum();
    let mut content = zstd::decode_all(written(&[], manifest()).as_slice()).expect("it is compressed");
    let ours = content.windows(MANIFEST.len()).rposition(|found| found == MANIFEST.as_bytes()).expect("a manifest");
    content.truncate(ours);
    content.extend_from_slice(header.as_bytes());
    content.extend_from_slice(&text);
    content.resize(content.len().next_multiple_of(512) + 1024, 0);
    let file = zstd::encode_all(content.as_slice(), 19).expect("compresses");
    assert!(file.len() < 20_000, "{}", file.len());
    let error = read(&file).expect_err("it is too long");
    assert!(error.to_string().contains("its manifest has"), "{error}");
}

#[test]
fn what_is_understood_later_travels_as_it_is() {
    let digest = RawJson::of(&serde_json::json!({ "stores": { "web": [1, 2.5, null] } })).expect("JSON");
    let sessions = vec![("admin".to_owned(), "/".to_owned(), RawJson::of(&["cookie"]).expect("JSON"))];
    let sent = Manifest { digest: Some(digest), sessions, ..manifest() };
    let (_, found) = read(&written(&parts(b"images"), sent.clone())).expect("it is whole");
    assert_eq!((found.digest, found.sessions), (sent.digest, sent.sessions));
}

/// An archive of one image as `docker save` writes it, with a tag and further members; and the image's layers.
fn image_archive(tag: Option<&str>, more: &[(&str, &[u8])]) -> (Vec<u8>, Vec<String>) {
    let sha256 = |content: &[u8]| arenad_model::hex::hex(&Sha256::digest(content));
    let layers = vec![format!("sha256:{}", sha256(b"layer"))];
    let config = serde_json::json!({ "rootfs": { "type": "layers", "diff_ids": layers } }).to_string();
    let named = format!("{}.json", sha256(config.as_bytes()));
    let tags: Vec<&str> = tag.into_iter().collect();
    let index = serde_json::json!([{ "Config": named, "RepoTags": tags, "Layers": ["layer.tar"] }]).to_string();
    let mut archive = tar::Builder::new(Vec::new());
    let members = [(named.as_str(), config.as_bytes()), ("layer.tar", b"layer"), ("manifest.json", index.as_bytes())];
    for (name, content) in members.iter().chain(more) {
        let mut header = tar::Header::new_ustar();
        // The library refuses names that lead elsewhere.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, *content).expect("appends");
    }
    (archive.into_inner().expect("ends"), layers)
}

/// Scans a file of a snapshot with these images, whose manifest is in order.
fn scanned(images: &[u8], layers: &[String]) -> Result<Manifest, ReadError> {
    let image = format!("sha256:{}", "2".repeat(64));
    let manifest = Manifest {
        id: content_id("mini", "shop", [("web", layers)], [], None),
        services: BTreeMap::from([(web(), ServiceImage { image, layers: layers.to_vec() })]),
        ..manifest()
    };
    scan(written(&parts(images), manifest).as_slice())
}

#[test]
fn a_snapshots_images_take_no_names_in_the_engine() {
    let (sound, layers) = image_archive(None, &[]);
    assert!(scanned(&sound, &layers).is_ok(), "an image without a name");
    let (named, _) = image_archive(Some("postgres:16"), &[]);
    let error = scanned(&named, &layers).expect_err("a name");
    assert!(error.to_string().contains("would take the name `postgres:16`"), "{error}");
    // A second list of images, which an engine could use instead of the first.
    let second = br#"[{"Config":"x.json","RepoTags":["postgres:16"],"Layers":[]}]"#;
    for name in ["manifest.json", "/manifest.json", "a/../manifest.json", ".//manifest.json"] {
        let (images, _) = image_archive(None, &[(name, second)]);
        let error = scanned(&images, &layers).expect_err(name);
        assert!(error.to_string().contains("images.tar"), "{name}: {error}");
    }
    let (other, _) = image_archive(None, &[]);
    let error = scanned(&other, &[format!("sha256:{}", "3".repeat(64))]).expect_err("an image of another snapshot");
    assert!(error.to_string().contains("its images are not those of the manifest"), "{error}");
}
