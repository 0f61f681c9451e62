//! The code of harnesses themselves, from their packages on PyPI: BrowserGym, AgentLab and webarena-verified.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::compat::TwoSites;
use crate::support::World;
use crate::support::world::free_port;

/// Returns the Python program that has the packages.
pub(super) fn python() -> String {
    python_with(&[])
}

/// Returns the Python program that has the packages of a choice, such as `--openenv`.
pub(super) fn python_with(choice: &[&str]) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let installed =
        Command::new("scripts/harnesses.sh").args(choice).current_dir(root).env("CARGO_TARGET_DIR", target).output();
    let installed = installed.expect("scripts/harnesses.sh runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    String::from_utf8(installed.stdout).unwrap().trim().to_owned()
}

/// Runs a script of `tests/harnesses`, which must succeed, with the packages of a choice, and returns its output.
#[track_caller]
pub(super) fn output_of(choice: &[&str], file: &str, args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = Command::new(python_with(choice))
        .arg(format!("{}/tests/harnesses/{file}", env!("CARGO_MANIFEST_DIR")))
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "*")
        .envs(variables.iter().copied())
        .output()
        .expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs code of a harness with the variables that `arenad env` prints, and others.
#[track_caller]
fn harness(world: &World, args: &[&str], others: &[(&str, &str)]) -> Value {
    let printed = world.run(&["env", &world.name, "--for", "browsergym", "--format", "dotenv"]).code(0);
    assert_eq!(printed.err, "", "the variables lead to the reset server");
    let variables = printed.out.lines().map(|line| line.split_once('=').expect("a variable"));
    let variables: Vec<_> = variables.chain(others.iter().copied()).collect();
    serde_json::from_str(&output_of(&[], "client.py", args, &variables)).expect("JSON")
}

/// Two sites that are up, with a reset server at the port that the variables name.
fn two_sites(label: &str, benchmark: &str) -> TwoSites {
    let two = TwoSites::new(label);
    let port = free_port();
    two.world.edit("environment", "sites:\n", &format!("reset_port: {port}\nbenchmark: {benchmark}\nsites:\n"));
    two.world.edit("environment", "timeout: 20s", "timeout: 4s");
    if benchmark == "visualwebarena" {
        let first = "sites:\n  toy:\n";
        two.world.edit("environment", first, &format!("{first}    exports: {{ CLASSIFIEDS_RESET_TOKEN: s3cret }}\n"));
    }
    let mut up = two.world.command(&["up", &two.world.name]);
    up.env("ARENAD_COMPAT", format!("127.0.0.1:{port}"));
    two.world.start_command(up).ended().code(0);
    two
}

const BASELINE: &str = "toy\nconfigured\n";

#[test]
fn browsergym_resets_all_sites_and_does_not_go_on_after_a_failure() {
    let two = two_sites("browsergym", "webarena");
    let world = &two.world;
    two.write("scribble");
    let done = harness(world, &["browsergym"], &[]);
    assert_eq!(done["raised"], Value::Null, "{done:#}");
    assert_eq!(two.pages(), [BASELINE, BASELINE]);
    assert_eq!(done["log"][1], "Reset started.", "{done:#}");
    // It asks for the status at once, then every 20 s.
    assert_eq!(done["log"].as_array().unwrap().len(), 2, "it was ready at the first look: {done:#}");
    assert!(Duration::from_secs_f64(done["seconds"].as_f64().unwrap()) < Duration::from_secs(18), "{done:#}");

    two.write("scribble");
    two.let_other_boot(false);
    let failed = harness(world, &["browsergym"], &[]);
    let raised = failed["raised"].as_str().unwrap_or_else(|| panic!("{failed:#}"));
    assert!(raised.contains("status request") && raised.contains("failed (500)"), "{raised}");
    assert!(raised.contains("other was not reset"), "{raised}");
    two.let_other_boot(true);
    let done = harness(world, &["browsergym"], &[]);
    assert_eq!(done["raised"], Value::Null, "{done:#}");
    assert_eq!(two.pages(), [BASELINE, BASELINE]);

    // AgentLab splits the variables and joins them again, for a slot as well.
    let url = format!("http://localhost:{}", world.port);
    let absent = ["WA_SHOPPING_ADMIN", "WA_GITLAB", "WA_WIKIPEDIA", "WA_MAP", "WA_HOMEPAGE"];
    let mut variables: Vec<(&str, &str)> = absent.iter().map(|name| (*name, url.as_str())).collect();
    let variable = harness(world, &["agentlab"], &variables)["WA_FULL_RESET"].as_str().unwrap().to_owned();
    let slot = format!("{variable}/slots/2");
    variables.push(("WA_FULL_RESET", &slot));
    assert_eq!(harness(world, &["agentlab"], &variables)["WA_FULL_RESET"], slot.as_str());
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn visualwebarena_resets_all_sites_and_its_classifieds() {
    let two = two_sites("visual", "visualwebarena");
    let world = &two.world;
    two.write("scribble");
    let site = format!("http://localhost:{}", world.port);
    let done = harness(world, &["visualwebarena"], &[("VWA_CLASSIFIEDS", site.as_str())]);
    assert_eq!(done["raised"], Value::Null, "{done:#}");
    assert_eq!(two.pages(), [BASELINE, BASELINE]);

    two.write("scribble");
    let form = format!("http://localhost:{}/sites/toy", super::compat::port(world));
    let done = harness(world, &["form"], &[("VWA_CLASSIFIEDS", form.as_str())]);
    assert_eq!(done["status"], 200, "{done:#}");
    assert_eq!(two.pages(), [BASELINE, &format!("{BASELINE}scribble\n")], "this site alone, when the answer arrives");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn the_client_of_webarena_verified_controls_a_site() {
    let two = two_sites("verified", "webarena");
    let world = &two.world;
    two.write("scribble");
    let server = format!("http://localhost:{}/sites/other", super::compat::port(world));
    let commands = ["status", "init", "start+wait", "restart", "wait_until_ready", "restart+wait", "stop"];
    let answers = harness(world, &[&["env-ctrl", &server], commands.as_slice()].concat(), &[]);
    let successes: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["success"]).collect();
    assert_eq!(successes, [true, true, true, true, true, true, false].map(|it| json!(it)).iter().collect::<Vec<_>>());
    assert_eq!(answers[4]["details"]["value"]["services"]["other"], "HEALTHY", "{answers:#}");
    assert_eq!(two.pages(), [&format!("{BASELINE}scribble\n"), BASELINE], "this site alone");
    two.let_other_boot(false);
    let answers = harness(world, &["env-ctrl", &server, "restart+wait", "status"], &[]);
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer["success"], false, "{answers:#}");
        assert!(answer["message"].as_str().unwrap().contains("other was not reset"), "{answers:#}");
    }
    two.let_other_boot(true);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn the_site_handler_for_webarena_verified_has_its_protocol() {
    let two = two_sites("handler", "webarena");
    let world = &two.world;
    let state_dir = world.state_dir().display().to_string();
    let root = world.root().display().to_string();
    let source = format!("{}/clients/python/src", env!("CARGO_MANIFEST_DIR"));
    let variables = [
        ("PYTHONPATH", source.as_str()),
        ("ARENAD_STATE_DIR", &state_dir),
        ("ARENAD_ROOT", &root),
        ("ARENAD_BIN", env!("CARGO_BIN_EXE_arenad")),
        ("ARENAD_STORAGE", "plain"),
    ];
    let log = harness(world, &["handler", "toy"], &variables);
    assert_eq!(log["written"], json!({ "stdout": "out\n", "stderr": "err\n", "returncode": 0 }));
    assert_eq!(log["notes"], format!("{BASELINE}by-hand\n"));
    assert_eq!(log["after reset"], BASELINE);
    assert_eq!(log["url"], format!("http://localhost:{}", world.port));
    let raised: Vec<&str> = log["raised"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let expected = ["exited with code 3", "was configured for", "toy: ", "nothing"];
    for (text, part) in raised.iter().zip(expected) {
        assert!(text.contains(part), "{text}");
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}
