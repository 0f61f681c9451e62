//! Sites whose files cannot be stored.

use super::home::with_stores;

#[test]
fn a_deep_folder_fails_the_snapshot_and_the_site_is_not_stopped_for_it() {
    let world = with_stores("deep");
    world.up();
    world.write("before");
    let container = world.engine.containers(&world.label()).pop().unwrap();
    // Nested folders, each entered before the next one is created: their path exceeds the maximum length of a path.
    let dig = "cd /srv/state; n=$(printf '%0200d' 0); i=0; while [ $i -lt 60 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done";
    world.engine.docker(&["exec", &container, "/bin/sh", "-c", dig]);
    let started_at = || world.engine.docker(&["inspect", "--format", "{{.State.StartedAt}}", &container]);
    let before = started_at();
    let refused = world.run(&["snapshot", "take", "toy", "--name", "buried"]).code(1);
    refused.says("deeper than any path").says("remove the folder");
    assert_eq!(started_at(), before, "nothing was stopped");
    assert_eq!(world.state(), "ready");
    assert!(world.page().contains("before"));
    world.run(&["reset", "toy"]).code(0);
    world.run(&["snapshot", "take", "toy", "--name", "buried"]).code(0);
    world.run(&["down", "--purge", "--yes"]).code(0);
}
