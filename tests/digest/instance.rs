//! A running instance of a site, whose digest the library takes as the daemon would.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use arenad_definition as definition;
use arenad_digest::{self as digest, Known, StoreConnections, Subject, Taken};
use arenad_engine::docker::DockerEngine;
use arenad_engine::{Engine, EngineHandle};
use arenad_launch::Incarnation;
use arenad_model::configure::ExecStep;
use arenad_model::ids::ServiceName;
use arenad_model::site::Site;
use tempfile::TempDir;

use crate::arena::Arena;

/// The current containers of a site and their metadata.
pub struct TestInstance {
    engine: DockerEngine,
    pub site: Site,
    incarnation: Incarnation,
    folders: BTreeMap<(ServiceName, String), PathBuf>,
    /// The folder for copies of files that confined processes read.
    copies: TempDir,
    pub lines: StoreConnections,
}

impl TestInstance {
    /// Finds the site's current containers.
    pub fn of(arena: &Arena, site: &str) -> Self {
        Self::of_containers(declared(site), arena.containers(site))
    }

    fn of_containers(site: Site, containers: Vec<(String, String)>) -> Self {
        arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
        let mut incarnation = Incarnation {
            generation: 1,
            made: 1,
            containers: BTreeMap::new(),
            addresses: BTreeMap::new(),
            started_at: 0,
            pristine: None,
        };
        let mut folders = BTreeMap::new();
        for (service, id) in containers {
            let name = ServiceName::parse(&service).expect("a service");
            let format = "{{.State.Pid}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
            let said = docker(&["inspect", "--format", format, &id]);
            let (pid, address) = said.split_once(' ').expect("two words");
            incarnation.addresses.insert(name.clone(), address.parse().expect("an address"));
            incarnation.containers.insert(name.clone(), EngineHandle(id.clone()));
            for (_, folder) in site.state_mounts().into_iter().filter(|(of, _)| *of == name) {
                let seen = PathBuf::from(format!("/proc/{pid}/root{folder}"));
                folders.insert((name.clone(), folder), seen);
            }
        }
        let endpoint = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
        let copies = tempfile::tempdir().expect("a folder");
        let engine = DockerEngine::new(&endpoint);
        Self { engine, site, incarnation, folders, copies, lines: StoreConnections::kept() }
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject {
            engine: &self.engine,
            site: &self.site,
            incarnation: &self.incarnation,
            folders: &self.folders,
            copies: self.copies.path(),
            lines: &self.lines,
            started: None,
        }
    }

    /// Takes a digest and returns its duration.
    pub async fn take(&self, known: Known<'_>) -> (Taken, Duration) {
        let begun = Instant::now();
        let taken = digest::take(&self.subject(), known).await;
        let taken =
            taken.unwrap_or_else(|error| panic!("{}: {}", self.site.name, arenad_model::error::describe(&error)));
        (taken, begun.elapsed())
    }

    /// Takes a digest, which must not be fit for a snapshot, and returns the error.
    pub async fn refusal(&self) -> String {
        let (taken, _) = self.take(Known::default()).await;
        let checked = digest::check_reference(&self.subject(), &taken).await;
        arenad_model::error::describe(&checked.expect_err("the wrong database"))
    }

    /// Returns the stores that may have been written to since `last`, and the time that this took.
    pub async fn moved(&self, last: &Taken) -> (Vec<String>, Duration) {
        let begun = Instant::now();
        let moved = digest::moved(&self.subject(), last).await;
        let moved =
            moved.unwrap_or_else(|error| panic!("{}: {}", self.site.name, arenad_model::error::describe(&error)));
        (moved, begun.elapsed())
    }

    /// Runs commands of the definition and returns their duration.
    pub async fn run(&self, steps: &[ExecStep]) -> Duration {
        let begun = Instant::now();
        for step in steps {
            let handle = &self.incarnation.containers[&step.service];
            let output = self.engine.exec(handle, &step.command, step.user.as_deref(), step.timeout).await;
            let output = output.unwrap_or_else(|error| panic!("{:?}: {error}", step.command));
            assert_eq!(output.code, 0, "{:?}: {}", step.command, output.stderr);
        }
        begun.elapsed()
    }

    /// Replaces the contents of the stores by those of the image, as a rewind would.
    pub fn restore(&self) {
        for (service, folder) in self.site.state_mounts() {
            let id = &self.incarnation.containers[&service].0;
            let image = docker(&["inspect", "--format", "{{.Image}}", id]);
            let fresh = docker(&["create", &image]);
            docker(&["exec", id, "find", &folder, "-mindepth", "1", "-delete"]);
            let parent = Path::new(&folder).parent().and_then(Path::to_str).expect("a folder has a parent");
            // `docker cp` into a container is refused if its root is read-only. The container's own user owns the
            // stores.
            let copy = format!("docker cp {fresh}:{folder} - | docker exec -i {id} tar -x -C {parent}");
            let copied = Command::new("sh").args(["-c", &copy]).output().expect("docker runs");
            docker(&["rm", "--force", &fresh]);
            assert!(copied.status.success(), "{copy}: {}", String::from_utf8_lossy(&copied.stderr));
        }
    }

    /// Returns the processes that have files of the stores open or mapped.
    pub fn holders(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (service, folder) in self.site.state_mounts() {
            let script = format!(
                "for process in /proc/[0-9]*; do \
                   if {{ ls -l $process/fd; cat $process/maps; }} 2>/dev/null | grep -q ' {folder}/'; then tr '\\0' ' ' <$process/cmdline; echo; fi; done"
            );
            let said = docker(&["exec", &self.incarnation.containers[&service].0, "sh", "-c", &script]);
            found.extend(said.lines().map(str::to_owned));
        }
        found
    }

    /// Runs a command in the container of a service.
    pub fn exec(&self, service: &str, command: &[&str]) -> String {
        let service = ServiceName::parse(service).expect("a service");
        let id = self.incarnation.containers[&service].0.as_str();
        docker(&[&["exec", id], command].concat())
    }
}

/// A container of a site's image without arenad; it is removed when the value is dropped.
pub struct Alone {
    pub instance: TestInstance,
    id: String,
}

impl Alone {
    /// Starts the image of a site with one service and a changed definition, and waits until its stores can be read.
    pub async fn start(site: &str, change: impl FnOnce(&mut Site)) -> Self {
        let mut site = declared(site);
        change(&mut site);
        let service = site.entry.service.to_string();
        let image = site.services[0].image.clone();
        if !is_built(&image) {
            drop(Arena::up(&[site.name.as_str()]));
        }
        let id = docker(&["run", "--detach", "--cap-drop", "ALL", &image]);
        let containers = vec![(service, id.clone())];
        let alone = Self { instance: TestInstance::of_containers(site, containers), id };
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = digest::take(&alone.instance.subject(), Known::default()).await {
            assert!(Instant::now() < deadline, "{}", arenad_model::error::describe(&error));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "--force", "--volumes", &self.id]).output();
    }
}

/// Returns a site of the environment `mini`.
fn declared(name: &str) -> Site {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("environments/mini.yaml");
    let located = definition::locate_file(&file).expect("it exists");
    let sources = definition::read(&located).expect("it reads");
    let loaded = definition::load(&sources, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"));
    let found = loaded.environment.sites.into_iter().find(|site| site.name.as_str() == name);
    found.unwrap_or_else(|| panic!("there is no site {name}"))
}

fn is_built(image: &str) -> bool {
    let looked = Command::new("docker").args(["image", "inspect", image]).output();
    looked.expect("docker runs").status.success()
}

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
