//! Proposes for each service its role, its stores, and the way to stop and start it.

use super::databases::{self, DatabaseAccount};
use super::services::{ComposeService, ServicePage};
use crate::cli::failure::CommandFailure;

/// The role of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Postgres,
    Mariadb,
    Mysql,
    Redis,
    Application,
}

impl Role {
    /// Returns the kind of such a server's store and database in the environment file.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
            Self::Redis => "redis",
            Self::Application => "application",
        }
    }

    /// Returns the port that such a server listens on.
    pub(super) fn port(self) -> Option<u16> {
        match self {
            Self::Postgres => Some(5432),
            Self::Mariadb | Self::Mysql => Some(3306),
            Self::Redis => Some(6379),
            Self::Application => None,
        }
    }

    /// Returns whether the server speaks SQL.
    pub(super) fn speaks_sql(self) -> bool {
        matches!(self, Self::Postgres | Self::Mariadb | Self::Mysql)
    }

    /// Returns a health check in Compose's form, over TCP: some images first start a server that listens only on its
    /// Unix socket, in order to fill it.
    pub(super) fn health_check(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Postgres => Some(&["CMD", "pg_isready", "-q", "-h", "127.0.0.1"]),
            Self::Mariadb => Some(&["CMD", "mariadb-admin", "ping", "-h", "127.0.0.1"]),
            Self::Mysql => Some(&["CMD", "mysqladmin", "ping", "-h", "127.0.0.1"]),
            Self::Redis | Self::Application => None,
        }
    }

    /// Returns the signal that ends the server immediately. Its unsaved state is discarded anyway.
    pub(super) fn stop_signal(self) -> &'static str {
        match self {
            Self::Postgres => "QUIT",
            Self::Mariadb | Self::Mysql | Self::Redis => "KILL",
            Self::Application => "TERM",
        }
    }
}

/// A path at which a service keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProposedStore {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) path: String,
    /// The reason for the proposal, which becomes a comment.
    pub(super) reason: String,
}

/// A service with the proposals for it.
#[derive(Debug, Clone)]
pub(super) struct Proposed {
    pub(super) service: ComposeService,
    pub(super) role: Role,
    pub(super) stores: Vec<ProposedStore>,
    pub(super) account: DatabaseAccount,
    /// The entry point and the command, if `supervise` can be put before them.
    pub(super) runs: Option<(Vec<String>, Vec<String>)>,
    /// Paths outside of the stores that may differ: the path, whether a rewind empties it, and the reason.
    pub(super) scratch: Vec<(String, bool, &'static str)>,
    /// Paths that were written to and are part of no proposal.
    pub(super) uncovered: Vec<String>,
}

impl Proposed {
    /// Returns the name of its database in the environment file.
    pub(super) fn database(&self) -> Option<&str> {
        self.role.speaks_sql().then_some(self.service.name.as_str())
    }

    /// Returns the port that the service listens on.
    pub(super) fn port(&self) -> Option<u16> {
        let seen = self.service.seen.as_ref().and_then(|seen| seen.listens.first().copied());
        let published = self.service.ports.first().map(|(_, target)| *target);
        let exposed = self.service.of_image.as_ref().and_then(|image| image.ports.first().copied());
        self.role.port().or(published).or(seen).or(exposed)
    }
}

/// The proposals for the whole environment.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    /// The services, in the order of the Compose file.
    pub(super) services: Vec<Proposed>,
    /// The index of the service that serves the pages.
    pub(super) entry: usize,
    pub(super) entry_port: u16,
    pub(super) public_port: u16,
}

impl Proposal {
    /// Returns the service that serves the pages.
    pub(super) fn entry(&self) -> &Proposed {
        &self.services[self.entry]
    }

    /// Returns the page that the running site returned, if it was requested.
    pub(super) fn page(&self) -> Option<&ServicePage> {
        self.entry().service.seen.as_ref()?.page.as_ref()
    }

    /// Returns whether the helpers can stop and start every process that writes.
    pub(super) fn is_supervised(&self) -> bool {
        self.services.iter().any(|part| !part.stores.is_empty()) && self.services.iter().all(|part| part.runs.is_some())
    }

    /// Returns the services in the order in which they are stopped: each before the services that it depends on.
    pub(super) fn in_stop_order(&self) -> Vec<&Proposed> {
        let mut left: Vec<&Proposed> = self.services.iter().collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_needed =
                |name: &str| left.iter().any(|other| other.service.depends_on.iter().any(|needed| needed == name));
            // Without declared dependencies, applications come before servers; services that depend on each other in a
            // cycle keep their order.
            let free = |part: &&Proposed| !is_needed(&part.service.name);
            let next = left.iter().position(|part| free(part) && part.role == Role::Application);
            let next = next.or_else(|| left.iter().position(free)).unwrap_or(0);
            order.push(left.remove(next));
        }
        order
    }

    /// Returns the points that a person must review.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for part in &self.services {
            let name = &part.service.name;
            if part.runs.is_none() {
                notes.push(format!(
                    "{name}: the command of its image is unknown, so no writers are proposed and every reset creates new containers. Add \
                     an `entrypoint` or `command` to the Compose file, or build or pull the image, and run `arenad init` again."
                ));
            }
            if part.role.speaks_sql() {
                notes.extend(part.account.notes(&part.service));
            }
            if !part.uncovered.is_empty() {
                notes.push(format!(
                    "{name}: no store is proposed for paths of the system to which it has written: {}. If the site writes there while it \
                     is used, let it write elsewhere, or list them under `scratch` if they may differ.",
                    part.uncovered.join(", ")
                ));
            }
        }
        if self.services.iter().all(|part| part.stores.is_empty()) {
            notes.push(
                "No path was found at which the site keeps state. Start it with `docker compose up`, use it, and run `arenad init` again \
                 with --running; or declare `stores` by hand."
                    .to_owned(),
            );
        } else if self.services.iter().all(|part| part.service.seen.is_none()) {
            notes.push(
                "The proposals are based on the Compose file only. --running also examines the containers that `docker compose` runs."
                    .to_owned(),
            );
        }
        notes
    }
}

/// Makes the proposals for all services.
pub(super) fn of(services: &[ComposeService], port: Option<u16>, default: u16) -> Result<Proposal, CommandFailure> {
    let proposed: Vec<Proposed> = services.iter().map(|service| propose(service, services)).collect();
    let is_front = |part: &Proposed| part.role == Role::Application && !part.service.ports.is_empty();
    let entry = proposed
        .iter()
        .position(is_front)
        .or_else(|| proposed.iter().position(|part| part.role == Role::Application))
        .or(if proposed.is_empty() { None } else { Some(0) })
        .ok_or_else(|| CommandFailure::usage("the Compose file has no services"))?;
    let published = proposed[entry].service.ports.first().and_then(|(published, _)| *published);
    let entry_port = proposed[entry].port().unwrap_or(80);
    Ok(Proposal { services: proposed, entry, entry_port, public_port: port.or(published).unwrap_or(default) })
}

fn propose(service: &ComposeService, all: &[ComposeService]) -> Proposed {
    let role = role(service);
    let mut stores = Vec::new();
    if let Some(path) = data(service, role) {
        let reason = format!("the data of the {} server", role.kind());
        stores.push(ProposedStore { name: service.name.clone(), kind: role.kind(), path, reason });
    }
    let is_covered = |stores: &[ProposedStore], path: &str| stores.iter().any(|store| is_within(path, &store.path));
    for path in &service.volumes {
        if !is_covered(&stores, path) {
            let reason = "a volume of the Compose file".to_owned();
            stores.push(ProposedStore {
                name: named(&service.name, path),
                kind: "directory",
                path: path.clone(),
                reason,
            });
        }
    }
    let mut scratch = known_scratch(role);
    let mut uncovered = Vec::new();
    for path in written(service) {
        if is_covered(&stores, &path) {
            continue;
        }
        if let Some((place, is_emptied, reason)) = passing(&path) {
            if !scratch.iter().any(|(known, ..)| known == place) {
                scratch.push((place.to_owned(), is_emptied, reason));
            }
            continue;
        }
        let (kind, place) = match is_sqlite(&path) {
            true => ("sqlite", path.clone()),
            false => ("directory", folder(&path).to_owned()),
        };
        if is_of_system(folder(&path)) {
            uncovered.push(path);
            continue;
        }
        let reason = format!("a write was observed: {path}");
        stores.push(ProposedStore { name: named(&service.name, &place), kind, path: place, reason });
    }
    make_unique(&mut stores);
    Proposed {
        account: databases::account(service, role, all),
        runs: runs(service, role),
        stores,
        scratch,
        uncovered,
        role,
        service: service.clone(),
    }
}

/// Returns the role of a service, by its image and its programs.
pub(super) fn role(service: &ComposeService) -> Role {
    let words = [service.entrypoint.as_deref(), service.command.as_deref()];
    let of_image =
        service.of_image.as_ref().map(|image| [image.entrypoint.as_slice(), image.command.as_slice()].concat());
    let running = service.seen.iter().flat_map(|seen| &seen.processes);
    let programs: Vec<&str> = words
        .into_iter()
        .flatten()
        .flatten()
        .chain(of_image.iter().flatten())
        .flat_map(|word| word.split_whitespace())
        .chain(running.filter_map(|line| line.split_whitespace().next()))
        .map(|word| word.rsplit('/').next().unwrap_or_default().trim_end_matches(':'))
        .collect();
    let runs = |names: &[&str]| programs.iter().any(|program| names.contains(program));
    let image = service.image.rsplit('/').next().unwrap_or_default().split([':', '@']).next().unwrap_or_default();
    let is_image = |names: &[&str]| names.iter().any(|name| image == *name || image.starts_with(&format!("{name}-")));
    if runs(&["postgres", "postmaster"]) || is_image(&["postgres", "postgis", "postgresql", "pgvector", "timescaledb"])
    {
        Role::Postgres
    } else if runs(&["mariadbd", "mariadbd-safe"]) || is_image(&["mariadb"]) {
        Role::Mariadb
    } else if runs(&["mysqld", "mysqld_safe"]) || is_image(&["mysql", "percona"]) {
        Role::Mysql
    } else if runs(&["redis-server", "valkey-server"]) || is_image(&["redis", "valkey", "keydb"]) {
        Role::Redis
    } else {
        Role::Application
    }
}

/// Returns the data directory of a server.
fn data(service: &ComposeService, role: Role) -> Option<String> {
    let (variable, option, usual, hint) = match role {
        Role::Postgres => ("PGDATA", "-D", "/var/lib/postgresql/data", "postgres"),
        Role::Mariadb | Role::Mysql => ("MYSQL_DATADIR", "--datadir", "/var/lib/mysql", "mysql"),
        Role::Redis => ("REDIS_DATA", "--dir", "/data", "data"),
        Role::Application => return None,
    };
    let lines = service
        .seen
        .iter()
        .flat_map(|seen| &seen.processes)
        .map(|line| line.split_whitespace().map(str::to_owned).collect());
    let of_image = service.of_image.iter().flat_map(|image| [image.entrypoint.clone(), image.command.clone()]);
    let own = service.entrypoint.iter().chain(&service.command).cloned();
    let given = lines.chain(own).chain(of_image).find_map(|words: Vec<String>| after(&words, option));
    let volume = service.volumes.iter().find(|path| path.contains(hint)).or(match service.volumes.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    // A server's folder may lie inside the volume: the volume is mounted above it, and the neighbouring files belong to
    // the store as well.
    let path = service.environment.get(variable).cloned().or(given).or(volume.cloned());
    Some(path.filter(|path| path.starts_with('/')).unwrap_or_else(|| usual.to_owned()).trim_end_matches('/').to_owned())
}

/// Returns the value of an option: `-D /data`, `-D=/data`, or within a line that a shell runs.
fn after(words: &[String], option: &str) -> Option<String> {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    words.iter().enumerate().find_map(|(index, word)| match word.strip_prefix(option)? {
        "" => words.get(index + 1).map(|value| (*value).to_owned()),
        rest => rest.strip_prefix('=').map(str::to_owned),
    })
}

/// Returns the entry point and the command, if both are known.
fn runs(service: &ComposeService, role: Role) -> Option<(Vec<String>, Vec<String>)> {
    if service.has_init {
        return None;
    }
    let of_image = service.of_image.as_ref();
    // These are the entry points of the official images; images that are based on them inherit them.
    let official = match role {
        Role::Postgres => Some("postgres"),
        Role::Mariadb => Some("mariadbd"),
        Role::Mysql => Some("mysqld"),
        Role::Redis if service.image.contains("valkey") => Some("valkey-server"),
        Role::Redis => Some("redis-server"),
        Role::Application => None,
    };
    let official = official.filter(|_| service.context.is_none());
    let entrypoint = service
        .entrypoint
        .clone()
        .or_else(|| of_image.map(|image| image.entrypoint.clone()))
        .or_else(|| official.map(|_| vec!["docker-entrypoint.sh".to_owned()]))?;
    // An entry point in the Compose file discards the image's command.
    let inherited =
        || if service.entrypoint.is_some() { Some(Vec::new()) } else { of_image.map(|image| image.command.clone()) };
    let command =
        service.command.clone().or_else(inherited).or_else(|| official.map(|program| vec![program.to_owned()]))?;
    let is_empty = entrypoint.is_empty() && command.is_empty();
    (!is_empty).then_some((entrypoint, command))
}

fn known_scratch(role: Role) -> Vec<(String, bool, &'static str)> {
    let places: &[(&str, bool, &'static str)] = match role {
        Role::Postgres => &[
            ("/run/postgresql", false, "the server's socket and lock differ after each start"),
            ("/dev/shm/PostgreSQL.*", false, "the server's shared memory has random names"),
            ("/tmp", false, "the server's socket and lock, if it creates them there"),
        ],
        Role::Mariadb | Role::Mysql => &[
            ("/run/mysqld", false, "the server's socket and pid file differ after each start"),
            ("/tmp", true, "rows that the server was sorting when it was killed"),
        ],
        Role::Redis => &[],
        Role::Application => &[("/tmp", true, "uploads in progress, sockets and locks of the server")],
    };
    places.iter().map(|(path, is_emptied, reason)| ((*path).to_owned(), *is_emptied, *reason)).collect()
}

/// Returns the paths that were seen to be written outside of mounts: files, and folders that contain no other change.
fn written(service: &ComposeService) -> Vec<String> {
    let Some(seen) = &service.seen else { return Vec::new() };
    let is_folder = |path: &str| seen.changed.iter().any(|other| other.len() > path.len() && is_within(other, path));
    seen.changed.iter().filter(|path| !is_folder(path)).cloned().collect()
}

/// Returns the scratch place of a path that holds only content a site can lose: its path, whether a rewind empties it,
/// and the reason.
fn passing(path: &str) -> Option<(&'static str, bool, &'static str)> {
    const PLACES: [(&str, bool, &str); 7] = [
        ("/tmp", true, "uploads in progress, sockets and locks of the server"),
        ("/var/tmp", true, "temporary files"),
        ("/run", false, "sockets and pid files differ after each start"),
        ("/var/run", false, "sockets and pid files differ after each start"),
        ("/var/log", false, "logs"),
        ("/var/cache", false, "caches that can be recreated"),
        ("/root/.cache", false, "caches that can be recreated"),
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.starts_with('.') && name.ends_with("_history") {
        return Some(("/**/.*_history", false, "the input of interactive shells"));
    }
    if path.contains("/__pycache__") {
        return Some(("/**/__pycache__", false, "compiled Python modules"));
    }
    PLACES.into_iter().find(|(place, ..)| is_within(path, place))
}

/// Returns whether a folder belongs to the operating system, so that a store there would replace programs and settings of
/// the image.
fn is_of_system(folder: &str) -> bool {
    const ALONE: [&str; 4] = ["", "/etc", "/usr", "/var"];
    const WHOLE: [&str; 11] =
        ["/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/sbin"];
    ALONE.contains(&folder) || WHOLE.iter().any(|whole| is_within(folder, whole))
}

fn is_sqlite(path: &str) -> bool {
    [".sqlite", ".sqlite3", ".db"].iter().any(|end| path.ends_with(end))
}

fn is_within(path: &str, folder: &str) -> bool {
    path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(folder, _)| folder)
}

/// Returns a name for a store of a service.
fn named(service: &str, path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let plain: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("{service}-{}", plain.trim_matches('-'))
}

/// Removes folders inside other stores and duplicate paths, and makes the names unique.
fn make_unique(stores: &mut Vec<ProposedStore>) {
    let all = stores.clone();
    let mut index = 0;
    stores.retain(|store| {
        index += 1;
        let is_inner = |other: &ProposedStore| other.path != store.path && is_within(&store.path, &other.path);
        let is_second = all[..index - 1].iter().any(|other| other.path == store.path);
        !(is_second || (store.kind == "directory" && all.iter().any(is_inner)))
    });
    for index in 1..stores.len() {
        while stores[..index].iter().any(|other| other.name == stores[index].name) {
            stores[index].name.push('2');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::services::{ComposeSource, ObservedContainer, of as services_of};
    use super::*;

    fn proposal(yaml: &str) -> Proposal {
        let root = serde_yaml::from_str(yaml).expect("YAML");
        of(&services_of(&ComposeSource { file: None, root }).expect("services"), None, 8080).expect("a proposal")
    }

    #[test]
    fn an_application_and_its_database_get_stores_accounts_and_an_order() {
        let found = proposal(
            "services:
  web: { image: my/app:2, ports: ['9000:8000'], command: [gunicorn, app], entrypoint: [], depends_on: [db], volumes: ['up:/srv/up'] }
  db: { image: 'postgres:16', environment: { POSTGRES_PASSWORD: pw }, volumes: ['data:/var/lib/postgresql/data'] }
",
        );
        assert_eq!((found.entry().service.name.as_str(), found.entry_port, found.public_port), ("web", 8000, 9000));
        let db = &found.services[1];
        assert_eq!((db.role, db.stores[0].path.as_str()), (Role::Postgres, "/var/lib/postgresql/data"));
        assert_eq!(
            db.account,
            DatabaseAccount { user: "postgres".to_owned(), password: "pw".to_owned(), database: "postgres".to_owned() }
        );
        assert_eq!(db.runs, Some((vec!["docker-entrypoint.sh".to_owned()], vec!["postgres".to_owned()])));
        assert_eq!(found.services[0].stores[0].name, "web-up");
        let order: Vec<&str> = found.in_stop_order().iter().map(|part| part.service.name.as_str()).collect();
        assert_eq!(order, ["web", "db"]);
        assert!(found.is_supervised());
    }

    #[test]
    fn what_was_seen_becomes_stores_and_scratch() {
        let seen = ObservedContainer {
            changed: [
                "/srv",
                "/srv/notes",
                "/srv/notes/a.txt",
                "/srv/notes/b.txt",
                "/srv/app.sqlite3",
                "/var/log/x/y.log",
                "/etc/mtab",
                "/root/.ash_history",
            ]
            .map(str::to_owned)
            .to_vec(),
            processes: vec!["python3 -m app".to_owned()],
            listens: vec![5000],
            ..ObservedContainer::default()
        };
        let service = ComposeService { name: "web".to_owned(), seen: Some(seen), ..ComposeService::default() };
        let found = of(&[service], None, 8080).expect("a proposal");
        let stores: Vec<(&str, &str)> =
            found.services[0].stores.iter().map(|store| (store.kind, store.path.as_str())).collect();
        assert_eq!(stores, [("directory", "/srv/notes"), ("sqlite", "/srv/app.sqlite3")]);
        assert!(found.services[0].scratch.iter().any(|(path, ..)| path == "/var/log"));
        assert_eq!(found.entry_port, 5000);
        assert!(!found.is_supervised());
        assert_eq!(found.services[0].uncovered, ["/etc/mtab"]);
        assert!(found.notes().iter().any(|note| note.contains("/etc/mtab")), "{:?}", found.notes());
    }

    #[test]
    fn a_file_beside_a_volume_makes_a_store_of_its_folder() {
        let seen = ObservedContainer {
            changed: ["/srv", "/srv/last.txt", "/data.txt"].map(str::to_owned).to_vec(),
            ..ObservedContainer::default()
        };
        let service = ComposeService {
            name: "web".to_owned(),
            volumes: vec!["/srv/state".to_owned()],
            seen: Some(seen),
            ..ComposeService::default()
        };
        let found = of(&[service], None, 8080).expect("a proposal");
        // The volume lies in the folder, and its content belongs to the same store.
        let stores: Vec<(&str, &str)> =
            found.services[0].stores.iter().map(|store| (store.name.as_str(), store.path.as_str())).collect();
        assert_eq!(stores, [("web-srv", "/srv")]);
        assert!(found.services[0].stores[0].reason.contains("/srv/last.txt"));
        assert_eq!(found.services[0].uncovered, ["/data.txt"]);
    }
}
