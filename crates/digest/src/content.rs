//! The content of a digest. It is serialized in this form and stored with snapshots.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use arenad_model::hex::hex;
use arenad_model::site::Site;
use arenad_model::store::VolatilePart;

/// The contents of an instance's stores.
///
/// Shape: `{"declared": hex, "stores": {"database": {"tables": {...}, ...}, ...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// SHA-256 (hex) over the declarations that determine the content; digests of different declarations cannot be
    /// compared.
    pub declared: String,
    /// Contents by the store's name.
    pub stores: BTreeMap<String, StoreContent>,
}

impl Digest {
    pub(super) fn empty(site: &Site) -> Self {
        Self { declared: declared(site), stores: BTreeMap::new() }
    }

    /// Returns whether the site's stores are still declared as they were when this digest was taken.
    pub fn is_of(&self, site: &Site) -> bool {
        self.declared == declared(site)
    }

    /// Returns the SHA-256 (hex) over the whole digest. It is equal for equal states, and shown to users as the name of
    /// a state.
    pub fn total(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.declared);
        for (name, content) in &self.stores {
            hash.update(format!("\n{name:?}"));
            content.each(&mut |kind, name, value| hash.update(format!("\n{kind} {name:?} {value}")));
        }
        hex(&hash.finalize())
    }
}

fn declared(site: &Site) -> String {
    let mut hash = Sha256::new();
    for store in &site.stores {
        let databases = store.databases();
        let (name, service, path, kind) = (&store.name, &store.service, &store.path, store.kind.name());
        hash.update(format!("{name:?} {service} {path:?} {kind} {databases:?}\n"));
        for volatile in &store.volatile {
            hash.update(match &volatile.part {
                VolatilePart::Table(table) => format!("table {table:?}\n"),
                VolatilePart::Column { table, column } => format!("column {table:?} {column:?}\n"),
                VolatilePart::Sequence(sequence) => format!("sequence {sequence:?}\n"),
                VolatilePart::File(pattern) => format!("file {pattern:?}\n"),
                VolatilePart::Key(pattern) => format!("key {pattern:?}\n"),
            });
        }
    }
    hex(&hash.finalize())
}

/// The content of one store, without its volatile parts. Collections that a kind of store does not have are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreContent {
    /// Rows by table. If a store has several databases, names begin with the database's key and a colon.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, TableDigest>,
    /// Last or next numbers of sequences and of tables with automatic numbering.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, String>,
    /// Hashes of definitions, by kind and name: `index posts_pkey`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<String, String>,
    /// Files and folders by their path relative to the store, whose own folder is `.`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileEntry>,
    /// Hashes of values, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

impl StoreContent {
    /// Returns the SHA-256 (hex) over the content. It is equal for equal contents.
    pub fn total(&self) -> String {
        let mut hash = Sha256::new();
        self.each(&mut |kind, name, value| hash.update(format!("{kind} {name:?} {value}\n")));
        hex(&hash.finalize())
    }

    /// Calls `visit` with each item that is compared: its kind, its name, and its value on one line.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&str, &str, &dyn fmt::Display)) {
        self.tables.iter().for_each(|(name, rows)| visit("table", name, &format_args!("{} {}", rows.count, rows.hash)));
        self.counters.iter().for_each(|(name, value)| visit("counter", name, value));
        self.objects.iter().for_each(|(name, hash)| visit("object", name, hash));
        self.files.iter().for_each(|(name, file)| visit("file", name, &file.attributes()));
        self.keys.iter().for_each(|(name, hash)| visit("key", name, hash));
    }
}

/// The rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDigest {
    /// Number of rows in the table.
    pub count: u64,
    /// Hash over all rows; it does not depend on their order.
    pub hash: String,
}

/// A file, a folder or any other entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Kind of the entry; links are not followed.
    pub kind: FileKind,
    /// Permission bits, without those of the file type.
    pub mode: u32,
    /// Numeric ID of the owner.
    pub owner: u32,
    /// Numeric ID of the group.
    pub group: u32,
    /// Size of a file in bytes; number of a device; otherwise 0.
    pub size: u64,
    /// BLAKE3 (hex) of a file's content; target of a link; otherwise empty.
    pub content: String,
}

impl FileEntry {
    /// Returns the attributes that are compared, on one line: `file 644 900:900 12 bytes 5d41…`.
    pub(crate) fn attributes(&self) -> String {
        let Self { kind, mode, owner, group, size, content } = self;
        let (kind, what) = match kind {
            FileKind::File => ("file", format!(" {size} bytes {content}")),
            FileKind::Link => ("link", format!(" to {content}")),
            FileKind::Device => ("device", format!(" {size:x}")),
            FileKind::Folder => ("folder", String::new()),
            FileKind::Pipe => ("pipe", String::new()),
            FileKind::Socket => ("socket", String::new()),
        };
        format!("{kind} {mode:o} {owner}:{group}{what}")
    }
}

/// The kind of a folder's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file, with size and content.
    File,
    /// A folder; its entries are listed themselves.
    Folder,
    /// A symbolic link, with its target.
    Link,
    /// A named pipe, which is never opened.
    Pipe,
    /// A socket, which is never connected to.
    Socket,
    /// A block or character device, with its number.
    Device,
}
