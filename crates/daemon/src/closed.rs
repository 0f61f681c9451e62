//! Closing the state directory to other users: it holds sessions, traffic and the state of sites.
//!
//! Earlier versions or other programs may have left it open, so every start of a daemon corrects its modes. Trees of
//! stores keep their owners and modes, which belong to the sites; other users cannot reach them, because the folders
//! above are closed.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

use arenad_folders as folders;
use arenad_instance::shared::StateDir;

/// Names that distinguish a state directory from a folder of another program.
const OWN: [&str; 8] = ["lock", "arenad.db", "arenad.log", "disk.json", "stores", "volumes", "archives", "judge"];

/// The prefix of the names of folders that contain trees.
const TREES: &str = "stores";

/// Creates the state directory if it is missing, and closes it to other users. Members of `group` may pass through it
/// to the socket but may not list it.
pub(super) fn claim(state_dir: &StateDir, group: Option<u32>) -> io::Result<()> {
    let path = state_dir.path();
    folders::make_private(path)?;
    if folders::is_open(path)? && !is_own(path)? {
        return Err(io::Error::other(
            "other users may enter the folder, and what is in it is not arenad's; name an empty folder or a new one",
        ));
    }
    // The mode is restricted before the group changes: for a moment no group can pass, which is better than letting
    // members of another group pass.
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    if group.is_some() {
        std::os::unix::fs::chown(path, None, group)?;
        fs::set_permissions(path, Permissions::from_mode(0o710))?;
    }
    Ok(())
}

/// Closes the files that an earlier version left open in the state directory.
pub(super) fn close_content(state_dir: &StateDir) {
    let is_tree = |entry: &DirEntry| {
        entry.depth() == 1 && entry.file_type().is_dir() && entry.file_name().to_string_lossy().starts_with(TREES)
    };
    let entries = WalkDir::new(state_dir.path()).min_depth(1).same_file_system(true).into_iter();
    for entry in entries.filter_entry(|entry| !is_tree(entry)) {
        let closed = entry.map_err(io::Error::from).and_then(|entry| {
            let path = entry.path();
            folders::close(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        });
        // Only a warning, because the folder above is closed: other users cannot reach the file even with an open mode.
        if let Err(error) = closed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a file of the state directory stays open to other users");
        }
    }
}

fn is_own(path: &Path) -> io::Result<bool> {
    let mut names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| name != "lost+found");
    Ok(names.is_empty() || names.iter().any(|name| OWN.iter().any(|own| name == own)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it is there").mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }

    /// Creates a state directory as an earlier version left it, open to all users.
    fn left_open() -> (tempfile::TempDir, StateDir, Vec<PathBuf>) {
        let above = tempfile::tempdir().expect("a folder");
        let path = above.path().join("state");
        for folder in ["volumes", "archives", "stores/instances/a/g1/db"] {
            fs::create_dir_all(path.join(folder)).expect("a folder");
        }
        let files =
            ["arenad.db", "arenad.db-wal", "arenad.log", "volumes/a.tar", "archives/b.tar"].map(|n| path.join(n));
        for file in &files {
            fs::write(file, "s").expect("a file");
            set(file, 0o644);
        }
        let folders = [path.join("volumes"), path.join("archives"), path.clone()];
        for folder in &folders {
            set(folder, 0o755);
        }
        let all = files.into_iter().chain(folders).collect();
        (above, StateDir::new(path), all)
    }

    #[test]
    fn a_state_directory_that_was_left_open_is_closed() {
        let (_above, state_dir, all) = left_open();
        claim(&state_dir, None).expect("it is ours");
        close_content(&state_dir);
        for path in all {
            assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
        }
    }

    #[test]
    fn trees_keep_their_modes() {
        let (_above, state_dir, _) = left_open();
        let tree = state_dir.path().join("stores/instances/a/g1/db");
        set(&tree, 0o2775);
        claim(&state_dir, None).expect("it is ours");
        close_content(&state_dir);
        assert_eq!(mode(&tree), 0o775);
    }

    #[test]
    fn the_group_of_the_socket_may_pass_and_not_list() {
        let (_above, state_dir, _) = left_open();
        let group = fs::metadata(state_dir.path()).expect("it is there").gid();
        claim(&state_dir, Some(group)).expect("it is ours");
        assert_eq!(mode(state_dir.path()), 0o710);
        claim(&state_dir, None).expect("it is ours");
        assert_eq!(mode(state_dir.path()), 0o700);
    }

    #[test]
    fn an_open_folder_of_somebody_else_is_refused_and_left_as_it_is() {
        let above = tempfile::tempdir().expect("a folder");
        set(above.path(), 0o755);
        fs::write(above.path().join("thesis.tex"), "").expect("a file");
        claim(&StateDir::new(above.path().to_owned()), None).expect_err("not ours");
        assert_eq!(mode(above.path()), 0o755);
    }

    #[test]
    fn what_links_lead_to_is_left_alone() {
        let (above, state_dir, _) = left_open();
        let outside = above.path().join("outside");
        fs::write(&outside, "").expect("a file");
        set(&outside, 0o644);
        std::os::unix::fs::symlink(&outside, state_dir.path().join("link")).expect("a link");
        claim(&state_dir, None).expect("it is ours");
        close_content(&state_dir);
        assert_eq!(mode(&outside), 0o644);
    }
}
