//! An archive of three gigabytes, and a program that is killed while it loads it.

use std::fs;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::project::Project;
use crate::support::wait::{PATIENCE, within};

const CONTENT: u64 = 3 << 30;

/// Says where in its work the program is when it is killed: its own words on standard error.
const POINTS: [&str; 5] = [
    "checking shop.tar 20 %",
    "checking shop.tar 80 %",
    "loading {image} 10 %",
    "loading {image} 70 %",
    "unpacking {image}",
];

#[test]
fn three_gigabytes_are_loaded_however_often_the_program_is_killed() {
    let project = Project::new("big", "");
    let saved = project.save("shop.tar", 11, CONTENT);
    let from = project.path("shop.tar");
    let from = from.to_str().unwrap();
    for point in POINTS {
        let point = point.replace("{image}", &project.image);
        let mut running = project.world.start(&project.words("load", &["--from", from]));
        let said = within(&point, PATIENCE * 3, || {
            let said = running.said();
            (said.contains(&point) || running.has_ended()).then_some(said)
        });
        assert!(said.contains(&point), "it ended before {point:?}:\n{said}");
        kill_process(running.pid(), Signal::KILL).unwrap();
        assert_eq!(running.ended().code, -1, "{point}");
        // The engine may have had all of it by then; it must not be believed to have it before.
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

/// The engine gives up what it was half through with.
fn assert_no_leftovers(project: &Project) {
    let root = project.engine().docker(&["info", "--format", "{{.DockerRootDir}}"]);
    within("the engine's clean-up", Duration::from_secs(30), || {
        let entries = fs::read_dir(format!("{root}/tmp")).ok()?.flatten();
        let is_ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("docker-import-");
        (entries.filter(is_ours).count() == 0).then_some(())
    });
}
