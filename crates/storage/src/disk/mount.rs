//! Creates and mounts file systems in files with the programs of xfsprogs and util-linux, because the system calls have
//! no safe interface and the rules for loop devices and formats change with the kernel.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statfs, statx};

use super::DiskError;

/// `noatime` avoids a write for every access; `logbsize` groups the changes of thousands of small files into few large
/// writes to the log. `discard` is absent: it took a fifth of the processor time of a reset, so [`trim`] returns freed
/// space to the file system beneath from time to time. `nosuid` and `nodev` prevent sites from gaining rights on the
/// host through programs and devices in their stores; containers get the same options when they mount a store.
const OPTIONS: &str = "nosuid,nodev,noatime,logbsize=256k";

/// The options of [`OPTIONS`] that protect the host from sites.
const RESTRICTIONS: [&str; 2] = ["nosuid", "nodev"];

/// The option for limits on trees ([`super::quota`]). It cannot be added to a mounted file system.
const PROJECT_QUOTAS: &str = "prjquota";

/// The magic number of an XFS (`statfs(2)`).
const XFS: u32 = 0x5846_5342;

const XFSPROGS: &str = "install it: `apt install xfsprogs`";
const UTIL_LINUX: &str = "install it: `apt install mount`";
const FSTRIM: &str = "install it: `apt install util-linux`";

/// Creates an XFS that can clone. The reverse map (`rmapbt`) is off, because every clone would have to update it and
/// nothing here reads it.
pub(super) fn make_file_system(file: &Path) -> Result<(), DiskError> {
    run("mkfs.xfs", XFSPROGS, ["-q".as_ref(), "-m".as_ref(), "reflink=1,rmapbt=0".as_ref(), file.as_os_str()]).map(drop)
}

/// Mounts the file system in a file, on an existing loop device if there is one: while a container uses the file
/// system, the device stays in use even if it is mounted nowhere, and a second device for the same file could not be
/// mounted.
pub(super) fn mount(file: &Path, at: &Path) -> Result<(), DiskError> {
    for device in devices(file)?.lines() {
        // The device may disappear before it is mounted.
        if mount_device(device, at).is_ok() {
            return Ok(());
        }
    }
    mount_device(&attach(file)?, at)
}

fn mount_device(device: &str, at: &Path) -> Result<(), DiskError> {
    let mount = |options: &str| {
        let arguments = ["-t", "xfs", "-o", options, device].map(OsStr::new);
        run("mount", UTIL_LINUX, [&arguments[..], &[at.as_os_str()]].concat())
    };
    // Some kernels are built without quotas.
    let mounted = mount(&format!("{OPTIONS},{PROJECT_QUOTAS}")).or_else(|_| mount(OPTIONS));
    // A detached device disappears with its last mount, or at once if it is not mounted.
    let released = run("losetup", UTIL_LINUX, ["--detach", device].map(OsStr::new));
    mounted.and(released).map(drop)
}

/// Adds the restrictions that a mount by an earlier version lacks: no set-id programs and no devices.
pub(super) fn restrict(at: &Path) -> Result<(), DiskError> {
    let failed = |error: procfs::ProcError| DiskError::file("read the mounts for", at)(std::io::Error::other(error));
    let Some(mount) = last_mount(at).map_err(failed)? else { return Ok(()) };
    if RESTRICTIONS.iter().all(|option| mount.mount_options.contains_key(*option)) {
        return Ok(());
    }
    let options = format!("remount,bind,{}", RESTRICTIONS.join(","));
    run("mount", UTIL_LINUX, ["-o".as_ref(), options.as_ref(), at.as_os_str()]).map(drop)
}

/// Unmounts the topmost mount at a path.
pub(super) fn unmount(at: &Path) -> Result<(), DiskError> {
    run("umount", UTIL_LINUX, [at.as_os_str()]).map(drop)
}

/// Returns the free space to the file system beneath.
pub(crate) fn trim(at: &Path) -> Result<(), DiskError> {
    run("fstrim", FSTRIM, [at.as_os_str()]).map(drop)
}

/// Returns the source of the mount at a path, usually a device.
pub(super) fn source(at: &Path) -> Result<Option<String>, DiskError> {
    let failed = |error: procfs::ProcError| DiskError::file("read the mounts for", at)(std::io::Error::other(error));
    let found = last_mount(at).map_err(failed)?;
    Ok(found.map(|mount| mount.mount_source.unwrap_or_default()))
}

/// Returns the topmost mount at a path.
fn last_mount(at: &Path) -> procfs::ProcResult<Option<procfs::process::MountInfo>> {
    // Mounts are listed by their canonical paths. A path that does not exist is not a mount point.
    let Ok(at) = at.canonicalize() else { return Ok(None) };
    if is_mount_point(&at) == Some(false) {
        return Ok(None);
    }
    let mounts = procfs::process::Process::myself()?.mountinfo()?;
    Ok(mounts.into_iter().rfind(|mount| mount.mount_point == at))
}

/// Returns whether a file system is mounted at a folder; `None` if the kernel does not report it (before Linux 5.8).
/// This avoids reading the list of mounts, which has hundreds of entries on a host with many containers and which the
/// kernel generates for every reader.
fn is_mount_point(folder: &Path) -> Option<bool> {
    let found = statx(CWD, folder, AtFlags::empty(), StatxFlags::empty()).ok()?;
    let told = found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    told.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns whether a folder is on an XFS.
fn is_on_xfs(folder: &Path) -> bool {
    // The number is 32 bits wide; some architectures show it signed.
    statfs(folder).is_ok_and(|found| found.f_type as u32 == XFS)
}

/// Returns the mount point of a folder's file system, if it is an XFS with project quotas and the required programs are
/// installed.
pub(super) fn with_project_quotas(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    if !is_on_xfs(&folder) {
        return None;
    }
    let mounts = procfs::process::Process::myself().and_then(|this| this.mountinfo()).ok()?;
    let above = mounts.into_iter().filter(|mount| folder.starts_with(&mount.mount_point));
    // The deepest mount is the folder's; of several at the same path, the last one covers the others.
    let mount = above.max_by_key(|mount| mount.mount_point.components().count())?;
    let has_quotas = mount.fs_type == "xfs" && mount.super_options.contains_key(PROJECT_QUOTAS);
    (has_quotas && ["xfs_io", "xfs_quota"].into_iter().all(is_installed)).then_some(mount.mount_point)
}

/// Assigns a project to a folder and to everything that is created in it later.
pub(super) fn set_project(folder: &Path, project: u32) -> Result<(), DiskError> {
    let number = format!("chproj {project}");
    let commands = ["-c", &number, "-c", "chattr +P"].map(OsStr::new);
    quiet("xfs_io", [&commands[..], &[folder.as_os_str()]].concat())
}

/// Limits the total size and number of a project's files.
pub(super) fn limit_project(mounted_at: &Path, project: u32, bytes: u64, files: u64) -> Result<(), DiskError> {
    let limit = format!("limit -p bhard={}k ihard={files} {project}", bytes >> 10);
    let commands = ["-x", "-c", &limit].map(OsStr::new);
    quiet("xfs_quota", [&commands[..], &[mounted_at.as_os_str()]].concat())
}

/// Runs a program of xfsprogs that prints only errors; its exit code does not always report them.
fn quiet(program: &'static str, arguments: Vec<&OsStr>) -> Result<(), DiskError> {
    let said = run(program, XFSPROGS, arguments)?;
    match said.trim() {
        "" => Ok(()),
        said => Err(DiskError::Program { program, said: said.to_owned() }),
    }
}

/// Returns whether a device is a loop device on the file.
pub(super) fn is_file(device: &str, file: &Path) -> bool {
    let Some(name) = device.strip_prefix("/dev/") else { return false };
    let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    Path::new(backing.trim_end_matches('\n')) == file
}

/// Attaches a loop device to the file, with direct I/O if possible, so that no data is cached twice.
fn attach(file: &Path) -> Result<String, DiskError> {
    let find = ["--find".as_ref(), "--show".as_ref()];
    let direct = run("losetup", UTIL_LINUX, [&find[..], &["--direct-io=on".as_ref(), file.as_os_str()]].concat());
    let device = match direct {
        Err(DiskError::Program { .. }) => run("losetup", UTIL_LINUX, [&find[..], &[file.as_os_str()]].concat()),
        other => other,
    };
    device.map(|device| device.trim().to_owned())
}

/// Returns the loop devices on the file, one per line: those still in use, and those left by an interrupted process.
fn devices(file: &Path) -> Result<String, DiskError> {
    let list = ["--noheadings", "--raw", "--output", "NAME", "--associated"].map(OsStr::new);
    run("losetup", UTIL_LINUX, [&list[..], &[file.as_os_str()]].concat())
}

/// Returns the first program used here that is not installed, with instructions for installing it.
pub(crate) fn missing_program() -> Option<(&'static str, &'static str)> {
    [("mkfs.xfs", XFSPROGS), ("losetup", UTIL_LINUX), ("mount", UTIL_LINUX), ("umount", UTIL_LINUX)]
        .into_iter()
        .find(|(program, _)| !is_installed(program))
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// The caller's PATH may lack the folders of administrators' programs.
fn search_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Runs a program and returns its output.
fn run<'a>(
    program: &'static str,
    cure: &'static str,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<String, DiskError> {
    let output = Command::new(program).args(arguments).env("PATH", search_path()).env("LC_ALL", "C").output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => DiskError::NoProgram { program, cure },
        _ => DiskError::Program { program, said: error.to_string() },
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(DiskError::Program {
            program,
            said: if said.is_empty() { output.status.to_string() } else { said },
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_from_folders_without_the_list_of_all_mounts() {
        let folder = tempfile::tempdir().expect("a folder");
        // Kernels that do not report mount points make the function read the list.
        if let Some(is_one) = is_mount_point(Path::new("/proc")) {
            assert!(is_one, "/proc is a mount");
            assert_eq!(is_mount_point(folder.path()), Some(false));
        }
        assert!(last_mount(Path::new("/proc")).expect("a list").is_some());
        assert!(last_mount(folder.path()).expect("a list").is_none());
        assert!(!is_on_xfs(Path::new("/proc")));
        assert_eq!(with_project_quotas(Path::new("/proc")), None);
    }
}
