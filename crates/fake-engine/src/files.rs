//! File systems of containers: the image's files, the container's writable layer above them, and mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Files by absolute path. Every folder on the path of a file has an entry, except for `/`.
pub(super) type FileTree = BTreeMap<String, FileNode>;

/// A container's changes to the files of its image; `None` marks a removed file.
pub(super) type Layer = BTreeMap<String, Option<FileNode>>;

/// A file, folder or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileNode {
    pub(super) content: NodeContent,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Modification time, in seconds since 1970 UTC.
    pub(super) modified: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeContent {
    File(Bytes),
    Folder,
    Link(String),
}

impl FileNode {
    pub(super) fn file(content: impl Into<Bytes>) -> Self {
        Self { content: NodeContent::File(content.into()), mode: 0o644, uid: 0, gid: 0, modified: 0 }
    }

    pub(super) fn folder() -> Self {
        Self { content: NodeContent::Folder, mode: 0o755, uid: 0, gid: 0, modified: 0 }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.content == NodeContent::Folder
    }

    pub(super) fn size(&self) -> u64 {
        match &self.content {
            NodeContent::File(bytes) => bytes.len() as u64,
            NodeContent::Folder | NodeContent::Link(_) => 0,
        }
    }
}

/// Makes a path absolute, and removes `.`, `..`, and duplicate and trailing slashes. The root becomes an empty path.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

/// Returns the folder that contains a normal path.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the rest of a path below a folder; both must be normal.
pub(super) fn below_of<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds a file to a tree, with the folders on its path.
pub(super) fn put(tree: &mut FileTree, path: &str, node: FileNode) {
    let mut folder = parent(path);
    while !folder.is_empty() && !tree.contains_key(folder) {
        tree.insert(folder.to_owned(), FileNode::folder());
        folder = parent(folder);
    }
    tree.insert(path.to_owned(), node);
}

fn children_of<'a, V>(tree: &'a BTreeMap<String, V>, folder: &str) -> impl Iterator<Item = (&'a str, &'a V)> {
    let prefix = format!("{folder}/");
    tree.range(prefix.clone()..)
        .take_while({
            let prefix = prefix.clone();
            move |(path, _)| path.starts_with(&prefix)
        })
        .filter_map(move |(path, value)| {
            let name = path.strip_prefix(&prefix)?;
            (!name.is_empty() && !name.contains('/')).then_some((name, value))
        })
}

/// The mount at a path of a container.
#[derive(Debug)]
pub(super) enum ContainerMount {
    /// The engine's volume with this name.
    Volume { name: String, read_only: bool },
    /// A folder or file of the host. The container keeps the one that existed at its start, even if the name is reused
    /// later, as a real mount does.
    Host { path: PathBuf, held: Option<File>, read_only: bool },
    /// Files in memory, which are empty at each start.
    Memory(FileTree),
}

/// The location of a path's files.
enum FileLocation<'p> {
    Layer(&'p str),
    Volume { name: String, path: &'p str, read_only: bool },
    Host { path: PathBuf, read_only: bool },
    Memory { target: String, path: &'p str },
}

/// A container's files as its processes see them.
pub(super) struct View<'a> {
    pub(super) image: &'a FileTree,
    pub(super) layer: &'a mut Layer,
    pub(super) mounts: &'a mut BTreeMap<String, ContainerMount>,
    pub(super) volumes: &'a mut BTreeMap<String, super::world::Volume>,
    pub(super) disk_full: bool,
    /// Whether the layer is read-only.
    pub(super) read_only: bool,
}

impl View<'_> {
    fn place<'p>(&self, path: &'p str) -> FileLocation<'p> {
        let mounted = self.mounts.iter().filter_map(|(target, mount)| Some((target, mount, below_of(path, target)?)));
        match mounted.max_by_key(|(target, ..)| target.len()) {
            None => FileLocation::Layer(path),
            Some((_, ContainerMount::Volume { name, read_only }, path)) => {
                FileLocation::Volume { name: name.clone(), path, read_only: *read_only }
            }
            Some((target, ContainerMount::Memory(_), path)) => FileLocation::Memory { target: target.clone(), path },
            Some((_, ContainerMount::Host { path: on_host, held, read_only }, rest)) => {
                let base = match held {
                    Some(held) if !rest.is_empty() => PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())),
                    _ => on_host.clone(),
                };
                let path = if rest.is_empty() { base } else { base.join(rest.trim_start_matches('/')) };
                FileLocation::Host { path, read_only: *read_only }
            }
        }
    }

    fn own(&self, path: &str) -> Option<&FileNode> {
        match self.layer.get(path) {
            Some(changed) => changed.as_ref(),
            None => self.image.get(path),
        }
    }

    /// Returns the node at a normal path.
    pub(super) fn get(&self, path: &str) -> Option<FileNode> {
        if path.is_empty() {
            return Some(FileNode::folder());
        }
        let or_root = |path: &str, found: Option<&FileNode>| match (found, path) {
            (Some(found), _) => Some(found.clone()),
            (None, "") => Some(FileNode::folder()),
            (None, _) => None,
        };
        match self.place(path) {
            FileLocation::Layer(path) => self.own(path).cloned(),
            FileLocation::Volume { name, path, .. } => or_root(path, self.volumes.get(&name)?.files.get(path)),
            FileLocation::Memory { target, path } => match self.mounts.get(&target) {
                Some(ContainerMount::Memory(files)) => or_root(path, files.get(path)),
                _ => None,
            },
            FileLocation::Host { path, .. } => read_host(&path),
        }
    }

    /// Returns the differences from the image, by path. A folder of the image counts as changed if something was added
    /// to it or removed from it.
    pub(super) fn changes(&self) -> Vec<(String, char)> {
        let mut found = BTreeMap::new();
        for (path, change) in self.layer.iter() {
            let kind = match (change, self.image.get(path)) {
                (None, _) => 'D',
                (Some(_), None) => 'A',
                (Some(node), Some(before)) if node == before => continue,
                (Some(_), Some(_)) => 'C',
            };
            // The files of a removed folder are not listed.
            if kind == 'D' && self.own(parent(path)).is_none() && !parent(path).is_empty() {
                continue;
            }
            found.insert(path.clone(), kind);
            let mut folder = parent(path);
            while self.image.contains_key(folder) && self.own(folder).is_some() {
                found.entry(folder.to_owned()).or_insert('C');
                folder = parent(folder);
            }
        }
        found.into_iter().collect()
    }

    /// Returns the names of a folder's entries.
    pub(super) fn children(&self, folder: &str) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = match self.place(folder) {
            FileLocation::Layer(folder) => {
                let image = children_of(self.image, folder).map(|(name, _)| name);
                let own = children_of(self.layer, folder).map(|(name, _)| name);
                let is_there = |name: &&str| self.own(&format!("{folder}/{name}")).is_some();
                image.chain(own).filter(is_there).map(str::to_owned).collect()
            }
            FileLocation::Volume { name, path, .. } => match self.volumes.get(&name) {
                Some(volume) => children_of(&volume.files, path).map(|(name, _)| name.to_owned()).collect(),
                None => BTreeSet::new(),
            },
            FileLocation::Memory { target, path } => match self.mounts.get(&target) {
                Some(ContainerMount::Memory(files)) => {
                    children_of(files, path).map(|(name, _)| name.to_owned()).collect()
                }
                _ => BTreeSet::new(),
            },
            FileLocation::Host { path, .. } => std::fs::read_dir(path)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect(),
        };
        names.extend(self.mounts.keys().filter_map(|target| {
            let rest = below_of(target, folder)?.strip_prefix('/')?;
            (!rest.contains('/')).then(|| rest.to_owned())
        }));
        names
    }

    /// Writes a node to a normal path, and creates the folders on the path.
    pub(super) fn put(&mut self, path: &str, node: FileNode) -> io::Result<()> {
        let place = self.place(path);
        if self.disk_full && !matches!(place, FileLocation::Memory { .. } | FileLocation::Host { .. }) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match place {
            FileLocation::Layer(_) if self.read_only => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            FileLocation::Layer(path) => {
                let mut folder = parent(path);
                while !folder.is_empty() && self.own(folder).is_none() {
                    self.layer.insert(folder.to_owned(), Some(FileNode::folder()));
                    folder = parent(folder);
                }
                self.layer.insert(path.to_owned(), Some(node));
                Ok(())
            }
            FileLocation::Volume { read_only: true, .. } | FileLocation::Host { read_only: true, .. } => {
                Err(io::ErrorKind::ReadOnlyFilesystem.into())
            }
            FileLocation::Volume { name, path, .. } => {
                let volume = self.volumes.get_mut(&name).ok_or(io::ErrorKind::NotFound)?;
                put(&mut volume.files, path, node);
                Ok(())
            }
            FileLocation::Memory { target, path } => {
                if let Some(ContainerMount::Memory(files)) = self.mounts.get_mut(&target) {
                    put(files, path, node);
                }
                Ok(())
            }
            FileLocation::Host { path, .. } => write_host(&path, &node),
        }
    }

    /// Removes the node at a normal path, with everything below it.
    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        match self.place(path) {
            FileLocation::Layer(_) if self.read_only => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            FileLocation::Layer(path) => {
                let gone: Vec<String> =
                    self.image.keys().filter(|found| below_of(found, path).is_some()).cloned().collect();
                self.layer.retain(|found, _| below_of(found, path).is_none());
                self.layer.extend(gone.into_iter().map(|found| (found, None)));
                Ok(())
            }
            FileLocation::Volume { read_only: true, .. } | FileLocation::Host { read_only: true, .. } => {
                Err(io::ErrorKind::ReadOnlyFilesystem.into())
            }
            FileLocation::Volume { name, path, .. } => {
                if let Some(volume) = self.volumes.get_mut(&name) {
                    volume.files.retain(|found, _| below_of(found, path).is_none());
                }
                Ok(())
            }
            FileLocation::Memory { target, path } => {
                if let Some(ContainerMount::Memory(files)) = self.mounts.get_mut(&target) {
                    files.retain(|found, _| below_of(found, path).is_none());
                }
                Ok(())
            }
            FileLocation::Host { path: on_host, .. } => match std::fs::symlink_metadata(&on_host) {
                Ok(found) if found.is_dir() => std::fs::remove_dir_all(on_host),
                Ok(_) => std::fs::remove_file(on_host),
                Err(error) => Err(error),
            },
        }
    }

    /// Returns the file or folder at a normal path as a tar archive whose names begin with the last component of the
    /// path, like `docker cp`.
    pub(super) fn pack(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(node) = self.get(path) else { return Ok(None) };
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut archive = tar::Builder::new(Vec::new());
        self.append(&mut archive, path, name, &node)?;
        archive.into_inner().map(Some)
    }

    fn append(&self, archive: &mut tar::Builder<Vec<u8>>, path: &str, name: &str, node: &FileNode) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_mode(node.mode);
        header.set_uid(node.uid.into());
        header.set_gid(node.gid.into());
        header.set_mtime(node.modified);
        header.set_size(node.size());
        match &node.content {
            NodeContent::File(bytes) => {
                header.set_entry_type(tar::EntryType::Regular);
                archive.append_data(&mut header, name, bytes.as_ref())
            }
            NodeContent::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, name, target)
            }
            NodeContent::Folder => {
                header.set_entry_type(tar::EntryType::Directory);
                let shown = if name.is_empty() { "./".to_owned() } else { format!("{name}/") };
                archive.append_data(&mut header, shown, io::empty())?;
                for child in self.children(path) {
                    let path = format!("{path}/{child}");
                    let name = if name.is_empty() { child } else { format!("{name}/{child}") };
                    if let Some(node) = self.get(&path) {
                        self.append(archive, &path, &name, &node)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Unpacks a tar archive into the folder at a normal path.
    pub(super) fn unpack(&mut self, folder: &str, archive: &[u8]) -> io::Result<()> {
        for (path, node) in read_tar(archive)? {
            let path = normal(&format!("{folder}/{path}"));
            if path.is_empty() {
                continue;
            }
            // A folder that already exists keeps its content.
            if !(node.is_folder() && self.get(&path).is_some_and(|found| found.is_folder())) {
                self.put(&path, node)?;
            }
        }
        Ok(())
    }
}

/// Returns the entries of a tar archive, in their order.
pub(super) fn read_tar(archive: &[u8]) -> io::Result<Vec<(String, FileNode)>> {
    let mut found = Vec::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let header = entry.header().clone();
        let content = match header.entry_type() {
            tar::EntryType::Directory => NodeContent::Folder,
            tar::EntryType::Symlink => match entry.link_name()? {
                Some(target) => NodeContent::Link(target.to_string_lossy().into_owned()),
                None => continue,
            },
            kind if kind.is_file() => {
                let mut bytes = Vec::new();
                io::Read::read_to_end(&mut entry, &mut bytes)?;
                NodeContent::File(bytes.into())
            }
            _ => continue,
        };
        let owner = |id: io::Result<u64>| id.ok().and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
        let node = FileNode {
            content,
            mode: header.mode()? & 0o7777,
            uid: owner(header.uid()),
            gid: owner(header.gid()),
            modified: header.mtime()?,
        };
        found.push((path, node));
    }
    Ok(found)
}

fn read_host(path: &Path) -> Option<FileNode> {
    let found = std::fs::symlink_metadata(path).ok()?;
    let content = if found.is_dir() {
        NodeContent::Folder
    } else if found.is_symlink() {
        NodeContent::Link(std::fs::read_link(path).ok()?.to_string_lossy().into_owned())
    } else {
        NodeContent::File(std::fs::read(path).ok()?.into())
    };
    let modified = u64::try_from(found.mtime()).unwrap_or_default();
    Some(FileNode { content, mode: found.mode() & 0o7777, uid: found.uid(), gid: found.gid(), modified })
}

fn write_host(path: &Path, node: &FileNode) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match &node.content {
        NodeContent::Folder => std::fs::create_dir_all(path)?,
        NodeContent::Link(target) => return std::os::unix::fs::symlink(target, path),
        NodeContent::File(bytes) => std::fs::write(path, bytes)?,
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(node.mode))?;
    // Only root can change the owner of a file; for other users, the file keeps its owner.
    match std::os::unix::fs::chown(path, Some(node.uid), Some(node.gid)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::{below_of, normal};

    #[test]
    fn paths_are_brought_into_one_form() {
        assert_eq!(normal("/"), "");
        assert_eq!(normal("a//b/./c/"), "/a/b/c");
        assert_eq!(normal("/a/../../b"), "/b");
    }

    #[test]
    fn a_folder_is_not_that_whose_name_begins_alike() {
        assert_eq!(below_of("/data/x", "/data"), Some("/x"));
        assert_eq!(below_of("/data", "/data"), Some(""));
        assert_eq!(below_of("/database", "/data"), None);
        assert_eq!(below_of("/x", ""), Some("/x"));
    }
}
