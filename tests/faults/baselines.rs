//! Baselines that cannot be built: the message names the failing step and its cause, no object is left behind, and the
//! next `up` works after the definition is corrected.

use crate::support::world::CommandOutput;
use crate::support::{TestEngine, World};

/// Asserts that `up` fails, that the status reports the same cause, and that no object is left in the engine.
fn fails(world: &World) -> CommandOutput {
    let ran = world.run(&["up", &world.name]).code(1).says("error: toy: ").says("hint: ");
    let site = world.site().expect("the site is shown");
    assert_eq!(site["state"], "failed");
    let (reason, hint) = (site["reason"].as_str().unwrap(), site["hint"].as_str().unwrap());
    assert!(ran.err.contains(reason.lines().next().unwrap()), "{reason}\n{}", ran.err);
    assert!(ran.err.contains(hint), "{hint}\n{}", ran.err);
    world.run(&["status"]).code(3).prints("failed").prints(hint);
    assert_eq!(world.engine.containers(&world.label()), [""; 0]);
    assert_eq!(world.engine.networks(&world.label()), [""; 0]);
    assert_eq!(world.engine.volumes(&world.label()), [""; 0]);
    assert_eq!(world.engine.images(&world.label()), [""; 0]);
    let refused = world.get("/").expect("the gateway answers for the site");
    assert_eq!(refused.status, 503, "{}", refused.head);
    ran
}

fn works(world: &World) {
    world.up();
    assert_eq!(world.page(), "toy\nconfigured\n");
    world.assert_whole(0);
}

#[test]
fn a_failing_configuration_step_is_named_with_what_it_said() {
    let world = World::single("step");
    world.edit(
        "environment",
        "exec: { command: [/bin/sh, -c, echo configured >>/srv/state/notes] }",
        "retry_for: 0s\n          exec: { command: [/bin/sh, -c, echo tried; echo broken >&2; exit 7] }",
    );
    let ran = fails(&world);
    ran.says("configure step `greet`").says("exited with code 7").says("broken").says("correct the definition");
    world.edit("environment", "echo tried; echo broken >&2; exit 7", "echo configured >>/srv/state/notes");
    works(&world);
}

#[test]
fn a_container_that_ends_at_once_is_named_with_its_log() {
    let world = World::single("ends");
    world.edit(
        "compose",
        "mem_limit: 48m",
        "mem_limit: 48m\n    command: [/bin/sh, -c, echo no licence found; exit 3]",
    );
    fails(&world).says("toy").says("no licence found");
    world.edit("compose", "\n    command: [/bin/sh, -c, echo no licence found; exit 3]", "");
    works(&world);
}

#[test]
fn a_site_that_never_gets_ready_is_told_with_its_last_probe_and_log() {
    let world = World::single("never");
    world.edit("environment", "timeout: 20s", "timeout: 6s");
    world.edit("environment", "contains: configured", "contains: a miracle");
    let ran = fails(&world);
    ran.says("not ready after 6").says("page: the page does not contain \"a miracle\"").says("toy | the toy serves");
    world.edit("environment", "contains: a miracle", "contains: configured");
    world.edit("environment", "timeout: 6s", "timeout: 20s");
    works(&world);
}

#[test]
fn a_site_that_must_be_killed_has_no_baseline() {
    let world = World::single("grace");
    let boot = world.root().join("compose/toy/root/srv/boot");
    let text = std::fs::read_to_string(&boot).unwrap();
    std::fs::write(&boot, text.replace("sleep 0.1; exit 0", "echo busy")).unwrap();
    world.edit("compose", "stop_grace_period: 5s", "stop_grace_period: 1s");
    fails(&world).says("stop toy cleanly").says("did not end within its stop_grace_period of 1s");
    std::fs::write(&boot, text).unwrap();
    works(&world);
}

#[test]
fn a_dockerfile_that_fails_is_shown_with_the_builders_last_lines() {
    let world = World::single("build");
    let file = world.root().join("compose/toy/Dockerfile");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("CMD [", "RUN echo compiling; echo cannot find libtoy; exit 5\nCMD [")).unwrap();
    let ran = fails(&world);
    ran.says("build image arenad-toy/").says("cannot find libtoy").says("5");
    std::fs::write(&file, text.replace("FROM scratch", "FORM scratch")).unwrap();
    fails(&world).says("FORM");
    std::fs::write(&file, text).unwrap();
    works(&world);
    assert_no_build_containers(&world.engine);
}

/// The builder's own containers have no label; they are recognized by files that only toys have.
fn assert_no_build_containers(engine: &TestEngine) {
    let found = engine.docker(&["ps", "--all", "--no-trunc", "--format", "{{.Command}}", "--filter", "status=exited"]);
    assert!(!found.contains("cannot find libtoy"), "{found}");
}

#[test]
fn a_warming_request_that_fails_is_named() {
    let world = World::single("warm");
    world.edit("environment", "      warm:\n        - /cgi-bin/page", "      warm:\n        - /cgi-bin/nothing");
    fails(&world).says("warm the site").says("/cgi-bin/nothing").says("404");
    world.edit("environment", "- /cgi-bin/nothing", "- /cgi-bin/page");
    works(&world);
}

#[test]
fn an_image_that_is_nowhere_is_told_with_what_to_do() {
    let world = World::single("pull");
    world.edit("compose", "    build:\n      context: toy\n      target: toy\n", "");
    world.edit("compose", &format!("arenad-toy/{}:1", world.name), "127.0.0.1:9/arenad-toy/nowhere:1");
    let ran = fails(&world);
    assert!(ran.err.contains("nowhere") && ran.err.contains("docker load"), "{}", ran.err);
}
