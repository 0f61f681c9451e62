//! An archive of a gigabyte, and a program that is killed while it loads it.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::Signal;

use super::project::ImageProject;
use crate::support::wait::{PATIENCE, within};

const CONTENT: u64 = 1 << 30;

/// The messages on standard error at which the program is killed.
const POINTS: [&str; 5] = [
    "checking shop.tar 20 %",
    "checking shop.tar 80 %",
    "loading {image} 10 %",
    "loading {image} 70 %",
    "unpacking {image}",
];

#[test]
fn a_gigabyte_is_loaded_however_often_the_program_is_killed() {
    let project = ImageProject::new("big", "");
    let saved = project.save("shop.tar", 11, CONTENT);
    let from = project.path("shop.tar");
    let from = from.to_str().unwrap();
    for point in POINTS {
        let point = point.replace("{image}", &project.image);
        kill_at(&project, &project.words("load", &["--from", from]), &point);
        // The engine may have received everything by then, but the program must not report it.
        match project.engine_id() {
            None => assert_eq!(project.state(), "missing", "{point}"),
            Some(_) => project.assert_present(&saved),
        }
    }
    let loaded = project.images("load", &["--from", from]).code(0);
    assert!(!loaded.err.contains("checking"), "what was read to its end is not read again:\n{}", loaded.err);
    project.assert_present(&saved);
    assert_no_leftovers(&project);
}

fn kill_at(project: &ImageProject, words: &[&str], point: &str) {
    let path = project.path("said.txt");
    let mut child = project.world.command(words).stderr(File::create(&path).unwrap()).spawn().unwrap();
    let said = within(point, PATIENCE * 3, || {
        let said = fs::read_to_string(&path).unwrap();
        (said.contains(point) || child.try_wait().unwrap().is_some()).then_some(said)
    });
    assert!(said.contains(point), "it ended before {point:?}:\n{said}");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()), "it ended by itself at {point:?}");
}

/// Asserts that the engine has discarded its partial work.
fn assert_no_leftovers(project: &ImageProject) {
    let root = project.engine().docker(&["info", "--format", "{{.DockerRootDir}}"]);
    within("the engine's clean-up", Duration::from_secs(30), || {
        let entries = fs::read_dir(format!("{root}/tmp")).ok()?.flatten();
        let is_ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("docker-import-");
        (entries.filter(is_ours).count() == 0).then_some(())
    });
}
