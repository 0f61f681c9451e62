//! Harnesses that reset sites by their own protocols: exact answers, failures, crashes, slots, and pages that try it
//! too.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::proxied::serve;
use super::{EpisodeClient, id};
use crate::evaluations::browser::HeadlessBrowser;
use crate::support::http::{self, HttpResponse};
use crate::support::wait::PATIENCE;
use crate::support::world::free_port;
use crate::support::{World, until, within};

/// The text of each site, before anybody writes to it.
const BASELINE: &str = "toy\nconfigured\n";

const INITIATED: &str = r#"Reset initiated, check status <a href="/status">here</a>"#;
const RUNNING: &str = r#"Reset already running, check status <a href="/status">here</a>"#;
const ONGOING: &str = "Reset ongoing";
const READY: &str = "Ready for duty!";

/// A world with a site `toy`, and a site `other` whose containers boot only while a file exists, so that a test decides
/// when its reset can end.
pub(super) struct TwoSites {
    pub(super) world: World,
    /// The public port of `other`.
    other: u16,
}

impl TwoSites {
    pub(super) fn new(label: &str) -> Self {
        let world = World::single(label);
        let other = free_port();
        for (kind, list) in [("environment", "sites:\n"), ("compose", "services:\n")] {
            let text = std::fs::read_to_string(world.file(kind)).unwrap();
            let second = text.split_once(list).unwrap().1;
            let second = second.replace("  toy:\n", "  other:\n").replace(&world.port.to_string(), &other.to_string());
            let second = second.replace(", variable: SHOPPING", ", variable: REDDIT").replace(":1\n", "-other:1\n");
            std::fs::write(world.file(kind), text + &second).unwrap();
        }
        let compose = std::fs::read_to_string(world.file("compose")).unwrap();
        let (toy, second) = compose.rsplit_once("    mem_limit: 48m\n").unwrap();
        let boot = "    command: [/bin/sh, -c, \"until [ -e /control/ok ]; do sleep 0.1; done; exec /bin/sh /srv/boot\"]\n    \
                    volumes: [\"./control:/control:ro\"]\n    mem_limit: 48m\n";
        std::fs::write(world.file("compose"), format!("{toy}{boot}{second}")).unwrap();
        std::fs::create_dir_all(world.root().join("compose/control")).unwrap();
        let two = Self { world, other };
        two.let_other_boot(true);
        two
    }

    /// Lets the containers of `other` that do not serve yet boot, or makes them wait.
    pub(super) fn let_other_boot(&self, can: bool) {
        let file = self.world.root().join("compose/control/ok");
        match can {
            true => std::fs::write(file, "").unwrap(),
            false => std::fs::remove_file(file).unwrap(),
        }
    }

    pub(super) fn write(&self, word: &str) {
        self.world.write(word);
        let written = http::get(self.other, &format!("/cgi-bin/write?{word}")).expect("an answer");
        assert_eq!(written.body, "written\n", "{}", written.head);
    }

    pub(super) fn pages(&self) -> [String; 2] {
        [self.world.port, self.other].map(|port| http::get(port, "/cgi-bin/page").expect("an answer").body)
    }

    /// The state and generation of a site.
    fn site(&self, name: &str) -> (String, u64) {
        let status = self.world.api("/v1/status").unwrap_or_default();
        let sites = status["environments"][0]["sites"].as_array().cloned().unwrap_or_default();
        let site = sites.into_iter().find(|site| site["name"] == name).unwrap_or_default();
        (site["state"].as_str().unwrap_or("-").to_owned(), site["generation"].as_u64().unwrap_or_default())
    }

    /// Begins a reset, and waits until `toy` has been reset. `other` waits for the test.
    fn reset_half(&self) {
        self.let_other_boot(false);
        let (_, generation) = self.site("toy");
        assert_eq!(said(&self.world, "/reset"), (200, INITIATED.to_owned()));
        within("the reset of one site", PATIENCE, || (self.site("toy") == ready(generation + 1)).then_some(()));
        assert_eq!(said(&self.world, "/status?wait=0"), (200, ONGOING.to_owned()), "{:?}", self.site("other"));
    }
}

fn ready(generation: u64) -> (String, u64) {
    ("ready".to_owned(), generation)
}

/// The port of the reset server.
pub(super) fn port(world: &World) -> u16 {
    let status = world.api("/v1/status").expect("a daemon");
    let server = status["daemon"]["compat"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    server.strip_prefix("http://127.0.0.1:").expect("an address of this host").parse().unwrap()
}

fn ask(world: &World, path: &str) -> HttpResponse {
    http::get(port(world), path).expect("the reset server answers")
}

fn said(world: &World, path: &str) -> (u16, String) {
    let HttpResponse { status, body, .. } = ask(world, path);
    (status, body)
}

/// Sends a request as it is given, without its end, and returns the status and the body.
fn send(world: &World, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port(world))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    write!(stream, "{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn a_full_reset_is_told_in_the_words_of_the_reset_server() {
    let two = TwoSites::new("fullreset");
    let world = &two.world;
    world.up();
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    two.write("scribble");
    two.let_other_boot(false);
    let began = ask(world, "/reset");
    assert_eq!((began.status, began.body.as_str()), (200, INITIATED));
    assert!(began.head.to_lowercase().contains("\r\ncontent-type: text/html\r\n"), "{}", began.head);
    assert_eq!(said(world, "/status?wait=0"), (200, ONGOING.to_owned()));
    assert_eq!(said(world, "/reset"), (418, RUNNING.to_owned()));
    // Requests wait for the end, so a few are enough even on a slow machine. BrowserGym would ask again after 20 s.
    two.let_other_boot(true);
    let answers: Vec<(u16, String)> = (0..4).map(|_| said(world, "/status")).collect();
    let (last, earlier) = answers.split_last().expect("four answers");
    assert_eq!(*last, (200, READY.to_owned()));
    assert!(earlier.iter().all(|(status, _)| *status == 200), "{answers:?}");
    assert_eq!(two.pages(), [BASELINE, BASELINE]);
    // Both are resets like any others, with the proof of each.
    let status = world.api("/v1/status").unwrap();
    for site in status["environments"][0]["sites"].as_array().unwrap() {
        assert_eq!(site["last_reset"]["outcome"], "done", "{site:#}");
    }

    let named = format!("/environments/{}", world.name);
    assert_eq!(said(world, &format!("{named}/status")), (200, READY.to_owned()));
    assert!(said(world, &format!("{named}/reset")).1.contains(&format!("<a href=\"{named}/status\">")));
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    let (code, text) = said(world, "/environments/nothing/reset");
    assert!(code == 404 && text.contains("find environment nothing"), "{code} {text}");
    for path in ["/", "/resets", "/slots/0/reset", "/status/x"] {
        assert_eq!(said(world, path), (404, "Endpoint not found".to_owned()), "{path}");
    }
    let generation = two.site("toy");
    assert_eq!(send(world, "HEAD /reset HTTP/1.1\r\nHost: localhost", "").0, 404);
    assert_eq!(two.site("toy"), generation, "a look resets nothing");

    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_reset_covers_what_was_written_before_it_was_asked_for() {
    let two = TwoSites::new("covered");
    let world = &two.world;
    world.up();
    two.reset_half();
    // This site had its turn already. The client that wrote to it is told to wait for the reset that runs.
    world.write("late");
    assert_eq!(said(world, "/reset"), (418, RUNNING.to_owned()));
    two.let_other_boot(true);
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    assert_eq!(two.pages(), [BASELINE, BASELINE]);

    // Many at once: one begins it, and all wait for the same end.
    two.write("scribble");
    two.let_other_boot(false);
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let port = port(world);
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(move || http::get(port, "/reset").unwrap().status)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 418).count(), 7, "{answers:?}");
    two.let_other_boot(true);
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    assert_eq!(two.pages(), [BASELINE, BASELINE]);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_site_that_fails_is_told_until_a_reset_succeeds() {
    let two = TwoSites::new("failing");
    let world = &two.world;
    world.edit("environment", "timeout: 20s", "timeout: 4s");
    world.up();
    two.write("scribble");
    two.let_other_boot(false);
    assert_eq!(said(world, "/reset").0, 200);
    let failed = |moment: &str| {
        let (code, text) = said(world, "/status");
        assert_eq!(code, 500, "{moment}: {text}");
        assert!(text.starts_with("Error executing reset script:<p>"), "{moment}: {text}");
        text
    };
    let text = failed("after the reset");
    assert!(text.contains("other was not reset: "), "{text}");
    // The next look, and one after a restart of the daemon, say the same, although one site is ready.
    failed("again");
    world.signal_daemon(Signal::TERM);
    let daemon = world.start_command(serve(world));
    until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some);
    let text = failed("after a restart");
    assert!(text.contains("other was not reset: "), "{text}");

    two.let_other_boot(true);
    assert_eq!(said(world, "/reset").0, 200);
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    assert_eq!(two.pages(), [BASELINE, BASELINE]);
    world.run(&["down"]).code(0);
    world.signal_daemon(Signal::TERM);
    drop(daemon);
    world.assert_down();
}

#[test]
fn a_daemon_that_ends_during_a_reset_does_not_call_it_done() {
    let two = TwoSites::new("interrupted");
    let world = &two.world;
    world.up();
    for signal in [Signal::KILL, Signal::TERM] {
        two.write("scribble");
        two.reset_half();
        // In this pause, a client writes to the site that was reset already.
        world.write("late");
        world.signal_daemon(signal);
        two.let_other_boot(true);
        let daemon = world.start_command(serve(world));
        until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some);
        // From the first answer until both sites serve again, and afterwards.
        let both = || ["toy", "other"].iter().all(|name| two.site(name).0 == "ready");
        let look = || {
            let were_ready = both();
            let (code, text) = said(world, "/status?wait=0");
            assert!(code == 500 && text.contains("the daemon ended before all sites were reset"), "{code} {text}");
            were_ready.then_some(())
        };
        within("both sites", PATIENCE, look);
        assert_eq!(said(world, "/reset"), (200, INITIATED.to_owned()));
        assert_eq!(said(world, "/status"), (200, READY.to_owned()));
        assert_eq!(two.pages(), [BASELINE, BASELINE]);
        drop(daemon);
    }
    world.run(&["down"]).code(0);
    world.signal_daemon(Signal::TERM);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_are_reset_by_their_number_unless_an_episode_has_them() {
    let world = World::single("slotted");
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 2, max: 2 }");
    world.up();
    let api = EpisodeClient::of(&world);
    let slots = || world.site().and_then(|site| site["slots"].as_array().cloned()).unwrap_or_default();
    let is_free = |slot: &Value| slot["state"] == "ready" && slot["occupation"] == "free";
    until("both slots", PATIENCE, slots, |slots| slots.len() == 2 && slots.iter().all(is_free));
    let generation = |slot: usize| slots()[slot - 1]["generation"].as_u64().unwrap();
    let before = (generation(1), generation(2));
    let (code, text) = said(&world, "/slots/2/reset");
    assert_eq!((code, text.as_str()), (200, INITIATED.replace("/status", "/slots/2/status").as_str()));
    assert_eq!(said(&world, "/slots/2/status"), (200, READY.to_owned()));
    assert_eq!(generation(1), before.0);
    assert!(generation(2) > before.1);
    let (code, text) = said(&world, "/slots/3/reset");
    assert!(code == 404 && text.contains("find slot 3 of toy: it has toy:1, toy:2"), "{code} {text}");

    // The slot of an episode is not reset, as with `arenad reset`.
    let started = api.start(json!({ "slots": { "toy": 2 }, "wait_seconds": 60 })).await;
    let generations = (generation(1), generation(2));
    let (code, text) = said(&world, "/slots/2/reset");
    assert!(code == 409 && text.contains(&format!("belongs to episode {}", id(&started))), "{code} {text}");
    let (code, text) = said(&world, "/slots/2/status");
    assert!(code == 500 && text.contains("belongs to episode"), "nothing was reset: {code} {text}");
    assert_eq!((generation(1), generation(2)), generations);
    assert_eq!(said(&world, "/status"), (200, READY.to_owned()), "slot 1 has nothing to do with it");
    api.end(&id(&started)).await;
    until("both slots", PATIENCE, slots, |slots| slots.iter().all(is_free));
    assert_eq!(said(&world, "/slots/2/reset").0, 200);
    assert_eq!(said(&world, "/slots/2/status"), (200, READY.to_owned()));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_resets_a_site() {
    let world = World::single("pages");
    world.up();
    world.write("scribble");
    let written = world.page();
    let refused = |head: &str, expected: &str| {
        let (code, text) = send(&world, head, "");
        assert!(code == 403 && text.contains(expected), "{head}: {code} {text}");
    };
    let site = "/sites/toy";
    for request in ["GET /reset", "POST /reset", "GET /slots/1/reset", &format!("POST {site}/restart")] {
        for header in ["Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none", "Origin: null", "User-Agent: Mozilla/5.0"] {
            refused(&format!("{request} HTTP/1.1\r\nHost: localhost\r\n{header}"), "browsers cannot reset sites");
        }
        refused(&format!("{request} HTTP/1.1\r\nHost: evil.example:7565"), "`evil.example:7565` is not a name");
        refused(&format!("{request} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example"), "evil.example");
    }
    refused("GET /status HTTP/1.1\r\nHost: evil.example", "is not a name of this server");
    let (code, text) = send(&world, "GET /status HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Mozilla/5.0", "");
    assert_eq!((code, text.as_str()), (200, READY), "a person may look");

    // A real browser, on a page of the site itself: by a script, a picture, a form, and by its address.
    let browser = HeadlessBrowser::start().await;
    let page = browser.page(&format!("http://localhost:{}/cgi-bin/page", world.port)).await;
    let reset = format!("http://localhost:{}/reset", port(&world));
    let script = format!(
        "(async () => {{ await fetch('{reset}', {{ mode: 'no-cors' }}); await fetch('{reset}', {{ mode: 'no-cors', \
         method: 'POST', body: 'x' }}); await new Promise(end => {{ const img = new Image(); img.onerror = end; \
         img.onload = end; img.src = '{reset}'; }}); return 'asked'; }})()"
    );
    assert_eq!(page.eval::<String>(&script).await, "asked");
    page.open(&reset).await;
    assert!(page.text().await.contains("browsers cannot reset sites"), "{}", page.text().await);
    assert_eq!(world.page(), written);
    assert_eq!(said(&world, "/status"), (200, READY.to_owned()), "no reset has begun or failed");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn env_ctrl_controls_one_site() {
    let two = TwoSites::new("envctrl");
    let world = &two.world;
    let first = "sites:\n  toy:\n";
    world.edit("environment", first, &format!("{first}    exports: {{ CLASSIFIEDS_RESET_TOKEN: s3cret }}\n"));
    world.up();
    let command = |method: &str, path: &str, body: &str| {
        let form = "Content-Type: application/x-www-form-urlencoded";
        send(
            world,
            &format!("{method} /sites/{path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n{form}"),
            body,
        )
    };
    let json = |(code, body): (u16, String)| -> (u16, Value) { (code, serde_json::from_str(&body).expect("JSON")) };
    let (code, body) = command("GET", "other/status", "");
    assert!(code == 200 && body.starts_with("{\n  \"success\": true,\n  \"message\": "), "{body}");
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(value["details"]["value"], json!({ "services": { "other": "HEALTHY" } }));
    for accepted in ["other/init", "other/start", "other/start?wait=1"] {
        let (code, body) = json(command("POST", accepted, ""));
        assert!(code == 200 && body["success"] == true, "{accepted}: {body:#}");
    }
    let (code, body) = json(command("POST", "other/stop", ""));
    assert!(code == 500 && body["message"].as_str().unwrap().contains("arenad down other"), "{body:#}");

    // A restart resets this site alone. Without `wait`, the status says at once that the site is not ready.
    two.write("scribble");
    two.let_other_boot(false);
    assert_eq!(json(command("POST", "other/restart", "")).0, 200);
    let (code, body) = json(command("GET", "other/status", ""));
    assert!(code == 200 && body["success"] == false, "{body:#}");
    assert_eq!(body["details"]["value"]["services"]["other"], "STARTING");
    assert_eq!(said(world, "/status?wait=0"), (200, ONGOING.to_owned()));
    two.let_other_boot(true);
    assert_eq!(said(world, "/status"), (200, READY.to_owned()));
    assert_eq!(two.pages(), [&format!("{BASELINE}scribble\n"), BASELINE]);
    two.write("again");
    let (code, body) = json(command("POST", "other/restart?wait=1", ""));
    assert!(code == 200 && body["message"] == "other was reset", "{body:#}");
    assert_eq!(two.pages()[1], BASELINE);
    for (method, path) in [("GET", "nothing/status"), ("POST", "toy:1/restart"), ("GET", "other/restart")] {
        let (code, body) = json(command(method, path, ""));
        assert!(code == 404 && body["success"] == false, "{path}: {body:#}");
    }

    // The reset form of VisualWebArena's classifieds.
    assert_ne!(two.pages()[0], BASELINE);
    assert_eq!(command("POST", "toy/index.php?page=reset", "token=wrong").0, 403);
    assert_eq!(command("POST", "toy/index.php?page=reset", "").0, 403);
    assert_eq!(command("POST", "other/index.php?page=reset", "token=s3cret").0, 404, "it has no form");
    assert_ne!(two.pages()[0], BASELINE);
    assert_eq!(command("POST", "toy/index.php?page=reset", "token=s3cret").0, 200);
    assert_eq!(two.pages()[0], BASELINE);
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn a_daemon_goes_without_the_reset_server_if_another_program_uses_the_default_port() {
    let world = World::bare("compatport");
    // If another process has the port, it is taken as well.
    let _taken = TcpListener::bind("127.0.0.1:7565");
    let mut without = serve(&world);
    without.env_remove("ARENAD_COMPAT");
    let _daemon = world.start_command(without);
    let status = until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some).unwrap();
    assert_eq!(status["daemon"]["compat"], Value::Null);
    world.run(&["status"]).prints("note: there is no reset server for harnesses: 127.0.0.1:7565 is used by");
    assert!(world.run(&["doctor"]).out.contains("the daemon offers no reset server for harnesses"));
    world.signal_daemon(Signal::TERM);

    let mut off = serve(&world);
    off.env("ARENAD_COMPAT", "none");
    let _daemon = world.start_command(off);
    let status = until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some).unwrap();
    assert_eq!(status["daemon"]["compat"], Value::Null);
    assert!(!status["daemon"]["notes"].to_string().contains("reset server"), "{status:#}");
    world.signal_daemon(Signal::TERM);

    let _daemon = world.start_command(serve(&world));
    until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some);
    for path in ["/reset", "/status"] {
        let (code, text) = said(&world, path);
        assert!(code == 404 && text.contains("no environment is up"), "{code} {text}");
    }
    world.signal_daemon(Signal::TERM);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = world.run(&["serve", "--engine", "unix:///var/run/docker.sock", "--compat", &address]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("offer the reset server") && refused.err.contains(&address), "{}", refused.err);
    for chosen in ["0.0.0.0:0", "[::]:0"] {
        world.run(&["serve", "--compat", chosen]).code(2).says("can be reached from other hosts");
    }
    world.run(&["serve", "--compat", "somewhere"]).code(2).says("neither an address");
}
