//! Sites after a long pause, such as that of a standby before it takes over.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::arena::Arena;

/// The sites whose web server has a supervisor for its workers.
const SITES: [&str; 4] = ["shopping", "reddit", "turkle", "gitlab"];

/// Longer than the minute after which such supervisors usually kill a worker that has not reported.
const PAUSE: Duration = Duration::from_secs(65);

/// Supervisors look for late workers once a second.
const OBSERVED: Duration = Duration::from_secs(3);

#[test]
fn a_long_pause_costs_no_site_its_workers() {
    let arena = Arena::up(&SITES);
    let before = SITES.map(|site| servers(&arena, site));
    for (site, servers) in SITES.iter().zip(&before) {
        assert!(servers.len() >= 2, "there are a server and a worker of {site}: {servers:?}");
    }
    let containers: Vec<String> = SITES.iter().flat_map(|site| arena.containers(site)).map(|(_, id)| id).collect();
    docker("pause", &containers);
    std::thread::sleep(PAUSE);
    docker("unpause", &containers);
    let until = Instant::now() + OBSERVED;
    while Instant::now() < until {
        for (site, before) in SITES.iter().zip(&before) {
            assert_eq!(&servers(&arena, site), before, "the processes of {site} are still the same");
        }
    }
}

/// Returns the process ids of a site's web server and its workers.
fn servers(arena: &Arena, site: &str) -> Vec<String> {
    let containers = arena.containers(site);
    let (_, id) = containers.first().expect("a container");
    let listed = docker("top", &[id.clone(), "-eo".to_owned(), "pid,args".to_owned()]);
    // The forge's server and its worker are forked from one program, whose name they keep.
    let is_server =
        |line: &&str| ["gunicorn", "pagure"].iter().any(|name| line.contains(name)) && !line.contains("s6-");
    let of_server = listed.lines().filter(is_server);
    of_server.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

fn docker(command: &str, args: &[String]) -> String {
    let output = Command::new("docker").arg(command).args(args).output().expect("docker runs");
    assert!(output.status.success(), "docker {command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
