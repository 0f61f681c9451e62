//! The Debian package and the Python wheel, installed and used in a bare Debian 12 without the project's files.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::bare::Bare;

const PROGRAM: &str = env!("CARGO_BIN_EXE_arenad");
const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// The folder of the toy site's definition in the bare root, which is not the current folder.
const DEFINITIONS: &str = "/opt/lab";

/// The time limit for a notification on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one of the packaging scripts; returns the package.
fn pack(command: &mut Command) -> PathBuf {
    let output = command.current_dir(PROJECT).output().expect("start the script");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Path::new(PROJECT).join(said.trim())
}

/// Copies the program without its symbols, as released programs are: compressing those takes minutes.
fn stripped() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arenad-stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(PROGRAM).status().expect("strip runs");
    assert!(status.success(), "strip: {status}");
    copy
}

/// A site of the user's own: a static busybox and some scripts.
fn add_toy_site(bare: &Bare) {
    let fixtures = Path::new(PROJECT).join("tests/fixtures");
    let toy = format!("{DEFINITIONS}/compose/toy");
    bare.copy(&fixtures.join("toy"), &toy);
    for (fixture, path) in
        [("single.environment.yaml", "environments/toy.yaml"), ("single.compose.yaml", "compose/toy.yaml")]
    {
        let text = std::fs::read_to_string(fixtures.join(fixture)).expect("a fixture");
        bare.write(
            &format!("{DEFINITIONS}/{path}"),
            text.replace("@NAME@", "toy").replace("@PORT@", "11907").as_bytes(),
        );
    }
    bare.copy(Path::new("/bin/busybox"), &format!("{toy}/root/bin/busybox"));
    bare.succeeds(&format!("cd {toy}/root/bin && for name in $(./busybox --list); do ln -sf busybox $name; done"));
}

/// Uses an installed program as a user would, from a folder without any of arenad's files.
fn use_it(bare: &Bare, arenad: &str, state: &str) {
    let command = |line: &str| {
        bare.succeeds(&format!("cd /tmp && ARENAD_PATH={DEFINITIONS} ARENAD_STATE_DIR={state} {arenad} {line}"))
    };
    // The files installed with the program, and the user's own files, both work.
    command("validate mini");
    command("up toy");
    let status = command("status");
    assert!(status.contains("ready"), "{status}");
    command("reset toy/toy");
    command("down --purge --yes");
}

#[test]
fn the_debian_package_and_the_wheel_work_on_a_bare_machine() {
    let program = stripped();
    let deb = pack(Command::new("scripts/deb.sh").env("PROGRAM", &program));
    let wheel = pack(Command::new("scripts/wheel.py").arg("--program").arg(&program));
    let bare = Bare::start();
    for package in [&deb, &wheel] {
        bare.copy(package, &format!("/tmp/{}", package.file_name().expect("a name").to_string_lossy()));
    }
    bare.succeeds("scripts/engine.sh");
    add_toy_site(&bare);

    bare.succeeds("dpkg -i /tmp/arenad_*.deb");
    use_it(&bare, "/usr/bin/arenad", "/var/lib/arenad");
    for file in ["/lib/systemd/system/arenad.service", "/usr/share/bash-completion/completions/arenad"] {
        bare.succeeds(&format!("test -s {file}"));
    }
    bare.succeeds("getent group arenad");
    bare.succeeds("dpkg --purge arenad && ! test -e /usr/bin/arenad && ! test -e /usr/share/arenad");

    bare.succeeds("apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv");
    bare.succeeds("python3 -m venv /opt/venv && /opt/venv/bin/pip install --quiet --no-index /tmp/arenad-*.whl");
    use_it(&bare, "/opt/venv/bin/arenad", "/var/lib/arenad-wheel");
    bare.succeeds("/opt/venv/bin/python -c 'import arenad; arenad.Arena'");
    bare.succeeds(
        "/opt/venv/bin/pip uninstall --quiet --yes arenad && ! test -e /opt/venv/share/arenad/environments/mini.yaml",
    );
    bare.end();
}

#[test]
fn systemd_hears_that_the_daemon_is_ready_lives_and_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = folder.path().join("notify");
    let socket = UnixDatagram::bind(&address).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a limit");
    let hear = |wanted: &str| {
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = [0; 512];
        loop {
            match socket.recv(&mut bytes) {
                Ok(length) if bytes[..length].split(|byte| *byte == b'\n').any(|line| line == wanted.as_bytes()) => {
                    return;
                }
                Ok(_) => {}
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(Instant::now() < deadline, "no {wanted}");
        }
    };
    let mut daemon = Command::new(PROGRAM)
        .arg("serve")
        .env("ARENAD_STATE_DIR", folder.path().join("state"))
        .env("NOTIFY_SOCKET", &address)
        .env("WATCHDOG_USEC", "1000000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start the daemon");
    hear("READY=1");
    hear("WATCHDOG=1");
    hear("WATCHDOG=1");
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("tell it to stop");
    hear("STOPPING=1");
    assert!(daemon.wait().expect("its end").success());
}
