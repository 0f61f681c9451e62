//! Cases about archives from containers and into them.

use arenad_engine::EngineError;

use crate::bed::{Bed, WantedContainer, folder, piece, script, tar_of, untar, whole};

pub async fn files_and_folders_are_read(bed: Bed) {
    let handle = bed.start("one", script("mkdir -p /a/b; echo x > /a/b/x; sleep 1000")).await;
    bed.sh(&handle, "echo y > /a/y").await;
    let names = |archive: &[u8]| {
        let mut names: Vec<String> = untar(archive).into_iter().map(|(path, ..)| path).collect();
        names.sort_unstable();
        names
    };
    let archive = whole(bed.engine.read_archive(&handle, "/a")).await.unwrap();
    assert_eq!(names(&archive), ["a/", "a/b/", "a/b/x", "a/y"]);
    let archive = whole(bed.engine.read_archive(&handle, "/a/y")).await.unwrap();
    assert_eq!(names(&archive), ["y"]);
    assert_eq!(untar(&archive)[0].3, "y\n");
}

pub async fn archives_there_and_back_keep_owners_and_modes(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o640);
    header.set_uid(1234);
    header.set_gid(1234);
    header.set_size(3);
    archive.append_data(&mut header, "new/file", b"abc".as_slice()).unwrap();
    bed.engine.write_archive(&handle, "/base", piece(archive.into_inner().unwrap())).await.unwrap();
    assert_eq!(bed.read(&handle, "/base/new/file").await, "abc");
    assert_eq!(bed.read(&handle, "/base/file").await, "of the base", "what was there stays");
    let back = whole(bed.engine.read_archive(&handle, "/base/new/file")).await.unwrap();
    assert_eq!(untar(&back), [("file".to_owned(), 0o640, 1234, "abc".to_owned())]);
}

pub async fn archives_reach_volumes_and_folders_of_the_host(bed: Bed) {
    let volume = bed.named("volume");
    bed.engine.create_volume(&volume, &bed.labels(&[])).await.unwrap();
    let folder = folder();
    std::fs::write(folder.path().join("there"), "on the host").unwrap();
    let mut wanted = WantedContainer::default();
    wanted.volumes.insert("/volume".to_owned(), (volume, false));
    wanted.binds.insert("/bind".to_owned(), folder.path().to_owned());
    let handle = bed.create("one", wanted).await;
    let archive = tar_of([("volume/x", b"in the volume".as_slice()), ("bind/y", b"on the host too")]);
    bed.engine.write_archive(&handle, "/", piece(archive)).await.unwrap();
    let archive = whole(bed.engine.read_archive(&handle, "/volume")).await.unwrap();
    let content = |archive: &[u8], path: &str| {
        untar(archive).into_iter().find(|(found, ..)| found == path).map(|(.., content)| content)
    };
    assert_eq!(content(&archive, "volume/x").as_deref(), Some("in the volume"));
    let archive = whole(bed.engine.read_archive(&handle, "/bind")).await.unwrap();
    assert_eq!(content(&archive, "bind/there").as_deref(), Some("on the host"));
    assert_eq!(crate::bed::read(&folder.path().join("y")), "on the host too");
    bed.engine.start(&handle).await.unwrap();
    assert_eq!(bed.read(&handle, "/volume/x").await, "in the volume");
}

pub async fn archives_are_unpacked_before_the_first_start(bed: Bed) {
    let handle = bed.create("one", script("cat /said; sleep 1000")).await;
    let archive = tar_of([("said", b"unpacked\n".as_slice())]);
    bed.engine.write_archive(&handle, "/", piece(archive)).await.unwrap();
    bed.engine.start(&handle).await.unwrap();
    bed.until_said(&handle, "unpacked").await;
}

pub async fn what_is_not_there_cannot_be_read(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let error = whole(bed.engine.read_archive(&handle, "/missing")).await.unwrap_err();
    let EngineError::NotFound { message, .. } = &error else { panic!("{error:?}") };
    assert!(!message.contains("No such container: "), "{message}");
    bed.engine.remove(&handle).await.unwrap();
    let error = whole(bed.engine.read_archive(&handle, "/base")).await.unwrap_err();
    assert!(error.to_string().contains("No such container: "), "{error}");
}

pub async fn archives_need_a_folder_to_go_to(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let archive = || piece(tar_of([("x", b"x".as_slice())]));
    let error = bed.engine.write_archive(&handle, "/missing", archive()).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    let error = bed.engine.write_archive(&handle, "/base/file", archive()).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { .. }), "{error:?}");
}

pub async fn a_read_only_root_is_not_written(bed: Bed) {
    let wanted = WantedContainer { read_only: true, tmpfs: Some("/memory".to_owned()), ..WantedContainer::default() };
    let handle = bed.start("one", wanted).await;
    assert_ne!(bed.sh(&handle, "echo x > /x").await.code, 0);
    assert_eq!(bed.sh(&handle, "echo x > /memory/x").await.code, 0);
    let archive = piece(tar_of([("x", b"x".as_slice())]));
    let error = bed.engine.write_archive(&handle, "/base", archive).await.unwrap_err();
    let EngineError::Refused { message, status: 500, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("marked read-only"), "{message}");
}
