//! The browser of an episode over the API: one site, seen and changed by an agent's actions.

use std::path::Path;

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::proxied::PAGE;
use super::{EpisodeClient, id};
use crate::support::wait::PATIENCE;
use crate::support::{World, until};

pub(super) const VISIT: &str = "http://toy.arena.test/cgi-bin/visit";

/// A world whose site has up to four slots, the first of which is of people.
pub(super) fn world(label: &str) -> World {
    let world = World::single(label);
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 1, max: 4 }");
    world
}

/// The browser of an episode.
pub(super) struct Browsed<'a> {
    api: &'a EpisodeClient,
    pub(super) id: String,
}

impl<'a> Browsed<'a> {
    pub(super) async fn start(api: &'a EpisodeClient, request: Value) -> Self {
        let mut request = request;
        request["sites"] = json!(["toy"]);
        request["wait_seconds"] = json!(120);
        Self { api, id: id(&api.start(request).await) }
    }

    async fn ask(&self, method: Method, action: &str, body: Option<Value>) -> (u16, Value) {
        self.api.ask(method, &format!("/v1/episodes/{}/browser{action}", self.id), body).await
    }

    pub(super) async fn reset(&self, body: Value) -> Value {
        let (status, step) = self.ask(Method::POST, "/reset", Some(body)).await;
        assert_eq!(status, 200, "{step:#}");
        step
    }

    pub(super) async fn act(&self, action: &str) -> Value {
        let (status, step) = self.ask(Method::POST, "/step", Some(json!({ "action": action }))).await;
        assert_eq!(status, 200, "{action}: {step:#}");
        step
    }
}

fn text(step: &Value) -> &str {
    step["observation"]["text"].as_str().unwrap_or_else(|| panic!("{step:#}"))
}

/// Returns the id of the element whose line contains a text.
pub(super) fn element(step: &Value, contained: &str) -> String {
    let line = text(step).lines().find(|line| line.contains(contained));
    let line = line.unwrap_or_else(|| panic!("no {contained}: {}", text(step))).trim_start();
    line.trim_start_matches('[').split(']').next().unwrap_or_default().to_owned()
}

/// Returns the processes of browsers whose files are in a state directory.
fn browsers(state_dir: &Path) -> Vec<Pid> {
    let folder = state_dir.join("browsers").display().to_string();
    let processes = procfs::process::all_processes().unwrap().flatten();
    let found = processes
        .filter(|process| process.cmdline().is_ok_and(|words| words.iter().any(|word| word.starts_with(&folder))));
    found.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

pub(super) fn kill_browsers(state_dir: &Path) {
    let pids = browsers(state_dir);
    assert!(!pids.is_empty(), "a browser runs");
    for pid in pids {
        // It may end with another one of them.
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_two_episodes_browse_their_own_sites() {
    let world = world("browsed");
    world.up();
    let api = EpisodeClient::of(&world);
    let one = Browsed::start(&api, json!({ "record": "all" })).await;
    let other = Browsed::start(&api, json!({})).await;
    let (status, none) = one.ask(Method::POST, "/step", Some(json!({ "action": "new_tab" }))).await;
    assert_eq!((status, &none["code"]), (409, &json!("no_browser")), "{none:#}");

    let first = one.reset(json!({ "url": format!("{VISIT}?ann"), "elements": true })).await;
    assert_eq!((&first["url"], &first["step"]), (&json!(VISIT), &json!(0)), "the redirection is followed: {first:#}");
    assert_eq!(first["tabs"], json!([{ "title": "", "url": VISIT, "is_current": true }]));
    assert_eq!(first["viewport"], json!({ "width": 1280, "height": 720 }));
    assert_eq!((&first["done"], &first["error"]), (&json!(false), &Value::Null));
    let link = element(&first, "link 'visitor=ann'");
    let known = &first["observation"]["elements"][&link];
    let line = format!("[{link}] link 'visitor=ann' url: ");
    assert!(known["text"].as_str().is_some_and(|text| text.starts_with(&line)), "{known:#}");
    assert!(known["bounds"][2].as_f64().is_some_and(|width| width > 10.0), "{known:#}");

    one.act("goto [http://toy.arena.test/cgi-bin/write?of-one]").await;
    let back = one.act("go_back").await;
    let page = one.act(&format!("click [{}]", element(&back, "link"))).await;
    let url = format!("http://localhost:{}/cgi-bin/page", world.port);
    assert_eq!((&page["url"], &page["step"]), (&json!(url), &json!(3)), "the page has the site's own address");
    assert!(text(&page).contains("of-one"), "{}", text(&page));
    let seen = other.reset(json!({ "url": PAGE, "screenshot": true })).await;
    assert!(text(&seen).contains("configured") && !text(&seen).contains("of-one"), "{}", text(&seen));
    assert!(seen["observation"]["screenshot"].as_str().is_some_and(|png| png.starts_with("iVBOR")));
    assert_eq!(seen["observation"]["elements"], Value::Null);

    // An agent names files of its browser, and no others.
    let words = element(&one.act("scroll [up]").await, "StaticText");
    let refused = one.act(&format!("upload [{words}] [/etc/passwd]")).await;
    let message = "ENOENT: no such file or directory, stat '/etc/passwd'";
    assert_eq!((&refused["error"]["kind"], &refused["error"]["message"]), (&json!("execution"), &json!(message)));
    for (files, expected) in [
        (json!({ "a/b": "eA==" }), "invalid name of a file"),
        (json!({ "photo.jpg": "?" }), "the content of the file \"photo.jpg\" is not base64"),
    ] {
        let (status, problem) = other.ask(Method::POST, "/reset", Some(json!({ "files": files }))).await;
        assert_eq!((status, &problem["code"]), (400, &json!("bad_request")), "{problem:#}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(expected)), "{problem:#}");
    }
    let large = json!({ "files": { "large.bin": "A".repeat(9 << 20) }, "url": PAGE });
    assert!(text(&other.reset(large).await).contains("configured"), "files are larger than other bodies");

    // Neither another site nor the daemon's host is within reach.
    for address in ["http://example.com/", "http://127.0.0.1/", "http://localhost:4321/"] {
        let refused = one.act(&format!("goto [{address}]")).await;
        assert!(text(&refused).contains("this episode can use http://toy.arena.test"), "{address}: {}", text(&refused));
    }
    let unsafe_port = one.act("goto [http://localhost:1/]").await;
    assert_eq!(unsafe_port["error"]["message"], "net::ERR_UNSAFE_PORT at http://localhost:1/");
    let wrong = one.act("click [x]").await;
    assert_eq!(wrong["error"]["kind"], "parse");
    assert_eq!(wrong["error"]["message"], "Invalid click action click [x]");
    let wrong = one.act("click [999999]").await;
    assert_eq!((&wrong["error"]["kind"], &wrong["error"]["message"]), (&json!("execution"), &json!("'999999'")));

    let stopped = one.act("stop [42]").await;
    assert_eq!((&stopped["done"], &stopped["answer"]), (&json!(true), &json!("42")));
    let (status, refused) = one.ask(Method::POST, "/step", Some(json!({ "action": "new_tab" }))).await;
    assert_eq!((status, &refused["code"]), (409, &json!("browser_stopped")), "{refused:#}");
    let (status, seen) = one.ask(Method::GET, "", None).await;
    assert_eq!((status, &seen["done"]), (200, &json!(true)));

    // The record has the browser's requests.
    let (_, har) = api.get(&format!("/v1/episodes/{}/har", one.id)).await;
    let urls: Vec<&str> =
        har["log"]["entries"].as_array().unwrap().iter().filter_map(|entry| entry["request"]["url"].as_str()).collect();
    assert!(urls.iter().any(|url| url.ends_with("/cgi-bin/write?of-one")), "{urls:?}");

    // A frozen episode's agent waits; an ended episode has no browser.
    world.run(&["episode", "freeze", &other.id]).code(0);
    let (status, busy) = other.ask(Method::GET, "", None).await;
    assert_eq!((status, &busy["code"]), (409, &json!("busy")), "{busy:#}");
    world.run(&["episode", "unfreeze", &other.id]).code(0);
    assert_eq!(other.ask(Method::DELETE, "", None).await.0, 204);
    assert_eq!(other.ask(Method::GET, "", None).await.1["code"], "no_browser");
    api.end(&one.id).await;
    let (status, ended) = one.ask(Method::GET, "", None).await;
    assert_eq!((status, &ended["code"]), (410, &json!("ended")), "{ended:#}");
    api.end(&other.id).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_dies_makes_its_episodes_void_and_the_daemon_goes_on() {
    let world = world("browser-dies");
    world.up();
    let api = EpisodeClient::of(&world);
    let (working, idle) = (Browsed::start(&api, json!({})).await, Browsed::start(&api, json!({})).await);
    let without = Browsed::start(&api, json!({})).await;
    working.reset(json!({ "url": PAGE })).await;
    idle.reset(json!({ "url": PAGE })).await;
    kill_browsers(&world.state_dir());
    let (status, void) = working.ask(Method::POST, "/step", Some(json!({ "action": "scroll [down]" }))).await;
    assert_eq!((status, &void["code"]), (410, &json!("void")), "{void:#}");
    assert_eq!(void["ending"]["code"], "browser_failed");
    assert_eq!(void["ending"]["reason"], "void, because its browser failed: its process has ended");
    // The other one is told without a request of its own, and neither has a reward.
    api.until(&idle.id, "void", PATIENCE).await;
    for episode in [&working, &idle] {
        let path = format!("/v1/episodes/{}/evaluations", episode.id);
        let (status, verdict) = api.ask(Method::POST, &path, Some(json!({ "task": "toy.any" }))).await;
        assert_eq!(
            (status, &verdict["verdict"], &verdict["reward"]),
            (200, &json!("void"), &Value::Null),
            "{verdict:#}"
        );
    }
    // An episode without a browser goes on, and its browser starts.
    let seen = without.reset(json!({ "url": PAGE })).await;
    assert!(text(&seen).contains("configured"), "{}", text(&seen));
    api.end(&without.id).await;
    world.run(&["down"]).code(0);
    world.assert_down();
    let left = || browsers(&world.state_dir()).len();
    until("the browsers end with the daemon", PATIENCE, left, |left| *left == 0);
}
