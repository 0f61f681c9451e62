//! Digests of folders: changes are reported, excluded parts are ignored, and hostile entries are neither followed nor
//! waited for.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, SystemTime};

use arenad_digest::{self as digest, DigestError, Known, Subject};
use tokio::sync::SetOnce;

use super::subject::{Stores, differences};

const FILES: &str = "{ files: { kind: directory, path: /data, volatile: [ { file: 'logs/**', reason: r }, { file: '*.tmp', reason: r } ] } }";

fn filled(stores: &Stores) {
    let folder = stores.folder();
    for path in ["media/cache", "logs"] {
        fs::create_dir_all(folder.join(path)).expect("a folder");
    }
    for (path, text) in [("media/a.txt", "a"), ("media/b.txt", "bb"), ("media/cache/c", "ccc"), ("logs/today", "x")] {
        fs::write(folder.join(path), text).expect("a file");
    }
    symlink("a.txt", folder.join("media/link")).expect("a link");
}

#[tokio::test]
async fn every_change_of_a_folder_is_named() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let before = stores.take().await.expect("a digest");
    let folder = stores.folder();
    fs::write(folder.join("media/a.txt"), "z").expect("a file");
    fs::write(folder.join("media/new.txt"), "new").expect("a file");
    fs::remove_file(folder.join("media/b.txt")).expect("a file");
    fs::set_permissions(folder.join("media/cache/c"), Permissions::from_mode(0o600)).expect("a mode");
    fs::remove_file(folder.join("media/link")).expect("a link");
    symlink("/etc/passwd", folder.join("media/link")).expect("a link");
    fs::create_dir(folder.join("empty")).expect("a folder");
    let now = stores.take().await.expect("a digest");
    assert_eq!(
        differences(&before, &now),
        [
            "files: empty: new, a folder",
            "files: media/a.txt: 1 byte before, as many with other content now",
            "files: media/b.txt: 2 bytes before, gone now",
            "files: media/cache/c: mode 644 before, mode 600 now",
            "files: media/link: a link to a.txt before, a link to /etc/passwd now",
            "files: media/new.txt: new, 3 bytes",
        ]
    );
    assert_ne!(before.digest.total(), now.digest.total());
}

#[tokio::test]
async fn what_does_not_count_does_not_show_and_neither_do_times() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let before = stores.take().await.expect("a digest");
    let folder = stores.folder();
    fs::write(folder.join("logs/today"), "more").expect("a file");
    fs::create_dir(folder.join("logs/old")).expect("a folder");
    fs::write(folder.join("upload.tmp"), "half").expect("a file");
    let a = File::options().write(true).open(folder.join("media/a.txt")).expect("a file");
    a.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).expect("a time");
    let now = stores.take().await.expect("a digest");
    assert_eq!(differences(&before, &now), Vec::<String>::new());
    assert_eq!(before.digest.total(), now.digest.total());
    fs::write(folder.join("media/upload.tmp"), "in another folder").expect("a file");
    let now = stores.take().await.expect("a digest");
    assert_eq!(differences(&before, &now), ["files: media/upload.tmp: new, 17 bytes"]);
}

#[tokio::test]
async fn stores_in_a_folder_are_not_counted_twice() {
    let stores = Stores::declared(
        "{ files: { kind: directory, path: /data }, cache: { kind: directory, path: /data/media/cache }, notes: { kind: sqlite, path: /data/notes.db } }",
    );
    filled(&stores);
    fs::write(stores.folder().join("notes.db"), "").expect("a file");
    let before = stores.take().await.expect("a digest");
    fs::write(stores.folder().join("media/cache/c"), "changed").expect("a file");
    fs::write(stores.folder().join("notes.db-journal"), "").expect("a file");
    let now = stores.take().await.expect("a digest");
    assert_eq!(differences(&before, &now), ["cache: c: 3 bytes before, 7 bytes now"]);
}

#[tokio::test]
async fn an_untouched_folder_is_known_by_its_mark_and_a_touched_one_too() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let taken = stores.take_settled().await;
    let again = stores.take_knowing(Known { last: Some(&taken), ..Known::default() }).await.expect("a digest");
    assert_eq!((again.costs[0].is_hashed, &again.digest), (false, &taken.digest));
    // Neither the size nor the modification time, which a site can set, reveals the change.
    let path = stores.folder().join("media/a.txt");
    let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
    fs::write(&path, "z").expect("a file");
    File::options().write(true).open(&path).and_then(|file| file.set_modified(modified)).expect("a time");
    assert_eq!(stores.moved(&taken).await, ["files"]);
    let now = stores.take_knowing(Known { last: Some(&taken), ..Known::default() }).await.expect("a digest");
    assert_eq!(differences(&taken, &now), ["files: media/a.txt: 1 byte before, as many with other content now"]);
}

#[tokio::test]
async fn removing_and_moving_moves_the_mark() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let folder = stores.folder();
    let taken = stores.take_settled().await;
    fs::rename(folder.join("media/b.txt"), folder.join("b.txt")).expect("a file");
    assert_eq!(stores.moved(&taken).await, ["files"]);
    let taken = stores.take_settled().await;
    fs::remove_file(folder.join("b.txt")).expect("a file");
    assert_eq!(stores.moved(&taken).await, ["files"]);
}

#[tokio::test]
async fn what_is_added_or_put_in_the_place_of_a_folder_moves_the_mark() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let (folder, deep) = (stores.folder(), stores.folder().join("media/x/y"));
    fs::create_dir_all(&deep).expect("a folder");
    let taken = stores.take_settled().await;
    assert_eq!(stores.moved(&taken).await, [""; 0]);
    fs::write(deep.join("new"), "").expect("a file");
    assert_eq!(stores.moved(&taken).await, ["files"]);
    let taken = stores.take_settled().await;
    // Every path still leads to the same file.
    fs::rename(folder.join("media/x"), folder.join("elsewhere")).expect("a folder");
    symlink("../elsewhere", folder.join("media/x")).expect("a link");
    assert_eq!(stores.moved(&taken).await, ["files"]);
    let taken = stores.take_settled().await;
    fs::remove_dir_all(folder.join("elsewhere")).expect("a folder");
    assert_eq!(stores.moved(&taken).await, ["files"]);
}

#[tokio::test]
async fn hostile_folders_are_described_and_not_followed() {
    let stores = Stores::declared(FILES);
    let folder = stores.folder();
    symlink("/proc", folder.join("everything")).expect("a link");
    symlink("itself", folder.join("itself")).expect("a link");
    symlink("/dev/zero", folder.join("endless")).expect("a link");
    let pipe = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(pipe.is_ok_and(|status| status.success()), "a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("a socket");
    fs::write(folder.join(OsStr::from_bytes(b"no \xff text\\")), "x").expect("a file");
    let sparse = File::create(folder.join("sparse")).expect("a file");
    sparse.set_len(64 << 20).expect("a length");
    let taken = stores.take().await.expect("a digest");
    let files = &taken.digest.stores["files"].files;
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, [".", "endless", "everything", "itself", "no \\xff text\\\\", "pipe", "socket", "sparse"]);
    assert_eq!((files["sparse"].size, files["sparse"].content.len()), (64 << 20, 64));
    assert_eq!(files["everything"].content, "/proc");
}

#[tokio::test]
async fn a_folder_too_deep_to_be_named_is_an_error_and_no_end() {
    let stores = Stores::declared(FILES);
    let deep = "import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(30): os.mkdir('a' * 200); os.chdir('a' * 200)";
    let made = Command::new("python3").args(["-c", deep]).arg(stores.folder()).status();
    assert!(made.is_ok_and(|status| status.success()), "deep folders");
    let error = stores.take().await.expect_err("too deep");
    assert!(matches!(&error, DigestError::File { store, .. } if store == "files"), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_is_written_to_has_no_mark_and_its_digest_comes_all_the_same() {
    let stores = Stores::declared(FILES);
    filled(&stores);
    let path = stores.folder().join("media/busy");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut count = 0_u64;
        while stopped.try_recv().is_err() {
            count += 1;
            fs::write(&path, count.to_string()).expect("a file");
        }
    });
    let taken = stores.take().await.expect("a digest");
    let again = stores.take_knowing(Known { last: Some(&taken), ..Known::default() }).await.expect("a digest");
    stop.send(()).expect("it listens");
    writer.join().expect("it ends");
    assert!(again.costs[0].is_hashed, "what is written to is never taken for untouched");
    assert_eq!(stores.moved(&taken).await, ["files"]);
}

#[tokio::test]
async fn a_store_whose_folder_is_not_here_is_said_to_be_so() {
    let stores = Stores::declared("{ files: { kind: directory, path: /elsewhere } }");
    let error = stores.take().await.expect_err("not here").to_string();
    assert_eq!(error, "find the store files: its folder /elsewhere in web is not on this host");
}

#[tokio::test]
async fn servers_that_are_about_to_start_are_not_asked_before() {
    let stores = Stores::declared(
        "{ files: { kind: directory, path: /data }, rows: { kind: postgres, path: /data/rows, database: main } }\n    \
         databases: { main: { engine: postgres, port: 5432, user: u, password: p, database: d } }",
    );
    let started = SetOnce::new();
    stores
        .with(async |subject| {
            let subject = Subject { started: Some(&started), ..subject };
            let mut taking = std::pin::pin!(digest::take(&subject, Known::default()));
            let early = tokio::time::timeout(Duration::from_millis(50), &mut taking).await;
            assert!(early.is_err(), "the server has not been reported as started");
            started.set(()).expect("set once");
            assert!(matches!(taking.await, Err(DigestError::Sql { .. })), "there is no server");
        })
        .await;
}
