//! Runs statements through the database client in a container, for servers that listen only on their own loopback
//! address.

use std::time::Duration;

use super::sql::{FirstValue, SqlFailure};
use arenad_engine::{Engine, EngineHandle};
use arenad_model::site::{Database, DatabaseEngine};

/// The separator of columns in an answer. No compared text contains it.
const COLUMN: char = '\t';

pub(crate) async fn run_statement(
    engine: &dyn Engine,
    container: &EngineHandle,
    database: &Database,
    program: &str,
    statement: &str,
    limit: Duration,
) -> Result<FirstValue, SqlFailure> {
    let answer = ask(engine, container, program, &command(database, program, statement), limit).await?;
    Ok(first_value(database.engine, &answer))
}

/// Runs a script and returns its rows. Each row must be a text without line breaks.
pub(super) async fn column(
    engine: &dyn Engine,
    container: &EngineHandle,
    database: &Database,
    program: &str,
    script: &str,
    limit: Duration,
) -> Result<Vec<String>, SqlFailure> {
    let mut command = command(database, program, script);
    // The option turns off escaping (`-r`) or the messages about statements without rows (`-q`).
    let as_they_are = match database.engine {
        DatabaseEngine::Mysql => "-r",
        DatabaseEngine::Postgres | DatabaseEngine::Sqlite => "-q",
    };
    command.insert(1, as_they_are.to_owned());
    let answer = ask(engine, container, program, &command, limit).await?;
    Ok(answer.lines().map(str::to_owned).collect())
}

async fn ask(
    engine: &dyn Engine,
    container: &EngineHandle,
    program: &str,
    command: &[String],
    limit: Duration,
) -> Result<String, SqlFailure> {
    let output = engine.exec(container, command, None, limit).await;
    let output = output.map_err(SqlFailure::Engine)?;
    if output.code != 0 {
        let said = output.stderr.trim().lines().last().unwrap_or("it said nothing").to_owned();
        return Err(SqlFailure::Server(format!("{program} exited with code {}: {said}", output.code)));
    }
    Ok(output.stdout)
}

/// Returns the client's command, with options that make it print rows as lines without headings.
fn command(database: &Database, program: &str, statement: &str) -> Vec<String> {
    let form: &[&str] = match database.engine {
        DatabaseEngine::Mysql => &["-N", "-B", "-e"],
        DatabaseEngine::Postgres | DatabaseEngine::Sqlite => &["-At", "-F", "\t", "-c"],
    };
    let account = account_words(database);
    let words = account.iter().map(String::as_str).chain(form.iter().copied());
    [program].into_iter().chain(words).chain([statement]).map(str::to_owned).collect()
}

/// Returns the arguments with which a client signs in to a database.
pub fn account_words(database: &Database) -> Vec<String> {
    let (user, password, name) = (&database.user, database.password.expose(), &database.database);
    let password_option = format!("-p{password}");
    let address = format!("postgresql://{}:{}@127.0.0.1:{}/{name}", encoded(user), encoded(password), database.port);
    let words: Vec<&str> = match database.engine {
        DatabaseEngine::Mysql if password.is_empty() => vec!["-u", user, name],
        DatabaseEngine::Mysql => vec!["-u", user, &password_option, name],
        // Without a password, the server authenticates the account by the client's socket.
        DatabaseEngine::Postgres if password.is_empty() => vec!["-U", user, "-d", name],
        DatabaseEngine::Postgres => vec![&address],
        // A file has no accounts, and no client is run for it.
        DatabaseEngine::Sqlite => vec![name],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// Percent-encodes a text for use in a URL.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

fn first_value(engine: DatabaseEngine, answer: &str) -> FirstValue {
    let value = answer.lines().next()?.split(COLUMN).next()?;
    let null = match engine {
        DatabaseEngine::Mysql => "NULL",
        DatabaseEngine::Postgres | DatabaseEngine::Sqlite => "",
    };
    Some((value != null).then(|| value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::ids::ServiceName;
    use arenad_model::site::{DatabaseAccess, Secret};

    fn database(engine: DatabaseEngine, password: &str) -> Database {
        Database {
            engine,
            service: ServiceName::parse("db").expect("valid"),
            port: 5432,
            user: "me".into(),
            password: Secret::new(password),
            database: "shop".into(),
            access: DatabaseAccess::Tcp,
        }
    }

    #[test]
    fn each_client_gets_the_account_in_its_own_form() {
        let words = |engine, password| command(&database(engine, password), "client", "select 1").join(" ");
        assert_eq!(words(DatabaseEngine::Mysql, "x y"), "client -u me -px y shop -N -B -e select 1");
        assert_eq!(words(DatabaseEngine::Postgres, ""), "client -U me -d shop -At -F \t -c select 1");
        let address = "client postgresql://me:p%40ss@127.0.0.1:5432/shop -At -F \t -c select 1";
        assert_eq!(words(DatabaseEngine::Postgres, "p@ss"), address);
    }

    #[test]
    fn no_row_and_a_row_of_nothing_are_told_apart() {
        assert_eq!(first_value(DatabaseEngine::Mysql, ""), None);
        assert_eq!(first_value(DatabaseEngine::Mysql, "NULL\n"), Some(None));
        assert_eq!(first_value(DatabaseEngine::Postgres, "\n"), Some(None));
        assert_eq!(first_value(DatabaseEngine::Postgres, "t\tx\nf\n"), Some(Some("t".into())));
    }
}
