//! Episodes on a toy site: passed, nearly passed, and with the site gone.

use std::io::{Cursor, Read, Write};
use std::os::unix::net::UnixStream;

use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::support::World;
use crate::support::world::{CommandOutput, list};

/// Returns a picture whose brightness is a function of the position.
fn picture(brightness: impl Fn(u32, u32) -> u32) -> Vec<u8> {
    let shade = |x, y| u8::try_from(brightness(x, y) % 256).unwrap_or_default();
    let image = RgbImage::from_fn(48, 48, |x, y| Rgb([shade(x, y); 3]));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A toy site with a page of pictures, and tasks about it.
fn world() -> World {
    let world = World::single("evaluation");
    let www = world.root().join("compose/toy/root/srv/www");
    let page = "<!doctype html><title>Gallery</title><p class=note>The <b>blue</b> mug</p>\
        <div class=photos><img src=/one.png><img src='missing.png'><img src=http://example.com/x.png></div>";
    std::fs::write(www.join("gallery.html"), page).unwrap();
    std::fs::write(www.join("one.png"), picture(|x, y| x * 5 + y)).unwrap();
    std::fs::write(www.join("other.png"), picture(|x, y| (x * 37 + y * 91) ^ (x * y))).unwrap();
    std::fs::write(world.root().join("local.png"), picture(|x, y| x * 5 + y)).unwrap();
    let page = |url: &str, locator: &str, contents: Value| json!([{ "url": url, "locator": locator, "required_contents": contents }]);
    let task = |id: u32, kind: &str, rest: Value| {
        let mut eval = rest;
        eval["eval_types"] = json!([kind]);
        json!({ "task_id": id, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "Buy a mug", "eval": eval })
    };
    let bought = page("__SHOPPING__/cgi-bin/page", "", json!({ "must_include": ["bought=mug"] }));
    let note = page(
        "__SHOPPING__/gallery.html",
        "document.querySelector('.note').outerText",
        json!({ "exact_match": "The blue mug" }),
    );
    let last = page("last", "document.title", json!({ "exact_match": "Gallery" }));
    let pictures = |like: &str| {
        json!({ "page_image_query": [{
        "eval_image_url": "__SHOPPING__/gallery.html", "eval_image_class": ".photos", "eval_fuzzy_image_match": like,
    }] })
    };
    let tasks = json!([
        task(1, "program_html", json!({ "program_html": bought })),
        task(2, "program_html", json!({ "program_html": note })),
        task(3, "program_html", json!({ "program_html": last })),
        task(4, "page_image_query", pictures("__SHOPPING__/one.png")),
        task(5, "page_image_query", pictures("__SHOPPING__/other.png")),
        task(6, "page_image_query", pictures("local.png")),
        task(7, "url_match", json!({ "reference_url": "__GITLAB__/x" })),
    ]);
    std::fs::write(world.root().join("tasks.json"), tasks.to_string()).unwrap();
    world
}

fn eval(world: &World, benchmark: &str, task: &str, options: &[&str]) -> CommandOutput {
    world.run(&[&["eval", "--benchmark", benchmark, "--tasks", "tasks.json", "--task", task], options].concat())
}

#[test]
fn an_episode_is_judged_by_what_is_on_its_site() {
    let world = world();
    world.up();
    let state = |options: &[&str]| eval(&world, "webarena", "1", options);
    // The agent did nothing, then nearly everything, then everything.
    state(&[]).code(5).prints("failed").prints("bought=mug");
    world.write("bought=cup");
    state(&["--profile", "both"]).code(5);
    world.write("bought=mug");
    state(&["--profile", "both", "--evidence", "seen.json"]).code(0).prints("passed");
    eval(&world, "webarena", "2", &["--profile", "both"]).code(0);

    // Without a CDP address the agent's page cannot be inspected; the verdict is inconclusive and not failed.
    eval(&world, "webarena", "3", &[]).code(6).prints("inconclusive").prints("CDP address");
    eval(&world, "webarena", "7", &["--url", "http://x/"]).code(2).says("__GITLAB__").says("--site");

    // Pictures are fetched from the site or read from a folder.
    eval(&world, "visualwebarena", "4", &["--profile", "both"]).code(0);
    eval(&world, "visualwebarena", "5", &["--profile", "both"]).code(5);
    eval(&world, "visualwebarena", "6", &[]).code(6).prints("--pictures");
    eval(&world, "visualwebarena", "6", &["--pictures", ".", "--profile", "both"]).code(0);

    the_api_judges_too(&world);
    task_files_get_the_sites_addresses(&world);
    traffic_is_looked_into(&world);

    let containers = list(&world.site().unwrap()["containers"], "id");
    world.engine.docker(&["kill", &containers[0]]);
    state(&["--profile", "both"]).code(6).prints("inconclusive");
    world.run(&["down"]).code(0);
    // The site is gone, but the recorded observations are not.
    let again = world.run(&["eval", "--from", "seen.json", "--profile", "both", "--json"]).code(0).json();
    assert_eq!(again["reports"][1]["verdict"], "passed", "{again:#}");
    assert_eq!(list(&json!([again]), "task"), ["1"]);
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(world.root().join("seen.json")).unwrap()).unwrap();
    assert_eq!((&seen["looked_at"][0]["site"], &seen["looked_at"][0]["generation"]), (&json!("toy"), &json!(1)));
}

fn the_api_judges_too(world: &World) {
    let tasks: Value =
        serde_json::from_str(&std::fs::read_to_string(world.root().join("tasks.json")).unwrap()).unwrap();
    let post = |body: &Value| {
        let path = format!("/v1/environments/{}/evaluations", world.name);
        post_unix(&world.state_dir().join("arenad.sock"), &path, body)
    };
    let (status, answer) = post(&json!({ "benchmark": "webarena", "task": tasks[0], "profiles": ["strict"] }));
    assert_eq!((status, &answer["evaluated"]["reports"][0]["verdict"]), (200, &json!("passed")), "{answer:#}");
    assert_eq!(answer["evidence"]["looked_at"][0]["site"], "toy");
    // Values that are already known are not read again.
    let known = &answer["evidence"]["told"];
    let mut told = known.clone();
    told[0][1] = json!({ "value": "nothing" });
    let (status, answer) =
        post(&json!({ "benchmark": "webarena", "task": tasks[0], "profiles": ["strict"], "told": told }));
    assert_eq!((status, &answer["evaluated"]["reports"][0]["verdict"]), (200, &json!("failed")), "{answer:#}");
    let (status, problem) = post(&json!({ "benchmark": "webarena", "task": { "task_id": 1 } }));
    assert_eq!((status, &problem["code"]), (422, &json!("bad_task")), "{problem:#}");
    let (status, problem) = post(&json!({ "benchmark": "webarena", "task": 1 }));
    assert_eq!((status, &problem["code"]), (422, &json!("bad_task")), "{problem:#}");
    assert!(problem["hint"].as_str().unwrap().contains("ARENAD_BENCHMARK_DATA"));
    // Traffic is judged while it arrives.
    let verified = json!({
        "sites": ["shopping"], "task_id": 1, "intent_template_id": 1, "start_urls": ["__SHOPPING__"], "intent": "?",
        "intent_template": "?", "instantiation_dict": {}, "revision": 1,
        "eval": [
            { "evaluator": "AgentResponseEvaluator", "results_schema": { "type": "null" },
              "expected": { "task_type": "mutate", "status": "SUCCESS", "retrieved_data": null } },
            { "evaluator": "NetworkEventEvaluator", "expected": { "url": "__SHOPPING__/cgi-bin/write", "query_params": { "bought": ["mug"] } } },
        ],
    });
    let answer = json!({ "task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": null });
    let request = json!({ "benchmark": "webarena-verified", "task": verified, "answer": answer, "traffic": { "har": har(world) } });
    let (status, judged) = post(&request);
    assert_eq!((status, &judged["evaluated"]["reports"][0]["verdict"]), (200, &json!("passed")), "{judged:#}");
}

fn har(world: &World) -> Value {
    let entry = |method: &str, path: &str, body: Value| {
        let url = format!("http://localhost:{}{path}", world.port);
        json!({ "request": { "method": method, "url": url, "headers": [], "postData": body }, "response": { "status": 200 } })
    };
    let form = json!({ "mimeType": "application/x-www-form-urlencoded", "text": "quantity=2" });
    json!({ "log": { "entries": [
        entry("POST", "/basket/add/7", form),
        entry("GET", "/cgi-bin/write?bought=mug", Value::Null),
        { "request": { "method": "POST", "url": "http://elsewhere.test/basket/add/8" }, "response": { "status": 200 } },
    ] } })
}

fn task_files_get_the_sites_addresses(world: &World) {
    let ran = world.run(&["tasks", "render", "--tasks", "tasks.json", "--out", "rendered"]).code(0);
    let ran = ran.says("1 tasks are left out: the address of GITLAB is unknown");
    assert!(ran.out.contains("6 tasks"), "{}", ran.out);
    let task = std::fs::read_to_string(world.root().join("rendered/0.json")).unwrap();
    assert!(task.contains(&format!("\"start_url\": \"http://localhost:{}\"", world.port)), "{task}");
    assert!(!world.root().join("rendered/6.json").exists());
    // A rendered task is treated like any other task.
    world.run(&["eval", "--benchmark", "webarena", "--tasks", "rendered", "--task", "0"]).code(0);
}

fn traffic_is_looked_into(world: &World) {
    std::fs::write(world.root().join("seen.har"), har(world).to_string()).unwrap();
    let value = |locator: &str| {
        world.run(&["locate", "toy", locator, "--har", "seen.har", "--json"]).code(0).json()["value"].clone()
    };
    assert_eq!(value("trace: POST /basket/add/* | count"), 1);
    assert_eq!(value("trace: /basket/* | jsonpath: $.body.quantity"), "2");
    assert_eq!(value("trace(all): * | jq: .path"), json!(["/basket/add/7", "/cgi-bin/write"]));
    assert_eq!(value("trace: DELETE *"), Value::Null);
    world.run(&["locate", "toy", "trace: *"]).code(1).says("give a HAR");
}

/// Posts JSON to the API, and returns status and answer.
fn post_unix(socket: &std::path::Path, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split_whitespace().nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}
