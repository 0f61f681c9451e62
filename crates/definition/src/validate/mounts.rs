//! Mounts of a container: the instance's own volumes, read-only files of the environment, and memory file systems.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ValidationContext;
use super::paths::{PathKind, inside, inside_by_name, normal};
use super::support::size;
use crate::problems::did_you_mean;
use crate::raw::compose_parts::{RawMountKind, VolumeEntry};
use crate::raw::values::{FilePart, OneOrMany};
use crate::scope::Scope;
use crate::source::Span;
use crate::values;
use arenad_model::archive::DataSource;
use arenad_model::service::MountSpec;

/// Reads `volumes` and `tmpfs` of a service.
pub(super) fn mounts(
    context: ValidationContext<'_>,
    scope: Scope<'_>,
    volumes: Option<&Vec<FilePart<VolumeEntry>>>,
    tmpfs: Option<&OneOrMany>,
    declared: &[&str],
) -> Vec<MountSpec> {
    let reader = MountReader { context, declared };
    let mut found = Vec::new();
    let mut targets: BTreeMap<String, Span> = BTreeMap::new();
    let volumes_scope = scope.key("volumes");
    for (index, entry) in volumes.into_iter().flatten().enumerate() {
        let scope = volumes_scope.index(index);
        found.extend(entry.good().and_then(|entry| reader.volume(scope, entry)).map(|mount| (scope, mount)));
    }
    let tmpfs_scope = scope.key("tmpfs");
    for (index, text) in tmpfs.map(OneOrMany::to_vec).unwrap_or_default().iter().enumerate() {
        let scope = tmpfs_scope.index(index);
        found.extend(short_tmpfs(scope, text).map(|mount| (scope, mount)));
    }
    for (scope, mount) in &found {
        let (MountSpec::Volume { target, .. }
        | MountSpec::Bind { target, .. }
        | MountSpec::Data { target, .. }
        | MountSpec::Tmpfs { target, .. }) = mount;
        let target = target.trim_end_matches('/').to_owned();
        if let Some(first) = targets.insert(target.clone(), scope.span()) {
            scope
                .error("conflict", format!("two mounts have the target `{target}`"))
                .related(scope.source(), first, "the first one")
                .report();
        }
    }
    found.into_iter().map(|(_, mount)| mount).collect()
}

struct MountReader<'a> {
    context: ValidationContext<'a>,
    declared: &'a [&'a str],
}

impl MountReader<'_> {
    fn volume(&self, scope: Scope<'_>, entry: &VolumeEntry) -> Option<MountSpec> {
        match entry {
            VolumeEntry::Text(text) => self.short(scope, text),
            VolumeEntry::Spec(spec) => {
                let target = target(scope.key("target"), &spec.target)?;
                let source_scope = scope.key("source");
                let read_only = spec.read_only.unwrap_or(false);
                if spec.kind != RawMountKind::Tmpfs && spec.tmpfs.is_some() {
                    scope.key("tmpfs").key_error("conflict", "`tmpfs` goes with `type: tmpfs` only").report();
                }
                match (spec.kind, &spec.source) {
                    (RawMountKind::Tmpfs, None) => {
                        let size_scope = scope.key("tmpfs").key("size");
                        let raw = spec.tmpfs.as_ref().and_then(|tmpfs| tmpfs.size.as_ref());
                        Some(MountSpec::Tmpfs { target, size_bytes: size(size_scope, raw) })
                    }
                    (RawMountKind::Tmpfs, Some(_)) => {
                        source_scope.key_error("conflict", "memory has no `source`").report();
                        None
                    }
                    (_, None) if scope.has("source") => None,
                    (_, None) => {
                        scope.error("missing-key", "the mount has no `source`").report();
                        None
                    }
                    (RawMountKind::Volume, Some(source)) => self.named(source_scope, source, target, read_only),
                    (RawMountKind::Bind, Some(source)) => {
                        self.bind(source_scope, source, target, read_only, "`read_only: true`")
                    }
                }
            }
        }
    }

    fn short(&self, scope: Scope<'_>, text: &str) -> Option<MountSpec> {
        let parts: Vec<&str> = text.split(':').collect();
        let (source, path, options) = match parts.as_slice() {
            [source, path] => (*source, *path, "rw"),
            [source, path, options] => (*source, *path, *options),
            [_] => {
                scope
                    .error("value", format!("`{text}` mounts a volume without a name"))
                    .expected("`name:/path`, with the name declared under the top level's `volumes`")
                    .report();
                return None;
            }
            _ => {
                scope
                    .error("value", format!("`{text}` has too many colons"))
                    .expected("`source:target` or `source:target:ro`")
                    .report();
                return None;
            }
        };
        let target = target(scope, path)?;
        let read_only = match options {
            "ro" => true,
            "rw" => false,
            _ => {
                scope
                    .error("value", format!("the mount option `{options}` is not supported"))
                    .expected("`ro`, `rw` or nothing")
                    .report();
                return None;
            }
        };
        if source.starts_with(['.', '/', '~']) {
            self.bind(scope, source, target, read_only, "`:ro`")
        } else {
            self.named(scope, source, target, read_only)
        }
    }

    fn named(&self, scope: Scope<'_>, name: &str, target: String, read_only: bool) -> Option<MountSpec> {
        if name.contains('/') {
            scope
                .error("value", format!("`{name}` is neither a volume's name nor a path"))
                .help(format!("a path begins with a dot: `./{name}`"))
                .report();
            return None;
        }
        if !self.declared.contains(&name) {
            let suggestion = did_you_mean(name, self.declared.iter().copied());
            scope
                .error("undeclared-volume", format!("the volume `{name}` is not declared"))
                .maybe_help(suggestion.or_else(|| Some(format!("add `{name}:` under the top level's `volumes`"))))
                .report();
            return None;
        }
        Some(MountSpec::Volume { name: name.to_owned(), target, read_only })
    }

    fn bind(&self, scope: Scope<'_>, source: &str, target: String, read_only: bool, how: &str) -> Option<MountSpec> {
        let context = self.context;
        let below_data = normal(context.compose_folder, source);
        if context.data_folder.is_some_and(|folder| below_data.starts_with(folder)) {
            return Some(MountSpec::Data { source: below_data, target, read_only });
        }
        let found = match self.to_be_fetched(scope, source) {
            Some(path) => Some(path),
            None => inside(scope, context.root, context.compose_folder, source, PathKind::Either, "the path"),
        };
        if !read_only {
            scope
                .error("writable-bind", format!("`{source}` is mounted writable"))
                .help(format!("instances share it, so none may write to it: add {how}, or use a named volume"))
                .report();
        }
        Some(MountSpec::Bind { source: found?, target })
    }

    /// Returns the path if it belongs to declared data that has not been fetched yet.
    fn to_be_fetched(&self, scope: Scope<'_>, source: &str) -> Option<PathBuf> {
        let context = self.context;
        let results: Vec<PathBuf> = context.data.iter().flat_map(DataSource::results).collect();
        if results.is_empty() {
            return None;
        }
        let path = inside_by_name(scope, context.root, context.compose_folder, source, "the path")?;
        let is_part = |result: &PathBuf| path.starts_with(result) || result.starts_with(&path);
        (!path.exists() && results.iter().any(is_part)).then_some(path)
    }
}

/// Returns a path inside the container, without a slash at its end, because the engine distinguishes `/data/` from
/// `/data`.
fn target(scope: Scope<'_>, text: &str) -> Option<String> {
    let is_clean =
        text.starts_with('/') && !text.contains([':', '\0', ',']) && !text.split('/').any(|part| part == "..");
    if !is_clean || text.trim_end_matches('/').is_empty() {
        scope
            .error("value", format!("invalid mount path `{text}`"))
            .expected("an absolute path inside of the container, other than `/`")
            .report();
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

fn short_tmpfs(scope: Scope<'_>, text: &str) -> Option<MountSpec> {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    let mut size_bytes = None;
    for option in options.split(',').filter(|option| !option.is_empty()) {
        size_bytes = option.strip_prefix("size=").and_then(values::size);
        if size_bytes.is_none() {
            scope
                .error("value", format!("the option `{option}` is not supported"))
                .expected("a path, optionally with a size: `/run:size=64m`")
                .report();
        }
    }
    Some(MountSpec::Tmpfs { target: target(scope, path)?, size_bytes })
}
