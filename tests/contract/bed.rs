//! The environment of a case: an engine, a base image, unique names, and a complete clean-up.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arenad_engine::docker::DockerEngine;
use arenad_engine::{
    ContainerSpec, ContainerState, CpuWeight, Engine, EngineError, EngineEvent, EngineHandle, ExecOutput, ImageBuild,
};
use arenad_fake_engine::{FakeEngine, FakeImage, Shell};
use arenad_model::ids::ServiceName;
use arenad_model::service::{HealthCheck, ServiceSpec};
use arenad_model::subnet::Subnet;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};

/// The label of every object of a case, with the bed's name as its value.
pub const LABEL: &str = "dev.arenad.contract";

/// The block of the cases' networks, outside the default block of installations.
const BLOCK: &str = "10.234.0.0/16";

/// A limit that no operation reaches on a slow, busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The content of `/base/file` in the base image.
pub const OF_THE_BASE: &str = "of the base";

/// A script that exits when it is asked to.
pub const OBEYS: &str = "trap 'exit 0' TERM; sleep 1000 & wait";

#[derive(Clone)]
pub struct Bed {
    pub engine: Arc<dyn Engine>,
    /// The bed's name: the value of [`LABEL`], and the beginning of all names.
    pub name: String,
    /// The id of the base image, which has a shell, `/base/file` with `of the base`, and the label `base`.
    pub base: String,
}

/// The properties of a container besides the base image.
#[derive(Debug, Clone, Default)]
pub struct WantedContainer {
    pub image: Option<String>,
    pub script: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub network: Option<String>,
    pub outward: Option<String>,
    pub volumes: BTreeMap<String, (String, bool)>,
    pub binds: BTreeMap<String, std::path::PathBuf>,
    pub tmpfs: Option<String>,
    pub read_only: bool,
    pub health: Option<Vec<String>>,
}

pub fn script(script: &str) -> WantedContainer {
    WantedContainer { script: Some(script.to_owned()), ..WantedContainer::default() }
}

pub fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

impl Bed {
    pub async fn in_memory(case: &str) -> Self {
        let engine = FakeEngine::new();
        engine.clock().enter();
        engine.install_program("shell", Shell.maker());
        let name = format!("contract-{case}");
        let mut image = FakeImage::new(&format!("{name}-base:1"), "shell");
        image.labels = BTreeMap::from([("base".to_owned(), "yes".to_owned()), (LABEL.to_owned(), name.clone())]);
        image.files.insert("/base/file".to_owned(), OF_THE_BASE.into());
        image.files.insert("/base/name".to_owned(), name.clone().into());
        let base = engine.add_image(&image);
        Self { engine: Arc::new(engine), name, base }
    }

    pub async fn on_docker(case: &str) -> Self {
        let endpoint = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
        let engine = DockerEngine::new(&endpoint);
        let name = format!("contract-{}-{case}", std::process::id());
        let (base, archive) = busybox(&name);
        engine.load(piece(archive), &|_| {}).await.expect("a Docker engine, and an archive that it loads");
        Self { engine: Arc::new(engine), name, base }
    }

    /// Runs a case and cleans up after it, whether or not it panics.
    pub async fn run<F, Fut>(self, case: F)
    where
        F: FnOnce(Self) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let outcome = tokio::spawn(case(self.clone())).await;
        self.clean_up().await;
        if let Err(failed) = outcome {
            std::panic::resume_unwind(failed.into_panic());
        }
    }

    async fn clean_up(&self) {
        let engine = self.engine.as_ref();
        for found in engine.containers(LABEL, &self.name).await.unwrap_or_default() {
            let _ = engine.remove(&found.handle).await;
        }
        for found in engine.networks(LABEL, &self.name).await.unwrap_or_default() {
            let _ = engine.remove_network(&found.name).await;
        }
        for found in engine.volumes(LABEL, &self.name).await.unwrap_or_default() {
            let _ = engine.remove_volume(&found.name).await;
        }
        // An image is removed after the images that are based on it.
        for _ in 0..5 {
            for found in engine.images(LABEL, Some(&self.name)).await.unwrap_or_default() {
                let _ = engine.remove_image(&found.id).await;
            }
        }
    }

    /// Returns a name that no other case uses.
    pub fn named(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    /// Returns the label that finds every object of this bed, together with other labels.
    pub fn labels(&self, more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = (LABEL.to_owned(), self.name.clone());
        std::iter::once(own).chain(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))).collect()
    }

    /// Builds an image of files, named after the bed.
    pub async fn build(
        &self,
        part: &str,
        dockerfile: &str,
        files: &[(&str, &[u8])],
    ) -> Result<arenad_engine::Image, EngineError> {
        self.build_target(part, dockerfile, files, None, &|_| {}).await
    }

    pub async fn build_target(
        &self,
        part: &str,
        dockerfile: &str,
        files: &[(&str, &[u8])],
        target: Option<&str>,
        progress: arenad_engine::ProgressSink<'_>,
    ) -> Result<arenad_engine::Image, EngineError> {
        let all = files.iter().copied().chain([("Dockerfile", dockerfile.as_bytes())]);
        let build = ImageBuild {
            tag: &format!("{}:1", self.named(part)),
            context: tar_of(all).into(),
            dockerfile: "Dockerfile",
            args: &BTreeMap::from([("WORD".to_owned(), "given".to_owned())]),
            target,
            labels: self.labels(&[]),
        };
        self.engine.build(build, progress).await
    }

    /// Creates a network; returns its name and range.
    pub async fn network(&self, part: &str) -> (String, Subnet) {
        let name = self.named(part);
        loop {
            let subnet = self.free_subnet().await;
            match self.engine.create_network(&name, subnet, false, &self.labels(&[])).await {
                Ok(()) => return (name, subnet),
                // Another case took the range first.
                Err(EngineError::Refused { message, .. }) if message.contains("overlap") => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    pub async fn free_subnet(&self) -> Subnet {
        let taken = self.engine.subnets().await.expect("a list");
        let start = self.name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let block = BLOCK.parse().expect("a range");
        Subnet::first_free(block, Subnet::INSTANCE_PREFIX, &taken, start % 4096).expect("a free range")
    }

    /// Creates a container in the named network, or in a new network of the bed.
    pub async fn create(&self, part: &str, wanted: WantedContainer) -> EngineHandle {
        self.try_create(part, wanted).await.expect("a container")
    }

    pub async fn try_create(&self, part: &str, wanted: WantedContainer) -> Result<EngineHandle, EngineError> {
        let network = match &wanted.network {
            Some(network) => network.clone(),
            None => {
                let name = self.named("net");
                let own = self.engine.networks(LABEL, &self.name).await.expect("a list");
                if !own.iter().any(|found| found.name == name) {
                    self.network("net").await;
                }
                name
            }
        };
        let service = service(&wanted);
        let spec = ContainerSpec {
            name: self.named(part),
            image: wanted.image.unwrap_or_else(|| self.base.clone()),
            service: &service,
            labels: wanted.labels.into_iter().chain(self.labels(&[])).collect(),
            network,
            outward: wanted.outward,
            volumes: wanted.volumes,
            binds: wanted.binds,
            environment: BTreeMap::new(),
            weight: CpuWeight::Serving,
            keeps_stores_in_layer: false,
        };
        self.engine.create(&spec).await
    }

    /// Creates a container and starts it.
    pub async fn start(&self, part: &str, wanted: WantedContainer) -> EngineHandle {
        let handle = self.create(part, wanted).await;
        self.engine.start(&handle).await.expect("it starts");
        handle
    }

    /// Starts a container that exits when it is asked to, and waits until its handler is installed.
    pub async fn obedient(&self, part: &str, wanted: WantedContainer) -> EngineHandle {
        let wanted = WantedContainer { script: Some(format!("echo set; {OBEYS}")), ..wanted };
        let handle = self.start(part, wanted).await;
        self.until_said(&handle, "set").await;
        handle
    }

    /// Waits until a container has logged a word.
    pub async fn until_said(&self, handle: &EngineHandle, word: &str) {
        let range = arenad_engine::LogRange { tail: None, since: None, follow: true, timestamps: false };
        let mut log = self.engine.logs(handle, range);
        let mut said = String::new();
        let reading = async {
            while !said.contains(word) {
                let chunk = log.next().await.expect("it goes on").expect("a log");
                said.push_str(&String::from_utf8_lossy(&chunk.bytes));
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("it says so in time");
    }

    /// Finds a container of this bed by its name.
    pub async fn find(&self, part: &str) -> EngineHandle {
        let found = self.engine.containers(LABEL, &self.name).await.expect("a list");
        found.into_iter().find(|found| found.name == self.named(part)).expect("it is there").handle
    }

    pub async fn state(&self, handle: &EngineHandle) -> ContainerState {
        self.engine.inspect(handle).await.expect("it is there").state
    }

    /// Waits until a container has exited; returns its code.
    pub async fn ended(&self, handle: &EngineHandle) -> i64 {
        let looking = async {
            loop {
                if let ContainerState::Exited(code) = self.state(handle).await {
                    return code;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it ends in time")
    }

    /// Runs a script in a container.
    pub async fn sh(&self, handle: &EngineHandle, script: &str) -> ExecOutput {
        self.engine.exec(handle, &shell(script), None, PATIENCE).await.expect("it runs")
    }

    /// Returns the content of a file of a running container.
    pub async fn read(&self, handle: &EngineHandle, path: &str) -> String {
        let output = self.sh(handle, &format!("cat {path}")).await;
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    }

    /// Returns the next `count` events of the bed, without those of commands.
    pub async fn next(&self, events: &mut arenad_engine::EngineStream<EngineEvent>, count: usize) -> Vec<EngineEvent> {
        let mut found = Vec::new();
        while found.len() < count {
            let next = tokio::time::timeout(PATIENCE, events.next()).await;
            let event = next.unwrap_or_else(|_| panic!("no more events than {found:#?}")).expect("they go on");
            found.push(event.expect("no error"));
        }
        found
    }
}

fn service(wanted: &WantedContainer) -> ServiceSpec {
    let tmpfs = wanted.tmpfs.iter();
    let mounts =
        tmpfs.map(|target| arenad_model::service::MountSpec::Tmpfs { target: target.clone(), size_bytes: None });
    let health = |test: &Vec<String>| HealthCheck {
        test: test.clone(),
        interval: Some(Duration::from_millis(200)),
        timeout: Some(Duration::from_secs(10)),
        retries: Some(3),
        start_period: None,
    };
    ServiceSpec {
        command: Some(shell(wanted.script.as_deref().unwrap_or("sleep 1000"))),
        mounts: mounts.collect(),
        health_check: wanted.health.as_ref().map(health),
        read_only: wanted.read_only,
        ..ServiceSpec::new(ServiceName::parse("web").expect("a name"), "")
    }
}

/// An image of busybox in the format of `docker save`, and its id. No layer is shared with another bed, because a build
/// fails if another bed removes a shared layer meanwhile.
fn busybox(name: &str) -> (String, Vec<u8>) {
    let digest = |content: &[u8]| arenad_model::hex::hex(&Sha256::digest(content));
    let mut layer = tar::Builder::new(Vec::new());
    layer.append_path_with_name("/bin/busybox", "bin/busybox").expect("a static busybox");
    for link in ["sh", "cat", "echo", "id", "mkdir", "rm", "sleep", "test", "true", "false"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        layer.append_link(&mut header, format!("bin/{link}"), "busybox").unwrap();
    }
    for (path, content) in [("base/file", OF_THE_BASE), ("base/name", name)] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        layer.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    let layer = layer.into_inner().unwrap();
    let config = serde_json::json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Labels": { "base": "yes", LABEL: name }, "Env": ["PATH=/bin"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))] },
    });
    let config = config.to_string();
    let id = digest(config.as_bytes());
    let manifest = serde_json::json!([
        { "Config": format!("{id}.json"), "RepoTags": [format!("{name}-base:1")], "Layers": ["layer/layer.tar"] },
    ]);
    let manifest = manifest.to_string();
    let config_name = format!("{id}.json");
    let files = [
        (config_name.as_str(), config.as_bytes()),
        ("layer/layer.tar", layer.as_slice()),
        ("manifest.json", manifest.as_bytes()),
    ];
    (format!("sha256:{id}"), tar_of(files))
}

/// Returns an archive of files.
pub fn tar_of<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8])>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Lists the entries of an archive: path, mode, owner, content.
pub fn untar(archive: &[u8]) -> Vec<(String, u32, u64, String)> {
    let mut archive = tar::Archive::new(archive);
    let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        let (mode, owner) = (entry.header().mode().unwrap() & 0o7777, entry.header().uid().unwrap());
        let mut content = String::new();
        std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
        (path, mode, owner, content)
    };
    archive.entries().unwrap().map(read).collect()
}

/// Returns a stream of one piece.
pub fn piece(
    content: Vec<u8>,
) -> std::pin::Pin<Box<dyn futures_util::Stream<Item = std::io::Result<bytes::Bytes>> + Send>> {
    Box::pin(futures_util::stream::iter([Ok(bytes::Bytes::from(content))]))
}

/// Reads a stream to its end.
pub async fn whole(mut stream: arenad_engine::EngineStream<bytes::Bytes>) -> Result<Vec<u8>, EngineError> {
    let mut found = Vec::new();
    while let Some(chunk) = stream.next().await {
        found.extend_from_slice(&chunk?);
    }
    Ok(found)
}

/// Returns a folder that containers may mount.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}
