//! A bare Debian 12 in its own mount and process namespaces: the kernel ends its processes and removes its mounts when
//! the test ends, for whatever reason. It has the network of the host, from whose package archives it installs, so its
//! dockerd has its own bridge and makes no firewall rules. A dockerd without a bridge would delete the host's
//! `docker0`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The suite, and the packages beyond the essential ones and apt. A user who types `make up` has make.
const SUITE: &str = "bookworm";
const INCLUDE: &str = "make";

/// Packages are written without waiting for the disk, because the root lives for one test only. Translations are not
/// needed.
const OPTIONS: [&str; 2] = ["--dpkgopt=force-unsafe-io", "--aptopt=Acquire::Languages \"none\""];

/// The prefix of the bridges' names. The process id of the tests and a letter for each machine follow; an interface
/// name has at most 15 characters.
const BRIDGE: &str = "abare";

/// Returns a name that no other machine of these tests has, because they run side by side.
fn bridge_name() -> String {
    static MADE: AtomicU8 = AtomicU8::new(0);
    let letter = char::from(b'a' + MADE.fetch_add(1, Ordering::Relaxed) % 26);
    format!("{BRIDGE}{}{letter}", std::process::id())
}

/// Keeps the engine from changing the host's network.
fn daemon_options(bridge: &str) -> String {
    format!(r#"{{ "bridge": "{bridge}", "iptables": false, "ip-forward": false, "ip-masq": false }}"#)
}

/// Removes the bridges of tests that were killed.
fn remove_old_bridges() {
    for entry in std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(BRIDGE) else { continue };
        let owner = rest.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        if !Path::new("/proc").join(owner).exists() {
            let _ = Command::new("ip").args(["link", "delete", &name]).status();
        }
    }
}

/// Makes the mounts, reports it, and stays until its input ends. $1 is the root, $2 a folder for the engine's data. The
/// root becomes that of the mount namespace: below a mere chroot, `docker exec` would enter the host's files.
const KEEPER: &str = r#"
set -eu
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount --bind -o ro /etc/apt "$1/etc/apt"
mount --bind "$2" "$1/var/lib/docker"
mkdir "$1/.host"
cd "$1"
pivot_root . .host
exec chroot . sh -c 'umount -l /.host && echo ready && exec cat >/dev/null'
"#;

/// The time limit of one command; installing packages on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// The result of a command.
pub struct ScriptOutput {
    pub code: i32,
    /// The output of both streams.
    pub said: String,
}

/// A machine with only a bare system, in its own root file system.
pub struct Bare {
    folder: TempDir,
    keeper: Child,
    first: i32,
    bridge: String,
}

impl Bare {
    /// Unpacks the root, copies the scripts into it, and creates the namespaces.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        let data = folder.path().join("docker");
        for path in [&root, &data] {
            std::fs::create_dir(path).expect("a folder");
        }
        run(Command::new("tar").args(["--extract", "--exclude=./dev/*", "--file"]).arg(archive()).arg("-C").arg(&root));
        let write = |path: &str, text: &[u8]| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("write a file");
        };
        remove_old_bridges();
        let bridge = bridge_name();
        run(Command::new("ip").args(["link", "add", &bridge, "type", "bridge"]));
        write("etc/docker/daemon.json", daemon_options(&bridge).as_bytes());
        for file in ["etc/resolv.conf", "etc/hosts"] {
            write(file, &std::fs::read(Path::new("/").join(file)).unwrap_or_default());
        }
        // Debian cannot install a recent Rust here; the script only asks for the version.
        write("usr/local/bin/cargo", b"#!/bin/sh\necho 'cargo 1.99.0 (a stand-in)'\n");
        run(Command::new("chmod").arg("+x").arg(root.join("usr/local/bin/cargo")));
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(root.join("project/compose")).expect("a folder");
        std::fs::create_dir_all(root.join("var/lib/docker")).expect("a folder");
        for part in ["Makefile", "scripts"] {
            run(Command::new("cp").arg("-a").arg(project.join(part)).arg(root.join("project")));
        }
        let mut keeper = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--propagation",
                "private",
                "sh",
                "-c",
                KEEPER,
                "keeper",
            ])
            .args([&root, &data])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("namespaces; only root can make them");
        let mut line = String::new();
        let said = keeper.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut line).expect("the keeper says that it is ready");
        assert_eq!(line, "ready\n", "the mounts could not be made");
        let children = format!("/proc/{0}/task/{0}/children", keeper.id());
        let first = std::fs::read_to_string(children).expect("its child").trim().parse().expect("a process");
        Self { folder, keeper, first, bridge }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Writes a file into the machine.
    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.inside(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("write a file");
    }

    /// Copies a file or a folder of the host into the machine.
    pub fn copy(&self, from: &Path, to: &str) {
        let to = self.inside(to);
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("a folder");
        run(Command::new("cp").arg("-a").arg(from).arg(to));
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    /// Copies a program into the machine.
    pub fn install(&self, program: &Path) {
        std::fs::copy(program, self.root().join("usr/local/bin").join(program.file_name().expect("a name")))
            .expect("copy");
    }

    /// Returns whether the machine has a program.
    pub fn has(&self, program: &str) -> bool {
        self.run(&format!("command -v {program}")).code == 0
    }

    /// Runs a shell command in the project's folder.
    pub fn run(&self, script: &str) -> ScriptOutput {
        let out = self.folder.path().join("said");
        let file = std::fs::File::create(&out).expect("a file");
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first.to_string(), "--mount", "--pid", "--"]);
        command.args(["env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]);
        for (name, value) in std::env::vars().filter(|(name, _)| name.to_lowercase().ends_with("_proxy")) {
            command.arg(format!("{name}={value}"));
        }
        command.args(["sh", "-c", &format!("cd /project && {script}")]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .spawn()
            .expect("start a command");
        let deadline = Instant::now() + PATIENCE;
        // The end of the output is not a reliable sign: a dockerd in the background may hold it open.
        let code = loop {
            if let Some(status) = child.try_wait().expect("look after the command") {
                break status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "`{script}` does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        ScriptOutput { code, said: std::fs::read_to_string(out).expect("what it said") }
    }

    /// Runs a command that must succeed; returns its output.
    #[track_caller]
    pub fn succeeds(&self, script: &str) -> String {
        let ran = self.run(script);
        assert_eq!(ran.code, 0, "`{script}`: {}", ran.said);
        ran.said
    }

    /// Ends the machine, and asserts that no part of it is left on the host.
    pub fn end(mut self) {
        let namespace = std::fs::read_link(format!("/proc/{}/ns/mnt", self.first)).expect("its mount namespace");
        self.close();
        let path = self.folder.path().display().to_string();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
        assert!(!mounts.contains(&path), "a mount is left:\n{mounts}");
        for entry in std::fs::read_dir("/proc").expect("the processes").flatten() {
            let its = std::fs::read_link(entry.path().join("ns/mnt")).unwrap_or_default();
            assert!(its != namespace, "process {:?} still runs in it", entry.file_name());
        }
        let loops = Command::new("losetup")
            .args(["--list", "--noheadings", "--output", "BACK-FILE"])
            .output()
            .expect("losetup");
        let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
        assert!(!loops.contains(&path), "a loop device is left:\n{loops}");
    }

    fn close(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        let _ = Command::new("ip").args(["link", "delete", &self.bridge]).stderr(Stdio::null()).status();
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.close();
    }
}

/// The bare root as an archive. The first test that needs it for these packages and package archives creates it, while
/// the others wait.
fn archive() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(make_archive).clone()
}

fn make_archive() -> PathBuf {
    let mut inputs = format!("{SUITE} {INCLUDE} {}", OPTIONS.join(" "));
    let folder = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut sources: Vec<PathBuf> = folder.chain(["/etc/apt/sources.list".into()]).collect();
    sources.sort();
    for source in sources {
        inputs += &std::fs::read_to_string(source).unwrap_or_default();
    }
    let hash: String = Sha256::digest(inputs).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let archive = folder.join(format!("bare-{SUITE}-{hash}.tar"));
    if !archive.exists() {
        let partial = folder.join(format!("bare-{SUITE}-{hash}.{}.tar", std::process::id()));
        let include = format!("--include={INCLUDE}");
        let options = ["--quiet", "--variant=minbase", &include];
        run(Command::new("mmdebstrap").args(options).args(OPTIONS).arg(SUITE).arg(&partial));
        std::fs::rename(&partial, &archive).expect("name the archive");
    }
    archive
}

fn run(command: &mut Command) {
    let output = command.output().expect("start a command");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
