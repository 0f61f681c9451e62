//! The schema of the database: the migrations that lead to it.
//!
//! They are listed here instead of by `sqlx::migrate!`, because that macro makes cargo compile the drivers of all databases
//! a second time, for the compiler.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// A file of `migrations/`: its name without `.sql`, and its text.
type MigrationFile = (&'static str, &'static str);

macro_rules! migration {
    ($name:literal) => {
        ($name, include_str!(concat!("migrations/", $name, ".sql")))
    };
}

const FILES: &[MigrationFile] = &[
    migration!("0001_first"),
    migration!("0002_health"),
    migration!("0003_serving"),
    migration!("0004_state"),
    migration!("0005_digests"),
    migration!("0006_sessions"),
    migration!("0007_writes"),
    migration!("0010_standbys"),
    migration!("0012_imports"),
    migration!("0013_engines"),
    migration!("0014_times"),
    migration!("0016_compared"),
    migration!("0020_one_row_per_reset"),
    migration!("0021_numbers_only_grow"),
    migration!("0025_import_outlines"),
    migration!("0026_episodes"),
    migration!("0027_forks"),
    migration!("0028_episode_records"),
    migration!("0029_record_beginnings"),
    migration!("0030_asked_resets"),
    migration!("0031_site_generations"),
    migration!("0032_episode_evaluations"),
    migration!("0033_episode_replays"),
];

/// Returns the migrations. A file's name is its version, `_`, and its description.
pub(crate) fn migrator() -> Migrator {
    let migration = |(name, sql): &MigrationFile| {
        let (version, description) = name.split_once('_')?;
        let description = description.replace('_', " ");
        let kind = MigrationType::Simple;
        Some(Migration::new(version.parse().ok()?, description.into(), kind, sql.into_sql_str(), false))
    };
    Migrator::with_migrations(FILES.iter().filter_map(migration).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_migration() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/migrations")).expect("the folder");
        let mut files: Vec<_> =
            folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        files.sort();
        let listed: Vec<_> = FILES.iter().map(|(name, _)| format!("{name}.sql")).collect();
        assert_eq!(files, listed);
        assert_eq!(migrator().iter().count(), files.len(), "every name begins with a version");
    }
}
