//! A daemon that does not run as root but may use the engine: everything works by slower means, and the reasons are
//! reported.

use super::home::{BASELINE, declare_stores};
use crate::support::World;
use crate::support::world::list;

/// A user id without an account.
const USER: u32 = 47_110;

#[test]
fn without_roots_rights_everything_works_by_slower_ways() {
    let world = World::as_user("nobody", USER);
    declare_stores(&world);
    world.run(&["doctor"]).prints("may not give files to other owners").prints("run the daemon as root");
    world.up();
    world.run(&["status"]).code(0).prints("there is no state root").prints("run the daemon as root");
    world.run(&["verify", "toy"]).code(0).prints("toy equals its snapshot");

    let id = list(&world.site().unwrap()["containers"], "id").remove(0);
    world.engine.docker(&["exec", &id, "/bin/sh", "-c", "echo new >/srv/state/added; chown 1234 /srv/state/notes"]);
    world.run(&["verify", "toy"]).code(1).prints("added").prints("notes");
    let reset = world.run(&["reset", "toy", "--json"]).code(0).json();
    assert_eq!(reset["operations"][0]["reset"]["strategy"], "recreate", "{reset:#}");
    assert_eq!(reset["operations"][0]["reset"]["reason"], "no rewind: there is no state root", "{reset:#}");
    assert_eq!(world.page(), BASELINE);
    world.run(&["verify", "toy"]).code(0);

    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    let kept = world.page();
    world.run(&["reset", "toy"]).code(0);
    assert_eq!(world.page(), BASELINE);
    world.run(&["snapshot", "export", "kept", "--out", "kept"]).code(0);
    world.run(&["snapshot", "rm", "kept"]).code(0);
    world.run(&["snapshot", "import", "kept"]).code(0);
    world.run(&["reset", "toy", "--to", "kept"]).code(0);
    assert_eq!(world.page(), kept);
    world.run(&["df"]).code(0).prints("there is no state root");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}
