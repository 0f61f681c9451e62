//! `arenad storage`: manages the state root. It works without the daemon, because the state root must exist before a
//! daemon starts.

use std::path::{Path, PathBuf};

use super::args::{Global, StorageCommand, StorageInitArgs};
use super::failure::CommandFailure;
use super::{client, exit_code, output};
use arenad_api::{StorageDisk, StorageStatus};
use arenad_storage::disk::{self, DiskError, DiskStatus};
use arenad_storage::trial;

/// Creates or describes the state root.
pub async fn run(global: &Global, command: &StorageCommand) -> Result<u8, CommandFailure> {
    if let Some(host) = global.host.as_ref().filter(|host| !host.starts_with("unix://")) {
        let failure =
            CommandFailure::usage(format!("`storage` works with the disks of this machine, not through {host}"));
        return Err(failure.hint("run it on the machine of the daemon, without --host and ARENAD_HOST"));
    }
    let state_dir = client::state_dir(global)?;
    if let StorageCommand::Init(args) = command {
        let (args, place) = (absolute(args)?, state_dir.clone());
        tokio::task::spawn_blocking(move || disk::init(&place, args.path, args.size)).await?.map_err(failure)?;
    }
    let status = tokio::task::spawn_blocking(move || look(&state_dir)).await??;
    match global.json {
        true => output::print_json(&status)?,
        false => print(&status),
    }
    Ok(exit_code::OK)
}

fn absolute(args: &StorageInitArgs) -> std::io::Result<StorageInitArgs> {
    let path = args.path.as_ref().map(std::path::absolute).transpose()?;
    Ok(StorageInitArgs { path, size: args.size })
}

fn failure(error: DiskError) -> CommandFailure {
    let code = match error {
        DiskError::DaemonRuns(_) => exit_code::BUSY,
        DiskError::TooSmall(_) => exit_code::USAGE,
        _ => exit_code::FAILED,
    };
    let hint = error.hint();
    let failure = CommandFailure::new(code, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn look(state_dir: &Path) -> Result<StorageStatus, CommandFailure> {
    let path = disk::stores(state_dir);
    let standing = disk::standing(state_dir).map_err(failure)?;
    let there: PathBuf = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned();
    let room = trial::room(&there)
        .map_err(|error| anyhow::Error::from(error).context(format!("inspect {}", there.display())))?;
    let own = |disk: disk::OwnDisk, is_mounted| StorageDisk {
        taken_bytes: disk::taken_bytes(&disk),
        file: disk.file.display().to_string(),
        size_bytes: disk.size_bytes,
        is_mounted,
    };
    Ok(StorageStatus {
        exists: there == path,
        file_system: trial::kind(&there),
        clones: trial::reflinks(&there),
        total_bytes: room.total_bytes,
        free_bytes: room.free_bytes,
        disk: match standing {
            DiskStatus::None | DiskStatus::Foreign => None,
            DiskStatus::Mounted(disk) => Some(own(disk, true)),
            DiskStatus::Unmounted(disk) => Some(own(disk, false)),
        },
        path: path.display().to_string(),
    })
}

fn print(status: &StorageStatus) {
    let line = |name: &str, value: &str| outln!("{name:12} {value}");
    line("state root", &format!("{}{}", status.path, if status.exists { "" } else { " (not created yet)" }));
    line("file system", &status.file_system);
    let copies = match status.clones {
        Some(true) => "share blocks: they take almost no time and space",
        Some(false) => "are full copies: they take time and space in proportion to their size",
        None => "could not be tested: this user may not write there",
    };
    line("copies", copies);
    line("size", &output::bytes(status.total_bytes));
    line("free", &output::bytes(status.free_bytes));
    match &status.disk {
        Some(disk) => {
            let taken =
                disk.taken_bytes.map_or("is missing".to_owned(), |taken| format!("takes {}", output::bytes(taken)));
            let mounted = if disk.is_mounted { "" } else { ", not mounted; the daemon mounts it when it starts" };
            line("disk", &format!("{} ({taken} of {}{mounted})", disk.file, output::bytes(disk.size_bytes)));
        }
        None if status.clones == Some(false) => {
            outln!("`arenad storage init` creates a file system here whose copies are free; it requires root");
        }
        None => {}
    }
}
