//! Episodes at the own ports of their slots, for clients without a proxy: with cookies, redirects and links.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use super::{EpisodeClient, id};
use crate::support::wait::PATIENCE;
use crate::support::world::free_port;
use crate::support::{World, until};

/// The site's text, before anybody writes to it.
const BASELINE: &str = "toy\nconfigured\n";

/// A world whose site has three slots with own ports, and the port of slot 1.
pub(super) fn world(label: &str, bodies: &str) -> (World, u16) {
    let world = World::single(label);
    // The ports of the three slots are free as well.
    let base = loop {
        let ports = [free_port(), free_port(), free_port()];
        if ports[1] == ports[0] + 1 && ports[2] == ports[0] + 2 {
            break ports[0];
        }
    };
    let ports = format!("title: Toy\n    slots: {{ max: 3 }}\n    ports: {{ base: {base}, bodies: {bodies} }}");
    world.edit("environment", "title: Toy", &ports);
    (world, base)
}

/// An episode, and a client with a cookie jar of its own.
struct PortedEpisode {
    id: String,
    url: String,
    client: Client,
    started: Value,
}

impl PortedEpisode {
    async fn start(api: &EpisodeClient) -> Self {
        let started = api.start(json!({ "sites": ["toy"], "wait_seconds": 120 })).await;
        let url =
            started["episode"]["sites"][0]["port_url"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned();
        let client = Client::builder().no_proxy().cookie_store(true).timeout(Duration::from_secs(40)).build().unwrap();
        Self { id: id(&started), url, client, started }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.client.get(format!("{}/cgi-bin/{path}", self.url)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// A connection to a port that is kept between requests.
struct PortConnection(TcpStream, String);

impl PortConnection {
    fn to(url: &str) -> Self {
        let host = url.strip_prefix("http://").unwrap().to_owned();
        let stream = TcpStream::connect(host.replace("localhost", "127.0.0.1")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        Self(stream, host)
    }

    /// Sends a request and returns the response, which ends with the connection or the last chunk.
    fn get(&mut self, path: &str) -> String {
        let Self(stream, host) = self;
        write!(stream, "GET /cgi-bin/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut found = Vec::new();
        let mut bytes = [0; 4096];
        while !String::from_utf8_lossy(&found).ends_with("0\r\n\r\n") {
            match stream.read(&mut bytes) {
                Ok(read) if read > 0 => found.extend_from_slice(&bytes[..read]),
                _ => break,
            }
        }
        String::from_utf8_lossy(&found).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn episodes_at_once_have_their_own_ports_cookies_and_redirects() {
    let (world, base) = world("ported", "mapped");
    world.up();
    let api = EpisodeClient::of(&world);
    let (one, other) = tokio::join!(PortedEpisode::start(&api), PortedEpisode::start(&api));
    for episode in [&one, &other] {
        let slot = episode.started["episode"]["sites"][0]["slot"].as_u64().unwrap();
        let port = u64::from(base) + slot - 1;
        assert_eq!(episode.url, format!("http://localhost:{port}"));
        assert_eq!(episode.started["episode"]["port_variables"]["SHOPPING"], episode.url);
        // The redirect and the link stay at the slot's port, and the cookie comes back.
        let answer = episode.client.get(format!("{}/cgi-bin/visit?{}", episode.url, episode.id)).send().await.unwrap();
        assert_eq!(answer.url().as_str(), format!("{}/cgi-bin/visit", episode.url));
        let page = format!("<a href=\"{}/cgi-bin/page\">visitor={}</a>\n", episode.url, episode.id);
        assert_eq!(answer.text().await.unwrap(), page);
        assert_eq!(episode.get(&format!("write?of-{}", episode.id)).await, (200, "written\n".to_owned()));
    }
    for episode in [&one, &other] {
        assert_eq!(episode.get("page").await, (200, format!("{BASELINE}of-{}\n", episode.id)));
    }
    assert_eq!(world.page(), BASELINE, "the public port is of people");

    // A form of a page is sent back with the slot's address, and the site gets its own.
    let next = |url: &str| format!("next={}%2Fcgi-bin%2Fpage", url.replace(':', "%3A").replace('/', "%2F"));
    let form = ("content-type", "application/x-www-form-urlencoded");
    let answer = one.client.post(format!("{}/cgi-bin/say", one.url)).header(form.0, form.1).body(next(&one.url));
    let answer = answer.send().await.unwrap().text().await.unwrap();
    let canonical = next(&format!("http://localhost:{}", world.port));
    assert_eq!(answer, format!("{} {}\n", canonical.len(), next(&one.url)), "the answer has the slot's address again");
    let slot = one.started["episode"]["sites"][0]["slot"].as_u64().unwrap();
    let container = &world.containers_of_slot(slot)[0];
    let notes = world.engine.try_docker(&["exec", container, "/bin/sh", "-c", "tail -n 1 /srv/state/notes"]).unwrap();
    assert_eq!(notes, canonical, "the site has stored its own address");

    let (status, text) = PortedEpisode { url: format!("http://localhost:{base}"), ..one.copy() }.get("page").await;
    assert_eq!(status, 503, "slot 1 is free: {text}");
    assert!(text.contains("no episode has slot 1 of toy"), "{text}");

    // The host can name the episode.
    let named = |of: &PortedEpisode, at: &PortedEpisode| at.url.replace("localhost", &format!("{}.localhost", of.id));
    let resolved = |url: String| {
        let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
        let host = url.trim_start_matches("http://").split(':').next().unwrap().to_owned();
        let client = Client::builder().no_proxy().resolve(&host, ([127, 0, 0, 1], port).into()).build().unwrap();
        async move { client.get(format!("{url}/cgi-bin/page")).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(resolved(named(&one, &one)).await, 200);
    assert_eq!(resolved(named(&other, &one)).await, 410);

    // A frozen episode's client waits, and goes on afterwards.
    world.run(&["episode", "freeze", &one.id]).code(0);
    assert_eq!(one.get("page").await.0, 503);
    world.run(&["episode", "unfreeze", &one.id]).code(0);
    assert_eq!(one.get("page").await.0, 200);

    world.run(&["status"]).code(0).prints("PORT").prints(&format!("{}\n", base + 1));
    let shown = world.run(&["episode", "show", &one.id]).code(0);
    shown.prints(&one.url);

    // The next episode in the slot is out of reach for connections of the earlier one.
    let mut kept = PortConnection::to(&one.url);
    assert!(kept.get("page").contains("of-"));
    let mut unused = PortConnection::to(&one.url);
    // The gateway accepts connections in their order, so it has accepted the unused one after this.
    assert_eq!(
        PortedEpisode { client: Client::builder().no_proxy().build().unwrap(), ..one.copy() }.get("page").await.0,
        200
    );
    api.end(&one.id).await;
    let slot = one.started["episode"]["sites"][0]["slot"].clone();
    let body = json!({ "sites": ["toy"], "wait_seconds": 120, "slots": { "toy": slot } });
    let next = api.start(body).await;
    assert_eq!(next["episode"]["sites"][0]["port_url"], one.url);
    for connection in [&mut kept, &mut unused] {
        let late = connection.get("write?late");
        assert!(late.starts_with("HTTP/1.1 410"), "{late}");
        assert!(late.contains("has ended (the client released it)"), "{late}");
    }
    assert_eq!(resolved(named(&one, &one)).await, 410, "retried on a new connection, by its name");
    let (status, text) =
        PortedEpisode { client: Client::builder().no_proxy().build().unwrap(), ..one.copy() }.get("page").await;
    assert_eq!((status, text.as_str()), (200, BASELINE), "a new connection is one of the next episode");
    for id in [id(&next), other.id.clone()] {
        api.end(&id).await;
    }

    // The URLs of a slot are known before an episode has it.
    let shown = world.run(&["env", &world.name, "--slot", "2"]).code(0);
    shown.prints(&format!("SHOPPING='http://localhost:{}'", base + 1)).prints("/slots/2'");
    let beyond = world.run(&["env", &world.name, "--slot", "4"]).code(2);
    beyond.says("slot 4 of toy has no own port").says("raise `slots.max`");

    // A command gets the same URLs.
    let script = "test \"$ARENAD_URL_TOY\" = \"$ARENAD_PORT_URL_TOY\" && test \"$SHOPPING\" = \"$ARENAD_URL_TOY\" && \
                  wget -q -O - \"$SHOPPING/cgi-bin/page\" || curl -s \"$SHOPPING/cgi-bin/page\"";
    world.run(&["run", "--sites", "toy", "--ports", "--", "/bin/sh", "-c", script]).code(0).prints(BASELINE);
    world.run(&["down"]).code(0);
    assert!(TcpStream::connect(("127.0.0.1", base + 1)).is_err(), "the ports are closed with the site");
    world.assert_down();
}

impl PortedEpisode {
    fn copy(&self) -> Self {
        let (id, url, client) = (self.id.clone(), self.url.clone(), self.client.clone());
        Self { id, url, client, started: self.started.clone() }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_door_leads_to_the_slot_of_a_frozen_episode() {
    let (world, base) = world("frozen", "mapped");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "sites": ["toy"], "slots": { "toy": 1 }, "wait_seconds": 120 })).await;
    let id = id(&started);
    let through = |name: &str| started["proxy"][name].as_str().unwrap().to_owned();
    let proxy = reqwest::Proxy::http(through("server")).unwrap().basic_auth(&through("username"), &through("password"));
    let clients = [
        ("the public port", Client::builder().no_proxy(), format!("http://localhost:{}", world.port)),
        ("the own port", Client::builder().no_proxy(), format!("http://localhost:{base}")),
        ("the proxy", Client::builder().proxy(proxy), "http://toy.arena.test".to_owned()),
    ];
    // Without idle connections, which a new daemon does not have.
    let clients = clients.map(|(door, client, url)| (door, client.pool_max_idle_per_host(0).build().unwrap(), url));
    let ask = async |client: &Client, url: &str, rest: &str| {
        let answer = client.post(format!("{url}/cgi-bin/{rest}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for (door, client, url) in &clients {
        assert_eq!(ask(client, url, "write?before").await, (200, "written\n".to_owned()), "{door}");
    }
    let written = format!("{BASELINE}before\nbefore\nbefore\n");
    assert_eq!(world.page(), written);
    let mut kept = [format!("http://localhost:{}", world.port), format!("http://localhost:{base}")]
        .map(|url| PortConnection::to(&url));
    for connection in &mut kept {
        assert!(connection.get("page").starts_with("HTTP/1.1 200"));
    }
    let stored = || {
        let found = world.containers_of_slot(1);
        world.engine.try_docker(&["exec", &found[0], "/bin/sh", "-c", "cat /srv/state/notes"]).unwrap()
    };

    world.run(&["episode", "freeze", &id]).code(0);
    // Neither new nor kept connections reach it, whatever the request.
    let refused = async || {
        for (door, client, url) in &clients {
            for rest in ["write?frozen", "page"] {
                let (status, text) = ask(client, url, rest).await;
                assert_eq!(status, 503, "{door}: {text}");
                assert!(text.contains("is frozen, for example while it is evaluated"), "{door}: {text}");
                let answer = client.get(format!("{url}/cgi-bin/{rest}")).send().await.unwrap();
                assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (503, "1"));
            }
        }
    };
    refused().await;
    for connection in &mut kept {
        let late = connection.get("write?kept");
        assert!(!late.contains("written"), "{late}");
    }
    assert_eq!(stored(), written.trim_end());
    // A new daemon knows that it is frozen, and the end of the freeze opens all doors.
    world.signal_daemon(rustix::process::Signal::KILL);
    let _daemon = world.start_command(super::proxied::serve_at(&world, &through("server")));
    until("the site", PATIENCE, || world.state(), |state| state == "ready");
    refused().await;
    assert_eq!(stored(), written.trim_end());
    world.run(&["episode", "unfreeze", &id]).code(0);
    for (door, client, url) in &clients {
        assert_eq!(ask(client, url, "write?after").await, (200, "written\n".to_owned()), "{door}");
    }
    assert_eq!(world.page(), format!("{written}after\nafter\nafter\n"));

    // A frozen episode that ends leaves its slot to people.
    world.run(&["episode", "freeze", &id]).code(0);
    EpisodeClient::of(&world).end(&id).await;
    let page = || world.get("/cgi-bin/page").map(|answer| answer.body);
    until("the public port", PATIENCE, page, |page| page.as_deref() == Some(BASELINE));
    world.run(&["down"]).code(0);
    world.signal_daemon(rustix::process::Signal::TERM);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_whose_addresses_cannot_be_mapped_names_the_proxy() {
    let (world, base) = world("unmapped", "unmappable");
    world.up();
    let api = EpisodeClient::of(&world);
    let started = api.start(json!({ "sites": ["toy"], "wait_seconds": 120 })).await;
    let site = &started["episode"]["sites"][0];
    assert_eq!(site["port_url"], Value::Null, "{site:#}");
    assert_eq!(started["episode"]["port_variables"], Value::Null);
    let port = u64::from(base) + site["slot"].as_u64().unwrap() - 1;
    let answer = reqwest::get(format!("http://127.0.0.1:{port}/cgi-bin/page")).await.unwrap();
    assert_eq!(answer.status().as_u16(), 421);
    let text = answer.text().await.unwrap();
    let server = started["proxy"]["server"].as_str().unwrap();
    assert!(text.contains(&format!("use http://toy.arena.test through the episode proxy {server}")), "{text}");
    world
        .run(&["run", "--sites", "toy", "--ports", "--", "true"])
        .code(2)
        .says("--ports requires own ports of slots, and toy has none");
    let refused = world.run(&["env", &world.name, "--slot", "1"]).code(2);
    refused.says("slot 1 of toy has no own port").says("use the episode proxy");
    world.run(&["down"]).code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_taken_is_named_before_anything_starts() {
    let (world, base) = world("taken", "unchanged");
    let listener = std::net::TcpListener::bind(("127.0.0.1", base + 2)).unwrap();
    let refused = world.run(&["up", &world.name]).says(&format!("127.0.0.1:{}", base + 2));
    assert_ne!(refused.code, 0);
    assert!(TcpStream::connect(("127.0.0.1", base)).is_err(), "none of the ports is opened");
    world.assert_down();
    drop(listener);
    world.up();
    world.run(&["down"]).code(0);
}
