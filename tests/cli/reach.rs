//! A daemon that cannot be reached: each cause has its own message, and "no daemon runs" appears only if that is true.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::user;
use crate::support::World;
use crate::support::world::free_port;

/// Checks that a command does not claim that the daemon is down, since it may well be running.
#[track_caller]
fn refused(ran: crate::support::world::CommandOutput, words: &str) {
    let ran = ran.code(1).says(words).says("hint: ");
    for claim in ["no daemon runs", "nothing is up"] {
        assert!(!ran.err.contains(claim) && !ran.out.contains(claim), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn another_users_daemon_is_not_taken_for_none() {
    let world = World::single("others");
    world.up();
    for args in [&["status"][..], &["ps"], &["down"], &["down", "--purge", "--yes"], &["up", &world.name], &["df"]] {
        refused(user::run(&world, args), "this user may not open");
    }
    user::run(&world, &["doctor"]).prints("this user may not open");
    assert_eq!(world.state(), "ready");
    world.run(&["down"]).code(0);
    world.run(&["status"]).code(3).says("no daemon runs");
    world.assert_down();
}

#[test]
fn an_address_that_leads_elsewhere_is_told_from_one_that_leads_nowhere() {
    let world = World::bare("elsewhere");
    let at = |address: &str, args: &[&str]| {
        let mut command = world.command(args);
        command.env("ARENAD_HOST", address);
        world.start_command(command).ended()
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>");
        }
    });
    // The listener accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("http://{}", silent.local_addr().unwrap());
    let nobody = format!("http://127.0.0.1:{}", free_port());
    for args in [&["status"][..], &["down"], &["reset", "toy"]] {
        refused(at(&web, args), "is not arenad: it answered 200 OK");
        refused(at(&nobody, args), "the connection was refused");
        refused(at("unix:///nowhere.sock", args), "there is no socket /nowhere.sock");
        refused(at("http://nowhere.invalid:1", args), "unknown host in http://nowhere.invalid:1");
    }
    refused(at(&mute, &["status"]), "within 5s");
    refused(at("unix:///var/run/docker.sock", &["status"]), "is not arenad: it answered 40");
    world.run(&["--host", &nobody, "status"]).code(1).says("correct --host or ARENAD_HOST");
}

#[test]
fn a_daemon_on_its_way_is_waited_for_and_not_denied() {
    let world = World::bare("onitsway");
    std::fs::create_dir_all(world.state_dir()).unwrap();
    let lock = std::fs::File::create(world.state_dir().join("lock")).unwrap();
    std::fs::write(world.state_dir().join("lock"), "4711\n").unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    refused(world.run(&["status"]), "(pid 4711) is starting or stopping");
    drop(lock);
    world.run(&["status"]).code(3).says("no daemon runs");
}
