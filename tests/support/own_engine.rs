//! An engine that one test may fill, stop and kill: dockerd with its data root on a small file system of its own, in
//! its own network, mount and process namespaces.
//!
//! The namespaces live as long as their first process, which reads from a pipe that the test holds. However the test
//! ends, the pipe closes, and the kernel ends dockerd, its containers and the daemons, and removes the mounts.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::engine::TestEngine;
use super::wait::{PATIENCE, within};

/// The size of the engine's disk: well above the threshold for low space, and never allocated in full.
const DISK_BYTES: u64 = 1200 << 20;

/// An engine that a test may break.
pub struct OwnEngine {
    folder: TempDir,
    /// The process that created the namespaces.
    keeper: Child,
    /// The first process in the namespaces.
    first: i32,
    dockerd: Option<Child>,
    /// Additional command-line options of dockerd.
    options: Vec<String>,
}

impl OwnEngine {
    /// Creates the disk and the namespaces, and starts dockerd.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts an engine with further options of dockerd.
    pub fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("disk");
        File::create(&disk).and_then(|file| file.set_len(DISK_BYTES)).expect("a disk");
        run(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&disk));
        let mut keeper = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("namespaces; only root can make them");
        let children = format!("/proc/{0}/task/{0}/children", keeper.id());
        let first = within("the first process", PATIENCE, || {
            assert!(keeper.try_wait().expect("look").is_none(), "unshare ended");
            // Its command name shows that the namespaces are complete.
            let pid: i32 = std::fs::read_to_string(&children).ok()?.trim().parse().ok()?;
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (name == "cat\n").then_some(pid)
        });
        let options = options.iter().map(ToString::to_string).collect();
        let mut engine = Self { folder, keeper, first, dockerd: None, options };
        let data = engine.data();
        std::fs::create_dir(&data).expect("a folder");
        engine.within(&["ip", "link", "set", "lo", "up"]);
        let (disk, data) = (disk.display().to_string(), data.display().to_string());
        engine.within(&["mount", "-o", "loop", &disk, &data]);
        engine.start_dockerd();
        engine
    }

    /// Returns the prefix of a command that runs in the engine's namespaces.
    pub fn way_in(&self) -> Vec<String> {
        let words = ["nsenter", "--target", &self.first.to_string(), "--net", "--mount", "--pid", "--"];
        words.map(str::to_owned).to_vec()
    }

    /// The engine's network namespace.
    pub fn network_namespace(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.first).into()
    }

    /// The mounts of its namespace, as listed by the kernel.
    pub fn mount_table(&self) -> PathBuf {
        format!("/proc/{}/mountinfo", self.first).into()
    }

    /// The folder in which it stores images and containers.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns a client of the engine.
    pub fn client(&self) -> TestEngine {
        TestEngine::at(&self.socket())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("dockerd.log")
    }

    fn cgroup(&self) -> String {
        format!("arenad-test-{}", self.first)
    }

    /// Runs a command in the engine's namespaces.
    pub fn within(&self, command: &[&str]) {
        let way_in = self.way_in();
        run(Command::new(&way_in[0]).args(&way_in[1..]).args(command));
    }

    /// Starts dockerd and waits until it answers.
    pub fn start_dockerd(&mut self) {
        assert!(self.dockerd.is_none(), "dockerd runs");
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        // The files belong to a killed dockerd and containerd: their process ids may be reused, or be those of zombies.
        for stale in ["pid", "exec/containerd/containerd.pid"] {
            let _ = std::fs::remove_file(at(stale));
        }
        let log = File::options().create(true).append(true).open(self.log()).expect("a log");
        let namespace = self.cgroup();
        let way_in = self.way_in();
        let child = Command::new(&way_in[0])
            .args(&way_in[1..])
            .args(["dockerd", "--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["--host", &format!("unix://{}", self.socket().display()), "--storage-driver", "overlay2"])
            .args(["--userland-proxy=false", "--shutdown-timeout", "3", "--cgroup-parent", &namespace])
            .args([
                "--containerd-namespace",
                &namespace,
                "--containerd-plugins-namespace",
                &format!("{namespace}-plugins"),
            ])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("start dockerd");
        self.dockerd = Some(child);
        within("dockerd's answer", PATIENCE, || {
            let ended = self.dockerd.as_mut()?.try_wait().expect("look after dockerd");
            assert!(ended.is_none(), "dockerd ended:\n{}", std::fs::read_to_string(self.log()).unwrap_or_default());
            self.client().try_docker(&["version"]).ok()
        });
    }

    /// Returns dockerd's process, which is the only child of the process that entered the namespaces.
    fn dockerd(&self) -> Pid {
        let way_in = self.dockerd.as_ref().expect("dockerd runs").id();
        let children = std::fs::read_to_string(format!("/proc/{way_in}/task/{way_in}/children")).unwrap_or_default();
        let pid = children.trim().parse().expect("dockerd has a process");
        Pid::from_raw(pid).expect("a process id")
    }

    /// Sends dockerd a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.dockerd(), signal).expect("signal dockerd");
        // The parent process stops when its child does, and would no longer wait for it.
        if signal == Signal::CONT {
            let way_in = Pid::from_child(self.dockerd.as_ref().expect("dockerd runs"));
            kill_process(way_in, signal).expect("signal the way in");
        }
    }

    /// Ends dockerd with a signal and waits until it is gone.
    pub fn stop_dockerd(&mut self, signal: Signal) {
        self.signal(signal);
        let mut child = self.dockerd.take().expect("dockerd runs");
        within("dockerd's end", PATIENCE, || child.try_wait().expect("look after dockerd"));
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("dockerd's log ends:\n{}", lines[lines.len().saturating_sub(10)..].join("\n"));
        }
        // The parent process may be stopped, and then the namespaces would wait for it to reap dockerd.
        if let Some(mut way_in) = self.dockerd.take() {
            let _ = way_in.kill();
            let _ = way_in.wait();
        }
        // The first process ends when its input is closed; the kernel then ends all other processes of the namespace,
        // and removes its mounts.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        // Cgroups are not removed with their processes. The engine's cgroups are empty now and can be removed once the
        // last process is gone.
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while !self.remove_cgroups() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl OwnEngine {
    /// Removes the cgroups of containers; `false` while one is not empty yet.
    fn remove_cgroups(&self) -> bool {
        let controllers = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let roots = controllers.map(|entry| entry.path().join(self.cgroup()));
        let mut all_gone = true;
        for root in roots.chain([PathBuf::from("/sys/fs/cgroup").join(self.cgroup())]) {
            for entry in std::fs::read_dir(&root).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    all_gone &= std::fs::remove_dir(entry.path()).is_ok();
                }
            }
            all_gone &= !root.exists() || std::fs::remove_dir(&root).is_ok();
        }
        all_gone
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("start a command");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
