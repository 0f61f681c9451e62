//! Restrictions of containers, and foreign objects, which arenad never touches.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use crate::support::wait::PATIENCE;
use crate::support::{World, until, within};

#[test]
fn containers_have_no_way_out_and_gain_no_privileges() {
    let world = World::single("wall");
    world.up();
    let id = world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned();
    let inside = |script: &str| world.engine.try_docker(&["exec", &id, "/bin/sh", "-c", script]);

    let status = inside("cat /proc/1/status").unwrap();
    assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"), "{status}");

    // A server on another network, an address of this machine, and addresses beyond it.
    let image = world.engine.docker(&["inspect", "--format", "{{.Image}}", &id]);
    let other = world.engine.docker(&["run", "--detach", "--rm", "--label", "arenad-test=wall", &image]);
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let address = world.engine.docker(&["inspect", "--format", format, &other]);
    within("the other server", PATIENCE, || TcpStream::connect((address.as_str(), 80)).ok());
    for address in [address.as_str(), "192.0.2.1", "1.1.1.1", "169.254.169.254"] {
        let tried = inside(&format!("timeout 3 wget -q -O - http://{address}/"));
        assert!(tried.is_err(), "reached {address}: {tried:?}");
    }
    assert!(inside("timeout 3 wget -q -O - http://127.0.0.1/cgi-bin/page").is_ok(), "what is tried with works");
    world.engine.docker(&["rm", "--force", &other]);
    let resolved = inside("timeout 10 nslookup -timeout=2 example.com");
    assert!(resolved.is_err(), "resolved: {resolved:?}");
    assert!(inside("nslookup toy").unwrap().contains("Address"), "its own names resolve");
    world.run(&["down"]).code(0);
}

/// Starts a server on the host that greets every client until the tests end. Returns its port.
fn greeter(address: &str) -> u16 {
    let listener = TcpListener::bind(address).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut visitor in listener.incoming().flatten() {
            let _ = visitor.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello\n");
        }
    });
    port
}

#[test]
fn what_the_host_offers_on_loopback_is_out_of_reach() {
    let world = World::single("loopback");
    world.up();
    let id = world.site().unwrap()["containers"][0]["id"].as_str().unwrap().to_owned();
    let networks = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}";
    let network = world.engine.docker(&["inspect", "--format", networks, &id]);
    let gateway = "{{range .IPAM.Config}}{{.Gateway}}{{end}}";
    let host = world.engine.docker(&["network", "inspect", "--format", gateway, &network]);
    let reaches = |port: u16| {
        let command = format!("timeout 3 wget -q -O - http://{host}:{port}/");
        world.engine.try_docker(&["exec", &id, "/bin/sh", "-c", &command]).is_ok()
    };
    let (own, everybodys) = (greeter("127.0.0.1:0"), greeter("0.0.0.0:0"));
    assert!(!reaches(own), "a service on loopback");
    assert!(!reaches(world.port), "a public port");
    // Engines do not prevent this, but a firewall may. If it is possible, the documents must mention it.
    if reaches(everybodys) {
        let told = include_str!("../../docs/operations/security.md");
        assert!(told.contains("**Services of the host that listen on all addresses** can be reached by sites"));
    }
    world.run(&["down"]).code(0);
}

#[test]
fn a_way_out_is_for_the_named_services_alone() {
    let world = World::pair("outward");
    world.edit("environment", "    services: [app, db]\n", "    services: [app, db]\n    egress: app\n");
    world.up();
    let containers = world.site().unwrap()["containers"].clone();
    let id = |service: &str| {
        let found = containers.as_array().unwrap().iter().find(|container| container["service"] == service).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    // Returns the number of a service's closed networks, and of those that lead out.
    let networks = |service: &str| {
        let format = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}";
        let names = world.engine.docker(&["inspect", "--format", format, &id(service)]);
        let is_closed =
            |name: &&str| world.engine.docker(&["network", "inspect", "-f", "{{.Internal}}", name]) == "true";
        let (closed, open): (Vec<&str>, Vec<&str>) = names.split_whitespace().partition(is_closed);
        (closed.len(), open.len())
    };
    assert_eq!(networks("app"), (1, 1), "the door has a way out");
    assert_eq!(networks("db"), (1, 0), "what is behind it has none");
    let inside = |script: &str| world.engine.docker(&["exec", &id("app"), "/bin/sh", "-c", script]);
    assert!(inside("nslookup db").contains("Address"), "the door finds its neighbour");
    // The gateway reaches the service through its internal network, and both networks are removed completely.
    assert!(world.page().contains("configured"));
    world.run(&["reset", "toy"]).code(0);
    assert!(world.page().contains("configured"));
    world.run(&["down", "--purge", "--yes"]).code(0);
    world.assert_down();
}

#[test]
fn installations_and_containers_of_others_are_left_alone() {
    let (one, two) = (World::pair("mine"), World::single("theirs"));
    one.up();
    two.up();
    // Both have the same environment name: only the installation's label distinguishes them.
    let by_hand = format!("{}-by-hand", one.name);
    let snapshot = one.api("/v1/snapshots").unwrap()["snapshots"][0]["images"]["app"].as_str().unwrap().to_owned();
    one.engine.docker(&["run", "--detach", "--name", &by_hand, &snapshot]);
    let theirs = two.engine.containers(&two.label());

    // A new daemon reconciles at its start; down and purge remove all its own objects.
    one.signal_daemon(rustix::process::Signal::KILL);
    one.up();
    assert_eq!(two.engine.containers(&two.label()), theirs);
    let running = |name: &str| one.engine.try_docker(&["inspect", "--format", "{{.State.Running}}", name]);
    assert_eq!(running(&by_hand).as_deref(), Ok("true"));
    one.run(&["down"]).code(0);
    assert_eq!(running(&by_hand).as_deref(), Ok("true"), "a container run by hand from a snapshot is its owner's");
    // The image is in use; everything else is removed.
    one.up();
    let purge = one.run(&["down", "--purge", "--yes"]);
    assert_eq!(running(&by_hand).as_deref(), Ok("true"), "{}", purge.err);
    assert_eq!(two.engine.containers(&two.label()), theirs);
    assert_eq!(two.page(), "toy\nconfigured\n");
    until("the neighbour", PATIENCE, || two.state(), |state| state == "ready");
    two.run(&["reset", "toy"]).code(0);
    two.assert_whole(0);
    one.engine.docker(&["rm", "--force", &by_hand]);
    two.run(&["down"]).code(0);
}

#[test]
fn two_installations_may_run_the_same_environment() {
    let one = World::single("same");
    let two = one.twin();
    // File, environment, image tag and labels have the same name. Only the ports differ.
    one.up();
    two.up();
    let installation =
        |world: &World| world.api("/v1/status").unwrap()["daemon"]["installation"].as_str().unwrap().to_owned();
    let label = |world: &World| format!("dev.arenad.installation={}", installation(world));
    let of_one = one.engine.containers(&label(&one));
    assert_eq!((of_one.len(), two.engine.containers(&label(&two)).len()), (1, 1));
    two.write("scribble");
    one.signal_daemon(rustix::process::Signal::KILL);
    one.up();
    one.run(&["reset", "toy"]).code(0);
    assert!(two.page().contains("scribble"));
    one.run(&["down", "--purge", "--yes"]).code(0);
    assert!(two.page().contains("scribble"));
    two.run(&["reset", "toy"]).code(0);
    assert_eq!(two.page(), "toy\nconfigured\n");
    two.run(&["down", "--purge", "--yes"]).code(0);
    two.assert_down();
    assert_eq!(two.engine.images(&two.label()), [""; 0]);
}
