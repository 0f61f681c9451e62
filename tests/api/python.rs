//! The Python client against a real daemon and a real site.

use std::path::Path;
use std::process::Command;

use crate::support::World;

/// The tasks that the client's tests begin and check.
const TASKS: &str = "
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    start: { path: /cgi-bin/page }
    intent: Make the site remember pears
    check: { locate: 'http: /cgi-bin/page', contains: pears }
";

#[test]
fn the_python_client_does_what_it_says() {
    let world = World::single("python");
    world.write_tasks(TASKS);
    world.up();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let output = Command::new("python3")
        .args(["-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests"])
        .current_dir(&folder)
        .env("PYTHONPATH", folder.join("src"))
        .env("ARENAD_STATE_DIR", world.state_dir())
        .env("ARENAD_STORAGE", "plain")
        .env("ARENAD_PROXY", "none")
        .env("ARENAD_COMPAT", "none")
        .env("ARENAD_BIN", env!("CARGO_BIN_EXE_arenad"))
        .env("ARENAD_ROOT", world.root())
        .env("ARENAD_TEST_ENVIRONMENT", &world.name)
        .env_remove("ARENAD_HOST")
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("OK"), "tests were run: {said}");
    world.run(&["down"]).code(0);
    world.assert_down();
}
