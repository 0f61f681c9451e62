//! What a digest says of stores. Serialized as it is: it is kept with snapshots.

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
    /// SHA-256 (hex) over the declarations that decided what was looked at: digests of other declarations cannot be compared.
    pub declared: String,
    /// The contents by store.
    pub stores: BTreeMap<String, Content>,
}

impl Digest {
    pub(super) fn empty(site: &Site) -> Self {
        Self { declared: declared(site), stores: BTreeMap::new() }
    }

    /// Whether the site's stores are still declared as they were when this was taken.
    pub fn is_of(&self, site: &Site) -> bool {
        self.declared == declared(site)
    }

    /// SHA-256 (hex) over everything: equal for equal states, and the name of a state for people.
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

/// What is in one store, without what is volatile. What a kind of store does not have is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// The tables' rows, by table. Of a store with several databases, names begin with the database's key and a colon.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, Rows>,
    /// The last or next numbers of sequences and of tables that number their rows.
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

impl Content {
    /// Visits everything that is compared: what it is, its name, its value in one line.
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
pub struct Rows {
    /// How many there are.
    pub count: u64,
    /// A hash over all of them, whatever their order.
    pub hash: String,
}

/// A file, folder or whatever else has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// What it is.
    pub kind: FileKind,
    /// The permission bits.
    pub mode: u32,
    /// The owner's number.
    pub owner: u32,
    /// The group's number.
    pub group: u32,
    /// Bytes, of files; of devices their number.
    pub size: u64,
    /// Of files BLAKE3 (hex) of the content, of links where they lead, else empty.
    pub content: String,
}

impl FileEntry {
    /// What is compared, in one line: `file 644 900:900 12 bytes 5d41…`.
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
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}
