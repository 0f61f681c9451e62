//! Episodes through the episode proxy: several at once on the same URL, each with its own site.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Proxy};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::evaluations::browser::HeadlessBrowser;
use crate::support::wait::PATIENCE;
use crate::support::{World, until, within};

/// The site's text, before anybody writes to it.
pub(super) const BASELINE: &str = "toy\nconfigured\n";
pub(super) const PAGE: &str = "http://toy.arena.test/cgi-bin/page";

/// A world whose site has up to three slots.
fn world(label: &str) -> World {
    let world = World::single(label);
    world.edit("environment", "title: Toy", "title: Toy\n    slots: { min: 1, max: 3 }");
    let port = format!("port: {}", world.port);
    world.edit("environment", &port, &format!("{port}, aliases: [onestopmarket.com]"));
    world
}

/// Returns the command of a daemon in the foreground. The world recognizes its daemon by the state directory.
pub(super) fn serve(world: &World) -> Command {
    let mut command = world.command(&["serve", "--engine", "unix:///var/run/docker.sock", "--state-dir"]);
    command.arg(world.state_dir());
    command
}

/// Returns the command of a daemon whose episode proxy has the address of an earlier daemon that was killed. The kernel
/// releases the lock of a killed process before its sockets.
pub(super) fn serve_at(world: &World, proxy: &str) -> Command {
    let address = proxy.strip_prefix("http://").unwrap();
    drop(within("the port of the proxy", PATIENCE, || std::net::TcpListener::bind(address).ok()));
    let mut command = serve(world);
    command.env("ARENAD_PROXY", address);
    command
}

/// The credentials of an episode, and a client that uses them.
pub(super) struct ProxiedEpisode {
    pub(super) id: String,
    token: String,
    pub(super) server: String,
    client: Client,
    pub(super) started: Value,
}

impl ProxiedEpisode {
    pub(super) async fn start(api: &EpisodeClient) -> Self {
        Self::recorded(api, "none").await
    }

    /// Starts an episode of which `all` requests, `writes` or `none` are recorded.
    pub(super) async fn recorded(api: &EpisodeClient, record: &str) -> Self {
        let started = api.start(json!({ "sites": ["toy"], "wait_seconds": 120, "record": record })).await;
        let proxy = &started["proxy"];
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned();
        let (server, username, password) = (text(&proxy["server"]), text(&proxy["username"]), text(&proxy["password"]));
        assert_eq!((&username, &json!(password)), (&id(&started), &started["token"]));
        let client = client(&server, &username, &password);
        Self { id: username, token: password, server, client, started }
    }

    pub(super) async fn get(&self, url: &str) -> (u16, String) {
        fetch(&self.client, url).await
    }

    pub(super) async fn write(&self, word: &str) {
        let (status, text) = self.get(&format!("http://toy.arena.test/cgi-bin/write?{word}")).await;
        assert_eq!((status, text.as_str()), (200, "written\n"));
    }
}

pub(super) fn client(server: &str, username: &str, password: &str) -> Client {
    let proxy = Proxy::http(server).unwrap().basic_auth(username, password);
    Client::builder().proxy(proxy).timeout(Duration::from_secs(40)).build().unwrap()
}

pub(super) async fn fetch(client: &Client, url: &str) -> (u16, String) {
    let answer = client.get(url).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn episodes_at_once_see_only_their_own_writes_at_the_same_url() {
    let world = world("proxied");
    world.up();
    let api = EpisodeClient::of(&world);
    let (one, other) = tokio::join!(ProxiedEpisode::start(&api), ProxiedEpisode::start(&api));
    let site = &one.started["episode"]["sites"][0];
    assert_eq!((&site["url"], &site["proxy_url"]), (&Value::Null, &json!("http://toy.arena.test")), "{site:#}");
    let variables = &one.started["episode"]["variables"];
    assert_eq!(variables["SHOPPING"], format!("http://arena.test:{}", world.port), "one host, and a port");

    one.write("of-one").await;
    other.write("of-other").await;
    let canonical = [format!("http://localhost:{}", world.port), format!("http://127.0.0.1:{}", world.port)];
    let common = [format!("http://arena.test:{}", world.port), format!("http://toy.arena.test:{}", world.port)];
    let names = ["http://toy.arena.test", "http://onestopmarket.com", "http://TOY.arena.test."].map(str::to_owned);
    for address in canonical.iter().chain(&common).chain(&names) {
        let page = format!("{address}/cgi-bin/page");
        assert_eq!(one.get(&page).await, (200, format!("{BASELINE}of-one\n")), "{address}");
        assert_eq!(other.get(&page).await, (200, format!("{BASELINE}of-other\n")), "{address}");
    }
    assert_eq!(world.page(), BASELINE, "the public port is of people");

    // Hosts outside of the arena, the daemon's own neighbours among them, are refused with the way that is allowed.
    for address in ["http://example.com/", "http://forum.arena.test/", "http://localhost:1/", "http://127.0.0.1/"] {
        let (status, text) = one.get(address).await;
        assert_eq!(status, 403, "{address}: {text}");
        assert!(text.contains("this episode can use http://toy.arena.test"), "{text}");
    }
    let (status, text) = fetch(&client(&one.server, &one.id, &other.token), PAGE).await;
    assert_eq!(status, 407, "the token of another episode: {text}");
    assert!(text.contains("no episode has this id and token"), "{text}");
    let (status, _) = fetch(&client(&one.server, "ep-00000000000000000000", &one.token), PAGE).await;
    assert_eq!(status, 407);
    let unknown = Client::builder().proxy(Proxy::http(&one.server).unwrap()).build().unwrap();
    assert_eq!(fetch(&unknown, PAGE).await.0, 407, "no credentials");

    let curl = Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "", "--proxy"])
        .arg(one.server.replace("http://", &format!("http://{}:{}@", one.id, one.token)))
        .arg(PAGE)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&curl.stdout), format!("{BASELINE}of-one\n"), "{curl:?}");

    // A frozen episode's client waits, and goes on afterwards.
    world.run(&["episode", "freeze", &one.id]).code(0);
    let (status, text) = one.get(PAGE).await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("frozen"), "{text}");
    world.run(&["episode", "unfreeze", &one.id]).code(0);
    assert_eq!(one.get(PAGE).await.0, 200);
    for episode in [&one, &other] {
        api.end(&episode.id).await;
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// A connection to the proxy that is kept between requests.
struct KeptConnection {
    stream: TcpStream,
    authorization: String,
}

impl KeptConnection {
    fn of(episode: &ProxiedEpisode) -> Self {
        let stream = TcpStream::connect(episode.server.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        let authorization = STANDARD.encode(format!("{}:{}", episode.id, episode.token));
        Self { stream, authorization }
    }

    /// Sends a request and returns the response; an empty one if the connection is closed.
    fn get(&mut self, path: &str) -> String {
        let Self { stream, authorization } = self;
        let sent = write!(
            stream,
            "GET http://toy.arena.test{path} HTTP/1.1\r\nHost: toy.arena.test\r\n\
             Proxy-Authorization: Basic {authorization}\r\n\r\n"
        );
        let mut found = Vec::new();
        let mut bytes = [0; 4096];
        while sent.is_ok() && !is_complete(&String::from_utf8_lossy(&found)) {
            match stream.read(&mut bytes) {
                Ok(read) if read > 0 => found.extend_from_slice(&bytes[..read]),
                // The connection was closed or reset.
                _ => break,
            }
        }
        String::from_utf8_lossy(&found).into_owned()
    }
}

/// Whether a response has been received to its end.
fn is_complete(response: &str) -> bool {
    let Some((head, body)) = response.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    length.map_or_else(|| body.ends_with("0\r\n\r\n"), |length: usize| body.len() >= length)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_of_an_ended_episode_reach_nothing() {
    let world = world("ended");
    world.up();
    let api = EpisodeClient::of(&world);
    let one = ProxiedEpisode::start(&api).await;
    one.write("of-one").await;
    let mut kept = KeptConnection::of(&one);
    assert!(kept.get("/cgi-bin/page").starts_with("HTTP/1.1 200"));
    api.end(&one.id).await;
    let later = kept.get("/cgi-bin/write?of-the-past");
    let is_refused = later.starts_with("HTTP/1.1 407") && later.contains("the client released it");
    assert!(is_refused || later.is_empty(), "{later}");
    let (status, text) = one.get("http://toy.arena.test/cgi-bin/write?of-the-past").await;
    assert_eq!(status, 407, "{text}");
    assert!(text.contains("has ended (the client released it)") && text.contains("start another one"), "{text}");

    // The next episode finds the baseline in the slot, even after further attempts.
    let next = ProxiedEpisode::start(&api).await;
    assert_eq!(one.get("http://toy.arena.test/cgi-bin/write?of-the-past").await.0, 407);
    assert_eq!(next.get(PAGE).await, (200, BASELINE.to_owned()));
    let log = std::fs::read_to_string(world.state_dir().join("arenad.log")).unwrap_or_default();
    assert!(!log.contains(&one.token) && !log.contains(&next.token), "tokens are not logged");
    api.end(&next.id).await;
    world.run(&["down"]).code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_goes_on_through_the_proxy_after_a_kill_of_the_daemon() {
    let world = world("revived");
    world.up();
    let api = EpisodeClient::of(&world);
    let one = ProxiedEpisode::start(&api).await;
    one.write("of-one").await;
    // The port stays the same, as it does unless an operator chooses a free one.
    world.signal_daemon(Signal::KILL);
    let _daemon = world.start_command(serve_at(&world, &one.server));
    let page = || {
        let (client, server) = (one.client.clone(), one.server.clone());
        async move {
            match client.get(PAGE).send().await {
                Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
                Err(error) => (0, format!("{server}: {error}")),
            }
        }
    };
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (status, text) = page().await;
        if status == 200 {
            assert_eq!(text, format!("{BASELINE}of-one\n"));
            break;
        }
        assert!(matches!(status, 0 | 503), "{status} {text}");
        assert!(tokio::time::Instant::now() < deadline, "{status} {text}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    one.write("after-the-kill").await;
    let api = EpisodeClient::of(&world);
    api.end(&one.id).await;
    assert_eq!(one.get(PAGE).await.0, 407);
    world.run(&["down"]).code(0);
    world.signal_daemon(Signal::TERM);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_contexts_of_a_browser_are_two_episodes() {
    let world = world("browsers");
    world.up();
    let api = EpisodeClient::of(&world);
    let (one, other) = tokio::join!(ProxiedEpisode::start(&api), ProxiedEpisode::start(&api));
    let browser = HeadlessBrowser::start().await;
    let open =
        async |episode: &ProxiedEpisode| browser.proxied_page(&episode.server, &episode.id, &episode.token, PAGE).await;
    let (first, second) = (open(&one).await, open(&other).await);
    for (page, word) in [(&first, "of-one"), (&second, "of-other")] {
        page.open(&format!("http://toy.arena.test/cgi-bin/write?{word}")).await;
        assert_eq!(page.text().await.trim(), "written");
        page.eval::<String>(&format!("document.cookie = 'who={word}'")).await;
    }
    for (page, word) in [(&first, "of-one"), (&second, "of-other")] {
        page.open(PAGE).await;
        assert_eq!(page.text().await.trim(), format!("{BASELINE}{word}"));
        assert_eq!(page.eval::<String>("document.cookie").await, format!("who={word}"));
        // The canonical address, which browsers do not send to a proxy unless they are told to.
        page.open(&format!("http://localhost:{}/cgi-bin/page", world.port)).await;
        assert_eq!(page.text().await.trim(), format!("{BASELINE}{word}"));
    }
    for episode in [&one, &other] {
        api.end(&episode.id).await;
    }
    world.run(&["down"]).code(0);
}

#[test]
fn a_command_finds_the_proxy_in_its_variables() {
    let world = world("variables");
    world.up();
    let run = |options: &[&str], script: &str| {
        let args = [&["run", "--sites", "toy", "--wait", "2m"], options, &["--", "/bin/sh", "-ec", script]].concat();
        world.run(&args).code(0).out
    };
    let page = "curl --silent --proxy \"$ARENAD_PROXY_URL\" --noproxy '' \"$ARENAD_URL_TOY/cgi-bin/page\"";
    assert_eq!(run(&[], page), BASELINE);
    let apart = "curl --silent --proxy \"$ARENAD_PROXY_SERVER\" --noproxy '' \
                 --proxy-user \"$ARENAD_PROXY_USERNAME:$ARENAD_PROXY_PASSWORD\" \"$ARENAD_URL_TOY/cgi-bin/page\"";
    assert_eq!(run(&[], apart), BASELINE);
    let shown = run(&[], "echo \"$ARENAD_URL_TOY $SHOPPING ${http_proxy:-unset}\"");
    assert_eq!(shown, format!("http://toy.arena.test http://arena.test:{} unset\n", world.port));
    let all = run(&["--proxy-env"], "curl --silent \"$SHOPPING/cgi-bin/page\"; echo \"$NO_PROXY\"");
    assert!(all.starts_with(BASELINE) && all.ends_with("localhost,127.0.0.1,::1\n"), "{all}");
    // Slot 1 has a public port, so its episode needs no proxy.
    let public =
        run(&["--slot", "toy=1"], "echo \"$ARENAD_URL_TOY $SHOPPING\"; curl --silent \"$SHOPPING/cgi-bin/page\"");
    assert_eq!(public, format!("http://localhost:{0} http://localhost:{0}\n{BASELINE}", world.port));
    world.run(&["down"]).code(0);
}

#[test]
fn a_daemon_does_not_start_without_the_proxy_port_that_was_chosen() {
    let world = World::bare("taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = world.run(&["serve", "--engine", "unix:///var/run/docker.sock", "--proxy", &address]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("offer the episode proxy") && refused.err.contains(&address), "{}", refused.err);
    for chosen in ["0.0.0.0:0", "[::]:0"] {
        world.run(&["serve", "--proxy", chosen]).code(2).says("can be reached from other hosts");
    }
    world.run(&["serve", "--proxy", "somewhere"]).code(2).says("neither an address");
}

#[test]
fn a_daemon_goes_without_the_proxy_if_another_program_uses_the_default_port() {
    let world = World::bare("default");
    // If another process has the port, it is taken as well.
    let _taken = TcpListener::bind("127.0.0.1:7500");
    let mut without = serve(&world);
    without.env_remove("ARENAD_PROXY");
    let _daemon = world.start_command(without);
    let status = until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some).unwrap();
    assert_eq!(status["daemon"]["proxy"], Value::Null);
    world.run(&["status"]).prints("note: there is no episode proxy: 127.0.0.1:7500 is used by");
    world.signal_daemon(Signal::TERM);

    let mut off = serve(&world);
    off.env("ARENAD_PROXY", "none");
    let _daemon = world.start_command(off);
    let status = until("the daemon", PATIENCE, || world.api("/v1/status"), Option::is_some).unwrap();
    assert_eq!(status["daemon"]["proxy"], Value::Null);
    assert!(!status["daemon"]["notes"].to_string().contains("proxy"), "{status:#}");
    world.signal_daemon(Signal::TERM);
}
