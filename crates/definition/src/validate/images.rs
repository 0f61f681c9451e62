//! The sources of images and data: archives, their mirrors, and the folders that receive data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::Uri;

use super::ValidationContext;
use super::paths::{inside_by_name, normal};
use super::support::{key_name, positive_size};
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::compose::RawCompose;
use crate::raw::images::{RawData, RawImage, RawUnpacking};
use crate::raw::values::{Entries, FilePart, Size};
use crate::scope::Scope;
use crate::source::Span;
use crate::tree::excerpt;
use arenad_model::archive::{DataSource, ImageSource, Placement, SourceArchive, Unpacking, full_reference};

/// Maximum length of a file name, in bytes: with the suffix of a partial download, it is still valid on every file
/// system.
const FILE_NAME_MAX: usize = 200;

/// The four keys that all archives share.
struct RawArchive<'a> {
    key: &'static str,
    file: Option<&'a String>,
    size: Option<&'a Size>,
    sha256: Option<&'a String>,
    mirrors: Option<&'a Vec<String>>,
}

/// Reads the section `images`, whose keys must be images of services.
pub(super) fn images(
    context: ValidationContext<'_>,
    raw: Option<&Entries<FilePart<RawImage>>>,
    compose: &RawCompose,
) -> Vec<ImageSource> {
    let section = context.environment.key("images");
    let services = || compose.services.iter().filter_map(|(name, part)| Some((name, part.good()?)));
    let built: Vec<String> = services()
        .filter(|(_, service)| service.build.is_some())
        .map(|(name, service)| service.image.clone().unwrap_or_else(|| format!("{}-{name}", context.name)))
        .collect();
    let named: Vec<&String> = services().filter_map(|(_, service)| service.image.as_ref()).collect();
    let is = |known: &str, reference: &str| full_reference(known) == full_reference(reference);
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    let mut found = Vec::new();
    for (reference, part) in raw.iter().flat_map(|entries| entries.iter()) {
        let scope = section.key(reference);
        if let Some(first) = seen.insert(full_reference(reference), scope.key_span()) {
            scope
                .key_error("duplicate-key", format!("`{}` is an image that is described already", excerpt(reference)))
                .related(scope.source(), first, "described here")
                .report();
        }
        if built.iter().any(|known| is(known, reference)) {
            scope
                .key_error("conflict", format!("the Compose file builds the image `{}`", excerpt(reference)))
                .help("remove this entry, or the service's `build`")
                .report();
        } else if !named.iter().any(|known| is(known, reference)) {
            let known = || named.iter().map(|known| known.as_str());
            scope
                .key_error("unused-image", format!("no service uses the image `{}`", excerpt(reference)))
                .expected(format!("one of {}", quoted_list(known())))
                .maybe_help(did_you_mean(reference, known()))
                .report();
        }
        let Some(raw) = part.good() else { continue };
        let loaded_bytes = positive_size(scope.key("loaded_size"), raw.loaded_size.as_ref());
        let archive = archive(
            scope,
            &RawArchive {
                key: "archive",
                file: raw.archive.as_ref(),
                size: raw.size.as_ref(),
                sha256: raw.sha256.as_ref(),
                mirrors: raw.mirrors.as_ref(),
            },
        );
        found.push(ImageSource { reference: reference.to_owned(), archive, loaded_bytes });
    }
    found
}

/// Reads the section `data`. Paths are resolved against the Compose file's folder, like those of its mounts.
pub(crate) fn data(
    environment: Scope<'_>,
    root: &Path,
    compose_folder: &Path,
    data_folder: Option<&Path>,
    raw: Option<&Entries<FilePart<RawData>>>,
) -> Vec<DataSource> {
    let section = environment.key("data");
    let mut results: Vec<(PathBuf, Span)> = Vec::new();
    let mut found = Vec::new();
    for (name, part) in raw.iter().flat_map(|entries| entries.iter()) {
        let scope = section.key(name);
        key_name(scope, name, "data");
        let Some(raw) = part.good() else { continue };
        let archive = archive(
            scope,
            &RawArchive {
                key: "file",
                file: raw.file.as_ref(),
                size: raw.size.as_ref(),
                sha256: raw.sha256.as_ref(),
                mirrors: raw.mirrors.as_ref(),
            },
        );
        let folders = PathFolders { root, compose_folder, data_folder };
        let placement = match (&raw.target, &raw.unpack) {
            (Some(target), None) => folders.inside(scope.key("target"), target).map(Placement::Folder),
            (None, Some(parts)) => Some(Placement::Unpacked(folders.unpackings(scope.key("unpack"), parts))),
            (Some(_), Some(_)) => {
                scope
                    .key("unpack")
                    .key_error("conflict", "the file goes into `target` as it is, and is unpacked as well")
                    .expected("either `target` or `unpack`")
                    .report();
                None
            }
            (None, None) if scope.has("target") || scope.has("unpack") => None,
            (None, None) => {
                scope
                    .key_error("missing-key", format!("nothing says where `{}` goes", excerpt(name)))
                    .expected("`target`: a folder, or `unpack`: a list of `{ from: ..., to: ... }`")
                    .report();
                None
            }
        };
        let (Some(archive), Some(placement)) = (archive, placement) else { continue };
        let source = DataSource { name: name.to_owned(), archive, placement };
        for result in source.results() {
            overlaps(scope, &result, &results);
        }
        results.extend(source.results().into_iter().map(|result| (result, scope.key_span())));
        found.push(source);
    }
    found
}

/// Reports archives with the same name, because all archives are kept in one folder.
pub(super) fn unique_files(environment: Scope<'_>, images: &[ImageSource], data: &[DataSource]) {
    let (images_scope, data_scope) = (environment.key("images"), environment.key("data"));
    let of_images = images
        .iter()
        .filter_map(|image| Some((image.archive.as_ref()?, images_scope.key(&image.reference).key("archive"))));
    let of_data = data.iter().map(|data| (&data.archive, data_scope.key(&data.name).key("file")));
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    for (archive, scope) in of_images.chain(of_data) {
        if let Some(first) = seen.insert(&archive.file, scope.span()) {
            scope
                .error("conflict", format!("two archives are called `{}`", archive.file))
                .related(scope.source(), first, "the first one")
                .help("one archive of data may be unpacked to several folders; one of images holds one image")
                .report();
        }
    }
}

fn overlaps(scope: Scope<'_>, result: &Path, others: &[(PathBuf, Span)]) {
    let other = others.iter().find(|(other, _)| result.starts_with(other) || other.starts_with(result));
    if let Some((_, first)) = other {
        scope
            .key_error("conflict", "two data files go to the same place, or one into the other")
            .related(scope.source(), *first, "the other one")
            .report();
    }
}

/// The folders against which a path of the definition is resolved and which it must not leave.
struct PathFolders<'a> {
    root: &'a Path,
    compose_folder: &'a Path,
    data_folder: Option<&'a Path>,
}

impl PathFolders<'_> {
    /// Returns the path of a folder, which need not exist yet.
    fn inside(&self, scope: Scope<'_>, text: &str) -> Option<PathBuf> {
        let below_data = normal(self.compose_folder, text);
        if self.data_folder.is_some_and(|folder| below_data.starts_with(folder)) {
            return Some(below_data);
        }
        let found = inside_by_name(scope, self.root, self.compose_folder, text, "the folder")?;
        // Unpacking replaces the whole folder.
        if self.compose_folder.starts_with(&found) {
            scope
                .error("path", format!("`{}` holds the Compose file", excerpt(text)))
                .expected("a folder of its own, such as `./encyclopaedia`")
                .report();
            return None;
        }
        Some(found)
    }

    fn unpackings(&self, scope: Scope<'_>, parts: &[FilePart<RawUnpacking>]) -> Vec<Unpacking> {
        let mut found: Vec<(Unpacking, Span)> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let scope = scope.index(index);
            let Some(RawUnpacking { from, to: Some(to) }) = part.good() else { continue };
            let from = from.as_ref().map_or(Some(String::new()), |from| within_archive(scope.key("from"), from));
            let to = self.inside(scope.key("to"), to);
            let (Some(from), Some(to)) = (from, to) else { continue };
            let others: Vec<(PathBuf, Span)> = found.iter().map(|(part, span)| (part.to.clone(), *span)).collect();
            overlaps(scope.key("to"), &to, &others);
            found.push((Unpacking { from, to }, scope.key("to").span()));
        }
        found.into_iter().map(|(part, _)| part).collect()
    }
}

/// Returns the path of a folder in an archive, without `.` components and without slashes at its ends.
fn within_archive(scope: Scope<'_>, text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") || text.contains('\0') || text.starts_with('/') {
        scope
            .error("path", format!("invalid archive folder `{}`", excerpt(text)))
            .expected("a relative path such as `volumes/tiles/_data`")
            .report();
        return None;
    }
    Some(parts.join("/"))
}

fn archive(scope: Scope<'_>, raw: &RawArchive<'_>) -> Option<SourceArchive> {
    let size_bytes = positive_size(scope.key("size"), raw.size);
    let mirrors: Vec<String> = raw.mirrors.into_iter().flatten().cloned().collect();
    for (index, url) in mirrors.iter().enumerate() {
        mirror(scope.key("mirrors").index(index), url, &mirrors[..index]);
    }
    let Some(file) = raw.file else {
        let orphan = ["mirrors", "sha256", "size"].into_iter().find(|key| scope.has(key));
        // `file` is required by the schema; `archive` is not, but the other keys describe one.
        if let Some(key) = orphan.filter(|_| raw.key == "archive" && !scope.has("archive")) {
            scope
                .key(key)
                .key_error("missing-key", format!("`{key}` is that of an archive, and none is named"))
                .expected("`archive`: its file name, such as `shop.tar`")
                .report();
        }
        return None;
    };
    file_name(scope.key(raw.key), file);
    Some(SourceArchive { file: file.clone(), size_bytes, sha256: raw.sha256.cloned(), mirrors })
}

fn file_name(scope: Scope<'_>, file: &str) {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let begins = file.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || file.len() > FILE_NAME_MAX || !file.chars().all(is_fine) {
        scope
            .error("value", format!("invalid file name `{}`", excerpt(file)))
            .expected(format!("1 to {FILE_NAME_MAX} letters, digits, `.`, `_`, `+` and `-`, without a folder"))
            .report();
    }
}

fn mirror(scope: Scope<'_>, url: &str, before: &[String]) {
    let parsed = url.parse::<Uri>().ok();
    let host = parsed.as_ref().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https"))).and_then(Uri::host);
    let Some(host) = host.filter(|host| !host.is_empty()) else {
        scope
            .error("value", format!("invalid URL `{}`", excerpt(url)))
            .expected("`https://` or `http://`, a host and a path")
            .report();
        return;
    };
    let has_credentials = parsed.as_ref().and_then(Uri::authority).is_some_and(|part| part.as_str().contains('@'));
    if has_credentials {
        scope
            .error("value", "the URL carries a user name or password")
            .help("definitions are shared: keep secrets out of them, and bring the file along with `--from`")
            .report();
    }
    if host == "drive.google.com" || host == "drive.usercontent.google.com" {
        scope
            .error("value", "Google Drive asks people to confirm large downloads, and cannot be a mirror")
            .help("leave it out; download the file in a browser and give it to `arenad images load --from`")
            .report();
    }
    if before.iter().any(|other| other == url) {
        scope.error("duplicate-key", "this mirror is named twice").report();
    }
}
