//! Snapshots that travel from one installation to another in a file.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenad_export::{Next, SnapshotReader};
use rustix::process::{Pid, Signal, kill_process};

use super::home::{BASELINE, OtherInstallation, names, with_stores};
use crate::support::wait::{PATIENCE, within};
use crate::support::world::RunningCommand;
use crate::support::{World, http};

#[test]
fn a_snapshot_is_the_same_in_another_installation_whose_engine_never_saw_it() {
    let world = with_stores("travel");
    world.up();
    let baseline = world.site().unwrap()["snapshot"].as_str().unwrap().to_owned();
    let id = world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned();
    let strange = "cd /srv/state; mkdir 'a b'; ln -s ../notes 'a b/link'; ln notes hard; chown 1234:5678 notes; \
                   chmod 2755 'a b'; dd if=/dev/urandom of=large bs=1024 count=9000 2>/dev/null; mkfifo pipe";
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", strange]);
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    let kept = world.page();

    // The leftovers of an earlier attempt do not interfere.
    fs::write(world.root().join("toy-kept.snapshot.tar.zst.part"), "half").unwrap();
    world.run(&["snapshot", "export", "kept"]).code(0).prints("toy-kept.snapshot.tar.zst");
    world.run(&["snapshot", "export", &baseline[..6], "--out", "base"]).code(0).prints("base (");
    world.run(&["snapshot", "export", "kept"]).code(1).says("already exists");
    world.run(&["snapshot", "export", "nothing"]).code(2).says("there is no snapshot `nothing`");
    let file = fs::metadata(world.root().join("base")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600, "it holds sessions");
    assert!(names(&world.root()).iter().all(|name| !name.ends_with(".part")));
    world.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);

    let other = OtherInstallation::new(&world, "other");
    other.run(&["snapshot", "import", "base"]).code(0).prints(&baseline);
    other.run(&["snapshot", "import", "toy-kept.snapshot.tar.zst"]).code(0);
    other.run(&["up", &world.name]).code(0);
    let built = world.engine.docker(&["images", "--quiet", &format!("arenad-toy/{}*", world.name)]);
    assert_eq!(built, "", "what was imported stands for what would have to be built");
    assert_eq!(world.page(), BASELINE);
    other.run(&["verify", "toy"]).code(0);
    assert!(other.snapshots().contains(&baseline) && other.snapshots().len() == 2);
    world.write("scribble");
    other.run(&["reset", "toy", "--to", "kept"]).code(0);
    assert_eq!(world.page(), kept);
    other.run(&["verify", "toy"]).code(0);
    other.run(&["snapshot", "rm", "kept"]).code(1).says("in use");
    other.run(&["reset", "toy"]).code(0);
    assert_eq!(world.page(), BASELINE);
    other.run(&["snapshot", "import", "base"]).code(0).says("the snapshot is already present");
    other.run(&["snapshot", "import", "toy-kept.snapshot.tar.zst", "--name", "another"]).code(0);

    // An export of the imported snapshot is the same snapshot.
    other.run(&["snapshot", "export", "kept", "--out", "again"]).code(0);
    other.run(&["snapshot", "rm", "kept"]).code(0);
    other.run(&["snapshot", "import", "again", "--name", "again"]).code(0);
    other.run(&["reset", "toy", "--to", "again"]).code(0);
    assert_eq!(world.page(), kept);
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0], "imported images go with their snapshots");
    world.assert_down();
}

#[test]
fn two_installations_of_one_engine_do_not_take_each_others_images() {
    let world = with_stores("shared");
    world.up();
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    world.run(&["snapshot", "export", "kept", "--out", "kept"]).code(0);
    let before = world.engine.images(&world.label());
    let other = OtherInstallation::new(&world, "other");
    other.run(&["snapshot", "import", "kept"]).code(0);
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), before, "the first one's are still there");
    other.run(&["snapshot", "import", "kept"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()).len(), 1, "the second one's is still there");
    other.run(&["snapshot", "import", "kept"]).code(0).says("the snapshot is already present");
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}

#[test]
fn an_import_that_was_killed_goes_on_where_it_was() {
    let world = with_stores("killed");
    let (id, manifest, parts) = exported(&world);

    let other = OtherInstallation::new(&world, "other");
    let (daemon, _ended, socket) = serving(&world, &other);
    let begin = serde_json::json!({ "manifest": manifest }).to_string();
    let begun = send(&socket, "POST", "/v1/imports", begin.as_bytes(), begin.len());
    assert!(begun.contains("\"missing\":[0,1]"), "{begun}");
    // The images arrive, and half of the tree: its sender dies, and then the daemon.
    send(&socket, "PUT", &format!("/v1/imports/{id}/parts/0"), &parts[0], parts[0].len());
    let half = &parts[1][..parts[1].len() / 2];
    let cut = send(&socket, "PUT", &format!("/v1/imports/{id}/parts/1"), half, parts[1].len());
    assert!(!cut.contains("200 OK"), "{cut}");
    let not_yet = send(&socket, "POST", &format!("/v1/imports/{id}/finish"), b"{}", 2);
    assert!(not_yet.contains("has not arrived"), "{not_yet}");
    // The content of this part does not match the manifest.
    let mut wrong = parts[1].clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 1;
    let refused = send(&socket, "PUT", &format!("/v1/imports/{id}/parts/1"), &wrong, wrong.len());
    assert!(refused.contains("damaged") || refused.contains("wrong"), "{refused}");
    other.assert_empty();
    kill_process(daemon.pid(), Signal::KILL).unwrap();
    daemon.ended();

    other.run(&["snapshot", "import", "kept"]).code(0).prints(&id);
    let snapshots = names(&other.state_dir.join("stores/snapshots"));
    assert_eq!(snapshots, [id], "the tree is there");
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}

#[test]
fn an_import_that_was_given_up_leaves_nothing() {
    let world = with_stores("givenup");
    let (id, manifest, parts) = exported(&world);
    let other = OtherInstallation::new(&world, "other");
    let (daemon, _ended, socket) = serving(&world, &other);
    let begin = serde_json::json!({ "manifest": manifest }).to_string();
    send(&socket, "POST", "/v1/imports", begin.as_bytes(), begin.len());
    for (index, part) in parts.iter().enumerate() {
        send(&socket, "PUT", &format!("/v1/imports/{id}/parts/{index}"), part, part.len());
    }
    assert_eq!(names(&other.state_dir.join("stores/snapshots")), std::slice::from_ref(&id));
    assert_eq!(world.engine.images(&world.label()).len(), 1);
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    daemon.ended();
    other.run(&["down", "--purge", "--yes"]).code(0);
    other.assert_empty();
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}

#[test]
fn imports_that_fail_again_and_again_take_no_room() {
    let world = with_stores("costs");
    let (id, manifest, parts) = exported(&world);
    let other = OtherInstallation::new(&world, "other");
    let (daemon, _ended, socket) = serving(&world, &other);
    let begin = serde_json::json!({ "manifest": manifest }).to_string();
    let mut wrong = parts[1].clone();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    let fail = || {
        send(&socket, "POST", "/v1/imports", begin.as_bytes(), begin.len());
        let path = format!("/v1/imports/{id}/parts/1");
        let cut = send(&socket, "PUT", &path, &parts[1][..parts[1].len() / 2], parts[1].len());
        let damaged = send(&socket, "PUT", &path, &wrong, wrong.len());
        for answer in [cut, damaged] {
            assert!(!answer.contains("200 OK"), "{answer}");
        }
        other.assert_empty();
    };
    fail();
    let before = taken(&other.state_dir);
    for _ in 0..40 {
        fail();
    }
    // The daemon removes a partial file after its connection has ended.
    within("the space to be free again", PATIENCE, || (taken(&other.state_dir) <= before + 65_536).then_some(()));
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    daemon.ended();
    other.run(&["down", "--purge", "--yes"]).code(0);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
}

/// Returns the number of bytes of a state directory on disk, without the database and the log, which record each
/// failure.
fn taken(state_dir: &Path) -> u64 {
    let output = std::process::Command::new("du")
        .args(["-s", "--block-size=1", "--exclude=*.db*", "--exclude=*.log*"])
        .arg(state_dir)
        .output()
        .expect("du runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("du: {said}"))
}

/// Exports a snapshot of a world and removes everything else of it; returns the snapshot's id, the manifest and the
/// parts.
fn exported(world: &World) -> (String, serde_json::Value, Vec<Vec<u8>>) {
    world.up();
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    world.run(&["snapshot", "export", "kept", "--out", "kept"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
    let (manifest, parts) = contents(&world.root().join("kept"));
    (manifest["id"].as_str().unwrap().to_owned(), manifest, parts)
}

/// Starts the daemon of another installation and waits until it answers. Returns it with its socket, and a guard that
/// kills it if the test fails.
fn serving(world: &World, other: &OtherInstallation<'_>) -> (RunningCommand, EndedWith, PathBuf) {
    let mut serve = world.command(&["serve"]);
    serve.env("ARENAD_STATE_DIR", &other.state_dir);
    let daemon = world.start_command(serve);
    let ended = EndedWith(daemon.pid());
    let socket = other.state_dir.join("arenad.sock");
    within("the daemon", PATIENCE, || http::get_unix(&socket, "/v1/version"));
    (daemon, ended, socket)
}

/// Kills a daemon that a failing test would leave behind.
struct EndedWith(Pid);

impl Drop for EndedWith {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

/// The manifest of a file and the content of its parts.
fn contents(path: &Path) -> (serde_json::Value, Vec<Vec<u8>>) {
    let mut reader = SnapshotReader::new(File::open(path).unwrap()).unwrap();
    let mut parts = Vec::new();
    loop {
        match reader.advance().unwrap() {
            Next::Part(_, mut part) => {
                let mut content = Vec::new();
                part.read_to_end(&mut content).unwrap();
                parts.push(content);
            }
            Next::Manifest(manifest) => return (serde_json::to_value(*manifest).unwrap(), parts),
        }
    }
}

/// Sends a body that may be shorter than announced, and returns the answer, if there is one.
fn send(socket: &Path, method: &str, path: &str, body: &[u8], length: usize) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: arenad\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The daemon may refuse the body before its end.
    let _ = stream.write_all(body);
    if body.len() < length {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
