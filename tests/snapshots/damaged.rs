//! Files that were truncated, changed or forged, and disks that are too small for them.

use std::fs;
use std::process::Command;

use super::home::{OtherInstallation, with_stores};

#[test]
fn what_is_not_whole_is_refused_before_anything_is_touched() {
    let world = with_stores("cut");
    world.up();
    let id = world.site().unwrap()["snapshot"].as_str().unwrap().to_owned();
    world.run(&["snapshot", "export", &id, "--out", "whole"]).code(0);
    let whole = fs::read(world.root().join("whole")).unwrap();
    let other = OtherInstallation::new(&world, "other");
    let import = |content: &[u8]| {
        fs::write(world.root().join("file"), content).unwrap();
        other.run(&["snapshot", "import", "file"]).code(1)
    };
    for length in [0, 1, 100, whole.len() / 3, whole.len() / 2, whole.len() - 1000, whole.len() - 1] {
        import(&whole[..length]).says("get the file again");
    }
    for at in [whole.len() / 5, whole.len() / 2, whole.len() - 40] {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        import(&changed).says("get the file again");
    }
    import(b"PK\x03\x04 something else").says("import file");
    let newer = recompressed(&whole, |content| {
        let at = content.windows(11).position(|found| found == b"\"version\":1").unwrap();
        content[at + 10] = b'9';
    });
    import(&newer).says("written in version 9");
    let renamed = recompressed(&whole, |content| {
        let (from, to) = (format!("\"id\":\"{id}\""), "\"id\":\"0123456789abcdef\"");
        let at = content.windows(from.len()).rposition(|found| found == from.as_bytes()).unwrap();
        content[at..at + to.len()].copy_from_slice(to.as_bytes());
    });
    import(&renamed).says("does not match its id").says("0123456789abcdef");
    other.run(&["snapshot", "import", "nothing"]).code(1).says("open nothing");
    assert!(!other.state_dir.exists(), "no daemon was started for it");
    // An export also verifies the store's own trees.
    fs::remove_dir_all(world.state_dir().join("stores/snapshots").join(&id).join("toy-srv-state")).unwrap();
    world.run(&["snapshot", "export", &id, "--out", "gone"]).code(1).says("it is not there");
    assert!(!world.root().join("gone").exists());
    world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn a_disk_that_is_too_small_is_said_before_anything_is_written() {
    let world = with_stores("small");
    world.up();
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    world.run(&["snapshot", "export", "kept", "--out", "kept"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    let other = OtherInstallation::new(&world, "other");
    fs::create_dir(&other.state_dir).unwrap();
    let _mount = TestMount::new(&other.state_dir);
    other.run(&["snapshot", "import", "kept"]).code(1).says("are needed").says("arenad prune");
    other.assert_empty();
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}

/// A mount that is removed when the value is dropped.
struct TestMount(std::path::PathBuf);

impl TestMount {
    fn new(at: &std::path::Path) -> Self {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=200m", "none"]).arg(at).status();
        assert!(mounted.unwrap().success());
        Self(at.to_owned())
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Returns a file with changed content that is valid as an archive, except for the header checksums.
fn recompressed(file: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut content = zstd::decode_all(file).unwrap();
    change(&mut content);
    zstd::encode_all(content.as_slice(), 1).unwrap()
}
