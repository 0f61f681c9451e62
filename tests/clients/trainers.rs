//! The trainers that use the environment service: NeMo Gym, verifiers and TRL themselves, from PyPI, with scripted models.

use std::time::Duration;

use serde_json::{Value, json};

use super::harnesses::{output_of, python_with};
use super::openenv::Service;
use super::{EpisodeClient, kill_container};
use crate::support::wait::{PATIENCE, within};

/// The time until the first steps of a trainer, whose packages are large, on a slow, busy machine.
const BEGINNING: Duration = Duration::from_secs(180);

/// A step that solves the task `toy.write`.
const WRITE: &str = "http://toy.arena.test/cgi-bin/write?apples";

/// Runs a script of `tests/harnesses` with its packages, and returns the JSON in its last line.
fn script(choice: &str, file: &str, args: &[&str], variables: &[(&str, &str)]) -> Value {
    let text = output_of(&[choice], file, args, variables);
    serde_json::from_str(text.lines().last().unwrap_or_default()).expect("JSON")
}

#[test]
#[ignore = "installs NeMo Gym with ray: `make test-harnesses` runs it"]
fn nemo_gyms_own_agent_gets_rewards() {
    let service = Service::up("openenv-nemo");
    let address = service.url();
    let run = |task: &str, turns: &[&str]| {
        script("--trainers", "trainers/nemo_gym_agent.py", &[&[address.as_str(), task], turns].concat(), &[])
    };
    let goto = &format!(r#"goto {{"url": "{WRITE}"}}"#);
    let solved = run("toy.write", &["scroll {\"direction\": \"down\"}", goto, "I have done it."]);
    assert_eq!((&solved["run"]["reward"], &solved["run"]["verdict"]), (&json!(1.0), &json!("passed")), "{solved:#}");
    assert_eq!(solved["metrics"]["key_metrics"]["mean/reward"], 1.0, "{solved:#}");
    let outputs = solved["run"]["response"]["output"].as_array().unwrap();
    assert!(
        outputs[1]["output"].as_str().unwrap().contains("visitor=ann"),
        "the page after the first action: {solved:#}"
    );
    let failed = run("toy.answer", &["pear"]);
    assert_eq!(failed["run"]["reward"], 0.0, "{failed:#}");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs verifiers: `make test-harnesses` runs it"]
async fn the_openenv_taskset_of_verifiers_gets_rewards_and_an_error_for_a_void_episode() {
    let service = Service::up("openenv-verifiers");
    let address = service.url();
    let folder = service.world.root().join("rollouts");
    let parent = folder.clone();
    let run = move |name: &str, task: &str, turns: &[&str]| {
        let into = parent.join(name).display().to_string();
        let cache = parent.join("uv").display().to_string();
        let args = [&[address.as_str(), &into, task], turns].concat();
        script("--verifiers", "verifiers/rollouts.py", &args, &[("UV_CACHE_DIR", &cache)])
    };
    let goto = format!("goto [{WRITE}]");
    let solved = run("solved", "toy.write", &["scroll [down]", &format!(r#"{{"action": "{goto}"}}"#), "stop"]);
    assert_eq!(solved["traces"][0]["rewards"]["openenv_reward"]["score"], 1.0, "{solved:#}");
    let failed = run("failed", "toy.answer", &["stop [pear]"]);
    assert_eq!(failed["traces"][0]["rewards"]["openenv_reward"]["score"], 0.0, "{failed:#}");

    let rollout = tokio::task::spawn_blocking({
        let run = run.clone();
        move || run("void", "toy.answer", &["scroll [down]", "wait"])
    });
    let file = folder.join("void/waiting");
    within("the model waits", BEGINNING, || file.exists().then_some(()));
    let api = EpisodeClient::of(&service.world);
    let (_, live) = api.get("/v1/episodes?live=true").await;
    kill_container(&service.world);
    api.until(live["episodes"][0]["id"].as_str().expect("an episode"), "void", PATIENCE).await;
    std::fs::remove_file(&file).unwrap();
    let void = rollout.await.expect("the rollout ends");
    assert_eq!((&void["ok"], void["traces"][0]["rewards"].get("openenv_reward")), (&json!(false), None), "{void:#}");
    assert!(void.to_string().contains("the episode has ended: void"), "{void:#}");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs TRL with PyTorch: `make test-harnesses` runs it"]
async fn trl_learns_from_the_members_of_a_group_whose_episodes_are_not_void() {
    let service = Service::up_with("openenv-trl", |world| {
        world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 5, max: 5 }");
        Vec::new()
    });
    let world = &service.world;
    let folder = world.root().join("rollouts");
    std::fs::create_dir_all(&folder).unwrap();
    let answer = |word: &str| json!([["scroll", { "direction": "down" }], ["stop", { "answer": word }], "I am done."]);
    let turns = json!([answer("toy"), answer("pear"), ["I give up."], [{ "wait": "void" }, ["stop", { "answer": "toy" }], "?"]]);
    let address = service.url();
    let args = [folder.display().to_string(), "toy.answer".to_owned(), turns.to_string()];
    // The installation of the packages is not part of the time limit.
    python_with(&["--trl"]);
    let trainer = tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        script("--trl", "trl/rollouts.py", &args, &[("OPENENV_URL", &address)])
    });
    let file = folder.join("void");
    let id = within("a member of the group waits", BEGINNING, || std::fs::read_to_string(&file).ok());
    let api = EpisodeClient::of(world);
    let (_, episode) = api.get(&format!("/v1/episodes/{id}")).await;
    let slot = episode["sites"][0]["slot"].as_u64().unwrap_or_else(|| panic!("a slot: {episode:#}"));
    for container in world.containers_of_slot(slot) {
        world.engine.docker(&["kill", "--signal", "KILL", &container]);
    }
    api.until(&id, "void", PATIENCE).await;
    std::fs::remove_file(&file).unwrap();

    let seen = trainer.await.expect("the trainer ends");
    assert_eq!(seen["rewards"], json!([1.0, 0.0, 0.0, null]), "{seen:#}");
    let advantages: Vec<f64> =
        seen["advantages"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert!(advantages[0] > 0.0 && advantages[1] < 0.0 && advantages[2] < 0.0, "{advantages:?}");
    assert_eq!(advantages[3], 0.0, "a void episode teaches nothing");
    let told = seen["completions"][3].to_string();
    assert!(told.contains("void"), "the model is told why: {told}");
    world.run(&["down"]).code(0);
    world.assert_down();
}
