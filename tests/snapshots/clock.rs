//! Sites whose containers have another clock: the homepage of the mini environment, whose image has libfaketime, and a
//! toy whose image does not.

use std::path::Path;

use crate::support::World;
use crate::support::world::{copy, list};

/// The start of the clocks below, in seconds since 1970.
const START: i64 = 1_709_294_400;

/// Only the mini environment's homepage, with this clock.
fn homepage(label: &str, clock: &str) -> World {
    let world = World::bare(label);
    let context = Path::new(env!("CARGO_MANIFEST_DIR")).join("compose/mini/homepage");
    copy(&context, &world.root().join("compose/homepage"));
    // If no registry can be reached, this file names the base image that was built here.
    let dotenv = Path::new(env!("CARGO_MANIFEST_DIR")).join("compose/.env");
    if dotenv.exists() {
        std::fs::copy(dotenv, world.root().join("compose/.env")).unwrap();
    }
    let (name, port) = (&world.name, world.port);
    let compose = format!(
        "services:
  homepage:
    image: arenad-toy/{name}:1
    build: {{ context: homepage, args: {{ BASE_IMAGE: '${{BASE_IMAGE:-debian:bookworm-slim}}' }} }}
    ports: ['{port}:80']
    environment: {{ SHOPPING: ':1', SHOPPING_ADMIN: ':2', REDDIT: ':3', GITLAB: ':4', WIKIPEDIA: ':5', MAP: ':6', TURKLE: ':7' }}
    mem_limit: 96m
    stop_grace_period: 5s
"
    );
    std::fs::write(world.file("compose"), compose).unwrap();
    let environment = format!(
        "name: {name}
sites:
  toy:
    services: [homepage]
    entry: {{ port: 80 }}
    public: {{ port: {port} }}
    stores:
      database: {{ kind: sqlite, path: /data/homepage.sqlite3 }}
      files: {{ kind: directory, path: /data }}
    writers:
      stop: [ {{ command: [/srv/homepage/db-stop, --kill] }} ]
      start: [ {{ command: [/srv/homepage/db-start] }} ]
    scratch:
      - {{ path: /run/homepage/s6/*/supervise/*, reason: the notes of its supervisor }}
      - {{ path: /dev/shm/*faketime*, reason: libfaketime shares the clock with all processes there }}
    ready:
      timeout: 60s
      probes: [ {{ http: {{ path: /healthz, json: {{ /ok: true, /database_write: true }} }} }} ]
    clock: {clock}
"
    );
    std::fs::write(world.file("environment"), environment).unwrap();
    world
}

/// Returns the time in the site's container, in seconds since 1970.
fn now(world: &World) -> i64 {
    let id = list(&world.site().unwrap()["containers"], "id").remove(0);
    world.engine.docker(&["exec", &id, "date", "+%s"]).parse().unwrap()
}

#[test]
fn a_clock_starts_where_it_is_told_and_runs_or_stands_still() {
    let world = homepage("clock", "{ start: \"2024-03-01T12:00:00Z\" }");
    world.up();
    let first = now(&world);
    assert!((START..START + 300).contains(&first), "{first}");
    let python = "import time; print(int(time.time()))";
    let id = list(&world.site().unwrap()["containers"], "id").remove(0);
    let seen: i64 = world.engine.docker(&["exec", &id, "python3", "-c", python]).parse().unwrap();
    assert!((first..first + 300).contains(&seen), "every program sees it: {seen} after {first}");
    // A running clock is set when containers are created, so a reset recreates them.
    assert_eq!(world.reset(), "recreate");
    assert!((START..START + 300).contains(&now(&world)));
    world.run(&["verify", "toy"]).code(0);

    world.edit(
        "environment",
        "{ start: \"2024-03-01T12:00:00Z\" }",
        "{ start: \"2024-03-01T12:00:00Z\", mode: frozen }",
    );
    world.up();
    assert_eq!((now(&world), now(&world)), (START, START));
    world.run(&["verify", "toy"]).code(0);
    assert_eq!(world.reset(), "rewind", "one that stands still is right whenever containers were made");
    assert_eq!(now(&world), START);

    // The clock is that of the snapshot, which was taken by the host's clock.
    world.edit("environment", "start: \"2024-03-01T12:00:00Z\", mode: frozen", "mode: frozen");
    world.up();
    let taken = now(&world);
    assert!(taken > START + 300);
    world.reset();
    assert_eq!(now(&world), taken, "the same time after every reset");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn an_image_without_the_library_is_an_error_and_not_a_clock_that_is_wrong() {
    let world = World::single("noclock");
    world.edit("environment", "    baseline:\n", "    clock: { start: \"2024-03-01T12:00:00Z\" }\n    baseline:\n");
    world.run(&["up", &world.name]).code(1).says("set the clock of toy").says("is libfaketime in its image");
    world.run(&["down", "--purge", "--yes"]).code(0);
}
