//! An entry of an archive of images that all readers interpret in the same way.
//!
//! An engine unpacks such an archive into a folder and then reads `manifest.json` there, so `./manifest.json`,
//! `a/../manifest.json` and a link with that name are the same file for the engine. The scan's result is only reliable
//! if each name has one spelling, occurs once, and does not lead through a link. The archives of `docker save` and
//! similar programs meet these conditions.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use tar::{Entry, EntryType};

/// Maximum number of entries in an archive of images; an image has at most 127 layers.
const ENTRIES_MAX: usize = 100_000;

/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 1024;

/// Extension of layers. Older engines save each layer once and link to it from other places.
const LAYER: &str = ".tar";

/// The headers of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberHeader {
    /// Canonical name; empty for the archive's root.
    pub path: String,
    /// Kind of the entry; for a link, with its target.
    pub kind: MemberKind,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberKind {
    /// A file with content.
    File,
    /// A folder, which may also be implied by its entries.
    Folder,
    /// A link to another entry, with that entry's canonical name.
    Link(String),
}

arenad_model::text_error! {
    /// The reason why readers could disagree on an entry, or on an archive with it.
    pub(crate) struct Ambiguity;
}

impl MemberHeader {
    /// Reads the headers of an entry.
    ///
    /// Errors: the reason why readers could interpret the entry differently.
    pub(crate) fn of(entry: &mut Entry<'_, impl Read>) -> Result<Self, Ambiguity> {
        check_extensions(entry)?;
        let name = entry.path_bytes().into_owned();
        let shown = String::from_utf8_lossy(&name).escape_debug().to_string();
        let name = String::from_utf8(name).map_err(|_| format!("the name `{shown}` is not UTF-8"))?;
        let kind = entry.header().entry_type();
        let (name, is_folder) = match (name.strip_suffix('/'), kind) {
            (Some(name), EntryType::Directory) => (name, true),
            (_, kind) => (name.as_str(), kind == EntryType::Directory),
        };
        let path = match name {
            "." if is_folder => String::new(),
            name => canonical(name).ok_or_else(|| format!("the name `{shown}` is not canonical"))?,
        };
        // Some readers expect content here, others do not.
        if kind != EntryType::Regular && entry.size() != 0 {
            return Err(format!("`{shown}` has content but is not a file").into());
        }
        let kind = match kind {
            EntryType::Regular => MemberKind::File,
            EntryType::Directory => MemberKind::Folder,
            EntryType::Symlink | EntryType::Link => MemberKind::Link(target(entry, &path, kind)?),
            _ => return Err(format!("`{shown}` is neither a file nor a folder").into()),
        };
        Ok(Self { path, kind })
    }
}

/// Rejects extended headers that repeat a field or contain fields that only some readers know.
fn check_extensions(entry: &mut Entry<'_, impl Read>) -> Result<(), Ambiguity> {
    let unreadable = |error: std::io::Error| format!("an extended header cannot be read: {error}");
    let Some(extensions) = entry.pax_extensions().map_err(unreadable)? else { return Ok(()) };
    let mut seen = HashSet::new();
    for extension in extensions {
        let extension = extension.map_err(unreadable)?;
        let key = extension.key_bytes();
        let shown = String::from_utf8_lossy(key).escape_debug().to_string();
        if key.starts_with(b"GNU.sparse.") {
            return Err(format!("an extended header has `{shown}`").into());
        }
        if !seen.insert(key.to_vec()) {
            return Err(format!("an extended header has `{shown}` twice").into());
        }
    }
    Ok(())
}

/// Returns a name in the form of `manifest.json`, without the `./` prefix that `tar -C folder -c .` adds. Returns
/// `None` if the name is not canonical.
fn canonical(name: &str) -> Option<String> {
    let name = name.strip_prefix("./").unwrap_or(name);
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.chars().any(char::is_control);
    (name.len() <= NAME_MAX && name.split('/').all(is_plain)).then(|| name.to_owned())
}

/// Returns the target of a link. Only links between layers are allowed, because an engine would read any other link as
/// its target.
fn target(entry: &Entry<'_, impl Read>, path: &str, kind: EntryType) -> Result<String, Ambiguity> {
    let target = entry.link_name_bytes().map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default();
    let led = match kind {
        EntryType::Link => canonical(&target),
        _ => resolve(path, &target),
    };
    led.filter(|led| path.ends_with(LAYER) && led.ends_with(LAYER))
        .ok_or_else(|| format!("`{path}` links to `{}`, and only layers may be linked", target.escape_debug()).into())
}

/// Resolves a symbolic link within the archive.
fn resolve(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    canonical(&parts.join("/"))
}

/// The names of an archive's entries so far.
#[derive(Debug, Default)]
pub(crate) struct MemberNames {
    /// Names of files and links.
    ends: HashSet<String>,
    /// Names of folders, including those that are implied by their entries.
    folders: HashSet<String>,
    /// Targets of the links.
    links: HashMap<String, String>,
    count: usize,
}

impl MemberNames {
    /// Adds an entry.
    ///
    /// Errors: the reason why the entry makes the archive ambiguous.
    pub(crate) fn add(&mut self, member: &MemberHeader) -> Result<(), Ambiguity> {
        self.count += 1;
        if self.count > ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries").into());
        }
        let path = &member.path;
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        for folder in above {
            if self.ends.contains(folder) {
                return Err(format!("`{path}` is in `{folder}`, which is not a folder").into());
            }
            if !self.folders.contains(folder) {
                self.folders.insert(folder.to_owned());
            }
        }
        let is_folder = member.kind == MemberKind::Folder;
        let is_taken = self.ends.contains(path) || !is_folder && self.folders.contains(path);
        if is_taken {
            return Err(format!("`{path}` stands in it twice").into());
        }
        if let MemberKind::Link(target) = &member.kind {
            self.links.insert(path.clone(), target.clone());
        }
        if is_folder {
            self.folders.insert(path.clone())
        } else {
            self.ends.insert(path.clone())
        };
        Ok(())
    }

    /// Returns the file that a name leads to. Older engines save a layer only once and link to it from other places.
    pub(crate) fn follow<'a>(&'a self, path: &'a str) -> &'a str {
        let mut path = path;
        for _ in 0..8 {
            match self.links.get(path) {
                Some(target) => path = target,
                None => break,
            }
        }
        path
    }

    /// Returns the names of the links.
    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        self.links.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_one_way() {
        for name in ["manifest.json", "./manifest.json", "blobs/sha256/0a", "..a/b..", "a b"] {
            assert_eq!(canonical(name).as_deref(), Some(name.trim_start_matches("./")), "{name}");
        }
        let refused = [
            "/manifest.json",
            ".//manifest.json",
            "././manifest.json",
            "a/../manifest.json",
            "a//b",
            "a/./b",
            "a/",
            "",
            ".",
            "..",
            "./",
            "../a",
            "manifest.json\0",
            "a\nb",
        ];
        for name in refused {
            assert_eq!(canonical(name), None, "{name:?}");
        }
    }

    #[test]
    fn links_lead_to_layers_within_the_archive() {
        assert_eq!(resolve("one/layer.tar", "../two/layer.tar").as_deref(), Some("two/layer.tar"));
        assert_eq!(resolve("one/layer.tar", "other.tar").as_deref(), Some("one/other.tar"));
        for target in ["/etc/passwd", "../../layer.tar", "", "./a.tar", "a//b.tar"] {
            assert_eq!(resolve("one/layer.tar", target), None, "{target:?}");
        }
    }

    #[test]
    fn each_name_stands_once_and_under_folders_only() {
        let file = |path: &str| MemberHeader { path: path.to_owned(), kind: MemberKind::File };
        let folder = |path: &str| MemberHeader { path: path.to_owned(), kind: MemberKind::Folder };
        let link = |path: &str| MemberHeader { path: path.to_owned(), kind: MemberKind::Link("b.tar".to_owned()) };
        let all = |members: &[MemberHeader]| {
            let mut names = MemberNames::default();
            members.iter().try_for_each(|member| names.add(member))
        };
        all(&[folder(""), folder("a"), file("a/b"), folder("a"), file("c")]).expect("an archive");
        for members in [
            [file("a"), file("a")],
            [file("a"), file("a/b")],
            [file("a/b"), file("a")],
            [folder("a"), file("a")],
            [file("a"), folder("a")],
            [link("a.tar"), file("a.tar/manifest.json")],
            [link("a.tar"), file("a.tar")],
        ] {
            all(&members).expect_err("it is ambiguous");
        }
    }
}
