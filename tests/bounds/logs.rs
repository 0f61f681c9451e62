//! A site that logs without end: its log, and the part of it that is read, are limited.

use std::time::{Duration, Instant};

use arenad_engine::docker::DockerEngine;
use arenad_engine::{Engine, LogRange};
use futures_util::StreamExt;

use super::memory;
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

/// The limit of a stored log: three files of ten MiB, and a margin for rotation.
const KEPT: u64 = 45 << 20;

#[test]
fn a_flood_of_log_fills_neither_disk_nor_memory() {
    let world = World::single("flood");
    let deep = "      shallow: { every: 1s }\n      deep:\n        every: 2s\n        probes:\n          \
                - log: { pattern: never-logged }\n            name: log\n";
    world.edit("environment", "      shallow: { every: 1s }\n", deep);
    world.up();
    let container = world.engine.containers(&world.label())[0].clone();
    let limits = world.engine.docker(&["inspect", "--format", "{{json .HostConfig.LogConfig}}", &container]);
    assert!(limits.contains("\"max-size\":\"10m\"") && limits.contains("\"max-file\":\"3\""), "{limits}");
    let before = memory(&world, "VmRSS");
    let flood = "timeout 20 yes a-line-of-a-log-that-does-not-end >/proc/1/fd/1";
    world.engine.docker(&["exec", "--detach", &container, "/bin/sh", "-c", flood]);
    let path = world.engine.docker(&["inspect", "--format", "{{.LogPath}}", &container]);
    let folder = std::path::Path::new(&path).parent().unwrap().to_owned();
    let (mut most, mut heaviest, mut rotated) = (0, 0, false);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(22) {
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        let logs: Vec<_> = files.filter(|file| file.file_name().to_string_lossy().contains("-json.log")).collect();
        rotated |= logs.len() > 2;
        most = most.max(logs.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum());
        heaviest = heaviest.max(memory(&world, "VmRSS"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(rotated && most < KEPT, "{most} bytes of log");
    assert!(heaviest < before + (64 << 20), "from {before} to {heaviest} bytes");
    world.run(&["down"]).code(0);
}

#[test]
fn a_line_without_end_is_cut_and_marked() {
    let world = World::single("line");
    world.up();
    let container = world.engine.containers(&world.label())[0].clone();
    let line = "{ head -c 3000000 /dev/zero | tr '\\0' y; echo; echo the-next-line; } >/proc/1/fd/1";
    world.engine.docker(&["exec", &container, "/bin/sh", "-c", line]);
    let read = || world.run(&["logs", "toy"]).code(0).out;
    let shown = until("the log", PATIENCE, read, |shown| shown.contains("the-next-line"));
    let cut = shown.lines().find(|line| line.contains("yyyy")).unwrap();
    assert!(cut.ends_with("(cut: the line is longer than 64 KiB)") && cut.len() < 66 << 10, "{} bytes", cut.len());
    assert!(shown.lines().any(|line| line == "the-next-line"));
    let json = world.run(&["logs", "toy", "--json"]).code(0).out;
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    world.run(&["down"]).code(0);
}

#[tokio::test]
async fn the_engine_tells_only_what_changes_whether_a_container_runs() {
    let world = World::single("told");
    world.up();
    let container = world.engine.containers(&world.label())[0].clone();
    let endpoint = world.engine.host().unwrap_or("unix:///var/run/docker.sock").to_owned();
    let engine = DockerEngine::new(&endpoint);
    let mut events = engine.events("dev.arenad.environment", &world.name);
    // The stream begins when it is first polled.
    let listening = tokio::spawn(async move { (events.next().await, events.next().await) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        world.engine.docker(&["exec", &container, "/bin/true"]);
    }
    world.engine.docker(&["pause", &container]);
    world.engine.docker(&["unpause", &container]);
    let (first, second) = tokio::time::timeout(PATIENCE, listening).await.unwrap().unwrap();
    let actions = [first, second].map(|event| event.unwrap().unwrap().action);
    assert_eq!(actions, ["pause", "unpause"]);

    let wanted = ["/bin/sh", "-c", "yes | head -c 5000000"].map(str::to_owned);
    let handle = arenad_engine::EngineHandle(container);
    let output = engine.exec(&handle, &wanted, None, PATIENCE).await.unwrap();
    assert_eq!((output.code, output.stdout.len()), (0, arenad_engine::docker::EXEC_OUTPUT_MAX), "output is bounded");
    let range = LogRange { tail: Some(1), since: None, follow: false, timestamps: false };
    assert!(engine.logs(&handle, range).next().await.is_some());
    world.run(&["down"]).code(0);
}
