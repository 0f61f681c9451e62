//! Replays: recorded sites under their original host names, with and without an episode.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::proxied::{PAGE, serve, serve_at};
use super::{EpisodeClient, id};
use crate::support::wait::PATIENCE;
use crate::support::{World, within};

fn entry(url: &str, status: u16, text: &str) -> Value {
    json!({
        "startedDateTime": "2023-03-01T10:00:00Z",
        "request": { "method": "GET", "url": url, "headers": [] },
        "response": {
            "status": status, "headers": [{ "name": "Content-Type", "value": "text/plain" }],
            "content": { "size": text.len(), "text": text },
        },
    })
}

/// A page that shows the year in three ways, whether they agree with a class, and a year that it names itself.
const DATE: &str = "<title>Date</title><p><script>
    class Day extends Date {}
    document.write([
        new Date().getFullYear(), new Date(Date.now()).getFullYear(), new Day().getFullYear(),
        new Day() instanceof Date && /2023/.test(Date()), new Date(1999, 1).getFullYear(),
    ].join(' '));
</script></p>";

fn page(url: &str, html: &str) -> Value {
    let mut entry = entry(url, 200, html);
    entry["response"]["headers"][0]["value"] = json!("text/html");
    entry
}

/// Writes a HAR next to the files of the world, and returns its path.
fn har(world: &World) -> PathBuf {
    let path = world.root().join("visit.har");
    let entries = [
        entry("https://www.airline.test/", 200, "secure\n"),
        entry("http://cdn.airline.test:8080/a.js?_=1677660000000", 200, "plain\n"),
        entry("https://www.airline.test/gone", 404, "recorded\n"),
        page("https://www.airline.test/date", DATE),
        entry("https://192.0.2.7/", 200, "address\n"),
        entry("https://[2001:db8::7]:8443/", 200, "address\n"),
    ];
    std::fs::write(&path, json!({ "log": { "entries": entries } }).to_string()).unwrap();
    path
}

/// The answer that curl got through a proxy.
#[derive(Debug)]
struct Curled {
    status: u16,
    head: String,
    body: String,
    /// The status of the proxy's answer to CONNECT.
    connect: u16,
}

fn curl(proxy: &str, certificate: &std::path::Path, url: &str, further: &[&str]) -> Curled {
    let output = Command::new("curl")
        .args(["--silent", "--noproxy", "", "--max-time", "20", "--include", "--suppress-connect-headers"])
        .args(["--write-out", "\n%{http_code} %{http_connect}", "--proxy", proxy, "--cacert"])
        .arg(certificate)
        .args(further)
        .arg(url)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (text, codes) = text.rsplit_once('\n').unwrap_or(("", &text));
    let (status, connect) = codes.split_once(' ').unwrap_or_default();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let number = |text: &str| text.parse().unwrap_or_default();
    Curled { status: number(status), head: head.to_owned(), body: body.to_owned(), connect: number(connect) }
}

#[test]
fn a_replay_is_served_under_its_original_names_until_it_is_removed() {
    let world = World::single("replayed");
    let daemon = world.start_command(serve(&world));
    within("the daemon", PATIENCE, || world.api("/v1/version"));
    let visit = har(&world);
    let visit = visit.to_str().unwrap();
    world.run(&["replay", "add", "airline", visit]).code(0).prints("airline: 6 exchanges of 4 hosts");
    world.run(&["replay", "add", "airline", visit]).code(1).says("there is already a replay airline");
    let cut = world.root().join("cut.har");
    std::fs::write(&cut, "{\"log\": {\"entries\": [").unwrap();
    world.run(&["replay", "add", "cut", cut.to_str().unwrap()]).code(2).says("read cut.har: EOF while parsing");
    world.run(&["replay", "show", "cut"]).code(2).says("there is no replay cut");
    let certificate = world.root().join("ca.pem");
    let printed = world.run(&["ca", "--json"]).code(0).json();
    std::fs::write(&certificate, printed["certificate"].as_str().unwrap()).unwrap();

    let shown = world.run(&["replay", "show", "airline", "--json"]).code(0).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (server, password) = (text(&shown["proxy"]["server"]), text(&shown["proxy"]["password"]));
    assert_eq!(shown["proxy"]["username"], "replay.airline");
    let proxy = server.replace("http://", &format!("http://replay.airline:{password}@"));
    let get = |url: &str| curl(&proxy, &certificate, url, &[]);

    let secure = get("https://www.airline.test/");
    assert_eq!((secure.status, secure.body.as_str()), (200, "secure\n"), "{secure:?}");
    let plain = get("http://cdn.airline.test:8080/a.js?_=5");
    assert_eq!((plain.status, plain.body.as_str()), (200, "plain\n"), "{plain:?}");
    let recorded = get("https://www.airline.test/gone");
    assert_eq!((recorded.status, recorded.body.as_str()), (404, "recorded\n"), "{recorded:?}");
    assert!(!recorded.head.contains("arenad-replay"), "{recorded:?}");
    let missed = get("https://www.airline.test/other");
    assert_eq!(missed.status, 404, "{missed:?}");
    assert!(missed.head.to_ascii_lowercase().contains("arenad-replay: miss"), "{missed:?}");
    let forbidden = get("https://elsewhere.test/");
    assert_eq!((forbidden.status, forbidden.connect), (0, 403), "{forbidden:?}");
    let worker = curl(&proxy, &certificate, "https://www.airline.test/", &["--header", "Service-Worker: script"]);
    assert_eq!(worker.status, 404, "{worker:?}");
    let counts = world.run(&["replay", "show", "airline", "--json"]).code(0).json();
    let rules = json!([{ "rule": "exact", "requests": 2 }, { "rule": "parameters", "requests": 1 }]);
    let expected = json!({
        "hits": 3, "rules": rules, "recorded_failures": 1, "misses": 1, "forbidden": 1, "service_workers": 1
    });
    assert_eq!(counts["counts"], expected);
    assert_eq!(counts["missed"][0]["url"], "https://www.airline.test/other", "{counts:#}");
    assert_eq!(counts["missed"][1]["url"], "elsewhere.test:443", "{counts:#}");

    // A client that connects to an address tells the server no name.
    for url in ["https://192.0.2.7/", "https://[2001:db8::7]:8443/"] {
        let address = get(url);
        assert_eq!((address.status, address.body.as_str()), (200, "address\n"), "{url}: {address:?}");
    }

    // Without the certificate, with another password, and for another name than that of the tunnel.
    let untrusting = Command::new("curl").args(["--silent", "--proxy", &proxy, "https://www.airline.test/"]).output();
    assert!(!untrusting.unwrap().status.success(), "a certificate of an authority that curl does not trust");
    let stranger = server.replace("http://", "http://replay.airline:wrong@");
    assert_eq!(curl(&stranger, &certificate, "https://www.airline.test/", &[]).connect, 407);
    let other = ["--connect-to", "www.airline.test:443:cdn.airline.test:8080"];
    assert_eq!(curl(&proxy, &certificate, "https://www.airline.test/", &other).status, 0);

    // A daemon that was killed leaves the replay, the key and the credentials.
    world.signal_daemon(Signal::KILL);
    daemon.ended();
    let partial = world.state_dir().join("replays/.partial-left");
    std::fs::create_dir_all(&partial).unwrap();
    let daemon = world.start_command(serve_at(&world, &server));
    within("the daemon", PATIENCE, || world.api("/v1/version"));
    assert!(!partial.exists(), "what was not complete is removed");
    let again = curl(&proxy, &certificate, "https://www.airline.test/", &[]);
    assert_eq!((again.status, again.body.as_str()), (200, "secure\n"), "{again:?}");
    world.run(&["replay", "ls"]).code(0).prints("airline").prints("https://www.airline.test");
    world.run(&["replay", "rm", "airline"]).code(0);
    assert_eq!(curl(&proxy, &certificate, "https://www.airline.test/", &[]).connect, 407);
    let left = std::fs::read_dir(world.state_dir().join("replays")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".authority"]);
    world.signal_daemon(Signal::TERM);
    daemon.ended();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_reaches_its_sites_and_the_replays_that_it_names() {
    let world = World::single("replayer");
    world.up();
    let api = EpisodeClient::of(&world);
    let visit = har(&world);
    world.run(&["replay", "add", "airline", visit.to_str().unwrap()]).code(0);
    let certificate = world.root().join("ca.pem");
    let printed = world.run(&["ca", "--json"]).code(0).json();
    std::fs::write(&certificate, printed["certificate"].as_str().unwrap()).unwrap();
    let unknown = json!({ "sites": ["toy"], "replays": ["train"] });
    let (status, problem) = api.ask(reqwest::Method::POST, "/v1/episodes", Some(unknown)).await;
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_replay")), "{problem:#}");

    let started = api.start(json!({ "sites": ["toy"], "replays": ["airline"], "record": "all" })).await;
    let (id, token) = (id(&started), started["token"].as_str().unwrap());
    assert_eq!(started["episode"]["replays"], json!(["airline"]));
    let server = started["proxy"]["server"].as_str().unwrap();
    let proxy = server.replace("http://", &format!("http://{id}:{token}@"));
    let get = |url: &str| curl(&proxy, &certificate, url, &[]);
    assert_eq!(get("https://www.airline.test/").body, "secure\n");
    assert_eq!(get(PAGE).status, 200);
    assert_eq!(get("https://elsewhere.test/").connect, 403);
    world.run(&["replay", "rm", "airline"]).code(1).says(&id);
    let (_, har) = api.get(&format!("/v1/episodes/{id}/har")).await;
    let urls: Vec<&str> =
        har["log"]["entries"].as_array().unwrap().iter().filter_map(|entry| entry["request"]["url"].as_str()).collect();
    assert_eq!(urls, ["https://www.airline.test/", PAGE]);

    // The browser of the episode needs no certificate.
    let opened = json!({ "url": "https://www.airline.test/", "observation": "accessibility_tree" });
    let (status, page) =
        api.ask(reqwest::Method::POST, &format!("/v1/episodes/{id}/browser/reset"), Some(opened)).await;
    assert_eq!(status, 200, "{page:#}");
    assert!(page["observation"]["text"].as_str().unwrap_or_default().contains("secure"), "{page:#}");

    // Its pages see the time of the recording, and those of sites the present.
    let act = async |action: &str| {
        let wanted = json!({ "action": action });
        let (status, page) =
            api.ask(reqwest::Method::POST, &format!("/v1/episodes/{id}/browser/step"), Some(wanted)).await;
        assert_eq!(status, 200, "{page:#}");
        page["observation"]["text"].as_str().unwrap_or_default().to_owned()
    };
    let dated = act("goto [https://www.airline.test/date]").await;
    assert!(dated.contains("2023 2023 2023 true 1999"), "{dated}");

    // An episode that does not name it has no way to it.
    api.end(&id).await;
    let started = api.start(json!({ "sites": ["toy"] })).await;
    let (id, token) = (super::id(&started), started["token"].as_str().unwrap());
    let proxy = server.replace("http://", &format!("http://{id}:{token}@"));
    assert_eq!(curl(&proxy, &certificate, "https://www.airline.test/", &[]).connect, 403);
    world.run(&["replay", "rm", "airline"]).code(0);
    api.end(&id).await;
    world.run(&["down"]).code(0);
    world.assert_down();
}
