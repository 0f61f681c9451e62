//! The steps of an episode's agent: told by the daemon's browser, posted by clients, and judged by key nodes.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::browsed::{Browsed, VISIT, element, world};
use super::{EpisodeClient, id};
use crate::support::World;

/// A task of WebCanvas: a page, an element on it with its label, and an answer.
fn task(world: &World) -> String {
    let url = json!({ "key": "", "reference_answer": "/cgi-bin/visit", "url": VISIT });
    let path = json!({ "reference_answer": "body > a", "netloc": "toy", "url": VISIT });
    let value = json!({ "reference_answer": "visitor=ann", "netloc": "toy", "url": VISIT });
    let nodes = json!([
        { "match_function_name": "url_included_match", "content": url },
        { "match_function_name": "element_path_exactly_match", "method": "selector", "content": path },
        { "match_function_name": "element_value_exactly_match", "content": value },
        { "match_function_name": "final_answer_exact_match", "content": { "reference_answer": "three" } },
    ]);
    let tasks = json!([{ "index": 0, "task": "Visit", "reference_task_length": 2, "evaluation": nodes }]);
    let path = world.root().join("tasks.json");
    std::fs::write(&path, tasks.to_string()).unwrap();
    path.display().to_string()
}

/// Judges an episode, and returns the number of key nodes that are reached.
fn reached(world: &World, tasks: &str, episode: &str, code: i32) -> usize {
    let args = ["eval", "--benchmark", "webcanvas", "--task", "0", "--tasks", tasks, "--episode", episode, "--json"];
    let judged = world.run(&args).code(code).json();
    let checks = judged["reports"][0]["checks"].as_array().unwrap_or_else(|| panic!("{judged:#}"));
    checks.iter().filter(|check| check["verdict"] == "passed").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_nodes_are_reached_while_an_agent_acts_and_judged_after_its_episode() {
    let world = world("trajectories");
    world.up();
    let tasks = task(&world);
    let api = EpisodeClient::of(&world);
    let browsed = Browsed::start(&api, json!({})).await;
    let path = format!("/v1/episodes/{}/observations", browsed.id);
    let none =
        world.run(&["eval", "--benchmark", "webcanvas", "--task", "0", "--tasks", &tasks, "--episode", &browsed.id]);
    none.code(1).says("no step of episode");

    let first = browsed.reset(json!({ "url": format!("{VISIT}?ann"), "trajectory": true })).await;
    let (_, empty) = api.ask(Method::GET, &path, None).await;
    assert_eq!(empty, json!({ "steps": [], "after": null, "declared_done": false }));
    browsed.act("scroll [down]").await;
    assert_eq!(reached(&world, &tasks, &browsed.id, 5), 1, "the page was seen");
    browsed.act(&format!("click [{}]", element(&first, "link 'visitor=ann'"))).await;
    assert_eq!(reached(&world, &tasks, &browsed.id, 5), 3, "its link was clicked");
    let (_, seen) = api.ask(Method::GET, &path, None).await;
    let step = &seen["steps"][1];
    assert_eq!((&step["url"], &step["element_value"]), (&json!(VISIT), &json!("visitor=ann")), "{step:#}");
    assert_eq!(step["selector"], "html > body:nth-child(2) > a:nth-child(1)", "{step:#}");
    assert!(step["html"].as_str().is_some_and(|html| html.contains("visitor=ann</a>")), "{step:#}");
    assert!(seen["after"]["url"].as_str().is_some_and(|url| url.ends_with("/cgi-bin/page")), "{seen:#}");

    // An action with a misspelt name is not a step.
    browsed.act("clack [7]").await;
    browsed.act("stop [three]").await;
    assert_eq!(reached(&world, &tasks, &browsed.id, 0), 4);
    world.signal_daemon(Signal::KILL);
    world.up();
    assert_eq!(reached(&world, &tasks, &browsed.id, 0), 4, "the steps outlive the daemon");
    world.run(&["episode", "end", &browsed.id]);
    assert_eq!(reached(&world, &tasks, &browsed.id, 0), 4, "and the episode");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_post_the_steps_of_their_own_browsers() {
    let world = world("posted");
    world.up();
    let tasks = task(&world);
    let api = EpisodeClient::of(&world);
    let episode = id(&api.start(json!({ "sites": ["toy"], "wait_seconds": 120 })).await);
    let path = format!("/v1/episodes/{episode}/observations");
    let post = async |step: Value| api.ask(Method::POST, &path, Some(step)).await;
    let page = "<html><head></head><body><a>visitor=ann</a></body></html>";
    let step = json!({ "url": VISIT, "html": page, "selector": "a", "element_value": "visitor=bob" });
    assert_eq!(post(step).await.0, 204);
    assert_eq!(reached(&world, &tasks, &episode, 5), 2, "the label is another one");
    assert_eq!(post(json!({ "url": VISIT, "text_content": "Three", "done": true })).await.0, 204);
    assert_eq!(reached(&world, &tasks, &episode, 5), 3);
    for wrong in [json!({}), json!({ "url": 7 }), json!({ "url": VISIT, "element": "a" })] {
        let (status, refused) = post(wrong).await;
        assert_eq!(status, 400, "{refused:#}");
    }
    let large = "x".repeat(15 << 20);
    let mut taken = 0;
    let refused = loop {
        let (status, refused) = post(json!({ "url": VISIT, "html": large })).await;
        if status != 204 {
            break refused;
        }
        taken += 1;
        assert!(taken < 10, "the steps are bounded");
    };
    assert_eq!((taken, &refused["code"]), (4, &json!("full")), "{refused:#}");
    world.run(&["episode", "freeze", &episode]).code(0);
    let (status, refused) = post(json!({ "url": VISIT })).await;
    assert_eq!((status, &refused["code"]), (409, &json!("busy")), "{refused:#}");
    world.run(&["episode", "end", &episode]);
    let (status, refused) = post(json!({ "url": VISIT })).await;
    assert!((400..500).contains(&status), "{refused:#}");
    let (status, unknown) = api.ask(Method::GET, "/v1/episodes/ep-00000000000000000000/observations", None).await;
    assert_eq!((status, &unknown["code"]), (404, &json!("unknown_episode")));
    world.run(&["down"]).code(0);
    world.assert_down();
}
