//! Sites that are kept as long as clients only read them. A reset leaves such a site unchanged until a client writes to
//! it; then the write is reported and undone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::wait::PATIENCE;
use crate::support::world::list;
use crate::support::{World, within};

const BASELINE: &str = "toy\nconfigured\n";

const STORES: &str = "    stores: { notes: { kind: directory, path: /srv/state } }
    writers:
      stop: [ { command: [/bin/sh, -c, 'true'] } ]
      start: [ { command: [/bin/sh, -c, 'true'] } ]
";

/// A site that is kept, with further declarations.
fn kept(label: &str, more: &str) -> World {
    let world = World::single(label);
    let text = format!("    reset: {{ strategy: keep }}\n{more}    baseline:\n");
    world.edit("environment", "    baseline:\n", &text);
    world.up();
    world
}

/// Sends an empty form and returns the whole answer.
fn post(world: &World, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", world.port)).expect("the gateway listens");
    stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a limit");
    write!(stream, "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").expect("send the request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read the answer");
    answer
}

/// Waits until this number of requests that may write is known.
fn await_requests(world: &World, requests: u64) {
    within("the report of a write", PATIENCE, || {
        let site = world.site()?;
        (site["written"]["requests"].as_u64().unwrap_or_default() == requests).then_some(())
    });
}

#[test]
fn what_another_daemon_left_is_not_trusted_without_stores() {
    let world = kept("adopted", "");
    assert_eq!(world.reset(), "keep");
    world.signal_daemon(rustix::process::Signal::KILL);
    world.up();
    assert_eq!(world.reset(), "keep", "no client had reached it when the daemon was killed");
    world.page();
    world.signal_daemon(rustix::process::Signal::KILL);
    world.up();
    let containers = list(&world.site().expect("the site")["containers"], "id");
    assert_eq!(world.reset(), "recreate", "a request may have written before the daemon was killed");
    assert_ne!(list(&world.site().expect("the site")["containers"], "id"), containers);
    assert_eq!(world.reset(), "keep", "it has made these itself");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn without_stores_a_site_is_trusted_until_someone_may_have_written() {
    let world = kept("unstored", "");
    let containers = list(&world.site().expect("the site")["containers"], "id");
    assert_eq!(world.reset(), "keep");
    assert_eq!(list(&world.site().expect("the site")["containers"], "id"), containers, "nothing was touched");

    post(&world, "/cgi-bin/write?graffiti");
    await_requests(&world, 1);
    world.run(&["status"]).prints("toy is read-only, but a request that may write reached it");
    world.run(&["events"]).code(0).prints("instance.written");
    // The next daemon knows about it too.
    world.signal_daemon(Signal::KILL);
    world.up();
    await_requests(&world, 1);
    post(&world, "/cgi-bin/write?more");
    await_requests(&world, 2);

    assert_eq!(world.reset(), "recreate");
    assert_eq!(world.page(), BASELINE);
    assert_eq!(world.site().expect("the site")["written"], serde_json::Value::Null);
    assert_eq!(world.reset(), "keep");
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn with_stores_what_was_written_is_found_and_undone() {
    let deep = "    health:\n      shallow: { every: 1s }\n      deep: { every: 1h, probes: [ { http: { path: /cgi-bin/page } } ] }\n";
    let world = World::single("stored");
    world.edit("environment", "    health:\n      shallow: { every: 1s }\n", deep);
    world.edit("environment", "    baseline:\n", &format!("    reset: {{ strategy: keep }}\n{STORES}    baseline:\n"));
    world.up();
    // Searches with POST change nothing, so they do not count as writes.
    post(&world, "/cgi-bin/page");
    await_requests(&world, 1);
    assert_eq!(world.reset(), "keep");

    // A change made through a form is undone without an explicit request.
    post(&world, "/cgi-bin/write?graffiti");
    within("the baseline", PATIENCE, || {
        let reset = world.site()?["last_reset"].clone();
        (reset["strategy"] == "rewind" && reset["outcome"] == "done" && world.page() == BASELINE).then_some(())
    });
    world.run(&["events", "--json"]).code(0).prints("has been written to: differs from its snapshot: ").prints("notes");

    // An unobserved write is found by the next reset.
    world.write("unseen");
    assert_eq!(world.reset(), "rewind");
    assert_eq!(world.page(), BASELINE);
    assert_eq!(world.reset(), "keep");
    world.run(&["verify", "toy"]).code(0);

    // A reset to another snapshot does not keep the site as it is.
    world.write("kept");
    world.run(&["snapshot", "take", "toy", "--name", "kept"]).code(0);
    world.run(&["reset", "toy", "--to", "kept"]).code(0);
    assert!(world.page().contains("kept"));
    assert_ne!(world.reset(), "keep");
    assert_eq!(world.page(), BASELINE);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn the_gateway_refuses_writes_where_it_is_told_to() {
    let world = World::single("refusing");
    let public = format!("public: {{ port: {}, variable: SHOPPING", world.port);
    let rules = format!("{public}, writes: refuse, reads: [\"/cgi-bin/page\", \"/cgi-bin/h*\"]");
    world.edit("environment", &public, &rules);
    world.edit("environment", "    baseline:\n", "    reset: { strategy: keep }\n    baseline:\n");
    world.up();
    let refused = post(&world, "/cgi-bin/write?graffiti");
    assert!(refused.starts_with("HTTP/1.0 405 ") || refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert!(refused.to_lowercase().contains("allow: get, head, options\r\n"), "{refused}");
    assert!(refused.contains("it is only read"), "{refused}");
    assert!(post(&world, "/cgi-bin/page").contains(" 200 "), "a search by POST is passed on");
    assert_eq!(world.page(), BASELINE);
    assert_eq!(world.reset(), "keep", "a request that only reads does not count as a write");
    assert_eq!(world.site().expect("the site")["written"], serde_json::Value::Null);
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}
