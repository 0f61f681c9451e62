//! Common mistakes of users: arenad's messages, and the absence of side effects.

use std::net::TcpListener;
use std::process::Stdio;

use crate::support::World;
use crate::support::wait::{PATIENCE, within};

#[test]
fn unknown_names_are_answered_with_those_that_are_close() {
    let world = World::single("names");
    world.run(&["up", &world.name, "toi"]).code(2).says("has no site `toi`").says("did you mean `toy`?");
    world.run(&["up", "nothing-like-it"]).code(2).says("nothing-like-it").says("hint: ");
    assert!(!world.state_dir().join("lock").exists(), "no daemon was started for it");
    world.up();
    world.run(&["reset", "toyy"]).code(2).says("site `toyy` is not up").says("hint: did you mean `toy`?");
    world.run(&["reset", "shop"]).code(2).says("hint: name one that is up: toy");
    world.run(&["logs", "shop"]).code(2).says("site `shop` is not up");
    world.run(&["down", "shop"]).code(2).says("site `shop` is not up");
    world.run(&["reset"]).code(2).says("--all");
    world.run(&["frobnicate"]).code(2).says("unrecognized subcommand");
    world.run(&["up", &world.name, "--wait-timeout", "soon"]).code(2).says("is not a duration");
    world.run(&["down"]).code(0);
}

#[test]
fn a_taken_port_is_named_with_its_owner_and_nothing_is_started() {
    let world = World::single("port");
    let taken = TcpListener::bind(("127.0.0.1", world.port)).unwrap();
    let refused = world.run(&["up", &world.name]).code(1);
    let owner = format!("127.0.0.1:{} (for toy) is held by integration", world.port);
    let refused = refused.says(&owner).says(&format!("(pid {})", std::process::id())).says("hint: ");
    assert!(refused.out.is_empty(), "{}", refused.out);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    assert_eq!(world.engine.networks(&world.label()), [""; 0]);
    drop(taken);
    world.up();
    world.assert_whole(0);
    // The container itself listens on its port, not the proxy.
    world.run(&["down"]).code(0);
}

#[test]
fn a_wrong_definition_is_shown_at_its_place_and_changes_nothing() {
    let world = World::single("wrong");
    world.up();
    let containers = world.engine.containers(&world.label());
    world.edit("environment", "entry: { port: 80 }", "entri: { port: 80 }");
    let refused = world.run(&["up", &world.name]).code(2);
    let text = std::fs::read_to_string(world.file("environment")).unwrap();
    let line = text.lines().position(|line| line.contains("entri")).unwrap() + 1;
    let refused = refused.says(&format!("{}.yaml:{line}:5", world.name)).says("entri").says("entry");
    assert!(!refused.err.contains("panicked"), "{}", refused.err);
    world.run(&["validate", &world.name]).code(2).says(&format!(".yaml:{line}:5"));
    world.run(&["config", &world.name]).code(2).says(&format!(".yaml:{line}:5"));
    assert_eq!(world.engine.containers(&world.label()), containers);
    world.run(&["down"]).code(0);
}

#[test]
fn without_a_daemon_every_command_says_how_to_get_one() {
    let world = World::single("none");
    for args in [&["reset", "toy"][..], &["ps"], &["logs", "toy"], &["events"], &["snapshot", "ls"], &["open", "toy"]] {
        let ran = world.run(args).code(1).says("no daemon runs on").says("hint: `arenad up` starts one");
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
    world.run(&["status"]).code(3).says("no daemon runs");
    let down = world.run(&["down"]).code(0).says("nothing is up");
    assert!(!world.state_dir().exists(), "{}", down.err);
    world.run(&["--host", "unix:///nowhere.sock", "ps"]).code(1).says("there is no socket /nowhere.sock");
    world.run(&["--host", "unix:///nowhere.sock", "up", &world.name]).code(1).says("there is no socket").says("hint: ");
    world.run(&["--host", "nowhere", "ps"]).code(2).says("neither unix:///path nor http://host:port");
}

#[test]
fn an_engine_that_is_not_there_is_named_and_the_way_to_start_it() {
    let world = World::single("noengine");
    let mut command = world.command(&["up", &world.name]);
    let socket = world.root().join("nowhere.sock");
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let ran = world.start_command(command).ended().code(1);
    ran.says("there is no engine at").says("nowhere.sock").says("hint: start Docker");
    world.run(&["status"]).code(3).says("no daemon runs");

    // A daemon that was started anyway reports the cause and ends when it is asked to.
    let mut serve = world.command(&["serve", "--background"]);
    serve.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let daemon = world.start_command(serve);
    let conditions = within("the daemon's answer", PATIENCE, || Some(world.api("/v1/status")?["conditions"].clone()));
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&"EngineReachable".into(), &"False".into()));
    let status = world.run(&["status"]).code(3);
    assert!(status.out.contains("Unreachable") && status.out.contains("start Docker"), "{}", status.out);
    world.run(&["down"]).code(0).says("nothing is up any more");
    daemon.ended().code(0);
}

#[test]
fn purge_asks_and_busy_is_an_answer() {
    let world = World::single("busy");
    world.run(&["up", &world.name, "--detach"]).code(0);
    world.run(&["snapshot", "take", "toy", "--name", "early"]).code(4).says("hint: ");
    world.up();
    world.run(&["down", "--purge"]).code(2).says("requires --yes");
    assert_eq!(world.state(), "ready");
    let mut serve = world.command(&["serve"]);
    serve.stderr(Stdio::piped());
    world.start_command(serve).ended().code(4).says("another daemon runs on it").says("hint: ");
    world.run(&["serve", "--listen", "127.0.0.1:1"]).code(2).says("--listen requires a token");
    world.run(&["up", &world.name, "--wait-timeout", "0s", "--detach"]).code(2);
    world.run(&["down"]).code(0);
}
