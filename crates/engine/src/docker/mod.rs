//! The Docker engine, through bollard. Only this folder uses bollard, and bollard's types do not appear outside of it.
//!
//! bollard's model types belong to an API later than 1.41, and an older engine ignores fields that it does not know.
//! Therefore only fields that exist in 1.41 are set.

pub mod attach;
mod client;
mod details;
mod images;
mod layers;
mod limits;
mod spec;
mod status;
mod stream;
mod weight;

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::models::{
    ChangeType, ContainerUpdateBody, FilesystemChange, Ipam, IpamConfig, NetworkConnectRequest, NetworkCreateRequest,
    VolumeCreateRequest,
};
use bollard::query_parameters as query;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

pub use self::limits::MEMORY_MIN;

use self::client::gone_is_done;
use crate::{
    ContainerSpec, ContainerStatus, CpuWeight, EVENT_ACTIONS, Engine, EngineDetails, EngineError, EngineEvent,
    EngineHandle, EngineStream, ExecOutput, FoundContainer, Image, ImageBuild, LabelledResource, LayerChange,
    LayerChangeKind, LogChunk, LogRange, OLDEST_API, ProgressSink,
};
use arenad_model::subnet::Subnet;

/// The maximum output that is kept of a command, in bytes per stream; the rest is read and discarded.
pub const EXEC_OUTPUT_MAX: usize = 1 << 20;

/// The time limit of one ordinary call. Builds, pulls and streams have limits of their own.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit of commits and archive transfers, which move whole file systems.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(3600);

/// The time limit for the engine to read an archive of images before it begins to answer: it may have to unpack a
/// hundred gigabytes to a slow disk first.
const LOAD_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A Docker engine behind a socket or an HTTP address.
#[derive(Clone)]
pub struct DockerEngine {
    /// Created at the first call: bollard requires that the socket exists by then, and the engine may be stopped when
    /// the daemon starts.
    client: Arc<OnceLock<Docker>>,
    endpoint: String,
    /// The memory limit of containers whose definition has none, in bytes.
    container_memory: u64,
}

impl DockerEngine {
    /// Stores the engine's address (`unix:///…`, `tcp://…` or `http://…`) without connecting. A container whose
    /// definition has no memory limit gets half of this host's memory.
    pub fn new(endpoint: &str) -> Self {
        let container_memory = limits::default_memory();
        Self { client: Arc::default(), endpoint: endpoint.to_owned(), container_memory }
    }

    /// Sets the memory limit of containers whose definition has none, in bytes.
    pub fn with_container_memory(self, bytes: u64) -> Self {
        Self { container_memory: bytes, ..self }
    }

    /// Removes all networks of one name. Docker 20.10 creates a second one if the first reply was lost and the call is
    /// repeated, and then rejects the name as ambiguous.
    async fn remove_namesakes(&self, doing: &str, name: &str) -> Result<(), EngineError> {
        let filters = HashMap::from([("name".to_owned(), vec![format!("^{name}$")])]);
        let options = query::ListNetworksOptions { filters: Some(filters) };
        let found = self.call(doing, CALL_TIMEOUT, self.docker()?.list_networks(Some(options))).await?;
        for network in found.into_iter().filter(|network| network.name.as_deref() == Some(name)) {
            let id = network.id.unwrap_or_default();
            gone_is_done(self.call(doing, CALL_TIMEOUT, self.docker()?.remove_network(&id)).await)?;
        }
        Ok(())
    }

    async fn list(
        &self,
        filters: Option<HashMap<String, Vec<String>>>,
        all: bool,
    ) -> Result<Vec<FoundContainer>, EngineError> {
        let options = query::ListContainersOptions { all, filters, ..Default::default() };
        let found = self.call("list containers", CALL_TIMEOUT, self.docker()?.list_containers(Some(options))).await?;
        Ok(found
            .into_iter()
            .map(|summary| FoundContainer {
                handle: EngineHandle(summary.id.unwrap_or_default()),
                name: summary
                    .names
                    .and_then(|names| names.into_iter().next())
                    .unwrap_or_default()
                    .trim_start_matches('/')
                    .to_owned(),
                labels: summary.labels.unwrap_or_default().into_iter().collect(),
                image: summary.image_id.unwrap_or_default(),
                running: summary
                    .state
                    .is_some_and(|state| matches!(state.to_string().as_str(), "running" | "paused" | "restarting")),
                created: summary.created.unwrap_or_default(),
                ports: summary.ports.unwrap_or_default().into_iter().filter_map(|port| port.public_port).collect(),
            })
            .collect())
    }
}

fn label_filter(label: &str, value: Option<&str>) -> HashMap<String, Vec<String>> {
    let wanted = value.map_or_else(|| label.to_owned(), |value| format!("{label}={value}"));
    HashMap::from([("label".to_owned(), vec![wanted])])
}

/// Shortens a handle or image id for people.
fn short(id: &str) -> &str {
    let id = id.strip_prefix("sha256:").unwrap_or(id);
    id.get(..12).unwrap_or(id)
}

#[async_trait::async_trait]
impl Engine for DockerEngine {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    async fn ping(&self) -> Result<(), EngineError> {
        self.call("ask whether the engine answers", Duration::from_secs(3), self.docker()?.ping()).await.map(drop)
    }

    async fn details(&self) -> Result<EngineDetails, EngineError> {
        let limit = Duration::from_secs(5);
        let version = self.call("ask the engine's version", limit, self.docker()?.version()).await?;
        let api = version.api_version.unwrap_or_default();
        let parsed = api.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        if parsed.is_none_or(|parsed: (u32, u32)| parsed < OLDEST_API) {
            return Err(EngineError::TooOld { endpoint: self.endpoint.clone(), found: api });
        }
        let info = self.call("ask the engine what it is", limit, self.docker()?.info()).await?;
        Ok(details::read(version.version.unwrap_or_default(), api, info))
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        self.inspect_image(reference).await
    }

    async fn images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError> {
        self.list_images(label, value).await
    }

    async fn pull(&self, reference: &str, progress: ProgressSink<'_>) -> Result<(), EngineError> {
        self.pull_image(reference, progress).await
    }

    async fn load(
        &self,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
        progress: ProgressSink<'_>,
    ) -> Result<(), EngineError> {
        self.load_images(archive, progress).await
    }

    fn save(&self, ids: &[String]) -> EngineStream<Bytes> {
        self.save_images(ids)
    }

    async fn tag(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        self.tag_image(id, repository, tag).await
    }

    async fn untag(&self, name: &str) -> Result<(), EngineError> {
        self.untag_image(name).await
    }

    async fn build(&self, build: ImageBuild<'_>, progress: ProgressSink<'_>) -> Result<Image, EngineError> {
        self.build_image(build, progress).await
    }

    async fn remove_image(&self, id: &str) -> Result<(), EngineError> {
        self.delete_image(id).await
    }

    async fn commit(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError> {
        self.commit_image(handle, repository, tag, labels).await
    }

    async fn create_network(
        &self,
        name: &str,
        subnet: Subnet,
        egress: bool,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), EngineError> {
        // This is the gateway that Docker would choose itself, but it is stated explicitly: a dockerd of 20.10 that is
        // killed while it removes a network whose gateway it has chosen does not start again (`reservePools` of
        // libnetwork looks the gateway up and panics).
        let gateway = Some(subnet.gateway().to_string());
        let range = IpamConfig { subnet: Some(subnet.to_string()), gateway, ..Default::default() };
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".to_owned()),
            internal: Some(!egress),
            ipam: Some(Ipam { config: Some(vec![range]), ..Default::default() }),
            labels: Some(spec::to_hash_map(labels)),
            ..Default::default()
        };
        let doing = format!("create network {name} with {subnet}");
        self.call(doing, CALL_TIMEOUT, self.docker()?.create_network(request)).await.map(drop)
    }

    async fn subnets(&self) -> Result<Vec<Subnet>, EngineError> {
        let call = self.docker()?.list_networks(None::<query::ListNetworksOptions>);
        let found = self.call("list networks", CALL_TIMEOUT, call).await?;
        Ok(found
            .into_iter()
            .filter_map(|network| network.ipam?.config)
            .flatten()
            .filter_map(|config| config.subnet?.parse().ok())
            .collect())
    }

    async fn networks(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        let options = query::ListNetworksOptions { filters: Some(label_filter(label, Some(value))) };
        let found = self.call("list networks", CALL_TIMEOUT, self.docker()?.list_networks(Some(options))).await?;
        Ok(found
            .into_iter()
            .map(|network| LabelledResource {
                name: network.name.unwrap_or_default(),
                labels: network.labels.unwrap_or_default().into_iter().collect(),
            })
            .collect())
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let doing = format!("remove network {name}");
        let removed = self.call(doing.clone(), CALL_TIMEOUT, self.docker()?.remove_network(name)).await;
        match gone_is_done(removed) {
            Err(EngineError::Refused { message, .. }) if message.contains("is ambiguous") => {
                self.remove_namesakes(&doing, name).await
            }
            removed => removed,
        }
    }

    async fn create_volume(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), EngineError> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(spec::to_hash_map(labels)),
            ..Default::default()
        };
        let doing = format!("create volume {name}");
        self.call(doing, CALL_TIMEOUT, self.docker()?.create_volume(request)).await.map(drop)
    }

    async fn volumes(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        let options = query::ListVolumesOptions { filters: Some(label_filter(label, Some(value))) };
        let found = self.call("list volumes", CALL_TIMEOUT, self.docker()?.list_volumes(Some(options))).await?;
        Ok(found
            .volumes
            .unwrap_or_default()
            .into_iter()
            .map(|volume| LabelledResource { name: volume.name, labels: volume.labels.into_iter().collect() })
            .collect())
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let doing = format!("remove volume {name}");
        let options = query::RemoveVolumeOptions { force: true };
        gone_is_done(self.call(doing, CALL_TIMEOUT, self.docker()?.remove_volume(name, Some(options))).await)
    }

    async fn create(&self, spec: &ContainerSpec<'_>) -> Result<EngineHandle, EngineError> {
        let options = query::CreateContainerOptions { name: Some(spec.name.clone()), platform: String::new() };
        let doing = format!("create container {}", spec.name);
        let body = spec::create_body(spec, self.container_memory);
        let created = self.call(doing, CALL_TIMEOUT, self.docker()?.create_container(Some(options), body)).await?;
        if let Some(outward) = &spec.outward {
            let doing = format!("connect container {} to network {outward}", spec.name);
            let request = NetworkConnectRequest { container: created.id.clone(), endpoint_config: None };
            self.call(doing, CALL_TIMEOUT, self.docker()?.connect_network(outward, request)).await?;
        }
        Ok(EngineHandle(created.id))
    }

    async fn start(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        let doing = format!("start container {}", short(&handle.0));
        let call = self.docker()?.start_container(&handle.0, None::<query::StartContainerOptions>);
        self.call(doing, CALL_TIMEOUT, call).await
    }

    async fn stop(&self, handle: &EngineHandle, grace: Duration) -> Result<(), EngineError> {
        let doing = format!("stop container {}", short(&handle.0));
        let options = query::StopContainerOptions { signal: None, t: i32::try_from(grace.as_secs().max(1)).ok() };
        let call = self.docker()?.stop_container(&handle.0, Some(options));
        self.call(doing, grace + CALL_TIMEOUT, call).await
    }

    async fn freeze(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        let doing = format!("freeze container {}", short(&handle.0));
        self.call(doing, CALL_TIMEOUT, self.docker()?.pause_container(&handle.0)).await
    }

    async fn thaw(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        let doing = format!("thaw container {}", short(&handle.0));
        self.call(doing, CALL_TIMEOUT, self.docker()?.unpause_container(&handle.0)).await
    }

    async fn weigh(&self, handle: &EngineHandle, weight: CpuWeight) -> Result<(), EngineError> {
        if weight::set(&handle.0, spec::cpu_shares(weight)) {
            return Ok(());
        }
        let doing = format!("weigh container {}", short(&handle.0));
        let body = ContainerUpdateBody { cpu_shares: Some(spec::cpu_shares(weight)), ..Default::default() };
        self.call(doing, CALL_TIMEOUT, self.docker()?.update_container(&handle.0, body)).await.map(drop)
    }

    async fn remove(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        let doing = format!("remove container {}", short(&handle.0));
        let options = query::RemoveContainerOptions { v: true, force: true, link: false };
        gone_is_done(self.call(doing, CALL_TIMEOUT, self.docker()?.remove_container(&handle.0, Some(options))).await)
    }

    async fn changes(&self, handle: &EngineHandle) -> Result<Vec<LayerChange>, EngineError> {
        let doing = format!("list the changes of container {}", short(&handle.0));
        let found = self.call(doing, CALL_TIMEOUT, self.docker()?.container_changes(&handle.0)).await?;
        let read = |change: FilesystemChange| LayerChange {
            path: change.path,
            kind: match change.kind {
                ChangeType::_0 => LayerChangeKind::Modified,
                ChangeType::_1 => LayerChangeKind::Added,
                ChangeType::_2 => LayerChangeKind::Removed,
            },
        };
        Ok(found.unwrap_or_default().into_iter().map(read).collect())
    }

    async fn inspect(&self, handle: &EngineHandle) -> Result<ContainerStatus, EngineError> {
        let doing = format!("inspect container {}", short(&handle.0));
        let call = self.docker()?.inspect_container(&handle.0, None::<query::InspectContainerOptions>);
        let found = self.call(doing, Duration::from_secs(10), call).await?;
        Ok(status::read(handle, found))
    }

    async fn containers(&self, label: &str, value: &str) -> Result<Vec<FoundContainer>, EngineError> {
        self.list(Some(label_filter(label, Some(value))), true).await
    }

    async fn running(&self) -> Result<Vec<FoundContainer>, EngineError> {
        self.list(None, false).await
    }

    async fn exec_with_input(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        input: Option<Bytes>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError> {
        self.exec_to_end(handle, command, user, input, timeout).await
    }

    fn logs(&self, handle: &EngineHandle, range: LogRange) -> EngineStream<LogChunk> {
        let options = query::LogsOptions {
            follow: range.follow,
            stdout: true,
            stderr: true,
            since: range.since.and_then(|since| i32::try_from(since).ok()).unwrap_or_default(),
            until: 0,
            timestamps: range.timestamps,
            tail: range.tail.map_or_else(|| "all".to_owned(), |tail| tail.to_string()),
        };
        // The stream borrows the client, so it owns a clone (a handle to the same connection pool).
        let engine = self.clone();
        let doing = format!("read the log of container {}", short(&handle.0));
        let handle = handle.clone();
        Box::pin(stream::owned(move |sender| async move {
            let docker = match engine.docker() {
                Ok(docker) => docker,
                Err(error) => return drop(sender.send(Err(error)).await),
            };
            let mut chunks = std::pin::pin!(docker.logs(&handle.0, Some(options)));
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk.map_err(|cause| engine.error(doing.clone(), cause)).map(|output| match output {
                    LogOutput::StdErr { message } => LogChunk { is_stderr: true, bytes: message },
                    LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
                        LogChunk { is_stderr: false, bytes: message }
                    }
                });
                if sender.send(chunk).await.is_err() {
                    return;
                }
            }
        }))
    }

    fn read_archive(&self, handle: &EngineHandle, path: &str) -> EngineStream<Bytes> {
        let engine = self.clone();
        let doing = format!("read {path} of container {}", short(&handle.0));
        let (handle, path) = (handle.clone(), path.to_owned());
        Box::pin(stream::owned(move |sender| async move {
            let options = query::DownloadFromContainerOptions { path };
            let docker = match engine.docker() {
                Ok(docker) => docker,
                Err(error) => return drop(sender.send(Err(error)).await),
            };
            let mut chunks = std::pin::pin!(docker.download_from_container(&handle.0, Some(options)));
            while let Some(chunk) = chunks.next().await {
                if sender.send(chunk.map_err(|cause| engine.error(doing.clone(), cause))).await.is_err() {
                    return;
                }
            }
        }))
    }

    async fn write_archive(
        &self,
        handle: &EngineHandle,
        path: &str,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
    ) -> Result<(), EngineError> {
        let doing = format!("write {path} of container {}", short(&handle.0));
        let options = query::UploadToContainerOptions { path: path.to_owned(), ..Default::default() };
        let call = self.docker()?.upload_to_container(&handle.0, Some(options), bollard::body_try_stream(archive));
        self.call(doing, TRANSFER_TIMEOUT, call).await
    }

    fn events(&self, label: &str, value: &str) -> EngineStream<EngineEvent> {
        let engine = self.clone();
        let mut filters = label_filter(label, Some(value));
        filters.insert("type".to_owned(), vec!["container".to_owned()]);
        // The engine filters the events, so that unwanted ones do not cross the socket.
        filters.insert("event".to_owned(), EVENT_ACTIONS.map(str::to_owned).to_vec());
        Box::pin(stream::owned(move |sender| async move {
            let options = query::EventsOptions { filters: Some(filters), ..Default::default() };
            let docker = match engine.docker() {
                Ok(docker) => docker,
                Err(error) => return drop(sender.send(Err(error)).await),
            };
            let mut events = std::pin::pin!(docker.events(Some(options)));
            while let Some(event) = events.next().await {
                let event = event.map_err(|cause| engine.error("watch the engine's events", cause)).map(|message| {
                    let actor = message.actor.unwrap_or_default();
                    EngineEvent {
                        handle: EngineHandle(actor.id.unwrap_or_default()),
                        action: message.action.unwrap_or_default(),
                        labels: actor.attributes.unwrap_or_default().into_iter().collect(),
                    }
                });
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        }))
    }
}
