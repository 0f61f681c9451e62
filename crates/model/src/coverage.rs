//! Whether a rewind brings back everything that a site can write to. Facts in, reasons out.
//!
//! A rewind restores the declared stores. Everything else that the containers can write to must be as it was before the
//! first client, be declared as scratch, or be out of reach; otherwise the containers are made anew:
//!
//! | Place                              | Decided                                                              |
//! | ---------------------------------- | -------------------------------------------------------------------- |
//! | declared store                     | restored, then compared by its digest                                |
//! | volume, writable folder of the host | never covered, unless declared as scratch                            |
//! | writable layer, memory file system | compared with what it held before the first client ([`Traces`])       |
//! | read-only root file system         | nothing to compare                                                   |
//! | process that survives the stop     | must be one that ran before the first client, and hold no store open |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ids::ServiceName;
use super::site::{MountSpec, Site};
use super::store::is_within;

/// How many gaps a reason names.
const SHOWN: usize = 3;

/// The longest command line that a reason shows, in characters.
const COMMAND_SHOWN: usize = 80;

/// How the attributes of a folder begin in [`ServiceTraces::entries`].
pub const FOLDER: &str = "folder";

/// The entry in [`ServiceTraces::entries`] of something that the image has and the container has not.
pub const REMOVED: &str = "removed";

/// A place outside of the stores that may differ after a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scratch {
    /// The service in whose container it lies.
    pub service: ServiceName,
    /// What is meant.
    pub place: ScratchPlace,
    /// Why it may differ, for readers of the definition.
    pub reason: String,
}

/// What a [`Scratch`] means, by absolute paths in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScratchPlace {
    /// A pattern: `*` and `?` stay within a folder's name, `**` does not. What it matches may differ, come and go; so may
    /// everything below a matching folder.
    Differs(String),
    /// A folder that every rewind empties while the writers are at rest.
    Emptied(String),
}

/// What the containers of a generation hold outside of their stores at one moment, by service.
pub type Traces = BTreeMap<ServiceName, ServiceTraces>;

/// What one container holds outside of its stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceTraces {
    /// Writable mounts that nothing compares: mount point and kind, such as `volume` or `folder of the host`.
    pub places: BTreeMap<String, String>,
    /// The content of the writable layer and of memory file systems: path and attributes, with a hash of a file's content.
    pub entries: BTreeMap<String, String>,
    /// The command lines of its processes.
    pub commands: BTreeSet<String>,
}

/// Something that a rewind does not bring back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// A writable place that is neither a store nor compared.
    Place {
        /// The service.
        service: ServiceName,
        /// The mount point.
        path: String,
        /// What is mounted there.
        what: String,
    },
    /// A process that runs on without its writer's stop having ended it.
    Process {
        /// The service.
        service: ServiceName,
        /// Its command line.
        command: String,
        /// The file or folder of a store that it holds open; none: it did not run before the first client.
        holds: Option<String>,
    },
    /// A path outside of the stores that is not as it was before the first client.
    Entry {
        /// The service.
        service: ServiceName,
        /// The path in the container.
        path: String,
        /// What happened to it.
        change: EntryChange,
    },
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryChange {
    /// It was not there.
    Added,
    /// It is another kind of file, or has other attributes or content.
    Changed,
    /// It is gone.
    Removed,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { service, path, what } => {
                write!(f, "{path} of {service} is a writable {what} outside of the stores")
            }
            Self::Process { service, command, holds: Some(path) } => {
                write!(f, "`{}` of {service} still holds {path} open", shortened(command))
            }
            Self::Process { service, command, holds: None } => {
                write!(f, "`{}` of {service} still runs, and did not before the first client", shortened(command))
            }
            Self::Entry { service, path, change } => {
                let change = match change {
                    EntryChange::Added => "was written",
                    EntryChange::Changed => "was changed",
                    EntryChange::Removed => "was removed",
                };
                write!(f, "{path} of {service} {change} outside of the stores")
            }
        }
    }
}

fn shortened(command: &str) -> String {
    match command.char_indices().nth(COMMAND_SHOWN) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command.to_owned(),
    }
}

/// Gaps as one reason: the first few, and how many there are beyond them.
pub fn told(gaps: &[Gap]) -> String {
    let named: Vec<String> = gaps.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if gaps.len() > SHOWN { format!("; and {} more", gaps.len() - SHOWN) } else { String::new() };
    named.join("; ") + &more
}

/// The scratch of one service, in a form that can be asked.
#[derive(Debug, Clone)]
pub struct ScratchRules {
    differs: GlobSet,
    emptied: Vec<String>,
}

impl ScratchRules {
    /// The rules for one of a site's services.
    pub fn of(scratch: &[Scratch], service: &ServiceName) -> Self {
        let mut differs = GlobSetBuilder::new();
        let mut emptied = Vec::new();
        for scratch in scratch.iter().filter(|scratch| scratch.service == *service) {
            match &scratch.place {
                // A pattern that does not compile has been refused by validation; without it more is compared, not less.
                ScratchPlace::Differs(pattern) => {
                    for pattern in [pattern.clone(), format!("{pattern}/**")] {
                        GlobBuilder::new(&pattern).literal_separator(true).build().map(|glob| differs.add(glob)).ok();
                    }
                }
                ScratchPlace::Emptied(folder) => emptied.push(folder.clone()),
            }
        }
        Self { differs: differs.build().unwrap_or_else(|_| GlobSet::empty()), emptied }
    }

    /// Whether a path may differ. An emptied folder itself may not, only what is in it.
    pub fn allow(&self, path: &str) -> bool {
        self.differs.is_match(path) || self.emptied.iter().any(|folder| path != folder && is_within(path, folder))
    }

    /// Whether all of a mount may differ.
    pub(crate) fn allow_mount(&self, mount_point: &str) -> bool {
        self.differs.is_match(mount_point) || self.emptied.iter().any(|folder| is_within(mount_point, folder))
    }

    /// The folders that a rewind empties.
    pub fn emptied(&self) -> &[String] {
        &self.emptied
    }
}

/// The gaps that a definition and the volumes of a site's images show before anything runs: volumes, and writable folders of
/// the host. `image_volumes`: service and mount path.
pub fn declared_gaps<'a>(site: &Site, image_volumes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Gap> {
    let mut gaps = BTreeMap::new();
    let of_images: Vec<(&str, &str)> = image_volumes.collect();
    for service in &site.services {
        let rules = ScratchRules::of(&site.scratch, &service.name);
        let mut note = |path: &str, what: &str| {
            let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
            let is_store = site.state_mounts().iter().any(|(of, at)| *of == service.name && is_within(path, at));
            if !is_store && !rules.allow_mount(path) {
                let gap = Gap::Place { service: service.name.clone(), path: path.to_owned(), what: what.to_owned() };
                gaps.entry((service.name.clone(), path.to_owned())).or_insert(gap);
            }
        };
        for mount in &service.mounts {
            match mount {
                MountSpec::Volume { target, read_only: false, .. } => note(target, "volume"),
                MountSpec::Data { target, read_only: false, .. } => note(target, "folder of the host"),
                // Memory is compared when a rewind is done.
                MountSpec::Volume { .. }
                | MountSpec::Data { .. }
                | MountSpec::Bind { .. }
                | MountSpec::Tmpfs { .. } => {}
            }
        }
        let is_mounted = |path: &str| {
            service.mounts.iter().any(|mount| {
                let (MountSpec::Volume { target, .. }
                | MountSpec::Bind { target, .. }
                | MountSpec::Data { target, .. }
                | MountSpec::Tmpfs { target, .. }) = mount;
                target.trim_end_matches('/') == path.trim_end_matches('/')
            })
        };
        for (_, path) in of_images.iter().filter(|(of, path)| *of == service.name.as_str() && !is_mounted(path)) {
            note(path, "volume that its image declares");
        }
    }
    gaps.into_values().collect()
}

/// The gaps between what containers held before the first client and what they hold now.
pub fn gaps(scratch: &[Scratch], before: &Traces, now: &Traces) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (service, now) in now {
        let rules = ScratchRules::of(scratch, service);
        let nothing = ServiceTraces::default();
        let before = before.get(service).unwrap_or(&nothing);
        for (path, what) in now.places.iter().filter(|(path, _)| !rules.allow_mount(path)) {
            gaps.push(Gap::Place { service: service.clone(), path: path.clone(), what: what.clone() });
        }
        let paths: BTreeSet<&String> = before.entries.keys().chain(now.entries.keys()).collect();
        for path in paths.into_iter().filter(|path| !rules.allow(path)) {
            let change = match (before.entries.get(path), now.entries.get(path)) {
                (_, None) => EntryChange::Removed,
                (_, Some(now)) if now == REMOVED && before.entries.get(path) != Some(now) => EntryChange::Removed,
                (None, _) => EntryChange::Added,
                (before, now) if before != now => EntryChange::Changed,
                _ => continue,
            };
            gaps.push(Gap::Entry { service: service.clone(), path: path.clone(), change });
        }
    }
    // A file says more than the folder that it lies in.
    gaps.sort_by_key(|gap| match gap {
        Gap::Entry { service, path, .. } => {
            let entry = now.get(service).and_then(|traces| traces.entries.get(path));
            u8::from(entry.is_some_and(|entry| entry.starts_with(FOLDER)))
        }
        Gap::Place { .. } | Gap::Process { .. } => 0,
    });
    gaps
}

/// The processes of a service, by command line, that did not run before the first client.
pub fn strangers(service: &ServiceName, before: &Traces, now: &BTreeSet<String>) -> Vec<Gap> {
    let known = before.get(service).map(|traces| &traces.commands);
    let is_known = |command: &&String| known.is_some_and(|known| known.contains(*command));
    let strange = now.iter().filter(|command| !is_known(command));
    strange.map(|command| Gap::Process { service: service.clone(), command: command.clone(), holds: None }).collect()
}

#[cfg(test)]
mod tests;
