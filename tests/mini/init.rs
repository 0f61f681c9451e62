//! `arenad init --running` on real database servers: the database that has tables is proposed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::arena::shared::SharedArena;

/// The time limit for a server to start and to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A container with the labels that `docker compose up` sets; it is removed when the value is dropped.
struct ComposeContainer(String);

impl ComposeContainer {
    fn run(file: &Path, service: &str, image: &str) -> Self {
        let folder = file.parent().expect("a folder");
        let labels = [
            format!("com.docker.compose.service={service}"),
            format!("com.docker.compose.project.config_files={}", file.display()),
            format!("com.docker.compose.project.working_dir={}", folder.display()),
        ];
        let labels = labels.iter().flat_map(|label| ["--label", label]);
        let output = Command::new("docker").args(["run", "-d"]).args(labels).arg(image).output().expect("docker runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Drop for ComposeContainer {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", "--volumes", &self.0]).output();
    }
}

/// Runs `arenad init --running` until the environment file has a text; returns the notes.
#[track_caller]
fn propose(compose: &str, image: &str, expected: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().canonicalize().expect("a path").join("compose.yaml");
    std::fs::write(&file, compose).expect("write");
    let _container = ComposeContainer::run(&file, "db", image);
    let deadline = Instant::now() + LIMIT;
    loop {
        let output = Command::new(env!("CARGO_BIN_EXE_arenad"))
            .args(["init", "lab", "--force", "--running", "--root"])
            .args([folder.path(), Path::new("--from"), &file])
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let proposed = std::fs::read_to_string(folder.path().join("environments/lab.yaml")).unwrap_or_default();
        if proposed.contains(expected) {
            return said;
        }
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(Instant::now() < deadline, "no {expected:?} in:\n{proposed}\n{said}\n{problem}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_database_with_tables_is_proposed() {
    let arena = SharedArena::with(&["map", "shopping"]);
    let image = arena.image("map-db");
    let compose = format!(
        "services:
  web: {{ image: lab/web, command: [serve], environment: {{ DATABASE_URL: 'postgresql://reader:reader@db/postgres' }} }}
  db: {{ image: '{image}' }}
"
    );
    let notes = propose(&compose, &image, "user: reader, password: reader, database: nominatim }");
    assert!(notes.contains("also has tables in `gis`"), "{notes}");

    let image = arena.image("shopping");
    let compose = format!(
        "services:
  db: {{ image: '{image}', environment: {{ MARIADB_USER: reader, MARIADB_PASSWORD: reader }} }}
"
    );
    propose(
        &compose,
        &image,
        "engine: mariadb, service: db, port: 3306, user: reader, password: reader, database: shop }",
    );
}
