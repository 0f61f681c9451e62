//! Engines that are absent, forbidden, old, silent, or have few addresses.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use super::examined::{Examined, command, examine_by, take_over};
use crate::support::{OwnEngine, World};

/// The id of the unprivileged user.
const NOBODY: &str = "65534";

/// Runs the doctor on the engine behind a socket.
#[track_caller]
fn examine_at(world: &World, socket: &Path) -> Examined {
    let mut command = command(world);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    examine_by(world, command)
}

#[test]
fn an_engine_that_is_not_there_is_a_problem_and_the_rest_is_still_told() {
    let world = World::single("absent");
    let socket = world.root().join("docker.sock");
    let examined = examine_at(&world, &socket);
    examined.found("engine").is("problem", "there is no engine at", "systemctl start docker");
    examined.is_fine("port");
    examined.is_fine("memory");
    assert!(examined.is_silent_about("storage-driver"), "what only the engine knows is not guessed");

    // The socket was left behind by a killed engine.
    drop(UnixListener::bind(&socket).unwrap());
    examine_at(&world, &socket).found("engine").is("problem", "no process listens at", "systemctl start docker");
}

#[test]
fn an_engine_that_does_not_answer_is_a_problem_and_does_not_hold_up_the_rest() {
    let world = World::single("mute");
    let socket = world.root().join("docker.sock");
    let _listens = UnixListener::bind(&socket).unwrap();
    let begun = std::time::Instant::now();
    let examined = examine_at(&world, &socket);
    examined.found("engine").is("problem", "no answer within", "systemctl start docker");
    examined.is_fine("port");
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}

#[test]
fn a_socket_that_this_user_may_not_open_is_told_with_its_group() {
    let world = World::single("denied");
    let socket = world.root().join("docker.sock");
    let _listens = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o660)).unwrap();
    std::fs::set_permissions(world.root(), PermissionsExt::from_mode(0o755)).unwrap();
    // On Debian, group 1 is `daemon`.
    std::os::unix::fs::chown(&socket, None, Some(1)).unwrap();

    let inner = command(&world);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all"]);
    command.arg(inner.get_program()).args(inner.get_args());
    take_over(&mut command, &inner);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let examined = examine_by(&world, command);
    examined.found("engine").is("problem", "this user may not open", "usermod -aG daemon $USER");
    examined.found("state-dir").is("problem", "this user may not write to", "ARENAD_STATE_DIR");
}

#[test]
fn an_old_engine_is_told_by_its_api() {
    let world = World::single("old");
    let socket = world.root().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = String::new();
            let _ = BufReader::new(&stream).read_line(&mut request);
            let body = r#"{"Version": "1.12.6", "ApiVersion": "1.24", "MinAPIVersion": "1.12"}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
            let _ = write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    let examined = examine_at(&world, &socket);
    examined.found("engine-api").is("problem", "speaks API 1.24", "docker.io");
}

#[test]
fn a_tiny_address_pool_is_warned_of_with_its_setting() {
    let engine = OwnEngine::start_with(&["--default-address-pool", "base=10.99.0.0/24,size=26"]);
    let world = World::on(&engine, "pool");
    let examined = examine_by(&world, command(&world));
    let pools = examined.found("address-pools");
    pools.is("warning", "room for 3 more networks of 4", "default-address-pools");
    examined.is_fine("address-block");
    // The engine's data is on its own ext4.
    let copies = examined.found("copy-up");
    assert!(copies.level == "warning" && copies.seen.contains("ext4 has no reflinks; 1.0 GiB takes"), "{copies:?}");
}
