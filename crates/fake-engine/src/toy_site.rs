//! A minimal site: it stores entries in all the places where sites keep state, and lists them on one page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::program::{
    CommandOutcome, ContainerView, ProcessLife, Program, ProgramMaker, ProgramRequest, ProgramResponse, Termination,
};

/// The configuration of a toy site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToySite {
    /// Port that the site listens on.
    pub port: u16,
    /// Folder of its declared store.
    pub store: String,
    /// Folder of the container's own layer that it writes to.
    pub layer: String,
    /// Time from the start until the site listens.
    pub boot: Duration,
    /// Time from a request to stop until the process ends. If it is `None`, the process ignores the request and is
    /// killed.
    pub stop: Option<Duration>,
    /// Duration of `stop-writers` and `start-writers`.
    pub commands: Duration,
    /// Whether the process that holds entries in memory survives `stop-writers`.
    pub keeps_memory: bool,
}

impl Default for ToySite {
    fn default() -> Self {
        Self {
            port: 80,
            store: "/data".to_owned(),
            layer: "/root".to_owned(),
            boot: Duration::ZERO,
            stop: Some(Duration::ZERO),
            commands: Duration::ZERO,
            keeps_memory: false,
        }
    }
}

impl ToySite {
    /// Returns the maker of the program, for [`super::FakeEngine::install_program`].
    ///
    /// Pages: `GET /` lists all entries as `KIND/NAME=VALUE`, one per line, sorted; `GET /KIND/NAME` returns one entry,
    /// or 404. `POST /data/NAME`, `POST /layer/NAME` and `POST /memory/NAME` write the body as an entry to the store,
    /// the container's own layer and the process's memory. Between the commands `stop-writers` and `start-writers`
    /// every request is answered with 503.
    ///
    /// The store is read when the process starts and at `start-writers`. In between, the site uses its copy in memory,
    /// like a database with a cache.
    pub fn maker(self) -> ProgramMaker {
        Arc::new(move || {
            Box::new(RunningToySite {
                site: self.clone(),
                data: BTreeMap::new(),
                memory: BTreeMap::new(),
                rests: false,
            })
        })
    }
}

struct RunningToySite {
    site: ToySite,
    data: BTreeMap<String, String>,
    memory: BTreeMap<String, String>,
    /// Whether the writers are stopped.
    rests: bool,
}

fn entries(inside: &ContainerView<'_>, folder: &str) -> BTreeMap<String, String> {
    let read = |name: String| {
        let content = inside.read(&format!("{folder}/{name}"))?;
        Some((name, String::from_utf8_lossy(&content).into_owned()))
    };
    inside.list(folder).into_iter().filter_map(read).collect()
}

impl RunningToySite {
    fn all(&self, inside: &ContainerView<'_>) -> BTreeMap<String, String> {
        let layer = entries(inside, &self.site.layer);
        let kinds = [("data", &self.data), ("layer", &layer), ("memory", &self.memory)];
        let named = kinds.into_iter().flat_map(|(kind, entries)| {
            entries.iter().map(move |(name, value)| (format!("{kind}/{name}"), value.clone()))
        });
        named.collect()
    }

    fn write(&mut self, path: &str, value: &str, inside: &mut ContainerView<'_>) -> std::io::Result<bool> {
        let Some((kind, name)) = path.split_once('/').filter(|(_, name)| !name.is_empty() && !name.contains('/'))
        else {
            return Ok(false);
        };
        match kind {
            "data" => {
                inside.write(&format!("{}/{name}", self.site.store), value.to_owned())?;
                self.data.insert(name.to_owned(), value.to_owned());
            }
            "layer" => inside.write(&format!("{}/{name}", self.site.layer), value.to_owned())?,
            "memory" => drop(self.memory.insert(name.to_owned(), value.to_owned())),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Program for RunningToySite {
    fn start(&mut self, inside: &mut ContainerView<'_>) -> ProcessLife {
        self.memory.clear();
        self.rests = false;
        self.data = entries(inside, &self.site.store);
        inside.print(false, "toy site: started");
        ProcessLife::Serves
    }

    fn is_listening(&self, port: u16, uptime: Duration) -> bool {
        port == self.site.port && uptime >= self.site.boot
    }

    fn is_healthy(&self, uptime: Duration) -> bool {
        uptime >= self.site.boot && !self.rests
    }

    fn answer(&mut self, request: &ProgramRequest, inside: &mut ContainerView<'_>) -> ProgramResponse {
        if self.rests {
            return ProgramResponse::text(503, "the writers are stopped\n");
        }
        let path = request.path.split('?').next().unwrap_or_default().trim_start_matches('/');
        match (request.method.as_str(), path) {
            ("GET" | "HEAD", "") => {
                let lines = self.all(inside).into_iter().map(|(name, value)| format!("{name}={value}\n"));
                ProgramResponse::text(200, lines.collect::<String>())
            }
            ("GET" | "HEAD", path) => match self.all(inside).remove(path) {
                Some(value) => ProgramResponse::text(200, value),
                None => ProgramResponse::text(404, "no such entry\n"),
            },
            ("POST", path) => match self.write(path, &String::from_utf8_lossy(&request.body), inside) {
                Ok(true) => ProgramResponse::text(200, "written\n"),
                Ok(false) => ProgramResponse::text(404, "no such kind of entry\n"),
                Err(error) => ProgramResponse::text(500, format!("{error}\n")),
            },
            _ => ProgramResponse::text(405, "GET and POST only\n"),
        }
    }

    fn run(&mut self, command: &[String], _user: Option<&str>, inside: &mut ContainerView<'_>) -> CommandOutcome {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let done = CommandOutcome { takes: self.site.commands, ..CommandOutcome::default() };
        match words.as_slice() {
            ["stop-writers"] => {
                self.rests = true;
                done
            }
            ["start-writers"] => {
                self.rests = false;
                self.data = entries(inside, &self.site.store);
                if !self.site.keeps_memory {
                    self.memory.clear();
                }
                done
            }
            ["true"] => CommandOutcome::code(0),
            ["false"] => CommandOutcome::code(1),
            ["cat", path] => match inside.read(path) {
                Some(content) => {
                    CommandOutcome { stdout: String::from_utf8_lossy(&content).into_owned(), ..CommandOutcome::code(0) }
                }
                None => CommandOutcome { stderr: format!("cat: {path}: no such file\n"), ..CommandOutcome::code(1) },
            },
            _ => CommandOutcome { stderr: format!("{command:?}: not found\n"), ..CommandOutcome::code(127) },
        }
    }

    fn terminate(&mut self, _inside: &mut ContainerView<'_>) -> Termination {
        match self.site.stop {
            Some(after) => Termination::Exits { after, code: 0 },
            None => Termination::Ignored,
        }
    }
}
