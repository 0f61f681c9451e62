//! Decides whether a rewind restores everything that a site can write to. It takes facts about containers
//! and returns the reasons why a rewind is not enough.
//!
//! A rewind restores the declared stores. Everything else that the containers can write to must be unchanged since
//! before the first client, be declared as scratch, or be unreachable. Otherwise the containers are recreated:
//!
//! | Place                               | Decision                                                             |
//! | ----------------------------------- | -------------------------------------------------------------------- |
//! | declared store                      | restored, then compared by its digest                                |
//! | volume, writable folder of the host | never covered, unless declared as scratch                            |
//! | writable layer, memory file system  | compared with its content before the first client ([`Traces`])       |
//! | read-only root file system          | needs no comparison                                                  |
//! | process that survives the stop      | must have run before the first client, and must hold no store open   |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ids::ServiceName;
use super::service::MountSpec;
use super::site::Site;
use super::store::is_within;

/// The number of gaps that a reason names.
const SHOWN: usize = 3;

/// The maximum length of a command line in a reason, in characters.
const COMMAND_SHOWN: usize = 80;

/// The first word of a folder's attributes in [`ServiceTraces::entries`].
pub const FOLDER: &str = "folder";

/// The entry in [`ServiceTraces::entries`] of a path that exists in the image but not in the container.
pub const REMOVED: &str = "removed";

/// A place outside the stores that may differ after a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scratch {
    /// The service whose container has the place.
    pub service: ServiceName,
    /// The paths that may differ.
    pub place: ScratchPlace,
    /// The reason why the place may differ, for readers of the definition.
    pub reason: String,
}

/// The place of a [`Scratch`], by absolute paths in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScratchPlace {
    /// A pattern in which `*` and `?` match within one folder's name, and `**` also matches across folders. A matching
    /// path may be changed, added or removed, and so may everything below a matching folder.
    Differs(String),
    /// A folder that every rewind empties while the writers are stopped.
    Emptied(String),
}

/// The content of a generation's containers outside the stores at one moment, by service.
pub type Traces = BTreeMap<ServiceName, ServiceTraces>;

/// The content of one container outside the stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceTraces {
    /// The writable mounts that are not compared: mount point and kind, such as `volume` or `folder of the host`.
    pub places: BTreeMap<String, String>,
    /// The content of the writable layer and of memory file systems: attributes by path, with a hash of the content of
    /// files.
    pub entries: BTreeMap<String, String>,
    /// The command lines of the container's processes.
    pub commands: BTreeSet<String>,
}

/// A difference or a writable place that a rewind does not restore.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// A writable place that is neither a store nor compared.
    Place {
        /// The service whose container has the place.
        service: ServiceName,
        /// The mount point in the container.
        path: String,
        /// The kind of the mount, such as `volume`.
        what: String,
    },
    /// A process that the stop of the writers has not ended.
    Process {
        /// The service whose container runs it.
        service: ServiceName,
        /// The command line of the process.
        command: String,
        /// The file or folder of a store that the process holds open. `None` means that the process holds none but did
        /// not run before the first client.
        holds: Option<String>,
    },
    /// A path outside the stores that has changed since before the first client.
    Entry {
        /// The service whose container has the path.
        service: ServiceName,
        /// The path in the container.
        path: String,
        /// The kind of the change.
        change: EntryChange,
    },
}

/// A change to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryChange {
    /// The path did not exist.
    Added,
    /// The path has another file type, other attributes or other content.
    Changed,
    /// The path no longer exists.
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

/// Describes gaps as one reason: the first ones, and the number of the others.
pub fn told(gaps: &[Gap]) -> String {
    let named: Vec<String> = gaps.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if gaps.len() > SHOWN { format!("; and {} more", gaps.len() - SHOWN) } else { String::new() };
    named.join("; ") + &more
}

/// The scratch of one service in compiled form.
#[derive(Debug, Clone)]
pub struct ScratchRules {
    differs: GlobSet,
    emptied: Vec<String>,
}

impl ScratchRules {
    /// Compiles the rules for one of a site's services.
    pub fn of(scratch: &[Scratch], service: &ServiceName) -> Self {
        let mut differs = GlobSetBuilder::new();
        let mut emptied = Vec::new();
        for scratch in scratch.iter().filter(|scratch| scratch.service == *service) {
            match &scratch.place {
                // Validation has rejected patterns that do not compile. Without such a pattern, more is compared, not
                // less.
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

    /// Whether a path may differ. The content of an emptied folder may, but the folder itself may not.
    pub fn allow(&self, path: &str) -> bool {
        self.differs.is_match(path) || self.emptied.iter().any(|folder| path != folder && is_within(path, folder))
    }

    /// Whether everything on a mount may differ.
    pub(crate) fn allow_mount(&self, mount_point: &str) -> bool {
        self.differs.is_match(mount_point) || self.emptied.iter().any(|folder| is_within(mount_point, folder))
    }

    /// Returns the folders that a rewind empties.
    pub fn emptied(&self) -> &[String] {
        &self.emptied
    }
}

/// Returns the gaps that are known before anything runs: the volumes that the definition and the site's images declare,
/// and the writable folders of the host. `image_volumes` contains pairs of service and mount path.
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
                // Memory file systems are compared during a rewind.
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

/// Returns the gaps between the content of the containers before the first client and their content now.
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
    // A file is more informative than the folder that contains it.
    gaps.sort_by_key(|gap| match gap {
        Gap::Entry { service, path, .. } => {
            let entry = now.get(service).and_then(|traces| traces.entries.get(path));
            u8::from(entry.is_some_and(|entry| entry.starts_with(FOLDER)))
        }
        Gap::Place { .. } | Gap::Process { .. } => 0,
    });
    gaps
}

/// Returns the processes of a service that did not run before the first client, identified by their command lines.
pub fn strangers(service: &ServiceName, before: &Traces, now: &BTreeSet<String>) -> Vec<Gap> {
    let known = before.get(service).map(|traces| &traces.commands);
    let is_known = |command: &&String| known.is_some_and(|known| known.contains(*command));
    let strange = now.iter().filter(|command| !is_known(command));
    strange.map(|command| Gap::Process { service: service.clone(), command: command.clone(), holds: None }).collect()
}

#[cfg(test)]
mod tests;
