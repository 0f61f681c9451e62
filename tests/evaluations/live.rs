//! The agent's own page, and a judge behind an interface, both through the command line from end to end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::browser::HeadlessBrowser;
use crate::support::World;
use crate::support::world::CommandOutput;

fn eval(world: &World, task: &str, options: &[&str]) -> CommandOutput {
    let base = ["eval", "--benchmark", "webarena", "--tasks", "tasks.json", "--task", task];
    world.run(&[&base[..], options].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_where_the_agent_ended_is_looked_at_and_left_as_it_is() {
    let world = World::single("live");
    let page = "<!doctype html><title>Gallery</title><p class=note>The blue mug</p>";
    std::fs::write(world.root().join("compose/toy/root/srv/www/gallery.html"), page).unwrap();
    let task = |id: u32, locator: &str, contents: Value| {
        let eval = json!({ "eval_types": ["program_html"], "program_html": [
            { "url": "last", "locator": locator, "required_contents": contents },
        ] });
        json!({ "task_id": id, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "Look at the mug", "eval": eval })
    };
    let tasks = json!([
        task(1, "document.querySelector('.note').outerText", json!({ "exact_match": "The red mug" })),
        task(2, "", json!({ "must_include": ["typed by the agent"] })),
    ]);
    std::fs::write(world.root().join("tasks.json"), tasks.to_string()).unwrap();
    world.up();
    let browser = HeadlessBrowser::start().await;
    let url = format!("http://localhost:{}/gallery.html", world.port);
    let page = browser.page(&url).await;
    let address = browser.address();
    let options = ["--cdp", address.as_str(), "--url", url.as_str(), "--profile", "both"];

    // The change exists only in this page; a new page of the same URL would not show it.
    eval(&world, "1", &options).code(5).prints("The blue mug");
    let change = "document.querySelector('.note').textContent = 'The red mug'; window.mark = 7; history.length";
    let steps: u32 = page.eval(change).await;
    eval(&world, "1", &[&options[..], &["--evidence", "seen.json"]].concat()).code(0);
    eval(&world, "2", &options).code(5);
    let typed =
        "document.body.append(Object.assign(document.createElement('p'), { textContent: 'typed by the agent' })), true";
    assert!(page.eval::<bool>(typed).await);
    eval(&world, "2", &options).code(0);
    assert_eq!(page.eval::<u32>("window.mark").await, 7, "the page was not loaded again");
    assert_eq!((page.url().await, page.eval::<u32>("history.length").await), (url.clone(), steps));

    drop(browser);
    eval(&world, "1", &options).code(6).prints("inconclusive");
    world.run(&["eval", "--from", "seen.json", "--profile", "both"]).code(0);
    world.run(&["down"]).code(0);
}

/// A request to the endpoint: path, key and document.
type EndpointRequests = Vec<(String, String, Value)>;

#[derive(Clone, Default)]
struct ScriptedEndpoint {
    script: Arc<Mutex<VecDeque<(u16, &'static str)>>>,
    asked: Arc<Mutex<EndpointRequests>>,
}

async fn answer(
    State(endpoint): State<ScriptedEndpoint>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let key = headers.get("authorization").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    endpoint.asked.lock().unwrap().push((uri.path().to_owned(), key, serde_json::from_str(&body).unwrap()));
    let (status, reply) = endpoint.script.lock().unwrap().pop_front().unwrap_or((404, "the script is at its end"));
    let answer = match status {
        200 => json!({
            "choices": [{ "message": { "role": "assistant", "content": reply } }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 2 },
        }),
        _ => json!({ "error": { "message": reply } }),
    };
    (StatusCode::from_u16(status).unwrap(), answer.to_string())
}

impl ScriptedEndpoint {
    /// Serves until the test ends, and returns the address.
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn next(&self, script: &[(u16, &'static str)]) {
        self.script.lock().unwrap().extend(script);
    }

    fn take_asked(&self) -> EndpointRequests {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_decides_is_paid_once_and_its_silence_decides_nothing() {
    let world = World::bare("judge");
    let eval_spec = json!({ "eval_types": ["string_match"], "reference_answers": { "fuzzy_match": ["five mugs"] } });
    let task =
        json!({ "task_id": 1, "sites": [], "start_url": "http://h/", "intent": "How many mugs?", "eval": eval_spec });
    std::fs::write(world.root().join("tasks.json"), json!([task]).to_string()).unwrap();
    let endpoint = ScriptedEndpoint::default();
    let address = endpoint.serve().await;
    let judged = |answer: &str, more: &[&str]| {
        let judge = ["--judge", &address, "--judge-model", "a-model", "--judge-key", "hush", "--judge-folder", "judge"];
        eval(&world, "1", &[&["--answer", answer], &judge[..], more].concat())
    };

    eval(&world, "1", &["--answer", "5 of them", "--evidence", "open.json"]).code(6).prints("needs_judge");
    assert!(endpoint.take_asked().is_empty());

    // A request that fails at the endpoint is retried, and the verdict is the model's.
    endpoint.next(&[(500, "busy"), (200, "Correct.")]);
    judged("5 of them", &["--evidence", "seen.json"]).code(0).prints("passed");
    let asked = endpoint.take_asked();
    assert_eq!(asked.len(), 2);
    for (path, key, document) in &asked {
        assert_eq!((path.as_str(), key.as_str()), ("/v1/chat/completions", "Bearer hush"));
        assert_eq!((&document["model"], &document["temperature"]), (&json!("a-model"), &json!(0)));
        let prompt = document["messages"][1]["content"].as_str().unwrap();
        assert!(prompt.contains("How many mugs?") && prompt.contains("five mugs") && prompt.contains("5 of them"));
    }

    // A paid reply is not requested again, and recorded observations need no judge.
    judged("5 of them", &[]).code(0);
    world.run(&["eval", "--from", "seen.json"]).code(0).prints("passed");
    world.run(&["eval", "--from", "open.json"]).code(6).prints("needs_judge");
    world.run(&["eval", "--from", "open.json", "--judge", "recorded:judge/replies.jsonl"]).code(0).prints("passed");
    assert!(endpoint.take_asked().is_empty());

    endpoint.next(&[(200, "incorrect")]);
    judged("six", &[]).code(5).prints("failed");
    // A reply that is neither yes nor no is requested once more and then left open; a refusing endpoint leaves the
    // check open too.
    endpoint.next(&[(200, "Well, it depends."), (200, "Hard to say.")]);
    judged("some", &[]).code(6).prints("inconclusive").prints("Hard to say.");
    endpoint.next(&[(401, "the key hush is unknown")]);
    let refused = judged("many", &[]).code(6).prints("inconclusive").prints("401");
    assert!(!refused.out.contains("hush") && !refused.err.contains("hush"), "{}\n{}", refused.out, refused.err);
    assert_eq!(endpoint.take_asked().len(), 4);

    let kept = std::fs::read_to_string(world.root().join("judge/replies.jsonl")).unwrap();
    assert!(!kept.contains("hush"));
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let replies: Vec<&str> = kept.iter().map(|record| record["reply"].as_str().unwrap()).collect();
    assert_eq!(replies, ["Correct.", "incorrect", "Well, it depends.", "Hard to say."]);
    assert!(kept.iter().all(|record| record["usage"] == json!({ "prompt_tokens": 100, "completion_tokens": 2 })));
    assert_eq!(kept.iter().filter(|record| record["unusable"] == true).count(), 2);
}
