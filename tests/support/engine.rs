//! Access to a Docker engine through its own client, independent of arenad's code.

use std::process::Command;

/// An engine that tests inspect.
#[derive(Debug, Clone)]
pub struct TestEngine {
    host: Option<String>,
}

impl TestEngine {
    /// The machine's engine. A test that needs it fails if there is none.
    pub fn of_the_machine() -> Self {
        let engine = Self { host: None };
        engine.docker(&["version", "--format", "{{.Server.Version}}"]);
        engine
    }

    /// An engine behind a socket.
    pub fn at(socket: &std::path::Path) -> Self {
        Self { host: Some(format!("unix://{}", socket.display())) }
    }

    /// The address in the format of `DOCKER_HOST`.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Runs the client; panics unless it succeeds.
    pub fn docker(&self, args: &[&str]) -> String {
        let ran = match self.try_docker(args) {
            // Another test has just removed a shared layer of the builder's cache.
            Err(said) if args[0] == "build" && said.contains("unable to find image \"sha256:") => self.try_docker(args),
            ran => ran,
        };
        match ran {
            Ok(output) => output,
            Err(said) => panic!("docker {}: {said}", args.join(" ")),
        }
    }

    /// Runs the client; the error is its error output.
    pub fn try_docker(&self, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new("docker");
        command.args(args);
        if let Some(host) = &self.host {
            command.env("DOCKER_HOST", host);
        }
        let output = command.output().map_err(|error| format!("run docker: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The full ids of containers with a label, running or not.
    pub fn containers(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        sorted(&self.docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]))
    }

    /// The names of networks with a label.
    pub fn networks(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        sorted(&self.docker(&["network", "ls", "--filter", &filter, "--format", "{{.Name}}"]))
    }

    /// The names of the networks that a container is attached to.
    pub fn networks_of(&self, container: &str) -> Vec<String> {
        let names = "{{range $name, $_ := .NetworkSettings.Networks}}{{println $name}}{{end}}";
        sorted(&self.docker(&["inspect", "--format", names, container]))
    }

    /// The names of the volumes that a container mounts.
    pub fn volumes_of(&self, container: &str) -> Vec<String> {
        let names = "{{range .Mounts}}{{if eq .Type \"volume\"}}{{println .Name}}{{end}}{{end}}";
        sorted(&self.docker(&["inspect", "--format", names, container]))
    }

    /// The names of volumes with a label.
    pub fn volumes(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        sorted(&self.docker(&["volume", "ls", "--filter", &filter, "--format", "{{.Name}}"]))
    }

    /// The ids of images with a label.
    pub fn images(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        sorted(&self.docker(&["images", "--quiet", "--no-trunc", "--filter", &filter]))
    }

    /// Removes all objects with a label, and images by reference. Failures are ignored, because this is a clean-up.
    pub fn sweep(&self, label: &str, references: &str) {
        let all = |args: &[&str]| self.try_docker(args).unwrap_or_default();
        let filter = format!("label={label}");
        let kinds: [(&[&str], &[&str]); 4] = [
            (&["ps", "--all", "--quiet", "--filter"], &["rm", "--force", "--volumes"]),
            (&["network", "ls", "--quiet", "--filter"], &["network", "rm"]),
            (&["volume", "ls", "--quiet", "--filter"], &["volume", "rm", "--force"]),
            (&["images", "--quiet", "--no-trunc", "--filter"], &["rmi"]),
        ];
        let reference = format!("reference={references}");
        let images: (&[&str], &[&str]) = (&["images", "--quiet", "--no-trunc", "--filter"], &["rmi"]);
        let steps = kinds.into_iter().map(|(list, remove)| (list, remove, filter.as_str()));
        for (list, remove, filter) in steps.chain([(images.0, images.1, reference.as_str())]) {
            let found = all(&[list, &[filter]].concat());
            let mut found: Vec<&str> = found.lines().collect();
            found.sort_unstable();
            found.dedup();
            if !found.is_empty() {
                let _ = self.try_docker(&[remove, &found].concat());
            }
        }
    }
}

fn sorted(lines: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
