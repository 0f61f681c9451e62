//! `arenad images load` and `verify`: correct archives, and every kind of damage that needs no large file.

use std::fs;
use std::io::Write;
use std::process::Command;

use super::archive::{self, ArchiveLayout};
use super::project::ImageProject;

const CONTENT: u64 = 3 << 20;

#[test]
fn an_archive_is_loaded_once_and_known_by_its_content() {
    let project = ImageProject::new("load", "    size: 3m\n");
    let saved = project.save("shop.tar", 1, CONTENT);
    assert_eq!(project.state(), "missing");
    project.images("ls", &[]).code(0).prints("shop.tar").prints("missing").prints("1 missing");
    let missing = project.images("load", &[]).code(1).says("find the archive shop.tar");
    missing.says("no mirror is known: give it with `--from FILE|DIR`");
    let from = project.path("shop.tar");
    let from = from.to_str().unwrap();
    let first = project.images("load", &["--from", from]).code(0).says("checking shop.tar").says("loading");
    first.prints(&format!("loaded: {}", saved.id));
    project.assert_present(&saved);
    let again = project.images("load", &["--from", from]).code(0).prints("already present");
    assert!(!again.err.contains("checking"), "a copy that was read is not read again: {}", again.err);
    let verified = project.images("verify", &["--from", from, "--json"]).code(0).json();
    assert_eq!(verified["items"][0]["outcome"], "proven");
    assert_eq!(verified["items"][0]["archive"]["sha256"], saved.sha256.as_str());
    // Without the archive, the engine's image can still be compared with the recorded content of the archive.
    project.images("load", &[]).code(0).prints("already present");
    project.images("verify", &[]).code(0).prints(&saved.sha256);
}

#[test]
fn archives_come_compressed_and_in_two_layouts() {
    let project = ImageProject::new("forms", "");
    let folder = project.path("brought");
    fs::create_dir(&folder).unwrap();
    let plain = folder.join("shop.tar");
    for (seed, layout) in [(2, ArchiveLayout::Classic), (3, ArchiveLayout::Blobs)] {
        for (number, program) in [None, Some("gzip"), Some("zstd")].into_iter().enumerate() {
            let seed = seed * 10 + number as u64;
            let saved = archive::save(&plain, &project.image, layout, seed, CONTENT);
            if let Some(program) = program {
                let packed = Command::new(program).arg("-c").arg(&plain).output().unwrap();
                fs::write(&plain, packed.stdout).unwrap();
            }
            let _ = fs::remove_dir_all(project.world.state_dir());
            let loaded = project.images("load", &["--from", folder.to_str().unwrap(), "--replace"]);
            loaded.code(0).prints(&saved.id);
            project.assert_present(&saved);
        }
    }
}

#[test]
fn what_is_cut_off_or_damaged_is_refused_before_the_engine_sees_it() {
    let project = ImageProject::new("damage", "");
    let path = project.path("shop.tar");
    let from = path.to_str().unwrap();
    let whole = |layout| archive::save(&path, &project.image, layout, 4, CONTENT);
    whole(ArchiveLayout::Classic);
    let size = fs::metadata(&path).unwrap().len();
    for cut in [0, 100, size / 2, size - 3072] {
        whole(ArchiveLayout::Classic);
        archive::truncate(&path, cut);
        let refused = project.images("load", &["--from", from]).code(1);
        let word = match cut {
            0 => "it is empty",
            cut if cut == size - 3072 => "missing",
            _ => "the file is truncated: it ends after",
        };
        refused.says(word).says("hint: get the file anew");
        project.assert_absent();
    }
    for layout in [ArchiveLayout::Classic, ArchiveLayout::Blobs] {
        whole(layout);
        archive::damage(&path, size / 2);
        project.images("load", &["--from", from]).code(1).says("the file is damaged: the content of");
        project.images("verify", &["--from", from]).code(1).prints("wrong: ").prints("the file is damaged");
        project.assert_absent();
    }
    whole(ArchiveLayout::Classic);
    archive::damage(&path, size - 4000);
    project.images("load", &["--from", from]).code(1).says("the file is damaged");
    for program in ["gzip", "zstd"] {
        whole(ArchiveLayout::Classic);
        let packed = Command::new(program).arg("-c").arg(&path).output().unwrap().stdout;
        fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        project.images("load", &["--from", from]).code(1).says("the file is truncated");
        fs::write(&path, &packed).unwrap();
        archive::damage(&path, packed.len() as u64 / 2);
        project.images("load", &["--from", from]).code(1).says("the file is damaged");
    }
    let others = [
        ("<!DOCTYPE html><html>Sign in</html>", "it is a web page"),
        (
            "PK\u{3}\u{4} no tar at all, and long enough to be read as a header, which it is not. ",
            "not an archive of images",
        ),
    ];
    for (content, word) in others {
        fs::File::create(&path).unwrap().write_all(content.repeat(20).as_bytes()).unwrap();
        project.images("load", &["--from", from]).code(1).says(word);
    }
    project.assert_absent();
    // None of these files was recorded as the first copy.
    let saved = whole(ArchiveLayout::Classic);
    project.images("load", &["--from", from]).code(0);
    project.assert_present(&saved);
}

#[test]
fn the_content_is_pinned_by_the_definition_or_by_the_first_copy() {
    let project = ImageProject::new("pin", "");
    let saved = project.save("first.tar", 5, CONTENT);
    let other = project.save("second.tar", 6, CONTENT);
    let (first, second) = (project.path("first.tar"), project.path("second.tar"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    project.images("load", &["--from", first]).code(0);
    let refused = project.images("load", &["--from", second]).code(1);
    let refused = refused.says(&format!("its SHA-256 is {}, that of the first copy is {}", other.sha256, saved.sha256));
    refused.says("if the new content is meant, remove").says("shop.tar.json");
    project.assert_present(&saved);
    project.declare(&format!("    sha256: {}\n", other.sha256), "");
    let refused = project.images("load", &["--from", first]).code(1);
    refused.says(&format!("its SHA-256 is {}, that in the definition is {}", saved.sha256, other.sha256));
    project.images("load", &["--from", second]).code(1).says("the engine has another image called").says("--replace");
    project.images("load", &["--from", second, "--replace"]).code(0);
    project.assert_present(&other);
}

#[test]
fn only_the_image_that_is_meant_gets_the_name() {
    let project = ImageProject::new("other", "");
    let path = project.path("shop.tar");
    let from = path.to_str().unwrap();
    archive::save(&path, "another/name", ArchiveLayout::Classic, 7, CONTENT);
    let refused = project.images("load", &["--from", from]).code(1);
    refused.says(&format!("find {}:latest in", project.image)).says("it holds another/name:latest");
    project.assert_absent();
    // An image that was loaded by hand stays unverified until an archive confirms it.
    let saved = project.save("shop.tar", 8, CONTENT);
    project.engine().docker(&["load", "--input", from]);
    assert_eq!(project.state(), "unverified");
    project.images("verify", &[]).code(1).prints("there is no archive to compare it with");
    project.images("load", &["--from", from]).code(0).prints("already present");
    project.assert_present(&saved);
    // A later image with the same name has different content.
    let changed = project.save("changed.tar", 9, CONTENT);
    project.engine().docker(&["load", "--input", project.path("changed.tar").to_str().unwrap()]);
    assert_eq!(project.state(), "different");
    let wrong = project.images("verify", &["--from", from]).code(1);
    wrong.prints(&format!("the engine has {}, the archive holds {}", changed.id, saved.id));
    project.images("load", &["--from", from, "--replace"]).code(0);
    project.assert_present(&saved);
}

#[test]
fn mistakes_are_answered_with_what_there_is() {
    let project = ImageProject::new("mistakes", "");
    project.save("one.tar", 1, 1000);
    project.images("load", &["nothing"]).code(2).says("has no site, image or data `nothing`").says("choose one of toy");
    project.images("load", &["--from", "nowhere"]).code(2).says("nowhere does not exist");
    project.world.run(&["images", "ls", "nothing-like-it"]).code(2);
    let mut command = project.world.command(&project.words("ls", &[]));
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    project.world.start_command(command).ended().code(1).says("hint: start Docker");
    assert!(!project.world.state_dir().join("arenad.sock").exists(), "no daemon is needed");
}
