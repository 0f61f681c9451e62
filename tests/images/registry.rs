//! Images from a registry: the engine fetches them from a registry on this machine.

use std::io::Write;

use arenad_model::hex::hex;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::mirror::{MirrorReply, TestMirror};
use super::project::ImageProject;
use crate::support::TestEngine;

/// A resource of the registry: the end of its path, its media type, its bytes.
type RegistryResource = (String, &'static str, Vec<u8>);

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// An image of one empty layer.
fn image() -> Vec<RegistryResource> {
    let layer = vec![0; 1024];
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
    });
    let config = config.to_string().into_bytes();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&layer).unwrap();
    let packed = packed.finish().unwrap();
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = json!({
        "schemaVersion": 2, "mediaType": kind,
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": config.len(), "digest": digest(&config),
        },
        "layers": [{
            "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
            "size": packed.len(), "digest": digest(&packed),
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let blob = |bytes: Vec<u8>| (format!("/blobs/{}", digest(&bytes)), "application/octet-stream", bytes);
    vec![
        (format!("/manifests/{}", digest(&manifest)), kind, manifest.clone()),
        ("/manifests/1".to_owned(), kind, manifest),
        blob(config),
        blob(packed),
    ]
}

#[test]
fn an_image_of_a_registry_is_pulled_by_the_engine() {
    let served = image();
    let config = digest(&served[2].2);
    let registry = TestMirror::start(move |asked| {
        let found = served.iter().find(|(end, _, _)| asked.target.ends_with(end));
        match found {
            _ if asked.target == "/v2/" => MirrorReply::whole(b"{}", ""),
            Some((_, kind, bytes)) => {
                let headers = format!("Content-Type: {kind}\r\nDocker-Content-Digest: {}\r\n", digest(bytes));
                MirrorReply::whole(bytes, &headers)
            }
            None => MirrorReply::status("404 Not Found"),
        }
    });
    let project = ImageProject::new("registry", "");
    let of_registry = |tag: &str| format!("127.0.0.1:{}/{}:{tag}", registry.port(), project.world.name);
    let (here, nowhere) = (of_registry("1"), of_registry("2"));
    let _sweep = Sweep(project.engine(), here.clone());
    let text = std::fs::read_to_string(project.world.file("compose")).unwrap();
    let more = format!("{text}  other:\n    image: {here}\n  third:\n    image: {nowhere}\n");
    std::fs::write(project.world.file("compose"), more).unwrap();
    project.world.edit(
        "environment",
        "    entry: { port: 80 }",
        "    services: [toy, other, third]\n    entry: { service: toy, port: 80 }",
    );
    assert_eq!(project.item(&here)["state"], "missing");
    assert_eq!(project.item(&here)["origin"], "registry");
    project.images("load", &[&here]).code(0).prints("skipped: it comes from a registry");
    project.images("pull", &[&here]).code(0).says(&format!("pulling {here}")).prints(&config);
    assert_eq!(project.item(&here)["state"], "present");
    project.images("pull", &[&here]).code(0).prints("already present");
    project.images("verify", &[&here]).code(0).prints(&config);
    project.images("pull", &[&nowhere]).code(1).says(&format!("pull image {nowhere}"));
    assert_eq!(project.item(&nowhere)["state"], "missing");
}

struct Sweep<'a>(&'a TestEngine, String);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_docker(&["rmi", &self.1]);
    }
}
