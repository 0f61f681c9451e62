//! The account and the database through which the tables of a server are read: from the variables of the Compose file,
//! and from the server itself if it is running.
//!
//! A server usually has several databases, of which the variables may name an empty one. The proposal is therefore
//! compared with the tables that a running server has.

use super::propose::Role;
use super::services::ComposeService;

/// Lists the databases of a PostgreSQL server with the number of their tables, without those of extensions. The arguments
/// are user, password and database. The second attempt reaches servers whose socket lies in another folder.
const POSTGRES: &str = r#"
export PGUSER="${1:-${POSTGRES_USER:-postgres}}" PGPASSWORD="${2:-$POSTGRES_PASSWORD}" PGCONNECT_TIMEOUT=2
ask() { PGDATABASE="$1" psql -XwAt $host -c "$2" 2>/dev/null; }
for host in "" "-h127.0.0.1"; do
    for known in "$3" postgres template1; do
        [ -n "$known" ] || continue
        names=$(ask "$known" "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate") || continue
        printf '%s\n' "$names" | while IFS= read -r name; do
            count=$(ask "$name" "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
                AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')") || continue
            printf '%s\t%s\n' "$count" "$name"
        done
        exit
    done
done
exit 1
"#;

/// The same for MySQL and MariaDB.
const MYSQL: &str = r#"
export MYSQL_PWD="${2:-${MARIADB_ROOT_PASSWORD:-$MYSQL_ROOT_PASSWORD}}"
for client in mariadb mysql; do
    command -v "$client" >/dev/null || continue
    for host in "" "-h127.0.0.1"; do
        "$client" $host -u "${1:-root}" --connect-timeout=2 -N -B -e "SELECT count(t.table_name), s.schema_name
            FROM information_schema.schemata s
            LEFT JOIN information_schema.tables t ON t.table_schema = s.schema_name AND t.table_type = 'BASE TABLE'
            WHERE s.schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
            GROUP BY s.schema_name" 2>/dev/null && exit
    done
done
exit 1
"#;

/// A database of a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedDatabase {
    pub(super) name: String,
    /// The number of tables that the account can see in it.
    pub(super) tables: u64,
}

/// The account through which a database is read completely. Unknown parts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DatabaseAccount {
    pub(super) user: String,
    pub(super) password: String,
    pub(super) database: String,
}

impl DatabaseAccount {
    /// Replaces the database by the one with the most tables, unless it has tables itself.
    fn with_tables(self, seen: &[ObservedDatabase]) -> Self {
        if seen.iter().any(|found| found.name == self.database && found.tables > 0) {
            return self;
        }
        let filled = seen.iter().filter(|found| found.tables > 0);
        match filled.max_by_key(|found| found.tables) {
            Some(found) => Self { database: found.name.clone(), ..self },
            None => self,
        }
    }

    /// Returns the points that a person must review.
    pub(super) fn notes(&self, service: &ComposeService) -> Vec<String> {
        let name = &service.name;
        let mut notes = Vec::new();
        let unknown: Vec<&str> = [
            ("user", self.user.is_empty()),
            // An empty password can be intended, so it is unknown only if nothing else is known either.
            ("password", self.user.is_empty()),
            ("database", self.database.is_empty()),
        ]
        .into_iter()
        .filter_map(|(what, is_unknown)| is_unknown.then_some(what))
        .collect();
        if let Some((last, first)) = unknown.split_last() {
            let what = match first.is_empty() {
                true => (*last).to_owned(),
                false => format!("{} and {last}", first.join(", ")),
            };
            let verb = if first.is_empty() { "is" } else { "are" };
            let it = if first.is_empty() { "it" } else { "them" };
            notes.push(format!("{name}: {what} {verb} unknown; fill {it} in under `databases`."));
        }
        let others: Vec<String> = databases(service)
            .iter()
            .filter(|found| found.tables > 0 && found.name != self.database)
            .map(|found| format!("`{}`", found.name))
            .collect();
        if !others.is_empty() {
            notes.push(format!(
                "{name}: the server also has tables in {}. Add an entry under `databases` for each database that the site \
                 uses, and name all of them in the store.",
                others.join(", ")
            ));
        }
        notes
    }
}

/// Returns the databases that the running server has.
fn databases(service: &ComposeService) -> &[ObservedDatabase] {
    service.seen.as_ref().map(|seen| seen.databases.as_slice()).unwrap_or_default()
}

/// Returns the account for reading a database: user and password from the server's own variables, else from a URL in
/// another service's variables; the database also from the tables of the running server.
pub(super) fn account(service: &ComposeService, role: Role, all: &[ComposeService]) -> DatabaseAccount {
    if !role.speaks_sql() {
        return DatabaseAccount::default();
    }
    let addresses = || all.iter().flat_map(|other| other.environment.values());
    let of_address = addresses().find_map(|address| of_url(address, &service.name));
    let mut stated = of_variables(service, role).or(of_address.clone()).unwrap_or_default();
    if stated.database.is_empty() {
        stated.database = match of_address {
            Some(address) => address.database,
            // PostgreSQL's image names the database after the user.
            None if role == Role::Postgres => stated.user.clone(),
            None => String::new(),
        };
    }
    stated.with_tables(databases(service))
}

/// Returns the account that the official images create from their variables; the database only if it is named.
fn of_variables(service: &ComposeService, role: Role) -> Option<DatabaseAccount> {
    let value = |names: &[&str]| names.iter().find_map(|name| service.environment.get(*name)).cloned();
    match role {
        Role::Postgres => {
            let password = value(&["POSTGRES_PASSWORD"]);
            let user = value(&["POSTGRES_USER"]).or(password.as_ref().map(|_| "postgres".to_owned()))?;
            let database = value(&["POSTGRES_DB"]).unwrap_or_default();
            Some(DatabaseAccount { user, database, password: password.unwrap_or_default() })
        }
        Role::Mariadb | Role::Mysql => {
            let user = value(&["MARIADB_USER", "MYSQL_USER"]);
            let password = value(&["MARIADB_PASSWORD", "MYSQL_PASSWORD"]);
            let root =
                value(&["MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD"]).map(|password| ("root".to_owned(), password));
            let (user, password) = user.zip(password).or(root)?;
            let database = value(&["MARIADB_DATABASE", "MYSQL_DATABASE"]).unwrap_or_default();
            Some(DatabaseAccount { user, password, database })
        }
        Role::Redis | Role::Application => None,
    }
}

/// Parses the account in a database URL of the form `postgresql://user:password@host/database`.
fn of_url(address: &str, host: &str) -> Option<DatabaseAccount> {
    let url = url::Url::parse(address).ok().filter(|url| url.host_str() == Some(host))?;
    let database = url.path().trim_start_matches('/').to_owned();
    let is_whole = !url.username().is_empty() && !database.is_empty();
    is_whole.then(|| DatabaseAccount {
        user: url.username().to_owned(),
        password: url.password().unwrap_or_default().to_owned(),
        database,
    })
}

/// Returns the command that lists the databases of a server from inside its container, and the user of the container as
/// whom a server accepts it without a password. The password is visible in the container's process list meanwhile.
pub(super) fn listing(role: Role, account: &DatabaseAccount) -> Option<(Vec<String>, &'static str)> {
    let (script, superuser) = match role {
        Role::Postgres => (POSTGRES, "postgres"),
        Role::Mariadb | Role::Mysql => (MYSQL, "root"),
        Role::Redis | Role::Application => return None,
    };
    let words = ["/bin/sh", "-c", script, "sh", &account.user, &account.password, &account.database];
    Some((words.map(str::to_owned).to_vec(), superuser))
}

/// Parses the output of [`listing`]: a line for each database, with the number of tables and the name.
pub(super) fn read(listed: &str) -> Vec<ObservedDatabase> {
    let read = |line: &str| {
        let (tables, name) = line.split_once('\t')?;
        Some(ObservedDatabase { name: name.to_owned(), tables: tables.parse().ok()? })
    };
    listed.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::super::services::{ComposeSource, ObservedContainer, of as services_of};
    use super::*;

    fn services(yaml: &str) -> Vec<ComposeService> {
        let root = serde_yaml::from_str(yaml).expect("YAML");
        services_of(&ComposeSource { file: None, root }).expect("services")
    }

    fn seen(service: &mut ComposeService, listed: &str) {
        service.seen = Some(ObservedContainer { databases: read(listed), ..ObservedContainer::default() });
    }

    #[test]
    fn an_account_is_found_in_the_address_that_another_service_has() {
        let all = services(
            "services:
  web: { image: app, environment: { DATABASE_URL: 'postgresql://me:secret@db:5432/mine' } }
  db: { build: ./db, command: [postgres, -D, /data/pg] }
",
        );
        let found = account(&all[1], Role::Postgres, &all);
        let mut owned = all.clone();
        owned[1].environment.insert("POSTGRES_PASSWORD".to_owned(), "pw".to_owned());
        let by_owner = account(&owned[1], Role::Postgres, &owned);
        assert_eq!((by_owner.user.as_str(), by_owner.database.as_str()), ("postgres", "mine"));
        let expected =
            DatabaseAccount { user: "me".to_owned(), password: "secret".to_owned(), database: "mine".to_owned() };
        assert_eq!(found, expected);
        assert_eq!(found.notes(&all[1]), [""; 0]);
    }

    #[test]
    fn the_database_with_tables_wins_over_an_empty_one_that_a_variable_names() {
        let mut all = services("services: { db: { image: 'postgres:16', environment: { POSTGRES_PASSWORD: pw } } }");
        assert_eq!(account(&all[0], Role::Postgres, &all).database, "postgres");
        seen(&mut all[0], "0\tpostgres\n3\tjobs\n40\tforum\nnot a line\n");
        let found = account(&all[0], Role::Postgres, &all);
        assert_eq!(
            (found.user.as_str(), found.password.as_str(), found.database.as_str()),
            ("postgres", "pw", "forum")
        );
        let notes = found.notes(&all[0]);
        assert!(notes.len() == 1 && notes[0].contains("`jobs`") && !notes[0].contains("`postgres`"), "{notes:?}");
        // A named database with tables stays, even if another has more.
        seen(&mut all[0], "1\tpostgres\n40\tforum\n");
        assert_eq!(account(&all[0], Role::Postgres, &all).database, "postgres");
        // A server without any table does not change the proposal.
        seen(&mut all[0], "0\tpostgres\n0\tforum\n");
        assert_eq!(account(&all[0], Role::Postgres, &all).database, "postgres");
    }

    #[test]
    fn an_account_without_a_database_gets_the_one_that_was_seen() {
        let mut all = services("services: { db: { image: 'mariadb:11', environment: { MARIADB_ROOT_PASSWORD: pw } } }");
        let found = account(&all[0], Role::Mariadb, &all);
        assert_eq!((found.user.as_str(), found.database.as_str()), ("root", ""));
        assert!(found.notes(&all[0])[0].contains("database is unknown"), "{:?}", found.notes(&all[0]));
        seen(&mut all[0], "12\tshop\n");
        assert_eq!(account(&all[0], Role::Mariadb, &all).database, "shop");
        let all = services("services: { db: { image: 'mariadb:11' } }");
        let notes = account(&all[0], Role::Mariadb, &all).notes(&all[0]);
        assert!(notes[0].contains("user, password and database are unknown"), "{notes:?}");
    }

    #[test]
    fn only_servers_that_speak_sql_are_asked() {
        let account = DatabaseAccount::default();
        assert!(listing(Role::Redis, &account).is_none() && listing(Role::Application, &account).is_none());
        assert!(listing(Role::Postgres, &account).is_some());
    }
}
