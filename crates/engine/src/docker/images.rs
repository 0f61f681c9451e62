//! Images: looking them up, pulling, loading, saving, naming, building and removing them; commits of containers.

use std::collections::BTreeMap;
use std::pin::Pin;

use bollard::errors::Error;
use bollard::models::ContainerConfig;
use bollard::query_parameters as query;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::client::gone_is_done;
use super::layers::LayerProgress;
use super::{CALL_TIMEOUT, DockerEngine, LOAD_TIMEOUT, TRANSFER_TIMEOUT, label_filter, short, spec, stream};
use crate::{EngineError, EngineHandle, EngineStream, Image, ImageBuild, ProgressSink};

/// The beginning of the builder's message when another client of the engine removes a cached image during the build.
/// The next attempt builds that layer again.
const VANISHED: &str = "unable to find image \"sha256:";

impl DockerEngine {
    pub(super) async fn inspect_image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        let doing = format!("look up image {reference}");
        match self.call(doing, CALL_TIMEOUT, self.docker()?.inspect_image(reference)).await {
            Ok(found) => {
                let config = found.config.unwrap_or_default();
                Ok(Some(Image {
                    id: found.id.unwrap_or_default(),
                    tags: found.repo_tags.unwrap_or_default(),
                    labels: config.labels.unwrap_or_default().into_iter().collect(),
                    size_bytes: found.size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default(),
                    layers: found.root_fs.and_then(|fs| fs.layers).unwrap_or_default(),
                    volumes: config.volumes.unwrap_or_default(),
                    is_named_by_manifest: found.descriptor.is_some(),
                }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list_images(&self, label: &str, value: Option<&str>) -> Result<Vec<Image>, EngineError> {
        let options =
            query::ListImagesOptions { all: false, filters: Some(label_filter(label, value)), ..Default::default() };
        let found = self.call("list images", CALL_TIMEOUT, self.docker()?.list_images(Some(options))).await?;
        Ok(found
            .into_iter()
            .map(|summary| Image {
                id: summary.id,
                tags: summary.repo_tags,
                labels: summary.labels.into_iter().collect(),
                size_bytes: u64::try_from(summary.size).unwrap_or_default(),
                layers: Vec::new(),
                volumes: Vec::new(),
                is_named_by_manifest: false,
            })
            .collect())
    }

    pub(super) async fn pull_image(&self, reference: &str, progress: ProgressSink<'_>) -> Result<(), EngineError> {
        let doing = format!("pull image {reference}");
        let (repository, tag) = match reference.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (reference, "latest"),
        };
        let options = query::CreateImageOptions {
            from_image: Some(repository.to_owned()),
            tag: Some(tag.to_owned()),
            ..Default::default()
        };
        let mut layers = LayerProgress::default();
        let mut stream = std::pin::pin!(self.docker()?.create_image(Some(options), None, None));
        while let Some(item) = self.heard(&doing, &mut stream).await? {
            let item = item.map_err(|cause| self.error(doing.clone(), cause))?;
            if let Some(error) = item.error_detail.and_then(|detail| detail.message) {
                return Err(EngineError::Build { doing, message: error });
            }
            if let Some(status) = item.status {
                progress(&layers.tell(&status, item.id, item.progress_detail));
            }
        }
        Ok(())
    }

    pub(super) async fn load_images(
        &self,
        archive: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
        progress: ProgressSink<'_>,
    ) -> Result<(), EngineError> {
        let doing = "load an archive of images";
        let docker = self.docker()?.clone().with_timeout(LOAD_TIMEOUT);
        let mut layers = LayerProgress::default();
        let mut stream = std::pin::pin!(docker.import_image(
            query::ImportImageOptions { quiet: false, platform: None },
            bollard::body_try_stream(archive),
            None,
        ));
        while let Some(item) = stream.next().await {
            let item = item.map_err(|cause| self.error(doing, cause))?;
            if let Some(status) = item.status {
                progress(&layers.tell(&status, item.id, item.progress_detail));
            }
        }
        Ok(())
    }

    pub(super) fn save_images(&self, ids: &[String]) -> EngineStream<Bytes> {
        let engine = self.clone();
        let ids = ids.to_vec();
        Box::pin(stream::owned(move |sender| async move {
            let docker = match engine.docker() {
                Ok(docker) => docker,
                Err(error) => return drop(sender.send(Err(error)).await),
            };
            let names: Vec<&str> = ids.iter().map(String::as_str).collect();
            let mut chunks = std::pin::pin!(docker.export_images(&names));
            while let Some(chunk) = engine.heard("save images", &mut chunks).await.transpose() {
                let chunk = chunk.and_then(|chunk| chunk.map_err(|cause| engine.error("save images", cause)));
                let is_last = chunk.is_err();
                if sender.send(chunk).await.is_err() || is_last {
                    return;
                }
            }
        }))
    }

    pub(super) async fn tag_image(&self, id: &str, repository: &str, tag: &str) -> Result<(), EngineError> {
        let doing = format!("name image {} {repository}:{tag}", short(id));
        let options = query::TagImageOptions { repo: Some(repository.to_owned()), tag: Some(tag.to_owned()) };
        self.call(doing, CALL_TIMEOUT, self.docker()?.tag_image(id, Some(options))).await
    }

    pub(super) async fn untag_image(&self, name: &str) -> Result<(), EngineError> {
        let doing = format!("take the name {name} away");
        let options = query::RemoveImageOptions { force: false, noprune: false, platforms: None };
        let call = self.docker()?.remove_image(name, Some(options), None);
        gone_is_done(self.call(doing, CALL_TIMEOUT, call).await.map(drop))
    }

    pub(super) async fn build_image(
        &self,
        build: ImageBuild<'_>,
        progress: ProgressSink<'_>,
    ) -> Result<Image, EngineError> {
        match self.build_once(&build, progress).await {
            Err(EngineError::Build { message, .. }) if message.starts_with(VANISHED) => {
                self.build_once(&build, progress).await
            }
            built => built,
        }
    }

    pub(super) async fn delete_image(&self, id: &str) -> Result<(), EngineError> {
        let doing = format!("remove image {}", short(id));
        let options = query::RemoveImageOptions { force: false, noprune: false, platforms: None };
        // An image with several names loses them one at a time; `force` would remove it even while stopped containers
        // use it.
        let names = match self.inspect_image(id).await? {
            Some(image) if image.tags.len() > 1 => image.tags,
            Some(_) => vec![id.to_owned()],
            None => return Ok(()),
        };
        for name in names {
            let call = self.docker()?.remove_image(&name, Some(options.clone()), None);
            gone_is_done(self.call(doing.clone(), CALL_TIMEOUT, call).await.map(drop))?;
        }
        Ok(())
    }

    pub(super) async fn commit_image(
        &self,
        handle: &EngineHandle,
        repository: &str,
        tag: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<String, EngineError> {
        let doing = format!("commit container {}", short(&handle.0));
        let options = query::CommitContainerOptions {
            container: Some(handle.0.clone()),
            repo: Some(repository.to_owned()),
            tag: Some(tag.to_owned()),
            pause: true,
            ..Default::default()
        };
        let config = ContainerConfig { labels: Some(spec::to_hash_map(labels)), ..Default::default() };
        let committed = self.call(doing, TRANSFER_TIMEOUT, self.docker()?.commit_container(options, config)).await?;
        Ok(committed.id)
    }

    async fn build_once(&self, build: &ImageBuild<'_>, progress: ProgressSink<'_>) -> Result<Image, EngineError> {
        let doing = format!("build image {}", build.tag);
        let options = query::BuildImageOptions {
            dockerfile: build.dockerfile.to_owned(),
            t: Some(build.tag.to_owned()),
            rm: true,
            forcerm: true,
            buildargs: Some(spec::to_hash_map(build.args)),
            target: build.target.unwrap_or_default().to_owned(),
            labels: Some(spec::to_hash_map(&build.labels)),
            ..Default::default()
        };
        let mut last_lines: Vec<String> = Vec::new();
        let mut stream =
            std::pin::pin!(self.docker()?.build_image(options, None, Some(bollard::body_full(build.context.clone()))));
        while let Some(item) = self.heard(&doing, &mut stream).await? {
            let item = match item {
                Ok(item) => item,
                Err(Error::DockerStreamError { error }) => {
                    return Err(EngineError::Build { doing, message: with_tail(&error, &last_lines) });
                }
                Err(cause) => return Err(self.error(doing, cause)),
            };
            if let Some(error) = item.error_detail.and_then(|detail| detail.message) {
                return Err(EngineError::Build { doing, message: with_tail(&error, &last_lines) });
            }
            for line in item.stream.iter().chain(item.status.iter()).flat_map(|text| text.lines()) {
                let line = line.trim_end();
                if !line.is_empty() {
                    progress(line);
                    if last_lines.len() == 20 {
                        last_lines.remove(0);
                    }
                    last_lines.push(line.to_owned());
                }
            }
        }
        self.inspect_image(build.tag).await?.ok_or_else(|| EngineError::Build {
            doing,
            message: with_tail("the builder ended without an image", &last_lines),
        })
    }
}

/// Appends the last lines of a builder's output to its error, which alone contains little more than an exit code.
fn with_tail(error: &str, last_lines: &[String]) -> String {
    let mut text = error.trim().to_owned();
    for line in last_lines {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}
