//! `arenad init`: a user's own site, from a Compose file to a verified rewind.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::World;
use crate::support::wait::{PATIENCE, within};
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

/// The same application alone.
const ALONE: &str = "
services:
  app:
    build: { context: ./site, target: toy }
    image: arenad-toy/@NAME@-app:1
    ports: ['@PORT@:80']
    volumes: ['notes:/srv/state']
volumes: { notes: {} }
";

/// Writes a Compose file and its build context outside of the project folder's `compose/`; returns their folder.
fn project(world: &World, compose: &str) -> PathBuf {
    let outside = world.root().join("outside");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/toy"), &outside.join("site"));
    install_busybox(&outside.join("site/root/bin"));
    std::fs::write(outside.join("site/root/srv/name"), &world.name).unwrap();
    let text = compose.replace("@NAME@", &world.name).replace("@PORT@", &world.port.to_string());
    std::fs::write(outside.join("compose.yaml"), text).unwrap();
    outside
}

/// Replaces the proposed page by the toy's own, which has none at `/`. Returns the proposed text.
fn with_pages_of_the_toy(world: &World) -> String {
    let file = world.file("environment");
    let proposed = std::fs::read_to_string(&file).unwrap();
    let probe = proposed.lines().find(|line| line.contains("- http: ")).expect("a probe");
    let edited = proposed.replace(probe, "        - http: { path: /cgi-bin/healthz }");
    std::fs::write(&file, edited.replace("warm: [/]", "warm: [/cgi-bin/page]")).unwrap();
    proposed
}

#[test]
fn a_compose_file_becomes_a_site_that_stands_rewinds_and_is_proven() {
    let world = World::bare("init");
    project(&world, COMPOSE);
    let made = world.run(&["init", &world.name, "--from", "outside/compose.yaml"]).code(0);
    made.prints("helpers").prints(&format!("arenad up {}", world.name));
    let compose = std::fs::read_to_string(world.root().join(format!("compose/{}.yaml", world.name))).unwrap();
    assert!(compose.contains("Left out: `container_name` of app") && !compose.contains("my-app"), "{compose}");
    world.run(&["init", &world.name, "--from", "outside/compose.yaml"]).code(2).says("already exists").says("--force");

    let environment = with_pages_of_the_toy(&world);
    assert!(environment.contains("path: /srv/state") && environment.contains("/arenad/stop"), "{environment}");
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
fn a_file_that_the_running_container_wrote_beside_its_volume_is_restored() {
    let world = World::bare("running");
    let outside = project(&world, ALONE);
    let scripts = outside.join("site/root/srv/www/cgi-bin");
    let head = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n";
    let write = "echo \"$QUERY_STRING\" >>/srv/state/notes\necho \"$QUERY_STRING\" >/srv/last.txt\necho written\n";
    for (name, text) in [("write", write), ("last", "cat /srv/last.txt 2>/dev/null || echo none\n")] {
        std::fs::write(scripts.join(name), format!("{head}{text}")).unwrap();
        std::fs::set_permissions(scripts.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    // The labels are those that `docker compose up` sets.
    let image = format!("arenad-toy/{}-app:1", world.name);
    world.engine.docker(&["build", "-q", "-t", &image, "--target", "toy", outside.join("site").to_str().unwrap()]);
    let labels = [
        world.label(),
        "com.docker.compose.service=app".to_owned(),
        format!("com.docker.compose.project.config_files={}", outside.join("compose.yaml").display()),
        format!("com.docker.compose.project.working_dir={}", outside.display()),
    ];
    let labels = labels.iter().flat_map(|label| ["--label", label]);
    let run: Vec<&str> = ["run", "-d", "-v", "/srv/state"].into_iter().chain(labels).chain([image.as_str()]).collect();
    let container = world.engine.docker(&run);
    let visit = ["exec", &container, "wget", "-q", "-O", "-", "http://127.0.0.1/cgi-bin/write?apples"];
    let said = within("the site writes", PATIENCE, || world.engine.try_docker(&visit).ok());
    assert_eq!(said, "written");
    let init = ["init", &world.name, "--from", "outside/compose.yaml"];
    world.run(&[&init[..], &["--running"]].concat()).code(0);
    let environment = with_pages_of_the_toy(&world);
    assert!(environment.contains("path: /srv }") && environment.contains("observed: /srv/last.txt"), "{environment}");
    world.engine.docker(&["rm", "--force", "--volumes", &container]);

    world.run(&["up", &world.name]).code(0);
    let last = || world.get("/cgi-bin/last").expect("an answer").body;
    assert_eq!(last(), "none\n");
    world.write("pears");
    assert_eq!(last(), "pears\n");
    let answer = world.run(&["reset", "-e", &world.name, "--json"]).code(0).json();
    assert_eq!(answer["operations"][0]["reset"]["strategy"], "rewind", "{answer:#}");
    assert_eq!(last(), "none\n");
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
