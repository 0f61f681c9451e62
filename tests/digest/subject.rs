//! A site of which only the stores are used, in folders that a test creates.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arenad_definition::{self as definition, DefinitionSources, SourceFile};
use arenad_digest::{self as digest, DigestError, Known, StoreConnections, Subject, Taken};
use arenad_engine::docker::DockerEngine;
use arenad_launch::Incarnation;
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;
use tempfile::TempDir;

/// A site whose `/data` is a folder of the test's.
pub struct Stores {
    site: Site,
    folders: BTreeMap<(ServiceName, String), PathBuf>,
    folder: TempDir,
    /// The folder for copies of files that confined processes read.
    copies: TempDir,
}

impl Stores {
    /// Declares stores, in the words of a definition.
    pub fn declared(stores: &str) -> Self {
        arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
        let environment = format!(
            "name: x\nsites:\n  web:\n    entry: {{ port: 80 }}\n    public: {{ port: 7770 }}\n    ready: {{ probes: [ {{ tcp: {{ port: 80 }} }} ] }}\n    stores: {stores}\n"
        );
        let root = tempfile::tempdir().expect("a folder");
        let sources = DefinitionSources {
            root: root.path().to_path_buf(),
            environment: SourceFile::new(Path::new("environments/x.yaml"), environment),
            compose: SourceFile::new(Path::new("compose/x.yaml"), "services: { web: { image: web:1 } }\n".to_owned()),
            dotenv: None,
        };
        let loaded = definition::load(&sources, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"));
        let site = loaded.environment.sites.into_iter().next().expect("a site");
        let folder = tempfile::tempdir().expect("a folder");
        let web = ServiceName::parse("web").expect("valid");
        let folders = BTreeMap::from([((web, "/data".to_owned()), folder.path().to_path_buf())]);
        Self { site, folders, folder, copies: tempfile::tempdir().expect("a folder") }
    }

    /// The folder that the site sees as `/data`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes a digest of everything.
    pub async fn take(&self) -> Result<Taken, DigestError> {
        self.take_knowing(Known::default()).await
    }

    /// Takes a digest of the stores that `known` does not cover.
    pub async fn take_knowing(&self, known: Known<'_>) -> Result<Taken, DigestError> {
        self.with(async |subject| digest::take(&subject, known).await).await
    }

    /// Takes a digest that has a mark: the last change must be older than the resolution of the file system's clock.
    pub async fn take_settled(&self) -> Taken {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let taken = self.take().await.expect("a digest");
            if self.moved(&taken).await.is_empty() {
                return taken;
            }
            assert!(Instant::now() < deadline, "no process writes, and the digest does not settle");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the stores that may have been written to since `last`.
    pub async fn moved(&self, last: &Taken) -> Vec<String> {
        self.with(async |subject| digest::moved(&subject, last).await).await.expect("marks")
    }

    /// Runs a function with the subject of a digest.
    pub async fn with<T>(&self, work: impl AsyncFnOnce(Subject<'_>) -> T) -> T {
        self.on(&StoreConnections::passing(), work).await
    }

    /// Runs a function with the subject and with connections that may be kept. The site's servers are on this host.
    pub async fn on<T>(&self, lines: &StoreConnections, work: impl AsyncFnOnce(Subject<'_>) -> T) -> T {
        // No operation here uses the engine.
        let engine = DockerEngine::new("unix:///nowhere");
        let incarnation = Incarnation {
            generation: 1,
            made: 1,
            containers: BTreeMap::new(),
            addresses: BTreeMap::from([(self.site.entry.service.clone(), Ipv4Addr::LOCALHOST.into())]),
            started_at: 0,
            pristine: None,
        };
        let subject = Subject {
            engine: &engine,
            site: &self.site,
            incarnation: &incarnation,
            folders: &self.folders,
            copies: self.copies.path(),
            lines,
            started: None,
        };
        work(subject).await
    }
}

/// Returns the differences between two digests as text.
pub fn differences(before: &Taken, now: &Taken) -> Vec<String> {
    let comparison = digest::compare(&before.digest, &now.digest);
    comparison.differences.iter().map(ToString::to_string).collect()
}
