//! Checks, before `arenad up` starts a daemon, whether copies of sites' state will share their blocks, and what can be
//! done if not.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::args::StorageChoice;
use super::failure::Failure;
use super::{output, say};
use arenad_model::error::describe;
use arenad_storage::disk::{self, DiskStatus};
use arenad_storage::trial;

/// The facts about the future place of the state root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
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
enum Plan {
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
pub async fn provide(state_dir: &Path, choice: StorageChoice, is_silent: bool) -> Result<(), Failure> {
    if choice == StorageChoice::Plain {
        return Ok(());
    }
    let folder = state_dir.to_owned();
    let Some(place) = tokio::task::spawn_blocking(move || look(&folder)).await? else { return Ok(()) };
    let can_ask = !is_silent && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let size = match plan(&place, choice, can_ask) {
        Plan::Nothing => return Ok(()),
        Plan::Say(text) => {
            say(is_silent, &text);
            return Ok(());
        }
        Plan::Offer(size) if !is_wanted(&place, state_dir, size)? => return Ok(()),
        Plan::Make(size) | Plan::Offer(size) => size,
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
fn look(state_dir: &Path) -> Option<Place> {
    let standing = disk::standing(state_dir).ok()?;
    let there: PathBuf = state_dir.ancestors().find(|folder| folder.is_dir())?.to_owned();
    Some(Place {
        has_disk: standing != DiskStatus::None,
        clones: trial::reflinks(&there),
        file_system: trial::kind(&there),
        is_root: rustix::process::geteuid().is_root(),
        missing: disk::missing_program(),
        size: disk::usual_size(state_dir),
    })
}

fn costs(place: &Place) -> String {
    format!(
        "note: {} cannot share blocks between files, so each copy of a site's state takes time and space in proportion to its \
         size",
        place.file_system
    )
}

fn plan(place: &Place, choice: StorageChoice, can_ask: bool) -> Plan {
    if choice == StorageChoice::Plain || place.has_disk || place.clones != Some(false) {
        return Plan::Nothing;
    }
    let say = |cure: &str| Plan::Say(format!("{}; {cure}", costs(place)));
    if !place.is_root {
        // Without a state root there are no copies; `arenad status` reports the consequences.
        return Plan::Nothing;
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
        StorageChoice::Auto => Plan::Make(size),
        StorageChoice::Ask if can_ask => Plan::Offer(size),
        StorageChoice::Ask | StorageChoice::Plain => say(
            "`arenad storage init`, or ARENAD_STORAGE=auto, creates a file system that can; ARENAD_STORAGE=plain hides this note",
        ),
    }
}

fn is_wanted(place: &Place, state_dir: &Path, size: u64) -> std::io::Result<bool> {
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

    fn ext4() -> Place {
        Place {
            has_disk: false,
            clones: Some(false),
            file_system: "ext4".to_owned(),
            is_root: true,
            missing: None,
            size: Some(20 << 30),
        }
    }

    fn said(plan: Plan) -> String {
        match plan {
            Plan::Say(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_disk_is_made_where_that_is_wished_and_possible() {
        use StorageChoice::{Ask, Auto, Plain};
        assert_eq!(plan(&ext4(), Auto, false), Plan::Make(20 << 30));
        assert_eq!(plan(&ext4(), Ask, true), Plan::Offer(20 << 30));
        assert!(said(plan(&ext4(), Ask, false)).contains("ARENAD_STORAGE=auto"));
        assert_eq!(plan(&ext4(), Plain, true), Plan::Nothing);
        assert_eq!(plan(&Place { has_disk: true, ..ext4() }, Auto, true), Plan::Nothing);
        assert_eq!(plan(&Place { clones: Some(true), ..ext4() }, Auto, true), Plan::Nothing);
        assert_eq!(plan(&Place { is_root: false, ..ext4() }, Auto, true), Plan::Nothing);
    }

    #[test]
    fn what_is_missing_is_named() {
        let lacking = Place { missing: Some(("mkfs.xfs", "install it: `apt install xfsprogs`")), ..ext4() };
        assert!(said(plan(&lacking, StorageChoice::Auto, true)).contains("apt install xfsprogs"));
        assert!(said(plan(&Place { size: None, ..ext4() }, StorageChoice::Auto, true)).contains("too little space"));
    }
}
