//! The processes of a container, and the files and folders of stores that they hold open.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::Failed;
use super::mounts::Mounts;
use arenad_model::store::is_within;

/// The number of attempts to list the processes if some end meanwhile.
const ATTEMPTS: u32 = 20;
/// The first pause between two attempts, which doubles up to [`LONGEST_PAUSE`]. On a busy host, a process that ends may
/// be listed for many milliseconds after the kernel has removed the data that is read about it.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two attempts. All pauses together take about 0.7 s.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A process of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerProcess {
    /// The command line, or the name in brackets for a process without a command line.
    pub(super) command: String,
    /// A file or folder of a store that the process holds open.
    pub(super) holds: Option<String>,
}

/// Lists the processes of the container of `pid`. If `holders` is set, it also determines the files and folders of
/// stores that they hold open. Blocks for up to a second if processes end meanwhile.
pub(super) fn list(pid: u32, mounts: &Mounts, holders: bool) -> Result<Vec<ContainerProcess>, Failed> {
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        move |cause| Failed::System { doing, cause }
    };
    let namespace = fs::read_link(format!("/proc/{pid}/ns/mnt")).map_err(failed("read its namespace"))?;
    let groups = groups(pid).map_err(failed("find its control group"))?;
    until_complete(|| {
        let mut found = Vec::new();
        for member in members(pid, &groups).map_err(failed("list its processes"))? {
            match look(member, &namespace, mounts, holders) {
                Ok(Some(process)) => found.push(process),
                // A dead process that its parent has not waited for holds nothing open.
                Ok(None) => {}
                // The process has ended, but it may have started another one before.
                Err(error) if is_gone(&error) => return Ok(None),
                Err(error) => return Err(failed("read its processes")(error)),
            }
        }
        Ok(Some(found))
    })?
    .ok_or_else(|| {
        failed("list its processes")(io::Error::other("they start and end faster than they can be inspected"))
    })
}

/// Repeats an attempt, with pauses, until it gives a complete result. `None` if none of them does.
fn until_complete<T, E>(mut attempt: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        if let Some(complete) = attempt()? {
            return Ok(Some(complete));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    attempt()
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn look(pid: u32, namespace: &Path, mounts: &Mounts, holders: bool) -> io::Result<Option<ContainerProcess>> {
    let folder = format!("/proc/{pid}");
    let threads = threads(&folder)?;
    if threads.is_empty() {
        return Ok(None);
    }
    let line = fs::read(format!("{folder}/cmdline"))?;
    let words: Vec<String> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let command = match words.is_empty() {
        false => words.join(" "),
        true => format!("[{}]", fs::read_to_string(format!("{folder}/comm"))?.trim_end()),
    };
    let holds = match holders {
        true => threads.iter().find_map(|thread| held(thread, namespace, mounts).transpose()).transpose()?,
        false => None,
    };
    Ok(Some(ContainerProcess { command, holds }))
}

/// Returns the folders of a process's living threads, because each thread may have its own open files and folders.
fn threads(folder: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("{folder}/task"))? {
        let path = entry?.path();
        let stat = match fs::read_to_string(path.join("stat")) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if !matches!(state, Some('Z' | 'X')) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the first file or folder of a store that a thread holds: as working directory, root, program, open file or
/// mapped memory.
fn held(thread: &Path, namespace: &Path, mounts: &Mounts) -> io::Result<Option<String>> {
    if fs::read_link(thread.join("ns/mnt"))? != namespace {
        // The mounts of another namespace have other ids, and its paths do not apply here.
        return Ok(Some("what a mount namespace of its own has mounted".to_owned()));
    }
    for name in ["cwd", "root", "exe"] {
        if let Some(path) = of_store(&thread.join(name), mounts)? {
            return Ok(Some(path));
        }
    }
    for entry in fs::read_dir(thread.join("fd"))? {
        if let Some(path) = of_store(&entry?.path(), mounts)? {
            return Ok(Some(path));
        }
    }
    let maps = fs::read(thread.join("maps"))?;
    let mapped = maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        Some(String::from_utf8_lossy(&line[start..]).into_owned())
    });
    Ok(mapped.into_iter().find(|path| is_path_of_store(path, mounts)))
}

/// Returns the target of a link in `/proc` if it is on the mount of a store.
fn of_store(link: &Path, mounts: &Mounts) -> io::Result<Option<String>> {
    let found = match rustix::fs::statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID) {
        Ok(found) => found,
        // The file was closed meanwhile, or the thread belongs to the kernel and has no program.
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let shown = || fs::read_link(link).map(|path| path.to_string_lossy().into_owned());
    // Linux before 5.8 does not report the mount.
    if found.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        let path = shown()?;
        return Ok(is_path_of_store(&path, mounts).then_some(path));
    }
    if mounts.stores.contains(&found.stx_mnt_id) { shown().map(Some) } else { Ok(None) }
}

fn is_path_of_store(path: &str, mounts: &Mounts) -> bool {
    mounts.store_paths.iter().any(|store| is_within(path, store))
}

/// Returns the folders of the container's control group and of all groups below it, in one hierarchy. The list is empty
/// if the group is not found.
fn groups(pid: u32) -> io::Result<Vec<PathBuf>> {
    let root = Path::new("/sys/fs/cgroup");
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let mut candidates = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        // A container never has the root group.
        if path.is_empty() || path.starts_with("..") {
            continue;
        }
        match controllers {
            "" => candidates.push(root.join(path)),
            "pids" | "memory" => candidates.push(root.join(controllers).join(path)),
            _ => {}
        }
    }
    let folder = candidates.into_iter().find(|folder| folder.join("cgroup.procs").is_file());
    let mut found: Vec<PathBuf> = folder.into_iter().collect();
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        next += 1;
        let below: Vec<PathBuf> = fs::read_dir(folder)?
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        found.extend(below);
    }
    Ok(found)
}

/// Returns the processes of a container: those of its control group or, if the group was not found, those of its
/// process namespace.
fn members(pid: u32, groups: &[PathBuf]) -> io::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for folder in groups {
        let text = match fs::read_to_string(folder.join("cgroup.procs")) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
    }
    if !groups.is_empty() {
        return Ok(found);
    }
    let namespace = fs::read_link(format!("/proc/{pid}/ns/pid"))?;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(other) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if fs::read_link(entry.path().join("ns/pid")).is_ok_and(|of| of == namespace) {
            found.insert(other);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_process_that_ends_slowly_does_not_use_up_the_attempts() {
        let ended = Instant::now() + Duration::from_millis(100);
        let attempt = || Ok::<_, Infallible>((Instant::now() >= ended).then_some("complete"));
        assert_eq!(until_complete(attempt), Ok(Some("complete")));
    }

    #[test]
    fn the_attempts_are_bounded() {
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            Ok::<Option<()>, Infallible>(None)
        };
        assert_eq!(until_complete(attempt), Ok(None));
        assert_eq!(attempts, ATTEMPTS);
    }
}
