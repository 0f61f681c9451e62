//! Data: files that are used unchanged, and folders that are unpacked.

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::mirror::{BodyEnd, MirrorReply, TestMirror};
use super::project::ImageProject;

fn with_data(project: &ImageProject, text: &str) {
    project.declare("", &format!("data:\n{text}"));
}

#[test]
fn a_file_goes_where_it_is_mounted_and_is_known_again() {
    let project = ImageProject::new("file", "");
    let content: Vec<u8> = (0..2_000_000u32).flat_map(u32::to_le_bytes).collect();
    let served = content.clone();
    let mirror = TestMirror::start(move |asked| MirrorReply::asked(&served, asked, "").cut(3_000_000, BodyEnd::Close));
    let url = mirror.url();
    with_data(&project, &format!("  articles: {{ file: articles.zim, target: ./wiki, mirrors: [ \"{url}\" ] }}\n"));
    assert_eq!(project.item("articles")["state"], "missing");
    project.images("pull", &["articles"]).code(0).prints("articles: loaded");
    let file = project.path("compose/wiki/articles.zim");
    assert_eq!(fs::read(&file).unwrap(), content);
    assert_eq!(project.item("articles")["state"], "present");
    project.images("verify", &["articles"]).code(0).prints("has the SHA-256");
    // A changed file is no longer the fetched one.
    fs::write(&file, b"something else").unwrap();
    assert_eq!(project.item("articles")["state"], "unverified");
    project.images("verify", &["articles"]).code(1).prints("that of the first copy is");
    project.images("pull", &["articles"]).code(1).says("that of the first copy is");
    fs::remove_file(&file).unwrap();
    fs::write(project.path("articles.zim"), &content).unwrap();
    let brought = project.path("articles.zim");
    project.images("load", &["articles", "--from", brought.to_str().unwrap()]).code(0);
    assert_eq!(project.item("articles")["state"], "present");
}

fn tar(path: &Path, files: &[(&str, &str)]) {
    let mut builder = tar::Builder::new(File::create(path).unwrap());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_uid(1234);
        header.set_gid(1235);
        header.set_cksum();
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.finish().unwrap();
}

#[test]
fn folders_of_an_archive_are_unpacked_whole_or_not_at_all() {
    let project = ImageProject::new("unpack", "");
    let section = "  routing:\n    file: routing.tar\n    unpack:\n      - { from: volumes/car, to: ./map/car }\n\
                   \x20     - { from: volumes/bike, to: ./map/bike }\n";
    with_data(&project, section);
    let path = project.path("routing.tar");
    let from = path.to_str().unwrap();
    tar(&path, &[("volumes/car/graph", "cars"), ("volumes/boat/graph", "boats")]);
    project.images("load", &["routing", "--from", from]).code(1).says("it has no folder `volumes/bike`");
    assert!(!project.path("compose/map/car").exists() && !project.path("compose/map/bike").exists());
    assert_eq!(project.item("routing")["state"], "missing");
    fs::remove_file(project.shelved("routing.tar.json")).unwrap();
    tar(&path, &[("volumes/car/graph", "cars"), ("./volumes/bike/deep/graph", "bikes"), ("volumes/boat", "boats")]);
    project.images("load", &["routing", "--from", from]).code(0);
    assert_eq!(fs::read_to_string(project.path("compose/map/car/graph")).unwrap(), "cars");
    let deep = project.path("compose/map/bike/deep/graph");
    assert_eq!(fs::read_to_string(&deep).unwrap(), "bikes");
    let found = fs::metadata(&deep).unwrap();
    assert_eq!((found.uid(), found.gid(), found.permissions().mode() & 0o777), (1234, 1235, 0o600));
    assert_eq!(project.item("routing")["state"], "present");
    project.images("load", &["routing", "--from", from]).code(0).prints("already present");
    // If one of the folders is lost, only that one is unpacked again.
    fs::remove_dir_all(project.path("compose/map/bike")).unwrap();
    assert_eq!(project.item("routing")["state"], "missing");
    project.images("load", &["routing", "--from", from]).code(0);
    assert_eq!(fs::read_to_string(&deep).unwrap(), "bikes");
    project.images("verify", &["routing"]).code(0).prints("is what was unpacked");
}

fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_folder_of_a_zip_is_unpacked_where_it_is_mounted() {
    let project = ImageProject::new("zipped", "");
    let rows = "INSERT INTO oc_t_item VALUES (1);\n".repeat(10_000);
    let content = zip(&[("site/mysql/dump.sql", &rows), ("site/docker-compose.yml", "services: {}\n")]);
    let mirror = TestMirror::start(move |asked| MirrorReply::asked(&content, asked, ""));
    let url = mirror.url();
    let section = format!(
        "  advertisements:\n    file: site.zip\n    mirrors: [ \"{url}\" ]\n    unpack: [ {{ from: site/mysql, to: ./mysql }} ]\n"
    );
    with_data(&project, &section);
    project.images("pull", &["advertisements"]).code(0).prints("advertisements: loaded");
    assert_eq!(fs::read_to_string(project.path("compose/mysql/dump.sql")).unwrap(), rows);
    assert!(!project.path("compose/mysql/docker-compose.yml").exists());
    assert_eq!(project.item("advertisements")["state"], "present");
    project.images("verify", &["advertisements"]).code(0).prints("is what was unpacked");
}

#[test]
fn a_zip_that_is_not_whole_is_refused() {
    let rows = "INSERT INTO oc_t_item VALUES (1);\n".repeat(10_000);
    let whole = zip(&[("site/mysql/dump.sql", &rows), ("site/mysql/other.sql", "SELECT 1;\n")]);
    let mut flipped = whole.clone();
    flipped[300] ^= 0x40;
    let cases = [
        ("cut-zip", whole[..whole.len() - 40].to_vec(), "the file is truncated"),
        ("flipped-zip", flipped, "the file is damaged"),
    ];
    for (name, content, says) in cases {
        let project = ImageProject::new(name, "");
        with_data(&project, "  advertisements: { file: site.zip, unpack: [ { from: site/mysql, to: ./mysql } ] }\n");
        let path = project.path("site.zip");
        fs::write(&path, content).unwrap();
        project.images("load", &["advertisements", "--from", path.to_str().unwrap()]).code(1).says(says);
        assert!(!project.path("compose/mysql").exists());
        assert_eq!(project.item("advertisements")["state"], "missing");
    }
}
