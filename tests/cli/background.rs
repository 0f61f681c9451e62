//! The daemon that a command starts in the background and that outlives it.

use std::process::Command;

use crate::support::World;

#[test]
fn the_daemon_does_not_keep_the_files_of_the_script_that_started_it() {
    let world = World::single("background");
    let up = world.command(&["up", &world.name]);
    let lock = world.root().join("lock");
    let mut script = Command::new("sh");
    script.args(["-c", r#"exec 9>"$1"; shift; exec "$@""#, "script"]).arg(&lock);
    script.arg(up.get_program()).args(up.get_args());
    for (name, value) in up.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    if let Some(folder) = up.get_current_dir() {
        script.current_dir(folder);
    }
    let ran = script.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(lock.exists());
    let pid = world.daemon().unwrap().as_raw_nonzero();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        // A file may be closed meanwhile.
        let Ok(open) = std::fs::read_link(entry.unwrap().path()) else { continue };
        assert_ne!(open, lock);
    }
}
