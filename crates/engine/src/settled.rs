//! An engine whose calls that create and start things run to completion even if the caller stops waiting for them.
//!
//! Docker continues a request whose connection is cut, so a cancelled `create` still creates a container, at an unknown
//! time. Here each such call is a task of its own: [`Engine::settle`] waits for these calls, so a list that is taken
//! afterwards is complete.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;

use super::{
    ContainerSpec, ContainerStatus, CpuWeight, Engine, EngineDetails, EngineError, EngineEvent, EngineHandle,
    EngineStream, EngineVersion, ExecOutput, FoundContainer, Image, ImageBuild, LabelledResource, LayerChange,
    LogChunk, LogRange, ProgressSink,
};
use arenad_model::subnet::Subnet;
use arenad_seams::outstanding::Outstanding;

/// Wraps another engine so that its calls that create and start things are never cancelled.
pub struct Settled {
    engine: Arc<dyn Engine>,
    outstanding: Outstanding,
}

impl Settled {
    /// Wraps an engine that has no pending calls.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, outstanding: Outstanding::default() }
    }

    /// Runs a call to completion as a task of its own, and returns its result unless the caller has stopped waiting.
    async fn finish<T: Send + 'static>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        let piece = self.outstanding.begin();
        let called = tokio::spawn(async move {
            let result = call.await;
            drop(piece);
            result
        });
        let broken = |cause| EngineError::Broken { doing: doing.to_owned(), cause: Box::new(cause) };
        called.await.map_err(broken)?
    }
}

#[async_trait::async_trait]
impl Engine for Settled {
    async fn settle(&self) {
        self.outstanding.settled().await;
        self.engine.settle().await;
    }

    async fn create(&self, spec: &ContainerSpec<'_>) -> Result<EngineHandle, EngineError> {
        let (engine, service, named) = (self.engine.clone(), spec.service.clone(), spec.name.clone());
        let ContainerSpec {
            name,
            image,
            service: _,
            labels,
            network,
            outward,
            volumes,
            binds,
            environment,
            weight,
            keeps_stores_in_layer,
        } = spec.clone();
        let call = async move {
            let service = &service;
            let spec = ContainerSpec {
                name,
                image,
                service,
                labels,
                network,
                outward,
                volumes,
                binds,
                environment,
                weight,
                keeps_stores_in_layer,
            };
            engine.create(&spec).await
        };
        self.finish(&format!("create container {named}"), call).await
    }

    async fn create_network(
        &self,
        name: &str,
        subnet: Subnet,
        egress: bool,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), EngineError> {
        let (engine, owned, labels) = (self.engine.clone(), name.to_owned(), labels.clone());
        let call = async move { engine.create_network(&owned, subnet, egress, &labels).await };
        self.finish(&format!("create network {name}"), call).await
    }

    async fn create_volume(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), EngineError> {
        let (engine, owned, labels) = (self.engine.clone(), name.to_owned(), labels.clone());
        let call = async move { engine.create_volume(&owned, &labels).await };
        self.finish(&format!("create volume {name}"), call).await
    }

    fn endpoint(&self) -> &str {
        self.engine.endpoint()
    }

    async fn ping(&self) -> Result<(), EngineError> {
        self.engine.ping().await
    }

    async fn version(&self) -> Result<EngineVersion, EngineError> {
        self.engine.version().await
    }

    async fn details(&self) -> Result<EngineDetails, EngineError> {
        self.engine.details().await
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        self.engine.image(reference).await
    }

    async fn images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError> {
        self.engine.images(label, value).await
    }

    async fn pull(&self, reference: &str, progress: ProgressSink<'_>) -> Result<(), EngineError> {
        self.engine.pull(reference, progress).await
    }

    async fn load(
        &self,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
        progress: ProgressSink<'_>,
    ) -> Result<(), EngineError> {
        self.engine.load(archive, progress).await
    }

    fn save(&self, ids: &[String]) -> EngineStream<Bytes> {
        self.engine.save(ids)
    }

    async fn tag(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        self.engine.tag(id, repository, tag).await
    }

    async fn untag(&self, name: &str) -> Result<(), EngineError> {
        self.engine.untag(name).await
    }

    async fn build(&self, build: ImageBuild<'_>, progress: ProgressSink<'_>) -> Result<Image, EngineError> {
        self.engine.build(build, progress).await
    }

    async fn remove_image(&self, id: &str) -> Result<(), EngineError> {
        self.engine.remove_image(id).await
    }

    async fn commit(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError> {
        self.engine.commit(handle, repository, tag, labels).await
    }

    async fn subnets(&self) -> Result<Vec<Subnet>, EngineError> {
        self.engine.subnets().await
    }

    async fn networks(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        self.engine.networks(label, value).await
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        self.engine.remove_network(name).await
    }

    async fn volumes(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        self.engine.volumes(label, value).await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        self.engine.remove_volume(name).await
    }

    async fn start(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        // A container that is removed while it starts can keep its address, and its network cannot be removed then.
        let (engine, handle) = (self.engine.clone(), handle.clone());
        let doing = format!("start container {}", handle.0);
        self.finish(&doing, async move { engine.start(&handle).await }).await
    }

    async fn stop(&self, handle: &EngineHandle, grace: Duration) -> Result<(), EngineError> {
        self.engine.stop(handle, grace).await
    }

    async fn freeze(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.engine.freeze(handle).await
    }

    async fn thaw(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.engine.thaw(handle).await
    }

    async fn weigh(&self, handle: &EngineHandle, weight: CpuWeight) -> Result<(), EngineError> {
        self.engine.weigh(handle, weight).await
    }

    async fn remove(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.engine.remove(handle).await
    }

    async fn inspect(&self, handle: &EngineHandle) -> Result<ContainerStatus, EngineError> {
        self.engine.inspect(handle).await
    }

    async fn containers(&self, label: &str, value: &str) -> Result<Vec<FoundContainer>, EngineError> {
        self.engine.containers(label, value).await
    }

    async fn running(&self) -> Result<Vec<FoundContainer>, EngineError> {
        self.engine.running().await
    }

    async fn exec_with_input(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        input: Option<Bytes>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError> {
        self.engine.exec_with_input(handle, command, user, input, timeout).await
    }

    fn logs(&self, handle: &EngineHandle, range: LogRange) -> EngineStream<LogChunk> {
        self.engine.logs(handle, range)
    }

    fn read_archive(&self, handle: &EngineHandle, path: &str) -> EngineStream<Bytes> {
        self.engine.read_archive(handle, path)
    }

    async fn write_archive(
        &self,
        handle: &EngineHandle,
        path: &str,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
    ) -> Result<(), EngineError> {
        self.engine.write_archive(handle, path, archive).await
    }

    fn events(&self, label: &str, value: &str) -> EngineStream<EngineEvent> {
        self.engine.events(label, value)
    }

    async fn written(&self, handle: &EngineHandle) -> Result<Option<BTreeMap<String, String>>, EngineError> {
        self.engine.written(handle).await
    }

    async fn changes(&self, handle: &EngineHandle) -> Result<Vec<LayerChange>, EngineError> {
        self.engine.changes(handle).await
    }
}
