//! `arenad init`: a user's own site, from a Compose file to a verified rewind.

use crate::support::World;
use crate::support::world::{copy, install_busybox};

/// A Compose file with an application and its database, as a user without knowledge of arenad writes it.
const COMPOSE: &str = "
version: '3'
services:
  app:
    build: { context: ./site, target: toy }
    image: arenad-toy/@NAME@-app:1
    container_name: my-app
    restart: always
    ports: ['@PORT@:80']
    depends_on: [db]
    volumes: ['notes:/srv/state']
  db:
    build: { context: ./site, target: toy }
    image: arenad-toy/@NAME@-db:1
volumes: { notes: {} }
";

#[test]
fn a_compose_file_becomes_a_site_that_stands_rewinds_and_is_proven() {
    let world = World::bare("init");
    let outside = world.root().join("outside");
    copy(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/toy"), &outside.join("site"));
    install_busybox(&outside.join("site/root/bin"));
    std::fs::write(outside.join("site/root/srv/name"), &world.name).unwrap();
    let text = COMPOSE.replace("@NAME@", &world.name).replace("@PORT@", &world.port.to_string());
    std::fs::write(outside.join("compose.yaml"), text).unwrap();
    let made = world.run(&["init", &world.name, "--from", "outside/compose.yaml"]).code(0);
    made.prints("helpers").prints(&format!("arenad up {}", world.name));
    let compose = std::fs::read_to_string(world.root().join(format!("compose/{}.yaml", world.name))).unwrap();
    assert!(compose.contains("Left out: `container_name` of app") && !compose.contains("my-app"), "{compose}");
    world.run(&["init", &world.name, "--from", "outside/compose.yaml"]).code(2).says("already exists").says("--force");

    // The toy has no page of its own, and stores its state in the folder at which the volume was mounted.
    let file = world.root().join(format!("environments/{}.yaml", world.name));
    let environment = std::fs::read_to_string(&file).unwrap();
    assert!(environment.contains("path: /srv/state") && environment.contains("/arenad/stop"), "{environment}");
    std::fs::write(
        &file,
        environment
            .replace("path: /}", "path: /cgi-bin/healthz }")
            .replace("path: / }", "path: /cgi-bin/healthz }")
            .replace("warm: [/]", "warm: [/cgi-bin/page]"),
    )
    .unwrap();
    world.run(&["validate", &world.name]).code(0);
    world.run(&["up", &world.name]).code(0);
    world.write("pears");
    world.run(&["verify", "-e", &world.name]).code(1).prints("differs");
    let answer = world.run(&["reset", "-e", &world.name, "--json"]).code(0).json();
    let reset = &answer["operations"][0]["reset"];
    assert_eq!(reset["strategy"], "rewind", "{answer:#}");
    world.run(&["verify", "-e", &world.name]).code(0);
    assert!(!world.page().contains("pears"));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn without_a_compose_file_there_is_one_to_fill_in() {
    let world = World::bare("template");
    std::fs::create_dir_all(world.root().join("compose/lab/web")).unwrap();
    std::fs::write(world.root().join("compose/lab/web/Dockerfile"), "FROM scratch\nCMD [\"serve\"]\n").unwrap();
    world.run(&["init", "lab"]).code(0).prints("compose/lab.yaml").prints("environments/lab.yaml");
    world.run(&["validate", "lab"]).code(0);
    world.run(&["init", "Not A Name"]).code(2);
}
