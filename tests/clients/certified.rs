//! Certificates of verdicts: issued by the daemon, verified by the program, here and elsewhere.

use std::os::unix::fs::PermissionsExt;

use arenad_certificate::{CertifiedStatement, InstallationKey};
use arenad_verdict::Verdict;
use reqwest::Method;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::support::World;

const TASKS: &str = "
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    intent: Make the site remember apples
    check:
      all:
        - { name: the word, locate: 'http: /cgi-bin/page', contains: apples }
        - { name: the answer, answer: { contains: done } }
";

/// An address at which no daemon answers.
const NOWHERE: &str = "unix:///nowhere/arenad.sock";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_verified_here_and_elsewhere_and_no_change_of_it_is() {
    let world = World::single("certified");
    world.write_tasks(TASKS);
    world.edit(
        "environment",
        "    baseline:\n",
        "    stores: { notes: { kind: directory, path: /srv/state } }\n    baseline:\n",
    );
    world.edit("environment", "variable: SHOPPING", "variable: SHOPPING, record: all");
    world.up();
    let key_file = world.state_dir().join("certificate.key");
    assert_eq!(std::fs::metadata(&key_file).unwrap().permissions().mode() & 0o777, 0o600);
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "task": "toy.write" })).await;
    let id = id(&started);
    let path = format!("/v1/episodes/{id}/evaluations");
    let judge = async |body| {
        let (status, judged) = api.ask(Method::POST, &path, Some(body)).await;
        assert_eq!(status, 200, "{judged:#}");
        judged
    };
    let untouched = judge(json!({ "answer": "done" })).await;
    let store = |judged: &Value| judged["certificate"]["statement"]["sites"][0]["stores"]["notes"].clone();
    assert_eq!(untouched["verdict"], "failed");
    assert_eq!(store(&untouched)["judged"], store(&untouched)["snapshot"], "{untouched:#}");
    world.write("apples");
    let judged = judge(json!({ "answer": "done" })).await;
    let statement = &judged["certificate"]["statement"];
    assert_eq!((&statement["verdict"], &statement["reward"]), (&json!("passed"), &json!(1)), "{statement:#}");
    assert_eq!((&statement["episode"]["id"], &statement["task"]["name"]), (&json!(id), &json!("toy.write")));
    let site = &statement["sites"][0];
    let images = site["snapshot"]["images"].as_object().unwrap();
    assert!(
        !images.is_empty() && images.values().all(|image| image.as_str().unwrap().starts_with("sha256:")),
        "{site:#}"
    );
    assert_eq!(store(&judged)["snapshot"], store(&untouched)["snapshot"]);
    assert_ne!(store(&judged)["judged"], store(&judged)["snapshot"], "the agent wrote: {site:#}");
    let without = judge(json!({ "answer": "done", "certificate": false })).await;
    assert_eq!((&without["verdict"], without.get("certificate")), (&json!("passed"), None));
    let task = json!({
        "task_id": 7, "sites": ["shopping"], "start_urls": ["__SHOPPING__"], "intent": "How many?", "intent_template_id": 1,
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [{ "evaluator": "AgentResponseEvaluator",
                   "results_schema": { "type": "array", "items": { "type": "string" } },
                   "expected": { "task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["5"] } }],
    });
    let answer = json!({ "task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["5"] });
    let body = json!({ "benchmark": "webarena-verified", "task": task, "answer": answer });
    let verified = judge(json!({ "benchmark": body })).await;
    assert!(verified["certificate"]["statement"]["traffic"]["size_bytes"].as_u64() > Some(100), "{verified:#}");

    // The verdicts stay with the episode, also for the next daemon.
    let given = async || {
        let (_, episode) = api.get(&format!("/v1/episodes/{id}")).await;
        let list = episode["evaluations"].as_array().cloned().unwrap_or_default();
        let given = |one: &Value| format!("{} {} {}", one["task"], one["verdict"], one["reward"]).replace('"', "");
        list.iter().map(given).collect::<Vec<_>>()
    };
    let native = ["toy.write failed 0.0", "toy.write passed 1.0", "toy.write passed 1.0"].map(str::to_owned);
    let last = format!("webarena-verified/7 {} {}", verified["verdict"], verified["reward"]).replace('"', "");
    assert_eq!(given().await, [&native[..], &[last]].concat());
    world.run(&["episode", "show", &id]).code(0).prints("passed on toy.write, reward 1");

    // Both a certificate and the evaluation that contains it are verified.
    let file = |name: &str, document: &Value| {
        let path = world.root().join(name);
        std::fs::write(&path, serde_json::to_string_pretty(document).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("certificate.json", &judged["certificate"]);
    world.run(&["verdict", "verify", &certificate]).code(0).prints("passed").prints(&id);
    world.run(&["verdict", "verify", &file("evaluation.json", &judged)]).code(0).prints("passed");
    world.run(&["verdict", "verify", &file("verified.json", &verified)]).code(0).prints("webarena-verified");
    world.run(&["verdict", "verify", &file("failed.json", &untouched)]).code(0).prints("failed");

    // Elsewhere, the key has to be given.
    let key = world.run(&["verdict", "key"]).code(0).out.trim().to_owned();
    assert_eq!(judged["certificate"]["key"], json!(key));
    let elsewhere = |file: &str, key: &str| world.run(&["--host", NOWHERE, "verdict", "verify", file, "--key", key]);
    let told = elsewhere(&certificate, &key).code(0);
    assert!(told.out.contains("passed"), "{}", told.out);
    std::fs::write(world.root().join("key.hex"), format!("{key}\n")).unwrap();
    elsewhere(&certificate, world.root().join("key.hex").to_str().unwrap()).code(0);
    world.run(&["--host", NOWHERE, "verdict", "verify", &certificate]).code(1).says("--key");
    let other = InstallationKey::read(&InstallationKey::generate().unwrap()).unwrap().public().to_string();
    elsewhere(&certificate, &other).code(7).says(&other);
    elsewhere(&certificate, "nokey").code(2).says("nokey");

    let mut changed = judged["certificate"].clone();
    changed["statement"]["verdict"] = json!("failed");
    world.run(&["verdict", "verify", &file("changed.json", &changed)]).code(7).says("changed after it was signed");
    world.run(&["verdict", "verify", &file("none.json", &json!({ "statement": {} }))]).code(2).says("malformed");
    world.run(&["verdict", "verify", "/nowhere.json"]).code(2).says("/nowhere.json");
    // Only the holder of the key can sign another verdict.
    let own = InstallationKey::read(&std::fs::read(&key_file).unwrap()).unwrap();
    let mut lie: CertifiedStatement = serde_json::from_value(untouched["certificate"]["statement"].clone()).unwrap();
    (lie.verdict, lie.reward) = (Verdict::Passed, Some(1));
    let lie = serde_json::to_value(lie.sign(&own).unwrap()).unwrap();
    world.run(&["verdict", "verify", &file("lie.json", &lie)]).code(8).says("failed, and not passed");

    let before = given().await;
    world.signal_daemon(rustix::process::Signal::KILL);
    world.up();
    let (_, episode) = EpisodeClient::of(&world).get(&format!("/v1/episodes/{id}")).await;
    assert_eq!(episode["evaluations"].as_array().map(Vec::len), Some(before.len()), "{episode:#}");
    // The key outlives the daemon, and is in no log.
    world.run(&["down"]).code(0);
    world.assert_down();
    let log = std::fs::read(world.state_dir().join("arenad.log")).unwrap_or_default();
    let seed = &std::fs::read(&key_file).unwrap()[16..48];
    let digits: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!log.windows(seed.len()).any(|part| part == seed) && !String::from_utf8_lossy(&log).contains(&digits));
    world.run(&["down", "--purge", "--yes"]).code(0);
    assert!(!world.state_dir().exists(), "the key is removed with the rest");
}
