//! Limits on the browser's use of the host: a control group, where arenad may create one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Mount point of the control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Prefix of all groups' names; a hash, the owner's process id and a count follow.
pub(crate) const PREFIX: &str = "arenad-browser-";

/// Memory limit for the browser and all of its pages, in bytes.
const MEMORY_MAX: &str = "2147483648";

/// Limit for the browser's processes and threads; a page has about thirty.
const TASKS_MAX: &str = "1024";

/// Time within which killed processes must be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A control group; dropping it kills its processes.
pub(crate) struct Group {
    /// One folder, or one per controller in the older layout (version 1).
    folders: Vec<PathBuf>,
}

impl Group {
    /// Creates a group whose name begins with `prefix`.
    ///
    /// Errors: arenad may not create control groups.
    pub(crate) fn make(prefix: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let root = Path::new(ROOT);
        let name = &format!("{prefix}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (folders, limits): (Vec<PathBuf>, Vec<(&str, &str)>) = if root.join("cgroup.controllers").exists() {
            // A host without swap has no such file and does not need it.
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

    /// Kills the processes in the groups whose names begin with `prefix`, and removes these groups. Also removes empty
    /// groups of owners that no longer exist.
    pub(crate) fn end_all(prefix: &str) {
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
                // Fails if the group has processes, whose owner is then in another process namespace.
                let _ = std::fs::remove_dir(entry.path());
            }
        }
        Self { folders }.remove();
    }

    /// Returns the files to which a process id is written to join the group.
    pub(crate) fn entries(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs"))
    }

    /// Kills the processes in the group, and removes it.
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

    /// Kills the processes in the group, and waits until they are gone.
    fn kill(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lists = self.entries().filter_map(|entry| std::fs::read_to_string(entry).ok());
            let pids: Vec<i32> =
                lists.flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect();
            for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                // The process may have ended by itself.
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
            // Killed processes take a moment to be gone; the thread waits for them, so the caller does not.
            std::thread::spawn(move || Self { folders }.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browsers_group_has_limits_of_memory_and_processes() {
        let group = match Group::make(&format!("{PREFIX}test")) {
            Ok(group) => group,
            Err(error) => {
                println!("arenad may not create control groups here, so there is no limit to see: {error}");
                return;
            }
        };
        let limit = |files: [&str; 2]| {
            let found = group.folders.iter().flat_map(|folder| files.map(|file| folder.join(file)));
            found.filter_map(|file| std::fs::read_to_string(file).ok()).map(|text| text.trim().to_owned()).next()
        };
        assert_eq!(limit(["memory.max", "memory.limit_in_bytes"]).as_deref(), Some(MEMORY_MAX));
        assert_eq!(limit(["pids.max", "pids.max"]).as_deref(), Some(TASKS_MAX));
        let folders = group.folders.clone();
        group.remove();
        assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
    }
}
