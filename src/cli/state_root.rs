//! Checks, before `arenad up` starts a daemon, whether copies of sites' state will share their blocks, and what can be
//! done if not.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::args::StorageChoice;
use super::failure::CommandFailure;
use super::{output, say};
use arenad_model::error::describe;
use arenad_storage::disk::{self, DiskStatus};
use arenad_storage::trial;

/// The facts about the future place of the state root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StateRootFacts {
    /// Whether the state root is on a disk of its own, or on a file system that someone mounted there.
    has_disk: bool,
    clones: Option<bool>,
    file_system: String,
    is_root: bool,
    /// A program that is missing for creating a disk, and the way to install it.
    missing: Option<(&'static str, &'static str)>,
    /// The size of the disk that would be created; `None` if there is too little space.
    size: Option<u64>,
}

/// The action to take.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DiskPlan {
    /// No action: copies are free, or full copies were requested.
    Nothing,
    /// Create a disk of that size.
    Make(u64),
    /// Offer to create a disk of that size.
    Offer(u64),
    /// Print the cost of copies, and the way to avoid it.
    Say(String),
}

/// Makes copies share their blocks if that is requested and possible; otherwise prints their cost. A failure here never
/// prevents a site from coming up.
pub async fn provide(state_dir: &Path, choice: StorageChoice, is_silent: bool) -> Result<(), CommandFailure> {
    if choice == StorageChoice::Plain {
        return Ok(());
    }
    let folder = state_dir.to_owned();
    let Some(place) = tokio::task::spawn_blocking(move || look(&folder)).await? else { return Ok(()) };
    let can_ask = !is_silent && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let size = match plan(&place, choice, can_ask) {
        DiskPlan::Nothing => return Ok(()),
        DiskPlan::Say(text) => {
            say(is_silent, &text);
            return Ok(());
        }
        DiskPlan::Offer(size) if !is_wanted(&place, state_dir, size)? => return Ok(()),
        DiskPlan::Make(size) | DiskPlan::Offer(size) => size,
    };
    let folder = state_dir.to_owned();
    match tokio::task::spawn_blocking(move || disk::init(&folder, None, Some(size))).await? {
        Ok(made) => say(
            is_silent,
            &format!(
                "created {}: the state of sites is kept on a file system of its own, where copies are free (it takes the \
                 space of its content, at most {})",
                made.file.display(),
                output::bytes(made.size_bytes)
            ),
        ),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            say(is_silent, &format!("{}: {}{hint}", costs(&place), describe(&error)));
        }
    }
    Ok(())
}

/// Returns `None` if the facts cannot be determined; the daemon reports the problem later.
fn look(state_dir: &Path) -> Option<StateRootFacts> {
    let standing = disk::standing(state_dir).ok()?;
    let there: PathBuf = state_dir.ancestors().find(|folder| folder.is_dir())?.to_owned();
    Some(StateRootFacts {
        has_disk: standing != DiskStatus::None,
        clones: trial::reflinks(&there),
        file_system: trial::kind(&there),
        is_root: rustix::process::geteuid().is_root(),
        missing: disk::missing_program(),
        size: disk::usual_size(state_dir),
    })
}

fn costs(place: &StateRootFacts) -> String {
    format!(
        "note: {} cannot share blocks between files, so each copy of a site's state takes time and space in proportion to its \
         size",
        place.file_system
    )
}

fn plan(place: &StateRootFacts, choice: StorageChoice, can_ask: bool) -> DiskPlan {
    if choice == StorageChoice::Plain || place.has_disk || place.clones != Some(false) {
        return DiskPlan::Nothing;
    }
    let say = |cure: &str| DiskPlan::Say(format!("{}; {cure}", costs(place)));
    if !place.is_root {
        // Without a state root there are no copies; `arenad status` reports the consequences.
        return DiskPlan::Nothing;
    }
    if let Some((program, cure)) = place.missing {
        return say(&format!(
            "`arenad storage init` avoids that, and requires {program}, which is not installed: {cure}"
        ));
    }
    let Some(size) = place.size else {
        return say("there is too little space for a file system of its own, which would avoid that");
    };
    match choice {
        StorageChoice::Auto => DiskPlan::Make(size),
        StorageChoice::Ask if can_ask => DiskPlan::Offer(size),
        StorageChoice::Ask | StorageChoice::Plain => say(
            "`arenad storage init`, or ARENAD_STORAGE=auto, creates a file system that can; ARENAD_STORAGE=plain hides this note",
        ),
    }
}

fn is_wanted(place: &StateRootFacts, state_dir: &Path, size: u64) -> std::io::Result<bool> {
    err!(
        "{}.\nCreate an XFS file system for them in {}, which takes the space of its content, at most {}? [Y/n] ",
        costs(place),
        state_dir.join("stores.xfs").display(),
        output::bytes(size)
    );
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ext4() -> StateRootFacts {
        StateRootFacts {
            has_disk: false,
            clones: Some(false),
            file_system: "ext4".to_owned(),
            is_root: true,
            missing: None,
            size: Some(20 << 30),
        }
    }

    fn said(plan: DiskPlan) -> String {
        match plan {
            DiskPlan::Say(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_disk_is_made_where_that_is_wished_and_possible() {
        use StorageChoice::{Ask, Auto, Plain};
        assert_eq!(plan(&ext4(), Auto, false), DiskPlan::Make(20 << 30));
        assert_eq!(plan(&ext4(), Ask, true), DiskPlan::Offer(20 << 30));
        assert!(said(plan(&ext4(), Ask, false)).contains("ARENAD_STORAGE=auto"));
        assert_eq!(plan(&ext4(), Plain, true), DiskPlan::Nothing);
        assert_eq!(plan(&StateRootFacts { has_disk: true, ..ext4() }, Auto, true), DiskPlan::Nothing);
        assert_eq!(plan(&StateRootFacts { clones: Some(true), ..ext4() }, Auto, true), DiskPlan::Nothing);
        assert_eq!(plan(&StateRootFacts { is_root: false, ..ext4() }, Auto, true), DiskPlan::Nothing);
    }

    #[test]
    fn what_is_missing_is_named() {
        let lacking = StateRootFacts { missing: Some(("mkfs.xfs", "install it: `apt install xfsprogs`")), ..ext4() };
        assert!(said(plan(&lacking, StorageChoice::Auto, true)).contains("apt install xfsprogs"));
        assert!(
            said(plan(&StateRootFacts { size: None, ..ext4() }, StorageChoice::Auto, true))
                .contains("too little space")
        );
    }
}
