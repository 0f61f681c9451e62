//! Judges the file systems: whether they are writable, and what copies cost.

use std::time::Duration;

use super::{answering, size};
use crate::facts::{Access, AnsweringEngine, Facts, FolderFacts};
use crate::finding::{Area, Finding, Level};

/// The file size for which the cost of a copy is reported: databases in images are of this order of magnitude.
const EXAMPLE_BYTES: u64 = 1 << 30;

/// The way to give the state root reflinks if the file system of the state directory has none.
const OWN_DISK: &str = "`arenad storage init`, as root, makes a file with XFS in it for them, which takes no more than is in \
     it; or put the state directory on XFS or btrfs";

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Storage, id, level, seen)
}

pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(engine) = answering(&facts.engine) {
        findings.extend(driver(engine));
    }
    findings.push(state_dir(&facts.state_dir));
    if facts.state_dir.access == Access::Writable {
        findings.push(clones(&facts.stores));
        findings.extend(limits(&facts.stores));
    }
    let sites = facts.environment.iter().flat_map(|environment| &environment.never_rewound);
    findings.extend(sites.map(|(site, reason)| never_rewound(site, reason)));
    findings
}

/// Returns the finding for a site that declares writers, but has a path that no rewind restores.
fn never_rewound(site: &str, reason: &str) -> Finding {
    finding("rewind", Level::Warning, format!("{site} is never rewound: {reason}"))
        .about(site)
        .so("each of its resets without a standby makes new containers, and so does each new standby")
        .cure("declare the place under the site's `stores`, or under `scratch` if it may differ after a reset")
}

fn driver(engine: &AnsweringEngine) -> Vec<Finding> {
    let driver = engine.details.version.storage_driver.as_str();
    let root = &engine.data_root;
    let seen = format!("storage driver {driver} on {} ({})", root.kind, root.path.display());
    match driver {
        "overlay2" | "overlayfs" | "fuse-overlayfs" => {
            vec![finding("storage-driver", Level::Ok, seen), copy_up(driver, engine)]
        }
        "btrfs" | "zfs" => {
            vec![finding("storage-driver", Level::Ok, format!("{seen}: containers are its own snapshots"))]
        }
        "vfs" => vec![
            finding("storage-driver", Level::Warning, seen)
                .so("every container is a full copy of its image: minutes and gigabytes for each reset of a large site")
                .cure(
                    "set `\"storage-driver\": \"overlay2\"` in /etc/docker/daemon.json and restart Docker; images must \
                     be made anew",
                ),
        ],
        _ => vec![
            finding("storage-driver", Level::Note, seen)
                .so("arenad works with it, but what its copies cost is not known here")
                .cure("overlay2 on XFS with reflinks, or btrfs, are known to be quick"),
        ],
    }
}

/// Judges the cost of writing to an image's file: the first write copies the whole file, unless the file system lets
/// both share their blocks.
fn copy_up(driver: &str, engine: &AnsweringEngine) -> Finding {
    let root = &engine.data_root;
    match root.reflinks {
        Some(true) => {
            let seen =
                format!("{driver} on {} with reflinks: a first write to a file of an image copies nothing", root.kind);
            finding("copy-up", Level::Ok, seen)
        }
        Some(false) => {
            let cost = engine
                .copy_speed
                .map(|speed| format!("; {} takes {} or more here", size(EXAMPLE_BYTES), took(EXAMPLE_BYTES, speed)));
            let cost = cost.unwrap_or_default();
            let seen =
                format!("the first write to a file of an image copies all of it ({} has no reflinks{cost})", root.kind);
            finding("copy-up", Level::Warning, seen)
                .so("after each reset, sites that keep a large database in their image pay this for each of its files")
                .cure(format!(
                    "put the engine's data on XFS with reflinks (`mkfs.xfs -m reflink=1 DEVICE`, mounted at {}) or on \
                     btrfs; images must then be made or loaded anew",
                    root.path.display()
                ))
        }
        None => finding(
            "copy-up",
            Level::Note,
            format!("whether {} ({}) has reflinks could not be tried", root.path.display(), root.kind),
        )
        .so("without them the first write to a file of an image copies all of it")
        .cure("run `arenad doctor` as root, who may write there"),
    }
}

/// Returns the duration of a copy at that speed, for people.
fn took(bytes: u64, speed: u64) -> String {
    let seconds = Duration::from_millis(bytes.saturating_mul(1000) / speed.max(1)).as_secs_f64();
    if seconds >= 10.0 { format!("{seconds:.0} s") } else { format!("{seconds:.1} s") }
}

fn state_dir(folder: &FolderFacts) -> Finding {
    let path = folder.path.display();
    let elsewhere = "name another folder with --state-dir or ARENAD_STATE_DIR";
    let problem = |seen: String, cure: String| {
        finding("state-dir", Level::Problem, seen).so("the daemon cannot keep its files, and does not start").cure(cure)
    };
    match &folder.access {
        Access::Writable if folder.exists => {
            finding("state-dir", Level::Ok, format!("{path} can be written ({})", folder.kind))
        }
        Access::Writable => finding("state-dir", Level::Ok, format!("{path} can be made ({})", folder.kind)),
        Access::ReadOnly => problem(
            format!("{path} is on a file system that is mounted read-only"),
            format!("mount it read-write, or {elsewhere}"),
        ),
        Access::Denied => problem(
            format!("this user may not write to {path}"),
            format!("run arenad as the user whose folder it is, or {elsewhere}"),
        ),
        Access::Failed(said) => problem(format!("{path} cannot be written: {said}"), elsewhere.to_owned()),
    }
}

fn clones(folder: &FolderFacts) -> Finding {
    let path = folder.path.display();
    if folder.gives_away == Some(false) {
        return finding(
            "state-root",
            Level::Warning,
            "this user may not give files to other owners, as sites' files have them",
        )
        .so("there is no state root: sites are reset by making their containers anew, and what their stores hold is \
                 read through the engine, which takes longer")
        .cure("run the daemon as root");
    }
    match folder.reflinks {
        Some(true) => finding(
            "reflinks",
            Level::Ok,
            format!("{path} is on {} with reflinks: copies of files share their blocks", folder.kind),
        ),
        Some(false) | None => {
            finding("reflinks", Level::Warning, format!("{path} is on {} without reflinks", folder.kind))
                .so("copies of sites' state are full copies: they take time and space in proportion to their size")
                .cure(OWN_DISK)
        }
    }
}

/// Returns a finding if a file system has no limits although it probably could.
fn limits(folder: &FolderFacts) -> Option<Finding> {
    if folder.reflinks != Some(true) || folder.limits_stores {
        return None;
    }
    let seen =
        format!("what a site may write to its stores has no limit: {} has no project quotas", folder.path.display());
    Some(finding("store-limits", Level::Note, seen).so("a site that fills its disk fills it for all sites").cure(
        "on XFS, install xfsprogs and mount it with `prjquota`; the disk of `arenad storage init` has quotas from its next \
         mount on; both take a kernel with CONFIG_XFS_QUOTA",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::prepared::{self, found};
    use super::*;

    #[test]
    fn overlay_without_reflinks_tells_what_a_copy_costs() {
        let mut facts = prepared::facts();
        facts.stores.reflinks = Some(false);
        let mut engine = prepared::engine();
        engine.data_root.reflinks = Some(false);
        engine.copy_speed = Some(200 << 20);
        facts.engine = crate::facts::EngineState::Answers(Box::new(engine));
        let findings = judge(&facts);
        let copy_up = found(&findings, "copy-up");
        assert_eq!(copy_up.level, Level::Warning);
        assert!(copy_up.seen.contains("1.0 GiB takes 5.1 s or more here"), "{}", copy_up.seen);
        let reflinks = found(&findings, "reflinks");
        assert_eq!(reflinks.level, Level::Warning);
        assert!(reflinks.cure.as_ref().is_some_and(|cure| cure.contains("arenad storage init")));
    }

    #[test]
    fn a_state_root_without_quotas_is_said_to_have_no_limits() {
        let mut facts = prepared::facts();
        facts.stores.limits_stores = false;
        assert_eq!(found(&judge(&facts), "store-limits").level, Level::Note);
        for (reflinks, limits_stores) in [(Some(true), true), (Some(false), false)] {
            facts.stores = FolderFacts { reflinks, limits_stores, ..facts.stores };
            assert!(!judge(&facts).iter().any(|finding| finding.id == "store-limits"));
        }
    }

    #[test]
    fn without_roots_rights_there_is_no_state_root() {
        let mut facts = prepared::facts();
        facts.stores.gives_away = Some(false);
        let findings = judge(&facts);
        assert_eq!(found(&findings, "state-root").level, Level::Warning);
        assert!(!findings.iter().any(|finding| finding.id == "reflinks"), "there is nothing to clone");
    }

    #[test]
    fn drivers_are_judged_by_what_they_copy() {
        let level = |driver: &str| {
            let mut engine = prepared::engine();
            engine.details.version.storage_driver = driver.to_owned();
            driver_level(&engine)
        };
        assert_eq!([level("overlay2"), level("btrfs")], [Level::Ok; 2]);
        assert_eq!(level("vfs"), Level::Warning);
        assert_eq!(level("devicemapper"), Level::Note);
    }

    fn driver_level(engine: &AnsweringEngine) -> Level {
        found(&driver(engine), "storage-driver").level
    }

    #[test]
    fn a_state_directory_that_cannot_be_written_says_why() {
        for (access, word) in [
            (Access::ReadOnly, "mounted read-only"),
            (Access::Denied, "may not write"),
            (Access::Failed("Input/output error".to_owned()), "Input/output error"),
        ] {
            let mut facts = prepared::facts();
            facts.state_dir.access = access;
            let findings = judge(&facts);
            let finding = found(&findings, "state-dir");
            assert!(finding.level == Level::Problem && finding.seen.contains(word), "{finding:?}");
            assert!(
                !findings.iter().any(|finding| finding.id == "reflinks"),
                "nothing is said of what could not be tried"
            );
        }
    }
}
