//! The stores of a site, their volatile parts, and their writers.

use std::collections::BTreeMap;

use globset::GlobBuilder;

use super::site_context::SiteContext;
use super::steps::{exactly_one, exec_list};
use super::support::{command, filled, key_name, one_line, positive_period, positive_size};
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::environment::RawSite;
use crate::raw::stores::{RawControl, RawStore, RawStoreKind, RawVolatile};
use crate::raw::values::{OneOrMany, Port};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::ids::ServiceName;
use arenad_model::service::MountSpec;
use arenad_model::site::{Database, DatabaseEngine};
use arenad_model::store::{
    Control, RedisAccess, SQLITE_COMPANIONS, STORE_TIMEOUT, Store, StoreKind, Volatile, VolatilePart, Writers,
    is_within,
};

/// Default port of Redis and Valkey.
const REDIS_PORT: u16 = 6379;

/// Reads the section `stores` of a site, in file order.
pub(super) fn stores(
    site: &SiteContext<'_>,
    scope: Scope<'_>,
    raw: &RawSite,
    databases: &BTreeMap<String, Database>,
) -> Vec<Store> {
    let mut found: Vec<(Scope<'_>, Store)> = Vec::new();
    for (name, part) in raw.stores.iter().flat_map(|stores| stores.iter()) {
        let scope = scope.key(name);
        key_name(scope, name, "a store");
        let reader = StoreReader { site, scope, databases };
        let Some(store) = part.good().and_then(|raw| reader.store(name, raw)) else { continue };
        for (first_scope, first) in &found {
            apart(scope, &store, *first_scope, first);
        }
        mounted(site, scope, &store);
        found.push((scope, store));
    }
    found.into_iter().map(|(_, store)| store).collect()
}

/// Reads the section `writers` of a site.
pub(super) fn writers(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) -> Option<Writers> {
    let section = scope.key("writers");
    let raw_writers = raw.writers.as_ref()?;
    if raw.stores.is_none() && !scope.is_misspelt("stores") {
        section
            .key_error("conflict", "writers are named, but no stores that they write to")
            .help("declare what they write to under `stores`, or remove `writers`")
            .report();
    }
    Some(Writers {
        stop: exec_list(site, section.key("stop"), raw_writers.stop.as_deref()),
        start: exec_list(site, section.key("start"), raw_writers.start.as_deref()),
        control: raw_writers.control.as_ref().and_then(|raw| control(site, section.key("control"), raw)),
    })
}

fn control(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawControl) -> Option<Control> {
    socket_path(scope.key("socket"), &raw.socket, "/run/writers.sock");
    let service = site.service(scope.key("service"), raw.service.as_deref())?;
    Some(Control { service, socket: raw.socket.clone() })
}

/// Refuses a text that cannot be the path of a socket in a container.
fn socket_path(scope: Scope<'_>, path: &str, example: &str) {
    if !path.starts_with('/') {
        scope
            .error("value", format!("invalid socket path `{}`", excerpt(path)))
            .expected(format!("an absolute path, such as `{example}`"))
            .report();
    }
}

struct StoreReader<'a> {
    site: &'a SiteContext<'a>,
    /// Place of the store in the file.
    scope: Scope<'a>,
    databases: &'a BTreeMap<String, Database>,
}

impl StoreReader<'_> {
    fn store(&self, name: &str, raw: &RawStore) -> Option<Store> {
        let kind = self.kind(raw);
        let path = self.path(raw);
        let volatile_scope = self.scope.key("volatile");
        let volatile = raw.volatile.iter().flatten().enumerate();
        let volatile = volatile
            .filter_map(|(index, part)| volatile_part(volatile_scope.index(index), raw.kind, part.good()?))
            .collect();
        let kind = kind?;
        let timeout = positive_period(self.scope.key("timeout"), raw.timeout.as_ref(), STORE_TIMEOUT);
        let limit_bytes = positive_size(self.scope.key("limit"), raw.limit.as_ref());
        let service = self.service(raw, &kind)?;
        Some(Store { name: name.to_owned(), service, path: path?, kind, volatile, timeout, limit_bytes })
    }

    fn kind(&self, raw: &RawStore) -> Option<StoreKind> {
        let is_database = matches!(raw.kind, RawStoreKind::Postgres | RawStoreKind::Mysql | RawStoreKind::Mariadb);
        let is_redis = matches!(raw.kind, RawStoreKind::Redis | RawStoreKind::Valkey);
        let misplaced = [
            ("database", raw.database.is_some() && !is_database, "`postgres` and `mysql`"),
            ("port", raw.port.is_some() && !is_redis, "`redis`"),
            ("socket", raw.socket.is_some() && !is_redis, "`redis`"),
            ("client", raw.client.is_some() && !is_redis, "`redis`"),
        ];
        for (key, _, kinds) in misplaced.into_iter().filter(|(_, is_misplaced, _)| *is_misplaced) {
            let message = format!("`{key}` goes with stores of the kind {kinds} only");
            self.scope.key(key).key_error("conflict", message).report();
        }
        Some(match raw.kind {
            RawStoreKind::Postgres => {
                StoreKind::Postgres { databases: self.read_through(raw, DatabaseEngine::Postgres)? }
            }
            RawStoreKind::Mysql | RawStoreKind::Mariadb => {
                StoreKind::Mysql { databases: self.read_through(raw, DatabaseEngine::Mysql)? }
            }
            RawStoreKind::Sqlite => StoreKind::Sqlite,
            RawStoreKind::Redis | RawStoreKind::Valkey => StoreKind::Redis { access: self.redis(raw)? },
            RawStoreKind::Directory => StoreKind::Directory,
        })
    }

    fn redis(&self, raw: &RawStore) -> Option<RedisAccess> {
        let (socket, client) = (self.scope.key("socket"), self.scope.key("client"));
        let (access, way) = match (&raw.socket, &raw.client) {
            (Some(path), None) => {
                socket_path(socket, path, "/run/valkey.sock");
                (RedisAccess::Socket { path: path.clone() }, ("over its socket", "socket"))
            }
            (None, Some(words)) => {
                command(client, words);
                (RedisAccess::Client { command: words.clone() }, ("through a client", "client"))
            }
            (None, None) => {
                return Some(RedisAccess::Tcp { port: raw.port.as_ref().map_or(Some(REDIS_PORT), Port::number)? });
            }
            (Some(_), Some(_)) => {
                let draft = client.key_error("conflict", "the server is asked over its socket, which needs no client");
                draft.help("remove `client`: a socket is quicker").report();
                return None;
            }
        };
        if raw.port.is_some() {
            let (way, key) = way;
            self.scope
                .key("port")
                .key_error("conflict", format!("the server is asked {way}, which needs no port"))
                .help(format!("remove `port`, or remove `{key}` to ask over the instance's network"))
                .report();
        }
        Some(access)
    }

    /// Returns the keys of the databases through which a server's data folder is read.
    fn read_through(&self, raw: &RawStore, engine: DatabaseEngine) -> Option<Vec<String>> {
        let scope = self.scope.key("database");
        let is_fitting = |name: &&str| self.databases.get(*name).is_none_or(|database| database.engine == engine);
        let fitting: Vec<&str> = self.site.databases.iter().copied().filter(is_fitting).collect();
        let speaks = match engine {
            DatabaseEngine::Mysql => "MySQL",
            DatabaseEngine::Postgres => "PostgreSQL",
            DatabaseEngine::Sqlite => "SQLite",
        };
        let expected = || match fitting.as_slice() {
            [] => format!("a database under the site's `databases` that speaks {speaks}; there is none"),
            some => format!("one of {}", quoted_list(some.iter().copied())),
        };
        let Some(named) = raw.database.as_ref().map(OneOrMany::to_vec) else {
            return match fitting.as_slice() {
                [only] => Some(vec![(*only).to_owned()]),
                _ if self.scope.has("database") => None,
                _ => {
                    let message = "`database` is missing, through which the store is read";
                    self.scope.error("missing-key", message).expected(expected()).report();
                    None
                }
            };
        };
        if named.is_empty() {
            scope.error("value", "the store is read through no database").expected(expected()).report();
        }
        for (index, name) in named.iter().enumerate() {
            let scope = scope.index(index);
            if named[..index].contains(name) {
                scope.error("duplicate-key", format!("`{}` is named twice", excerpt(name))).report();
            } else if !fitting.contains(&name.as_str()) {
                let is_other = self.databases.contains_key(name);
                let message = if is_other {
                    format!("the database `{name}` does not speak {speaks}")
                } else {
                    format!("the site has no database `{}`", excerpt(name))
                };
                scope
                    .error("unknown-database", message)
                    .expected(expected())
                    .maybe_help(did_you_mean(name, fitting.iter().copied()))
                    .report();
            }
        }
        (!named.is_empty()).then_some(named)
    }

    /// Returns the service whose container holds the store. For a server's data folder, it is the service of the
    /// database.
    fn service(&self, raw: &RawStore, kind: &StoreKind) -> Option<ServiceName> {
        let scope = self.scope.key("service");
        let (StoreKind::Postgres { databases } | StoreKind::Mysql { databases }) = kind else {
            return self.site.service(scope, raw.service.as_deref());
        };
        let mut of_databases = databases.iter().filter_map(|name| Some((name, &self.databases.get(name)?.service)));
        let (first, service) = of_databases.next()?;
        if let Some((other, elsewhere)) = of_databases.find(|(_, other)| *other != service) {
            self.scope
                .key("database")
                .error("conflict", format!("`{first}` is a database of `{service}`, `{other}` one of `{elsewhere}`"))
                .help("a store lies in one container: declare one for each server")
                .report();
        }
        if let Some(stated) = raw.service.as_deref()
            && self.site.own_service(scope, stated)? != *service
        {
            scope
                .error("conflict", format!("the store is read through a database of `{service}`, not of `{stated}`"))
                .help("remove `service`, or name another `database`")
                .report();
        }
        Some(service.clone())
    }

    fn path(&self, raw: &RawStore) -> Option<String> {
        let scope = self.scope.key("path");
        let path = raw.path.trim_end_matches('/');
        let is_clean = path.starts_with('/')
            && !path.contains([':', '\0', ','])
            && !path.split('/').skip(1).any(|part| part.is_empty() || part == "." || part == "..");
        let is_file = raw.kind == RawStoreKind::Sqlite;
        if !is_clean || (is_file && raw.path.ends_with('/')) {
            let what = if is_file { "path of a database file" } else { "path of a folder" };
            scope
                .error("value", format!("`{}` is not the {what}", excerpt(&raw.path)))
                .expected("an absolute path inside of the container, other than `/`")
                .report();
            return None;
        }
        if is_file && path.rfind('/') == Some(0) {
            scope
                .error("value", format!("the file `{path}` lies in the container's root folder"))
                .expected("a file in a folder of its own, which arenad can mount")
                .report();
        }
        Some(path.to_owned())
    }
}

/// Refuses two stores at the same path, and a store inside another one that is not a folder of files, because the
/// common part would be restored twice.
fn apart(scope: Scope<'_>, store: &Store, first_scope: Scope<'_>, first: &Store) {
    if store.service != first.service {
        return;
    }
    let is_inside = |inner: &Store, outer: &Store| {
        // SQLite's companion files are part of the database.
        let companions = SQLITE_COMPANIONS.iter().map(|suffix| format!("{}{suffix}", outer.path));
        outer.kind == StoreKind::Sqlite && companions.into_iter().any(|path| path == inner.path)
            || is_within(&inner.path, &outer.path)
    };
    let message = if store.path == first.path {
        format!("the stores `{}` and `{}` are the same place", first.name, store.name)
    } else if first.kind != StoreKind::Directory && is_inside(store, first) {
        format!("the store `{}` lies in `{}`, which is a {} store", store.name, first.name, first.kind.name())
    } else if store.kind != StoreKind::Directory && is_inside(first, store) {
        format!("the store `{}` lies in `{}`, which is a {} store", first.name, store.name, store.kind.name())
    } else {
        return;
    };
    scope
        .key("path")
        .error("conflict", message)
        .expected("places of their own; only stores of the kind `directory` have others in them")
        .related(scope.source(), first_scope.key("path").span(), "the first one")
        .report();
}

/// Refuses a store inside a mount that a reset does not restore.
fn mounted(site: &SiteContext<'_>, scope: Scope<'_>, store: &Store) {
    let Some(service) = site.services.get(store.service.as_str()).and_then(Option::as_ref) else { return };
    for mount in &service.spec.mounts {
        let (target, what) = match mount {
            MountSpec::Volume { .. } => continue,
            MountSpec::Bind { target, .. } => (target, "a file or folder of the host, which is never written"),
            MountSpec::Data { target, .. } => (target, "a folder of the host, which no reset brings back"),
            MountSpec::Tmpfs { target, .. } => (target, "memory, which is empty in every new container"),
        };
        if is_within(&store.path, target) {
            scope
                .key("path")
                .error("conflict", format!("the store lies in `{target}`, where {what}, is mounted"))
                .help(format!("keep it elsewhere, or remove that mount of `{}` in the Compose file", store.service))
                .report();
        }
    }
}

fn volatile_part(scope: Scope<'_>, kind: RawStoreKind, raw: &RawVolatile) -> Option<Volatile> {
    let reason = raw.reason.as_deref().unwrap_or_default();
    if raw.reason.is_some() {
        filled(scope.key("reason"), reason, "the reason");
        one_line(scope.key("reason"), reason, "the reason");
    }
    let key = exactly_one(scope, &["table", "column", "sequence", "file", "key"], "the volatile part")?;
    let parts: &[&str] = match kind {
        RawStoreKind::Postgres => &["table", "column", "sequence"],
        RawStoreKind::Mysql | RawStoreKind::Mariadb | RawStoreKind::Sqlite => &["table", "column"],
        RawStoreKind::Redis | RawStoreKind::Valkey => &["key"],
        RawStoreKind::Directory => &["file"],
    };
    let place = scope.key(key);
    if !parts.contains(&key) {
        let message = format!("a store of this kind has no `{key}` that could be volatile");
        place.key_error("conflict", message).expected(quoted_list(parts.iter().copied())).report();
        return None;
    }
    let text = [&raw.table, &raw.column, &raw.sequence, &raw.file, &raw.key].into_iter().flatten().next()?;
    filled(place, text, &format!("the {key}"));
    let part = match key {
        "table" => VolatilePart::Table(text.clone()),
        "sequence" => VolatilePart::Sequence(text.clone()),
        "column" => column(place, text)?,
        "file" => file(place, text)?,
        _ => VolatilePart::Key(text.clone()),
    };
    Some(Volatile { part, reason: reason.to_owned() })
}

fn column(scope: Scope<'_>, text: &str) -> Option<VolatilePart> {
    match text.rsplit_once('.') {
        Some((table, column)) if !table.is_empty() && !column.is_empty() => {
            Some(VolatilePart::Column { table: table.to_owned(), column: column.to_owned() })
        }
        _ => {
            scope
                .error("value", format!("`{}` does not say of which table it is a column", excerpt(text)))
                .expected("`table.column`")
                .report();
            None
        }
    }
}

fn file(scope: Scope<'_>, text: &str) -> Option<VolatilePart> {
    if text.starts_with('/') {
        scope
            .error("value", format!("`{}` is not relative to the store's folder", excerpt(text)))
            .help(format!("write `{}`", excerpt(text.trim_start_matches('/'))))
            .report();
        return None;
    }
    if let Err(error) = GlobBuilder::new(text).literal_separator(true).build() {
        scope
            .error("value", format!("invalid file pattern `{}`: {}", excerpt(text), error.kind()))
            .expected("a pattern such as `logs/**` or `cache/*.tmp`")
            .report();
        return None;
    }
    Some(VolatilePart::File(text.to_owned()))
}
