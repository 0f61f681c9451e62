//! The databases of a site: servers with accounts, and SQLite files.

use super::site_context::SiteContext;
use super::support::{filled, key_name};
use crate::problems::quoted_list;
use crate::raw::environment::{RawDatabase, RawEngine, RawThrough};
use crate::raw::values::Port;
use crate::scope::Scope;
use arenad_model::ids::ServiceName;
use arenad_model::site::{Database, DatabaseAccess, DatabaseEngine, Secret};

pub(super) fn database(site: &SiteContext<'_>, scope: Scope<'_>, name: &str, raw: &RawDatabase) -> Option<Database> {
    key_name(scope, name, "a database");
    let (engine, default_port) = match raw.engine {
        RawEngine::Mariadb | RawEngine::Mysql => (DatabaseEngine::Mysql, 3306),
        RawEngine::Postgres | RawEngine::Postgresql => (DatabaseEngine::Postgres, 5432),
        RawEngine::Sqlite => return file(site, scope, raw),
    };
    if raw.path.is_some() {
        let draft = scope.key("path").key_error("conflict", "a path is given, but the database is a server's");
        draft.help("set `engine: sqlite`, or remove `path`").report();
    }
    let user = needed(scope, "user", raw.user.as_deref(), "the account on the server");
    let database = needed(scope, "database", raw.database.as_deref(), "its name on the server");
    let service = service(site, scope, raw)?;
    let access = access(scope, raw, engine);
    Some(Database {
        access,
        engine,
        service,
        port: raw.port.as_ref().and_then(Port::number).unwrap_or(default_port),
        user: user?,
        password: Secret::new(raw.password.clone().unwrap_or_default()),
        database: database?,
    })
}

/// Reads a SQLite database in a container.
fn file(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawDatabase) -> Option<Database> {
    let of_servers = [
        ("port", raw.port.is_some()),
        ("user", raw.user.is_some()),
        ("password", raw.password.is_some()),
        ("database", raw.database.is_some()),
        ("through", raw.through.is_some()),
        ("client", raw.client.is_some()),
    ];
    for (key, _) in of_servers.iter().filter(|(_, is_given)| *is_given) {
        let draft = scope.key(key).key_error("conflict", format!("a SQLite file has no `{key}`"));
        draft.help("remove it; a file is named by `service` and `path`").report();
    }
    let path = needed(scope, "path", raw.path.as_deref(), "the file's path in the container");
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        scope
            .key("path")
            .error("value", "the path is not absolute")
            .expected("a path such as `/data/app.sqlite3`")
            .report();
    }
    Some(Database {
        access: DatabaseAccess::Tcp,
        engine: DatabaseEngine::Sqlite,
        service: service(site, scope, raw)?,
        port: 0,
        user: String::new(),
        password: Secret::new(String::new()),
        database: path?,
    })
}

/// Reads a key that this kind of database requires.
fn needed(scope: Scope<'_>, key: &str, text: Option<&str>, what: &str) -> Option<String> {
    match text {
        Some(text) => filled(scope.key(key), text, what),
        None if scope.has(key) || scope.is_misspelt(key) => {}
        None => {
            scope.error("missing-key", format!("`{key}` is missing")).expected(format!("`{key}`: {what}")).report();
        }
    }
    text.map(str::to_owned)
}

fn service(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawDatabase) -> Option<ServiceName> {
    match (&raw.service, site.names.as_slice()) {
        (Some(service), _) => site.own_service(scope.key("service"), service),
        (None, [only]) => Some(only.clone()),
        (None, several) => {
            scope
                .error("missing-key", format!("`service` is missing, and the site has {}", several.len()))
                .expected(format!("`service`: one of {}", quoted_list(several.iter().map(ServiceName::as_str))))
                .report();
            None
        }
    }
}

fn access(scope: Scope<'_>, raw: &RawDatabase, engine: DatabaseEngine) -> DatabaseAccess {
    if raw.through != Some(RawThrough::Container) {
        if raw.client.is_some() {
            let draft = scope.key("client").key_error("conflict", "a client is named, but statements go over TCP");
            draft.help("add `through: container`, or remove `client`").report();
        }
        return DatabaseAccess::Tcp;
    }
    let usual = if engine == DatabaseEngine::Mysql { "mysql" } else { "psql" };
    let program = raw.client.clone().unwrap_or_else(|| usual.to_owned());
    filled(scope.key("client"), &program, "the client");
    DatabaseAccess::Client { program }
}
