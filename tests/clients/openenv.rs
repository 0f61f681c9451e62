//! The environment service, frame by frame: sessions, rewards, and episodes that the environment failed.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::browsed::kill_browsers;
use super::harnesses::output_of;
use super::{EpisodeClient, FREE_WITHIN, kill_container};
use crate::support::World;
use crate::support::wait::PATIENCE;
use crate::support::world::free_port;

const TASKS: &str = r#"
environment: @NAME@
tasks:
  - name: toy.write
    kind: content
    sites: [toy]
    start: { site: toy, path: /cgi-bin/visit?ann }
    intent: Make the site remember apples
    before:
      lines: { locate: "exec: toy: wc -l /srv/state/notes" }
    check:
      all:
        - { name: one line more, locate: "exec: toy: wc -l /srv/state/notes", difference: { from: lines, by: 1 } }
        - { name: the word, locate: "http: /cgi-bin/page", contains: apples }
  - name: toy.answer
    kind: information
    sites: [toy]
    start: { site: toy, path: /cgi-bin/page }
    intent: Which word does the page begin with?
    check: { answer: { equals: toy } }
"#;

const WRITE: &str = "goto [http://toy.arena.test/cgi-bin/write?apples]";

/// A world with an environment service.
pub(super) struct Service {
    pub(super) world: World,
    port: u16,
}

impl Service {
    pub(super) fn up(label: &str) -> Self {
        Self::up_with(label, |_| Vec::new())
    }

    /// Brings a world up after changes to its files, with the variables that they return for the daemon.
    pub(super) fn up_with(label: &str, change: impl FnOnce(&World) -> Vec<(&'static str, String)>) -> Self {
        let world = World::single(label);
        world.write_tasks(TASKS);
        let variables = change(&world);
        let port = free_port();
        let mut up = world.command(&["up", &world.name]);
        up.env("ARENAD_OPENENV", format!("127.0.0.1:{port}")).envs(variables);
        world.start_command(up).ended().code(0);
        Self { world, port }
    }

    /// Returns the address of the service.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    async fn connect(&self) -> Session {
        let connected = tokio_tungstenite::connect_async(format!("ws://127.0.0.1:{}/ws", self.port)).await;
        Session(connected.expect("a session").0)
    }

    async fn http(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let client = Client::builder().no_proxy().build().unwrap();
        let mut request = client.request(method, format!("{}{path}", self.url()));
        if let Some(body) = &body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }
}

struct Session(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Session {
    async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("sent");
    }

    async fn hear(&mut self) -> Value {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an answer in time");
            match message.expect("an answer").expect("a frame") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Close(_) => return Value::Null,
                _ => {}
            }
        }
    }

    async fn ask(&mut self, kind: &str, data: Value) -> Value {
        self.say(&json!({ "type": kind, "data": data }).to_string()).await;
        self.hear().await
    }

    async fn reset(&mut self, data: Value) -> Value {
        let answer = self.ask("reset", data).await;
        assert_eq!(answer["type"], "observation", "{answer:#}");
        answer["data"].clone()
    }

    async fn step(&mut self, action: &str) -> Value {
        let answer = self.ask("step", json!({ "action": action, "metadata": {} })).await;
        assert_eq!(answer["type"], "observation", "{answer:#}");
        answer["data"].clone()
    }

    async fn state(&mut self) -> Value {
        self.say(r#"{"type":"state"}"#).await;
        let answer = self.hear().await;
        assert_eq!(answer["type"], "state", "{answer:#}");
        answer["data"].clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_episodes_with_rewards_and_ends_with_its_connection() {
    let service = Service::up("openenv");
    let api = EpisodeClient::of(&service.world);
    let mut session = service.connect().await;
    assert_eq!(session.state().await["episode_id"], Value::Null);
    let early = session.ask("step", json!({ "action": "new_tab" })).await;
    assert_eq!(early["data"]["code"], "EXECUTION_ERROR", "{early:#}");
    for (text, code) in [
        ("{", "INVALID_JSON"),
        (r#"{"type":"dance"}"#, "UNKNOWN_TYPE"),
        (r#"{"type":"reset","seed":1}"#, "VALIDATION_ERROR"),
        (r#"{"type":"step","data":{"click":1}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"task":"toy.none"}}"#, "EXECUTION_ERROR"),
    ] {
        session.say(text).await;
        let answer = session.hear().await;
        assert_eq!((&answer["type"], &answer["data"]["code"]), (&json!("error"), &json!(code)), "{text}: {answer:#}");
    }

    // The episode of a task: its start, its intent, and the reward of its check.
    let first = session.reset(json!({ "task": "toy.write", "seed": 3, "episode_id": "row-1", "prompt": "x" })).await;
    assert_eq!((&first["reward"], &first["done"]), (&Value::Null, &json!(false)), "{first:#}");
    let observation = &first["observation"];
    assert_eq!(observation["intent"], "Make the site remember apples");
    assert!(observation["text"].as_str().unwrap().contains("link 'visitor=ann'"), "{observation:#}");
    let state = session.state().await;
    assert_eq!(state["episode_id"], "row-1", "the client's own id");
    let id = state["arenad_episode"].as_str().unwrap().to_owned();
    let (_, episode) = api.get(&format!("/v1/episodes/{id}")).await;
    assert_eq!((&episode["state"], &episode["is_held"]), (&json!("active"), &json!(true)), "{episode:#}");
    assert_eq!(episode["labels"], json!({ "openenv_episode_id": "row-1", "task": "toy.write" }));
    let wrong = session.step("click [999999]").await;
    assert_eq!((&wrong["observation"]["error"], &wrong["reward"]), (&json!("'999999'"), &Value::Null));
    session.step(WRITE).await;
    let last = session.step("stop").await;
    assert_eq!((&last["reward"], &last["done"]), (&json!(1.0), &json!(true)), "{last:#}");
    assert_eq!((&last["observation"]["verdict"], &last["observation"]["answer"]), (&json!("passed"), &json!("")));
    let state = session.state().await;
    assert_eq!((&state["step_count"], &state["done"], &state["task"]), (&json!(3), &json!(true), &json!("toy.write")));
    let more = session.ask("step", json!({ "action": "new_tab" })).await;
    assert_eq!(more["data"]["code"], "EXECUTION_ERROR");

    // Resets with the same seed and with another one are equal, and other steps than the last one have the reward that
    // the client has chosen.
    let texts = async |session: &mut Session, seed: u64| {
        let reset = session.reset(json!({ "task": "toy.write", "seed": seed, "step_reward": 0 })).await;
        let step = session.step("scroll [down]").await;
        assert_eq!((&reset["reward"], &step["reward"]), (&Value::Null, &json!(0.0)), "{step:#}");
        [reset, step].map(|seen| without_ids(seen["observation"]["text"].as_str().unwrap()))
    };
    let first = texts(&mut session, 3).await;
    assert_eq!(first, texts(&mut session, 3).await, "the same seed");
    assert_eq!(first, texts(&mut session, 4).await, "another seed");
    let floor = session.step("stop").await;
    assert_eq!((&floor["reward"], &floor["observation"]["verdict"]), (&json!(0.0), &json!("failed")));

    // The next episode of the session finds the baseline; a wrong answer has the reward 0.
    let next = session.reset(json!({ "task": "toy.answer" })).await;
    assert!(!next["observation"]["text"].as_str().unwrap().contains("apples"), "{next:#}");
    assert_eq!(api.state(&id).await, "released");
    assert_eq!(session.step("stop [pear]").await["reward"], 0.0);
    session.reset(json!({ "task": "toy.answer" })).await;
    assert_eq!(session.step("stop [toy]").await["reward"], 1.0);

    // Tools, by steps and by JSON-RPC.
    session.reset(json!({ "sites": ["toy"], "url": "http://toy.arena.test/cgi-bin/page" })).await;
    let listed = session.ask("step", json!({ "type": "list_tools" })).await;
    assert_eq!(listed["data"]["observation"]["tools"][0]["name"], "click", "{listed:#}");
    let called = json!({ "type": "call_tool", "tool_name": "new_tab", "arguments": {} });
    let called = session.ask("step", called).await;
    assert_eq!(called["data"]["observation"]["result"]["tabs"].as_array().map(Vec::len), Some(2), "{called:#}");
    let missing = json!({ "id": "1", "file": "missing.txt" });
    let called = json!({ "type": "call_tool", "tool_name": "upload", "arguments": missing });
    let called = session.ask("step", called).await;
    let error = "ENOENT: no such file or directory, stat 'missing.txt'";
    assert_eq!(called["data"]["observation"]["result"]["error"], error, "{called:#}");
    let rpc = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "close_tab" } });
    let called = session.ask("mcp", rpc).await;
    assert_eq!((&called["type"], &called["data"]["id"]), (&json!("mcp"), &json!(1)), "{called:#}");
    assert_eq!(called["data"]["result"]["isError"], false);
    let stopped = session.step("stop [x]").await;
    assert_eq!((&stopped["reward"], &stopped["done"]), (&Value::Null, &json!(true)), "there is no task to judge");

    // A message during a reset is answered after it; a client that goes away gives its slot back at once.
    session.say(r#"{"type":"reset","data":{"task":"toy.answer"}}"#).await;
    session.say(r#"{"type":"state"}"#).await;
    assert_eq!(session.hear().await["type"], "observation");
    let id = session.hear().await["data"]["episode_id"].as_str().unwrap().to_owned();
    drop(session);
    api.until(&id, "released", FREE_WITHIN).await;
    let mut session = service.connect().await;
    session.reset(json!({ "task": "toy.answer" })).await;
    session.say(r#"{"type":"close"}"#).await;
    assert_eq!(session.hear().await, Value::Null, "the server closes without an answer");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

/// A client of NeMo Gym's resources server: it sends the cookies of the last answer, as NeMo Gym's agents do.
struct GymClient {
    client: Client,
    port: u16,
    cookie: Option<String>,
}

impl GymClient {
    fn of(service: &Service) -> Self {
        Self { client: Client::builder().no_proxy().build().unwrap(), port: service.port, cookie: None }
    }

    async fn post(&mut self, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.client.post(format!("http://127.0.0.1:{}{path}", self.port)).json(&body);
        if let Some(cookie) = self.cookie.take() {
            request = request.header("cookie", format!("Other___server=1; {cookie}"));
        }
        let answer = request.send().await.unwrap();
        let set = answer.headers().get("set-cookie").map(|value| value.to_str().unwrap().to_owned());
        self.cookie = set.map(|set| set.split(';').next().unwrap().to_owned());
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Sends a request, and goes away before the answer.
    async fn post_and_leave(&self, path: &str, body: Value) {
        let request = self.client.post(format!("http://127.0.0.1:{}{path}", self.port)).json(&body);
        let request = request.header("cookie", self.cookie.as_deref().unwrap());
        let _ = request.timeout(Duration::from_millis(20)).send().await;
    }

    async fn seed(&mut self, task: &str) -> Value {
        let (status, seeded) = self.post("/seed_session", row(task, &json!([]))).await;
        assert_eq!(status, 200, "{seeded:#}");
        seeded
    }
}

/// A row of a data set of NeMo Gym, with the response of a model.
fn row(task: &str, output: &Value) -> Value {
    json!({
        "responses_create_params": { "input": [{ "role": "user", "content": "Do it" }] },
        "response": { "id": "resp_1", "object": "response", "output": output },
        "verifier_metadata": { "task": task },
        "_ng_task_index": 3,
    })
}

fn said(text: &str) -> Value {
    json!([{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nemo_gyms_sessions_have_rewards_once_and_none_for_a_void_episode() {
    let service = Service::up("openenv-gym");
    let api = EpisodeClient::of(&service.world);
    let mut gym = GymClient::of(&service);
    assert_eq!(service.http(reqwest::Method::GET, "/", None).await, (200, json!({ "status": "ok" })));
    let (status, early) = gym.post("/click", json!({ "id": "1" })).await;
    let no_session = json!({ "result": null, "error": "No active session. Call /seed_session first." });
    assert_eq!((status, early), (200, no_session));
    assert_eq!(gym.post("/verify", row("toy.write", &json!([]))).await.0, 409);

    // Tools, and the agent's end by `stop`.
    let seeded = gym.seed("toy.write").await;
    assert_eq!(seeded["observation"]["intent"], "Make the site remember apples");
    assert_eq!(gym.post("/dance", json!({})).await.0, 404);
    let (_, wrong) = gym.post("/click", json!({})).await;
    assert_eq!(wrong, json!({ "result": null, "error": "click needs the argument id" }));
    let (_, wrong) = gym.post("/click", json!({ "id": "999999" })).await;
    assert_eq!(wrong["error"], "'999999'", "{wrong:#}");
    let (_, page) = gym.post("/goto", json!({ "url": "http://toy.arena.test/cgi-bin/write?apples" })).await;
    assert_eq!((&page["error"], page["result"]["text"].is_string()), (&Value::Null, true), "{page:#}");
    gym.post("/stop", json!({})).await;
    let (_, late) = gym.post("/new_tab", json!({})).await;
    assert_eq!(late["result"], Value::Null, "{late:#}");
    let body = row("toy.write", &json!([]));
    let (status, verified) = gym.post("/verify", body.clone()).await;
    let mut expected = body.clone();
    for (name, value) in [("reward", json!(1.0)), ("verdict", json!("passed")), ("steps", json!(3))] {
        expected[name] = value;
    }
    expected["arenad_episode"] = verified["arenad_episode"].clone();
    assert_eq!((status, &verified), (200, &expected), "the request with the reward");
    api.until(verified["arenad_episode"].as_str().unwrap(), "released", FREE_WITHIN).await;
    assert_eq!(gym.post("/verify", body).await, (200, verified), "the first outcome again");
    assert_eq!(gym.post("/click", json!({ "id": "1" })).await.1["error"], "Episode has ended.");

    // The same cookie begins another episode. Without `stop`, the last message is the answer.
    gym.seed("toy.answer").await;
    let (_, verified) = gym.post("/verify", row("toy.answer", &said(" toy\n"))).await;
    assert_eq!(verified["reward"], 1.0, "{verified:#}");
    let (mut one, mut other) = (GymClient::of(&service), GymClient::of(&service));
    one.seed("toy.answer").await;
    let (_, verified) = one.post("/verify", row("toy.answer", &said("pear"))).await;
    assert_eq!(verified["reward"], 0.0, "{verified:#}");
    assert_eq!(other.post("/verify", row("toy.answer", &said("toy"))).await.0, 409, "sessions are apart");

    // A client that went away during the judgement gets its outcome later.
    one.seed("toy.answer").await;
    one.post_and_leave("/verify", row("toy.answer", &said("toy"))).await;
    let (status, verified) = one.post("/verify", row("toy.answer", &said("toy"))).await;
    assert_eq!((status, &verified["reward"]), (200, &json!(1.0)), "{verified:#}");

    // The environment failed the episode: no answer has a reward, however often it is asked for.
    other.seed("toy.answer").await;
    let (_, live) = api.get("/v1/episodes?live=true").await;
    let id = live["episodes"][0]["id"].as_str().unwrap().to_owned();
    kill_container(&service.world);
    api.until(&id, "void", PATIENCE).await;
    for _ in 0..2 {
        let (status, void) = other.post("/verify", row("toy.answer", &said("toy"))).await;
        assert_eq!((status, &void["detail"]["problem"]), (410, &json!("void")), "{void:#}");
        assert_eq!(void.get("reward"), None, "{void:#}");
    }

    let rollouts = json!({ "verify_responses": [
        { "_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0 },
        { "_ng_task_index": 0, "_ng_rollout_index": 1, "reward": 0.0 },
    ] });
    let (status, metrics) = gym.post("/aggregate_metrics", rollouts).await;
    assert_eq!((status, &metrics["key_metrics"]), (200, &json!({ "mean/reward": 0.5 })), "{metrics:#}");
    assert_eq!(gym.post("/aggregate_metrics", json!({ "verify_responses": 1 })).await.0, 422);
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

/// Returns an observation without the ids of its elements, which count the nodes of the browser's process.
fn without_ids(text: &str) -> String {
    let line = |line: &str| match line.trim_start().split_once(']') {
        Some((id, rest)) if id.starts_with('[') => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_that_the_environment_failed_has_an_error_and_no_reward() {
    let service = Service::up("openenv-void");
    let world = &service.world;
    for failure in [(|world: &World| kill_browsers(&world.state_dir())) as fn(&World), kill_container] {
        let mut session = service.connect().await;
        session.reset(json!({ "task": "toy.write" })).await;
        let id = session.state().await["arenad_episode"].as_str().unwrap().to_owned();
        session.step(WRITE).await;
        failure(world);
        EpisodeClient::of(world).until(&id, "void", PATIENCE).await;
        let void = session.ask("step", json!({ "action": "stop" })).await;
        assert_eq!(void["type"], "error", "{void:#}");
        assert_eq!((&void["data"]["problem"], &void["data"]["code"]), (&json!("void"), &json!("EXECUTION_ERROR")));
        assert_eq!(void["data"].get("reward"), Some(&Value::Null), "{void:#}");
        assert_eq!(void["data"]["ending"]["state"], "void");
        assert_eq!(session.state().await["status"], "void");
        // The session goes on.
        session.reset(json!({ "task": "toy.answer" })).await;
        assert_eq!(session.step("stop [toy]").await["reward"], 1.0);
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// The tasks of WebArena whose start is the toy site, by the way in which they are judged.
fn benchmarks(service: &World) -> std::path::PathBuf {
    let page = |url: &str, locator: &str, contents: Value| json!([{ "url": url, "locator": locator, "required_contents": contents }]);
    let task = |id: u32, eval: Value| {
        json!({
            "task_id": id, "sites": ["shopping"], "start_url": "__SHOPPING__/cgi-bin/page", "require_login": true,
            "intent": format!("Do task {id}"), "eval": eval,
        })
    };
    let answer = json!({ "eval_types": ["string_match"], "reference_answers": { "exact_match": "toy" } });
    let content = page("__SHOPPING__/cgi-bin/page", "", json!({ "must_include": ["apples"] }));
    let live = page("last", "document.body.dataset.by", json!({ "exact_match": "agent" }));
    let judged = json!({ "eval_types": ["string_match"], "reference_answers": { "fuzzy_match": ["a toy"] } });
    let tasks = json!([
        task(0, answer),
        task(1, json!({ "eval_types": ["program_html"], "program_html": content })),
        task(2, json!({ "eval_types": ["program_html"], "program_html": live })),
        task(3, json!({ "eval_types": ["url_match"], "reference_url": "__GITLAB__/x" })),
        task(4, judged),
    ]);
    let verified = json!([{
        "sites": ["shopping"], "task_id": 7, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "Buy",
        "intent_template": "Buy", "instantiation_dict": {}, "revision": 1,
        "eval": [
            { "evaluator": "AgentResponseEvaluator", "results_schema": { "type": "null" },
              "expected": { "task_type": "mutate", "status": "SUCCESS", "retrieved_data": null } },
            { "evaluator": "NetworkEventEvaluator", "expected": { "url": "__SHOPPING__/cgi-bin/page" } },
        ],
    }]);
    let folder = service.root().join("benchmarks");
    for (file, tasks) in [("webarena/test.raw.json", tasks), ("webarena-verified/webarena-verified.json", verified)] {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, tasks.to_string()).unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_benchmarks_are_splits_and_their_evaluators_give_the_rewards() {
    let service = Service::up_with("openenv-benchmarks", |world| {
        let page = "<!doctype html><title>Page</title><body><button onclick=\"document.body.dataset.by = 'agent'\">Go</button>";
        std::fs::write(world.root().join("compose/toy/root/srv/www/live.html"), page).unwrap();
        vec![("ARENAD_BENCHMARK_DATA", benchmarks(world).display().to_string())]
    });
    let name = service.world.name.clone();
    let post = async |path: &str, body: Value| service.http(reqwest::Method::POST, path, Some(body)).await;
    let (_, splits) = service.http(reqwest::Method::GET, &format!("/{name}/splits"), None).await;
    let names: Vec<&str> = splits.as_array().unwrap().iter().map(|split| split["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["test", "webarena", "webarena-verified"]);
    let (_, tasks) = post(&format!("/{name}/tasks"), json!({ "split": "webarena" })).await;
    let listed: Vec<&str> = tasks["tasks"].as_array().unwrap().iter().map(|it| it["task"].as_str().unwrap()).collect();
    assert_eq!(listed, ["webarena/0", "webarena/1", "webarena/2", "webarena/4"], "one is at another site");
    assert!(!tasks.to_string().contains("apples"), "the expected results are not told: {tasks:#}");
    let (status, hidden) = post(&format!("/{name}/tasks"), json!({ "split": "mind2web" })).await;
    assert_eq!(status, 400);
    assert!(hidden["detail"].as_str().unwrap().contains("webarena-verified"), "{hidden:#}");

    let mut session = service.connect().await;
    let first = session.reset(tasks["tasks"][0].clone()).await;
    assert_eq!(first["observation"]["intent"], "Do task 0", "a row of the task API is the parameters of a reset");
    let port = service.world.port;
    assert_eq!(first["observation"]["url"], format!("http://localhost:{port}/cgi-bin/page"));
    assert_eq!(session.step("stop [toy]").await["reward"], 1.0);
    session.reset(json!({ "task": "webarena/0" })).await;
    let state = session.state().await;
    assert_eq!((&state["task"], &state["environment"]), (&json!("webarena/0"), &json!(name)));
    assert_eq!(session.step("stop [pear]").await["reward"], 0.0);

    // The state of the site, and the page that the agent has left open.
    session.reset(json!({ "task": "webarena/1" })).await;
    assert_eq!(session.step("stop").await["reward"], 0.0);
    session.reset(json!({ "task": "webarena/1" })).await;
    session.step(WRITE).await;
    assert_eq!(session.step("stop").await["reward"], 1.0);
    session.reset(json!({ "task": "webarena/2" })).await;
    let page = session.step(&format!("goto [http://localhost:{port}/live.html]")).await;
    let button = page["observation"]["text"].as_str().unwrap().lines().find(|line| line.contains("button 'Go'"));
    let id = button.unwrap().trim().trim_start_matches('[').split(']').next().unwrap();
    session.step(&format!("click [{id}]")).await;
    let live = session.step("stop").await;
    assert_eq!(live["reward"], 1.0, "the change exists in this page alone: {live:#}");

    // A judge would have to decide, so there is no reward.
    session.reset(json!({ "task": "webarena/4" })).await;
    let undecided = session.step("stop [some toy]").await;
    assert_eq!((&undecided["reward"], &undecided["done"]), (&Value::Null, &json!(true)), "{undecided:#}");
    assert_eq!(undecided["observation"]["verdict"], "needs_judge");

    // Traffic is recorded where the benchmark judges by it.
    session.reset(json!({ "task": "webarena-verified/7" })).await;
    session.step(&format!("goto [http://localhost:{port}/cgi-bin/page]")).await;
    let done = r#"stop [{"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null}]"#;
    let verified = session.step(done).await;
    assert_eq!(verified["reward"], 1.0, "{verified:#}");

    let elsewhere = session.ask("reset", json!({ "task": "webarena/3" })).await;
    assert_eq!((&elsewhere["type"], &elsewhere["data"]["problem"]), (&json!("error"), &json!("bad_task")));
    let unknown = session.ask("reset", json!({ "task": "webarena/99" })).await;
    assert!(unknown["data"]["message"].as_str().unwrap().contains("no task 99"), "{unknown:#}");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

#[test]
fn openenvs_own_validator_passes_every_check_that_it_implements() {
    let service = Service::up("openenv-validate");
    let root = env!("CARGO_MANIFEST_DIR");
    let package = service.world.root().join("package");
    std::fs::create_dir_all(package.join("validation")).unwrap();
    std::fs::copy(format!("{root}/packaging/openenv/openenv.yaml"), package.join("openenv.yaml")).unwrap();
    let plan = std::fs::read_to_string(format!("{root}/packaging/openenv/validation/runtime.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&plan).unwrap();
    plan["reset"]["options"]["task"] = json!("toy.answer");
    plan["reset"]["options"]["environment"] = json!(service.world.name);
    std::fs::write(package.join("validation/runtime.json"), plan.to_string()).unwrap();
    let pid = service.world.run(&["status", "--json"]).code(0).json()["daemon"]["pid"].to_string();
    let args = [service.url(), package.display().to_string(), pid];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let reports: Value =
        serde_json::from_str(&output_of(&["--openenv"], "openenv/validate.py", &args, &[])).expect("JSON");
    let running = &reports["running"];
    assert_eq!((&running["passed"], &running["mode"]), (&json!(true), &json!("simulation")), "{running:#}");
    assert_eq!(running["standard_profile"], "openenv-http/1.x");
    assert_eq!(reports["static"]["verdict"], "pass", "{:#}", reports["static"]);
    let results = reports["runtime"]["results"].as_array().unwrap();
    let passed = |check: &str| results.iter().any(|it| it["check_id"] == check && it["status"] == "pass");
    for check in ["startup", "reward_well_formed", "observation_schema", "state_contract", "network_policy"] {
        assert!(passed(&format!("runtime.{check}")), "{check}: {:#}", reports["runtime"]);
    }
    for result in results {
        let (status, evidence) = (&result["status"], result["evidence"].to_string());
        let is_unimplemented = status == "skip" && evidence.contains("not implemented");
        assert!(status == "pass" || is_unimplemented, "{result:#}");
    }
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

#[test]
fn openenvs_own_client_gets_rewards() {
    let service = Service::up("openenv-client");
    let args = [&service.url(), "toy.write", "click [999999]", WRITE, "stop", "new_tab", "--", "stop"];
    let seen: Value = serde_json::from_str(&output_of(&["--openenv"], "openenv/client.py", &args, &[])).expect("JSON");
    assert_eq!(seen["intent"], "Make the site remember apples");
    assert_eq!(seen["rewards"], json!([1.0, 0.0]), "the second episode began at the baseline: {seen:#}");
    assert_eq!(seen["errors"].as_array().map(Vec::len), Some(1), "an episode that is done: {seen:#}");
    assert_eq!((&seen["state"]["step_count"], &seen["state"]["done"]), (&json!(1), &json!(true)), "{seen:#}");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_describes_itself_and_its_tasks_and_refuses_pages() {
    let service = Service::up("openenv-http");
    let get = async |path: &str| service.http(reqwest::Method::GET, path, None).await;
    let post = async |path: &str, body: Value| service.http(reqwest::Method::POST, path, Some(body)).await;
    assert_eq!(get("/health").await, (200, json!({ "status": "healthy" })));
    assert_eq!(get("/metadata").await.1["name"], "arenad");
    assert_eq!(get("/schema").await.1["action"]["required"], json!(["action"]));
    assert_eq!(get("/state").await.1["step_count"], 0);
    let (_, document) = get("/openapi.json").await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = reqwest::Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = path.replace("{env_name}", &service.world.name);
            let (status, _) = service.http(method, &path, None).await;
            assert!(![404, 405].contains(&status), "{path} is documented: {status}");
        }
    }
    let name = service.world.name.clone();
    assert_eq!(get("/list_environments").await, (200, json!([name])));
    assert_eq!(get(&format!("/{name}/splits")).await, (200, json!([{ "name": "test", "type": "test" }])));
    assert_eq!(post(&format!("/{name}/num_tasks"), json!({ "split": "test" })).await, (200, json!({ "num_tasks": 2 })));
    let (_, task) = post(&format!("/{name}/task"), json!({ "split": "test", "index": 1 })).await;
    assert_eq!(task["task"]["task"], "toy.answer", "{task:#}");
    let (_, range) = post(&format!("/{name}/task_range"), json!({ "split": "test", "start": 1 })).await;
    assert_eq!(range["tasks"], json!([task["task"]]));
    assert_eq!(post(&format!("/{name}/task"), json!({ "split": "test", "index": 2 })).await.0, 400);
    assert_eq!(post(&format!("/{name}/tasks"), json!({ "split": "hidden" })).await.0, 400);
    assert_eq!(post("/nowhere/tasks", json!({ "split": "test" })).await.0, 404);

    let (status, first) = post("/reset", json!({ "task": "toy.answer" })).await;
    assert_eq!((status, &first["done"], &first["reward"]), (200, &json!(false), &Value::Null), "{first:#}");
    assert_eq!(post("/step", json!({ "action": { "click": 1 } })).await.0, 422);
    assert_eq!(post("/step", json!({ "action": { "action": "new_tab" } })).await.0, 500, "there is no episode");
    let (_, tools) = post("/mcp", json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" })).await;
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(14), "{tools:#}");

    let mut foreign = format!("ws://127.0.0.1:{}/ws", service.port).into_client_request().unwrap();
    foreign.headers_mut().insert("origin", "http://toy.arena.test".parse().unwrap());
    let refused = tokio_tungstenite::connect_async(foreign).await.expect_err("a page is refused");
    assert!(refused.to_string().contains("403"), "{refused}");
    assert_eq!(get("/ws").await.0, 426);

    // Sixty-four sessions, and no more.
    let mut sessions = Vec::new();
    for _ in 0..64 {
        let mut session = service.connect().await;
        session.state().await;
        sessions.push(session);
    }
    let mut further = service.connect().await;
    let full = further.hear().await;
    assert_eq!(full["data"]["code"], "CAPACITY_REACHED", "{full:#}");
    assert_eq!((&full["data"]["active_sessions"], &full["data"]["max_sessions"]), (&json!(64), &json!(64)));
    assert_eq!(further.hear().await, Value::Null, "the server closes");
    sessions.pop();
    tokio::time::timeout(PATIENCE, async {
        loop {
            let mut session = service.connect().await;
            session.say(r#"{"type":"state"}"#).await;
            if session.hear().await["type"] == "state" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a place comes free");
    service.world.run(&["down"]).code(0);
    service.world.assert_down();
}
