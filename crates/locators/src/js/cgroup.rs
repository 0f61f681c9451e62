//! What the browser may take of the host: a control group with limits, where arenad may make one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Where control groups are.
const ROOT: &str = "/sys/fs/cgroup";

/// How the names of all groups begin; a hash, the owner's number and a count follow.
pub(super) const PREFIX: &str = "arenad-browser-";

/// The memory of the browser and all of its pages, in bytes.
const MEMORY_MAX: &str = "2147483648";

/// Its processes and threads; a page has some thirty.
const TASKS_MAX: &str = "1024";

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A control group; what is in it is killed when it goes.
pub(super) struct Group {
    /// One folder, or one per controller in the older layout.
    folders: Vec<PathBuf>,
}

impl Group {
    /// Makes one whose name begins so. Errors: arenad may not make any.
    pub(super) fn make(prefix: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let root = Path::new(ROOT);
        let name = &format!("{prefix}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (folders, limits): (Vec<PathBuf>, Vec<(&str, &str)>) = if root.join("cgroup.controllers").exists() {
            // A host without swap has no such file, and no need of it.
            let _ = std::fs::create_dir(root.join(name));
            let _ = std::fs::write(root.join(name).join("memory.swap.max"), "0");
            (vec![root.join(name)], vec![("memory.max", MEMORY_MAX), ("pids.max", TASKS_MAX)])
        } else {
            let folders = ["memory", "pids"].map(|controller| root.join(controller).join(name));
            (folders.into(), vec![("memory.limit_in_bytes", MEMORY_MAX), ("pids.max", TASKS_MAX)])
        };
        for folder in &folders {
            match std::fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let group = Self { folders };
        for (number, (file, limit)) in limits.iter().enumerate() {
            let folder = group.folders.get(number).or(group.folders.first());
            folder.map_or(Ok(()), |folder| std::fs::write(folder.join(file), limit))?;
        }
        Ok(group)
    }

    /// Ends what is in the groups whose names begin so, and removes them; and those of any owner that is gone, if nothing is in
    /// them.
    pub(super) fn end_all(prefix: &str) {
        let roots = [Path::new(ROOT).to_owned(), Path::new(ROOT).join("memory"), Path::new(ROOT).join("pids")];
        let found = roots.iter().filter_map(|root| root.read_dir().ok()).flatten().flatten();
        let mut folders = Vec::new();
        for entry in found {
            let name = entry.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            if name.to_str().and_then(|name| name.strip_prefix(prefix)).is_some_and(|rest| rest.starts_with('-')) {
                folders.push(entry.path());
            } else if let Some(owner) = rest.split('-').nth(1)
                && !Path::new("/proc").join(owner).exists()
            {
                // It fails where something is in it: of an owner in another namespace of processes.
                let _ = std::fs::remove_dir(entry.path());
            }
        }
        Self { folders }.remove();
    }

    /// The files that take the number of a process that enters.
    pub(super) fn entries(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs"))
    }

    /// Kills what is in it, and removes it.
    fn remove(mut self) {
        self.kill();
        for folder in self.folders.drain(..) {
            if let Err(error) = std::fs::remove_dir(&folder)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(folder = %folder.display(), %error, "a browser's control group stays");
            }
        }
    }

    /// Kills what is in it, and waits until it is gone.
    fn kill(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lists = self.entries().filter_map(|entry| std::fs::read_to_string(entry).ok());
            let pids: Vec<i32> =
                lists.flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect();
            for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
            if pids.is_empty() || Instant::now() > deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let folders = std::mem::take(&mut self.folders);
        if !folders.is_empty() {
            // What was killed takes a moment to be gone; nobody has to wait for it here.
            std::thread::spawn(move || Self { folders }.remove());
        }
    }
}
