//! Output that requires no running site: the plan, and the variables that harnesses read.

use std::path::Path;
use std::process::Command;

use super::golden::assert_golden;

/// Runs the program on the project's own definitions, with an engine and a state directory that do not exist.
fn arenad(args: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ARENAD_") || name == "DOCKER_HOST") {
        command.env_remove(variable);
    }
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ARENAD_STATE_DIR", state.path().join("state"))
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        // Overrides the values of a developer's own compose/.env.
        .env("ARENAD_DATA", "../data")
        .env("ARENAD_HOST_NAME", "arena.example.org");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(!state.path().join("state").exists(), "nothing is made, not even the state directory");
    (out.replace(env!("CARGO_MANIFEST_DIR"), "<root>"), err)
}

const OTHER_PORTS: [(&str, &str); 9] = [
    ("ARENAD_SHOPPING_PORT", "8082"),
    ("ARENAD_SHOPPING_ADMIN_PORT", "8083"),
    ("ARENAD_REDDIT_PORT", "8080"),
    ("ARENAD_GITLAB_PORT", "9001"),
    ("ARENAD_WIKIPEDIA_PORT", "8081"),
    ("ARENAD_MAP_PORT", "8443"),
    ("ARENAD_HOMEPAGE_PORT", "8000"),
    ("ARENAD_CLASSIFIEDS_PORT", "8084"),
    ("ARENAD_RESET_PORT", "7566"),
];

#[test]
fn the_plan_is_told_in_order_and_nothing_is_done() {
    for environment in ["webarena", "webarena-verified", "visualwebarena"] {
        let (out, _) = arenad(&["up", environment, "--dry-run"], &[]);
        // The width of a column depends on the path of the project.
        let narrow: Vec<String> = out.lines().map(|line| columns(line).join("  ")).collect();
        assert_golden(&format!("{environment}.plan.txt"), &(narrow.join("\n") + "\n"));
    }
    let public =
        [OTHER_PORTS.as_slice(), &[("ARENAD_MAP_BACKEND", "public"), ("ARENAD_GITLAB_SIZE", "large")]].concat();
    let (out, _) = arenad(&["up", "webarena", "gitlab", "map", "--dry-run", "--json"], &public);
    assert_golden("webarena-public-map.plan.json", &out);
}

/// The cells of a table's row; the indentation of a line is an empty cell.
fn columns(line: &str) -> Vec<&str> {
    let mut cells: Vec<&str> = line.split("  ").map(str::trim).collect();
    let indent = usize::from(line.starts_with("  "));
    cells.retain(|cell| !cell.is_empty());
    cells.splice(0..0, std::iter::repeat_n("", indent));
    cells
}

#[test]
fn harnesses_are_told_what_they_accept() {
    for environment in ["webarena", "webarena-verified", "visualwebarena"] {
        let (out, err) = arenad(&["env", environment], &[]);
        assert_golden(&format!("{environment}.env.txt"), &out);
        assert_eq!(err, "", "no daemon answers that could offer no reset server");
        let (out, _) = arenad(&["env", environment, "--for", "browsergym", "--format", "dotenv"], &OTHER_PORTS);
        assert_golden(&format!("{environment}-other-ports.env.txt"), &out);
    }
    let (out, err) =
        arenad(&["env", "webarena", "--for", "webarena", "--json"], &[("ARENAD_SITES", "shopping,gitlab")]);
    assert_golden("webarena-two-sites.env.json", &out);
    assert_eq!(err, "");
}

/// AgentLab treats every variable with the prefix as an argument, and cuts each value after its second colon: the text
/// before it must be the same for all.
#[test]
fn agentlab_finds_one_host_and_all_its_arguments() {
    let (out, _) = arenad(&["env", "webarena", "--for", "browsergym", "--format", "dotenv"], &OTHER_PORTS);
    let mut names = Vec::new();
    for line in out.lines() {
        let (name, value) = line.split_once('=').unwrap();
        let (base, tail) = value.rsplit_once("org:").unwrap();
        assert_eq!(base, "http://arena.example.", "{line}");
        assert!(!tail.is_empty() && !value.ends_with('/'), "{line}");
        names.push(name.strip_prefix("WA_").unwrap().to_lowercase());
    }
    names.sort();
    let wanted = ["full_reset", "gitlab", "homepage", "map", "reddit", "shopping", "shopping_admin", "wikipedia"];
    assert_eq!(names, wanted);
}

#[test]
fn compose_itself_accepts_the_files() {
    for environment in ["webarena", "webarena-verified", "visualwebarena"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("compose/{environment}.yaml"));
        let checked = Command::new("docker-compose").args(["-f", &file.display().to_string(), "config", "-q"]).output();
        let checked = checked.expect("docker-compose; scripts/test-tools.sh installs it");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
