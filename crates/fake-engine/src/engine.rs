//! The methods of the trait; each is one call.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use jiff::Timestamp;

use super::FakeEngine;
use super::containers::{Creation, KILLED};
use super::dockerfile::Build;
use super::errors::{not_found, refused, short, unreachable};
use super::exchange::{CALL_TIMEOUT, Sent, TRANSFER_TIMEOUT};
use super::files::{NodeContent, normal};
use super::script::EngineMethod;
use super::streams::{gather, pieces};
use super::world::EngineWorld;
use arenad_engine::docker::EXEC_OUTPUT_MAX;
use arenad_engine::{
    ContainerSpec, ContainerStatus, CpuWeight, EnforcedLimits, Engine, EngineDetails, EngineError, EngineEvent,
    EngineHandle, EngineStream, EngineVersion, ExecOutput, FoundContainer, Image, ImageBuild, LabelledResource,
    LayerChange, LayerChangeKind, LogChunk, LogRange, ProgressSink,
};
use arenad_model::subnet::Subnet;

/// Subnet of the engine's predefined bridge network.
const BRIDGE: &str = "172.17.0.0/16";

pub(super) fn sent(operation: EngineMethod, subject: &str, doing: impl Into<String>) -> Sent<'_> {
    Sent { operation, subject, doing: doing.into(), limit: CALL_TIMEOUT }
}

impl FakeEngine {
    /// Returns a container's name, because scripts refer to containers by name rather than by ID.
    pub(super) fn name_of(&self, handle: &EngineHandle) -> String {
        self.look(|world| world.container_name(&handle.0))
    }

    /// Makes one call about a container.
    async fn on_container<T: Send + 'static>(
        &self,
        operation: EngineMethod,
        handle: &EngineHandle,
        verb: &str,
        effect: impl FnOnce(&mut EngineWorld, &str, &str) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let name = self.name_of(handle);
        let sent = sent(operation, &name, format!("{verb} container {}", short(&handle.0)));
        let handle = handle.0.clone();
        self.call(sent, move |world, doing| effect(world, doing, &handle)).await
    }
}

#[async_trait::async_trait]
impl Engine for FakeEngine {
    fn endpoint(&self) -> &str {
        &self.shared.endpoint
    }

    async fn ping(&self) -> Result<(), EngineError> {
        let sent =
            Sent { limit: Duration::from_secs(3), ..sent(EngineMethod::Ping, "", "ask whether the engine answers") };
        self.call(sent, |_, _| Ok(())).await
    }

    async fn details(&self) -> Result<EngineDetails, EngineError> {
        let sent =
            Sent { limit: Duration::from_secs(5), ..sent(EngineMethod::Details, "", "ask the engine what it is") };
        self.call(sent, |world, _| {
            Ok(EngineDetails {
                id: world.holdings.id.clone(),
                version: EngineVersion {
                    version: "20.10.24".to_owned(),
                    api: "1.41".to_owned(),
                    storage_driver: "overlay2".to_owned(),
                    root: "/var/lib/docker".into(),
                },
                operating_system: "simulated".to_owned(),
                is_rootless: false,
                time: Timestamp::from_second(world.clock.at(world.now)).ok(),
                enforces: EnforcedLimits { memory: true, cpus: true, pids: true },
                address_pools: Vec::new(),
                forwards: true,
                firewall: None,
            })
        })
        .await
    }

    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        let wanted = reference.to_owned();
        let sent = sent(EngineMethod::Image, reference, format!("look up image {reference}"));
        match self.call(sent, move |world, _| Ok(world.image(&wanted))).await {
            Err(error) if error.is_not_found() => Ok(None),
            result => result,
        }
    }

    async fn images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError> {
        let (wanted, value) = (label.to_owned(), value.map(str::to_owned));
        let sent = sent(EngineMethod::Images, label, "list images");
        self.call(sent, move |world, _| Ok(world.images(&wanted, value.as_deref()))).await
    }

    async fn pull(&self, reference: &str, progress: ProgressSink<'_>) -> Result<(), EngineError> {
        let wanted = reference.to_owned();
        let sent = sent(EngineMethod::Pull, reference, format!("pull image {reference}"));
        let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent };
        self.call(sent, move |world, doing| world.pull(doing, &wanted)).await?;
        progress("Download complete");
        Ok(())
    }

    async fn load(
        &self,
        archive: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
        progress: ProgressSink<'_>,
    ) -> Result<(), EngineError> {
        let doing = "load an archive of images";
        let archive = gather(doing, archive).await?;
        let sent = Sent { limit: Duration::from_secs(24 * 3600), ..sent(EngineMethod::Load, "", doing) };
        let effect = move |world: &mut EngineWorld, doing: &str| {
            world
                .load(&archive)
                .map_err(|error| EngineError::Build { doing: doing.to_owned(), message: error.to_string() })
        };
        self.call(sent, effect).await?;
        progress("Loaded");
        Ok(())
    }

    fn save(&self, ids: &[String]) -> EngineStream<Bytes> {
        let (engine, ids) = (self.clone(), ids.to_vec());
        Box::pin(
            stream::once(async move {
                let subject = ids.first().cloned().unwrap_or_default();
                let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent(EngineMethod::Save, &subject, "save images") };
                let effect = move |world: &mut EngineWorld, doing: &str| {
                    world.save(&ids).map_err(|error| not_found(doing, error.to_string()))
                };
                pieces(engine.exchange(sent, effect).await)
            })
            .flatten(),
        )
    }

    async fn tag(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        let name = format!("{repository}:{tag}");
        let sent = sent(EngineMethod::Tag, &name, format!("name image {} {name}", short(id)));
        let (id, repository, tag) = (id.to_owned(), repository.to_owned(), tag.to_owned());
        self.call(sent, move |world, doing| world.tag(doing, &id, &repository, &tag)).await
    }

    async fn untag(&self, name: &str) -> Result<(), EngineError> {
        let wanted = name.to_owned();
        let sent = sent(EngineMethod::Untag, name, format!("take the name {name} away"));
        match self.call(sent, move |world, doing| world.remove_reference(doing, &wanted)).await {
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        }
    }

    async fn build(&self, build: ImageBuild<'_>, progress: ProgressSink<'_>) -> Result<Image, EngineError> {
        let sent = sent(EngineMethod::Build, build.tag, format!("build image {}", build.tag));
        let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent };
        let inputs = Build {
            tag: build.tag.to_owned(),
            context: build.context,
            dockerfile: build.dockerfile.to_owned(),
            args: build.args.clone(),
            target: build.target.map(str::to_owned),
            labels: build.labels,
        };
        let effect = move |world: &mut EngineWorld, doing: &str| {
            let mut lines = Vec::new();
            let built = world.build(doing, &inputs, &mut lines);
            Ok((built.map(|id| world.image(&id)), lines))
        };
        let doing = sent.doing.clone();
        let (built, lines) = self.call(sent, effect).await?;
        for line in &lines {
            progress(line);
        }
        let tail =
            lines[lines.len().saturating_sub(20)..].iter().map(|line| format!("\n    {line}")).collect::<String>();
        match built {
            Ok(Some(image)) => Ok(image),
            Ok(None) => Err(EngineError::Build { doing, message: format!("the builder ended without an image{tail}") }),
            Err(EngineError::Build { doing, message }) => {
                Err(EngineError::Build { doing, message: format!("{message}{tail}") })
            }
            Err(error) => Err(error),
        }
    }

    async fn remove_image(&self, id: &str) -> Result<(), EngineError> {
        let wanted = id.to_owned();
        let sent = sent(EngineMethod::RemoveImage, id, format!("remove image {}", short(id)));
        match self.call(sent, move |world, doing| world.remove_image(doing, &wanted)).await {
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        }
    }

    async fn commit(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError> {
        let container = self.name_of(handle);
        let sent = sent(EngineMethod::Commit, &container, format!("commit container {}", short(&handle.0)));
        let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent };
        let (handle, name, labels) = (handle.0.clone(), format!("{repository}:{tag}"), labels.clone());
        self.call(sent, move |world, doing| world.commit(doing, &handle, &name, &labels)).await
    }

    async fn create_network(
        &self,
        name: &str,
        subnet: Subnet,
        _egress: bool,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), EngineError> {
        let sent = sent(EngineMethod::CreateNetwork, name, format!("create network {name} with {subnet}"));
        let (name, labels) = (name.to_owned(), labels.clone());
        self.call(sent, move |world, doing| world.create_network(doing, &name, subnet, labels)).await
    }

    async fn subnets(&self) -> Result<Vec<Subnet>, EngineError> {
        self.call(sent(EngineMethod::Subnets, "", "list networks"), |world, _| {
            let own = world.holdings.networks.iter().map(|network| network.subnet);
            Ok(BRIDGE.parse().ok().into_iter().chain(own).collect())
        })
        .await
    }

    async fn networks(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        let (wanted, value) = (label.to_owned(), value.to_owned());
        self.call(sent(EngineMethod::Networks, label, "list networks"), move |world, _| {
            let meant = world.holdings.networks.iter().filter(|network| network.labels.get(&wanted) == Some(&value));
            Ok(meant
                .map(|network| LabelledResource { name: network.name.clone(), labels: network.labels.clone() })
                .collect())
        })
        .await
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let wanted = name.to_owned();
        let sent = sent(EngineMethod::RemoveNetwork, name, format!("remove network {name}"));
        gone_is_done(self.call(sent, move |world, doing| world.remove_network(doing, &wanted)).await)
    }

    async fn create_volume(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<(), EngineError> {
        let (wanted, labels) = (name.to_owned(), labels.clone());
        let sent = sent(EngineMethod::CreateVolume, name, format!("create volume {name}"));
        self.call(sent, move |world, _| {
            world.create_volume(&wanted, labels);
            Ok(())
        })
        .await
    }

    async fn volumes(&self, label: &str, value: &str) -> Result<Vec<LabelledResource>, EngineError> {
        let (wanted, value) = (label.to_owned(), value.to_owned());
        self.call(sent(EngineMethod::Volumes, label, "list volumes"), move |world, _| {
            let meant = world.holdings.volumes.iter().filter(|(_, volume)| volume.labels.get(&wanted) == Some(&value));
            Ok(meant
                .map(|(name, volume)| LabelledResource { name: name.clone(), labels: volume.labels.clone() })
                .collect())
        })
        .await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let wanted = name.to_owned();
        let sent = sent(EngineMethod::RemoveVolume, name, format!("remove volume {name}"));
        gone_is_done(self.call(sent, move |world, doing| world.remove_volume(doing, &wanted)).await)
    }

    async fn create(&self, spec: &ContainerSpec<'_>) -> Result<EngineHandle, EngineError> {
        let sent = sent(EngineMethod::Create, &spec.name, format!("create container {}", spec.name));
        let creation = Creation::of(spec);
        self.call(sent, move |world, doing| world.create(doing, creation)).await
    }

    async fn start(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.on_container(EngineMethod::Start, handle, "start", |world, doing, id| world.start(doing, id)).await
    }

    async fn stop(&self, handle: &EngineHandle, grace: Duration) -> Result<(), EngineError> {
        let name = self.name_of(handle);
        let grace = Duration::from_secs(grace.as_secs().max(1));
        let sent = sent(EngineMethod::Stop, &name, format!("stop container {}", short(&handle.0)));
        let sent = Sent { limit: grace + CALL_TIMEOUT, ..sent };
        let id = handle.0.clone();
        let session = self.look(|world| world.session);
        let due = self.call(sent, move |world, doing| world.stop(doing, &id, grace)).await?;
        self.wait_until(due).await;
        match self.look(|world| world.session == session) {
            true => Ok(()),
            false => Err(unreachable(&self.shared.endpoint, io::ErrorKind::ConnectionReset)),
        }
    }

    async fn freeze(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.on_container(EngineMethod::Freeze, handle, "freeze", |world, doing, id| world.freeze(doing, id)).await
    }

    async fn thaw(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        self.on_container(EngineMethod::Thaw, handle, "thaw", |world, doing, id| world.thaw(doing, id)).await
    }

    async fn weigh(&self, handle: &EngineHandle, weight: CpuWeight) -> Result<(), EngineError> {
        self.on_container(EngineMethod::Weigh, handle, "weigh", move |world, doing, id| world.weigh(doing, id, weight))
            .await
    }

    async fn remove(&self, handle: &EngineHandle) -> Result<(), EngineError> {
        let removed = self.on_container(EngineMethod::Remove, handle, "remove", |world, _, id| {
            world.remove_container(id);
            Ok(())
        });
        gone_is_done(removed.await)
    }

    async fn changes(&self, handle: &EngineHandle) -> Result<Vec<LayerChange>, EngineError> {
        let kind = |letter| match letter {
            'A' => LayerChangeKind::Added,
            'D' => LayerChangeKind::Removed,
            _ => LayerChangeKind::Modified,
        };
        self.on_container(EngineMethod::Changes, handle, "list the changes of", move |world, doing, id| {
            let changes = world.view(doing, id)?.changes();
            Ok(changes.into_iter().map(|(path, letter)| LayerChange { path, kind: kind(letter) }).collect())
        })
        .await
    }

    async fn written(&self, handle: &EngineHandle) -> Result<Option<BTreeMap<String, String>>, EngineError> {
        self.on_container(EngineMethod::Changes, handle, "look into", |world, doing, id| {
            let view = world.view(doing, id)?;
            let entry = |path: &str| match view.get(path).map(|node| node.content) {
                Some(NodeContent::File(bytes)) => format!("file {}", blake3::hash(&bytes).to_hex()),
                Some(NodeContent::Folder) => "folder".to_owned(),
                Some(NodeContent::Link(to)) => format!("link to {to}"),
                None => "removed".to_owned(),
            };
            Ok(Some(view.changes().into_iter().map(|(path, _)| (path.clone(), entry(&path))).collect()))
        })
        .await
    }

    async fn inspect(&self, handle: &EngineHandle) -> Result<ContainerStatus, EngineError> {
        self.on_container(EngineMethod::Inspect, handle, "inspect", |world, doing, id| world.status(doing, id)).await
    }

    async fn containers(&self, label: &str, value: &str) -> Result<Vec<FoundContainer>, EngineError> {
        let (wanted, value) = (label.to_owned(), value.to_owned());
        self.call(sent(EngineMethod::Containers, label, "list containers"), move |world, _| {
            Ok(world.list(|container| container.labels.get(&wanted) == Some(&value)))
        })
        .await
    }

    async fn running(&self) -> Result<Vec<FoundContainer>, EngineError> {
        self.call(sent(EngineMethod::Running, "", "list containers"), |world, _| {
            Ok(world.list(super::world::FakeContainer::is_alive))
        })
        .await
    }

    async fn exec_with_input(
        &self,
        handle: &EngineHandle,
        command: &[String],
        user: Option<&str>,
        input: Option<Bytes>,
        timeout: Duration,
    ) -> Result<ExecOutput, EngineError> {
        let name = self.name_of(handle);
        let doing = format!("run `{}` in container {}", command.join(" "), short(&handle.0));
        let sent = Sent { limit: timeout, ..sent(EngineMethod::Exec, &name, doing.clone()) };
        let (id, words, user) = (handle.0.clone(), command.to_vec(), user.map(str::to_owned));
        let effect = move |world: &mut EngineWorld, doing: &str| {
            let outcome = world.exec(doing, &id, &words, user.as_deref(), input.unwrap_or_default())?;
            let due = world.now.saturating_add(outcome.takes);
            Ok((outcome, due, world.run_of(&id)))
        };
        let (outcome, due, run) = self.call(sent, effect).await?;
        if outcome.takes >= timeout {
            tokio::time::sleep(timeout).await;
            return Err(EngineError::TimedOut { doing, limit: timeout });
        }
        self.wait_until(due).await;
        let is_killed = !outcome.takes.is_zero() && self.look(|world| world.run_of(&handle.0)) != run;
        let cut = |mut text: String| {
            let mut end = EXEC_OUTPUT_MAX.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text
        };
        Ok(ExecOutput {
            code: if is_killed { KILLED } else { outcome.code },
            stdout: cut(outcome.stdout),
            stderr: cut(outcome.stderr),
        })
    }

    fn logs(&self, handle: &EngineHandle, range: LogRange) -> EngineStream<LogChunk> {
        self.follow(handle, range)
    }

    fn read_archive(&self, handle: &EngineHandle, path: &str) -> EngineStream<Bytes> {
        let (engine, handle, path) = (self.clone(), handle.clone(), path.to_owned());
        Box::pin(
            stream::once(async move {
                let name = engine.name_of(&handle);
                let doing = format!("read {path} of container {}", short(&handle.0));
                let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent(EngineMethod::ReadArchive, &name, doing) };
                let effect = move |world: &mut EngineWorld, doing: &str| {
                    let packed = world.view(doing, &handle.0)?.pack(&normal(&path));
                    let failed = |cause: io::Error| refused(doing, 500, cause.to_string());
                    packed.map_err(failed)?.ok_or_else(|| {
                        not_found(doing, format!("Could not find the file {path} in container {}", handle.0))
                    })
                };
                pieces(engine.exchange(sent, effect).await)
            })
            .flatten(),
        )
    }

    async fn write_archive(
        &self,
        handle: &EngineHandle,
        path: &str,
        archive: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    ) -> Result<(), EngineError> {
        let name = self.name_of(handle);
        let doing = format!("write {path} of container {}", short(&handle.0));
        let archive = gather(&doing, archive).await?;
        let sent = Sent { limit: TRANSFER_TIMEOUT, ..sent(EngineMethod::WriteArchive, &name, doing) };
        let (id, path) = (handle.0.clone(), path.to_owned());
        self.call(sent, move |world, doing| {
            let mut view = world.view(doing, &id)?;
            let folder = normal(&path);
            match view.get(&folder) {
                Some(found) if found.is_folder() => {}
                Some(_) => return Err(refused(doing, 400, "extraction point is not a directory")),
                None => return Err(not_found(doing, format!("Could not find the file {path} in container {id}"))),
            }
            view.unpack(&folder, &archive).map_err(|cause| match cause.kind() {
                io::ErrorKind::ReadOnlyFilesystem => refused(doing, 500, "container rootfs is marked read-only"),
                _ => refused(doing, 500, cause.to_string()),
            })
        })
        .await
    }

    fn events(&self, label: &str, value: &str) -> EngineStream<EngineEvent> {
        self.listen(label, value)
    }
}

/// Treats the removal of a missing object as a success.
fn gone_is_done(result: Result<(), EngineError>) -> Result<(), EngineError> {
    match result {
        Err(EngineError::NotFound { .. }) => Ok(()),
        other => other,
    }
}
