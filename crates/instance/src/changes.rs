//! The changes in an instance: since its snapshot, since a look, or between two looks.
//!
//! ```text
//!   baseline: digest in the store, rows in looks/snapshots/   ─┐
//!   look:     looks/instances/INSTANCE/GENERATION/NUMBER       ├─► compare ─► StateChanges
//!   now:      digest, rows of the tables that differ          ─┘
//! ```
//! The rows of a snapshot are read from the first instance that is proven to equal it. A look contains only the rows and
//! texts that differ from the snapshot's. All rows are checked against a digest, so rows that do not belong to it are
//! never reported. Looks belong to a generation and are unreachable after it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::proof::{ProofCandidate, ProofError};
use arenad_changes::{
    LookContent, LookFile, StateChanges, StatePoint, StoreTexts, compare, differing_tables, differing_texts,
};
use arenad_digest::{self as digest, Digest, Folders, Known, StoreConnections, StoreRows, Subject, WantedRows};
use arenad_launch as launch;
use arenad_model::error::describe;
use arenad_model::instance::InstanceId;
use arenad_seams::inline;
use arenad_store::StoreError;

/// The number of looks that a generation can have.
pub const LOOKS_MAX: usize = 16;

/// The number of times that a state is read if it changes during the reading.
const ATTEMPTS: usize = 3;

/// The maximum size of a file whose content is compared, in bytes.
const TEXT_MAX: u64 = 64 << 10;

/// The number of files of a store whose content is compared.
const TEXTS_MAX: usize = 100;

/// The reason why changes are not known.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The state could not be read, or there is no digest of the snapshot.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The generation has no look of this number.
    #[error("there is no look {0} of the generation that serves")]
    UnknownLook(u64),
    /// The generation has as many looks as it can have.
    #[error("the generation that serves has {LOOKS_MAX} looks, and no more are kept")]
    TooManyLooks,
    /// A look could not be read or written.
    #[error("{doing} a look in {path}")]
    File {
        /// The action as a verb.
        doing: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        cause: io::Error,
    },
}

impl From<StoreError> for ChangesError {
    fn from(error: StoreError) -> Self {
        Self::Proof(ProofError::Store(error))
    }
}

impl From<digest::DigestError> for ChangesError {
    fn from(error: digest::DigestError) -> Self {
        Self::Proof(ProofError::Digest(error))
    }
}

/// The states to compare.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangesRequest {
    /// The look that is the earlier state; `None` for the snapshot.
    pub since: Option<u64>,
    /// The look that is the later state; `None` for the present state.
    pub until: Option<u64>,
    /// Whether the values of rows are needed.
    pub with_values: bool,
}

/// The changes between two states.
#[derive(Debug)]
pub struct FoundChanges {
    /// The changes by store.
    pub changes: StateChanges,
    /// Whether all rows that were read belong to the digest. Otherwise the site was writing while it was read.
    pub is_settled: bool,
}

/// The folder of rows of snapshots and of looks.
#[derive(Debug, Clone)]
pub struct LookFolder(PathBuf);

impl LookFolder {
    /// Names the folder; nothing is created.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file with the rows of a snapshot. They depend on the parts of the stores that are declared volatile.
    fn baseline(&self, snapshot: &str, digest: &Digest) -> PathBuf {
        let declared: String = digest.declared.chars().take(16).collect();
        self.0.join("snapshots").join(format!("{snapshot}.{declared}"))
    }

    /// The folder with the looks of all generations of an instance.
    fn instance(&self, id: &InstanceId) -> PathBuf {
        self.0.join("instances").join(format!("{}.{}.{}", id.environment, id.site, id.number))
    }

    fn generation(&self, id: &InstanceId, generation: u64) -> PathBuf {
        self.instance(id).join(generation.to_string())
    }

    /// Returns the numbers of a generation's looks, in order.
    pub fn numbers(&self, id: &InstanceId, generation: u64) -> io::Result<Vec<u64>> {
        look_numbers(&self.generation(id, generation))
    }

    /// Removes the rows of snapshots that do not exist any more, and the looks of generations that do not serve.
    pub fn retain(&self, snapshots: &BTreeSet<String>, serving: &BTreeMap<InstanceId, u64>) -> io::Result<()> {
        let files = self.0.join("snapshots");
        for name in names(&files)? {
            let of = name.rsplit_once('.').map_or(name.as_str(), |(snapshot, _)| snapshot);
            if !snapshots.contains(of) {
                remove(&files.join(&name))?;
            }
        }
        let kept: BTreeMap<PathBuf, u64> =
            serving.iter().map(|(id, generation)| (self.instance(id), *generation)).collect();
        let folders = self.0.join("instances");
        for name in names(&folders)? {
            let folder = folders.join(&name);
            match kept.get(&folder) {
                Some(generation) => keep_only(&folder, *generation)?,
                None => remove(&folder)?,
            }
        }
        Ok(())
    }
}

/// Removes the looks of all generations of an instance but one.
fn keep_only(instance: &Path, generation: u64) -> io::Result<()> {
    let kept = generation.to_string();
    for name in names(instance)?.into_iter().filter(|name| *name != kept) {
        remove(&instance.join(name))?;
    }
    Ok(())
}

/// Returns the numbers of the looks in the folder of a generation, in order.
fn look_numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> = names(folder)?.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the names in a folder; none if it does not exist.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A state that was read from a running instance.
#[derive(Debug)]
struct ReadState {
    digest: Digest,
    rows: StoreRows,
    texts: StoreTexts,
    is_settled: bool,
}

/// A state that is about to be kept as a look.
#[derive(Debug)]
pub struct PendingLook {
    /// The folder with the looks of the generation.
    folder: PathBuf,
    generation: u64,
    state: ReadState,
}

impl PendingLook {
    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }

    fn write(&self, number: u64) -> io::Result<()> {
        let ReadState { digest, rows, texts, .. } = &self.state;
        LookFile::write(&self.path(number), LookContent { digest: Some(digest), rows, texts })
    }
}

/// Keeps the states of different instances as looks of one number, all or none, and returns the number.
///
/// Errors: `TooManyLooks` if one of the generations has as many as it can have; a look could not be written.
/// Cancellation: safe; the looks may exist.
pub async fn keep_looks(pending: Vec<PendingLook>) -> Result<u64, ChangesError> {
    let path = pending.first().map(|look| look.folder.clone()).unwrap_or_default();
    let number = blocking("write", &path, move |_| {
        for look in &pending {
            keep_only(look.folder.parent().unwrap_or(&look.folder), look.generation)?;
        }
        write_looks(&pending)
    });
    number.await?.ok_or(ChangesError::TooManyLooks)
}

/// Writes looks under the lowest number that is above those of all other looks; `None` if there are too many of them.
fn write_looks(pending: &[PendingLook]) -> io::Result<Option<u64>> {
    'number: loop {
        let mut number = 1;
        for look in pending {
            let taken = look_numbers(&look.folder)?;
            if taken.len() >= LOOKS_MAX {
                return Ok(None);
            }
            number = number.max(taken.last().map_or(1, |last| last + 1));
        }
        for (index, look) in pending.iter().enumerate() {
            let Err(error) = look.write(number) else { continue };
            for written in &pending[..index] {
                remove(&written.path(number))?;
            }
            match error.kind() {
                // Another request took this number.
                io::ErrorKind::AlreadyExists => continue 'number,
                _ => return Err(error),
            }
        }
        return Ok(Some(number));
    }
}

/// A state that is kept on disk.
struct KeptState {
    digest: Arc<Digest>,
    /// The file of the look; `None` if the state is the snapshot's.
    look: Option<PathBuf>,
}

/// Tables and paths of files that a comparison needs, by store.
#[derive(Default, Clone)]
struct Needed {
    tables: BTreeMap<String, Vec<String>>,
    texts: BTreeMap<String, Vec<String>>,
}

impl ProofCandidate<'_> {
    /// Keeps the rows of the snapshot, unless they are kept already. The instance must equal the snapshot. An error is
    /// only logged, because the instance can serve without the rows.
    pub(crate) async fn keep_rows(&self, lines: &StoreConnections) {
        if let Err(error) = self.try_keep_rows(lines).await {
            let snapshot = &self.snapshot.id;
            tracing::warn!(instance.id = %self.id, error = describe(&error), "the rows of snapshot {snapshot} are not kept");
        }
    }

    async fn try_keep_rows(&self, lines: &StoreConnections) -> Result<(), ChangesError> {
        let Some(reference) = self.reference().await? else { return Ok(()) };
        let path = self.looks().baseline(&self.snapshot.id, &reference);
        if path.exists() {
            return Ok(());
        }
        let tables = reference.stores.iter().flat_map(|(store, content)| {
            content.tables.iter().map(move |(table, rows)| (rows.count, store.as_str(), table.as_str()))
        });
        let mut tables: Vec<_> = tables.collect();
        if tables.is_empty() {
            return Ok(());
        }
        // Small tables first, so that the limit affects as few tables as possible.
        tables.sort_unstable();
        let mut wanted = WantedRows { with_values: true, ..WantedRows::default() };
        tables.iter().for_each(|(count, store, table)| wanted.add(store, table, *count));
        let folders = self.folders();
        let mut rows = digest::take_rows(&self.subject(&folders, lines), &wanted).await?;
        if !self.check(&mut rows, &reference) {
            tracing::warn!(instance.id = %self.id, "the site writes to tables while the rows of its snapshot are read");
        }
        let doing = "write";
        let written = blocking(doing, &path, move |path| {
            let content = LookContent { digest: None, rows: &rows, texts: &StoreTexts::new() };
            match LookFile::write(path, content) {
                // Another instance of the snapshot was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                written => written,
            }
        });
        written.await
    }

    /// Returns the changes between two states of the instance.
    ///
    /// Errors: a look does not exist, or a state could not be read. Cancellation: safe.
    pub async fn changes(&self, request: ChangesRequest) -> Result<FoundChanges, ChangesError> {
        let reference = self.needed_reference().await?;
        let before = self.kept(request.since, &reference).await?;
        let Some(until) = request.until else {
            let now = self.read(&before.digest, request.with_values).await?;
            let needed = Needed::between(&before.digest, &now.digest).0;
            let (rows, texts) = self.content(&before, &reference, needed).await?;
            let earlier = StatePoint { digest: &before.digest, rows: &rows, texts: &texts };
            let later = StatePoint { digest: &now.digest, rows: &now.rows, texts: &now.texts };
            return Ok(FoundChanges { changes: compare(earlier, later), is_settled: now.is_settled });
        };
        let now = self.kept(Some(until), &reference).await?;
        let (earlier, later) = Needed::between(&before.digest, &now.digest);
        let (rows_before, texts_before) = self.content(&before, &reference, earlier).await?;
        let (rows_now, texts_now) = self.content(&now, &reference, later).await?;
        let earlier = StatePoint { digest: &before.digest, rows: &rows_before, texts: &texts_before };
        let later = StatePoint { digest: &now.digest, rows: &rows_now, texts: &texts_now };
        Ok(FoundChanges { changes: compare(earlier, later), is_settled: true })
    }

    /// Keeps the present state as a look, and returns its number.
    ///
    /// Errors: `TooManyLooks`; the state could not be read or written. Cancellation: safe; the look may exist.
    pub async fn keep_look(&self) -> Result<u64, ChangesError> {
        keep_looks(vec![self.read_look().await?]).await
    }

    /// Reads the present state for [`keep_looks`].
    ///
    /// Errors: `TooManyLooks`; the state could not be read. Cancellation: safe.
    pub async fn read_look(&self) -> Result<PendingLook, ChangesError> {
        let reference = self.needed_reference().await?;
        let folder = self.looks().generation(self.id, self.incarnation.generation);
        if look_numbers(&folder).unwrap_or_default().len() >= LOOKS_MAX {
            return Err(ChangesError::TooManyLooks);
        }
        Ok(PendingLook { folder, generation: self.incarnation.generation, state: self.read(&reference, true).await? })
    }

    fn looks(&self) -> LookFolder {
        self.shared.state_dir.looks()
    }

    /// Returns a state that is kept on disk.
    async fn kept(&self, look: Option<u64>, reference: &Arc<Digest>) -> Result<KeptState, ChangesError> {
        let Some(number) = look else { return Ok(KeptState { digest: reference.clone(), look: None }) };
        let path = self.looks().generation(self.id, self.incarnation.generation).join(number.to_string());
        let digest = blocking("read", &path, |path| LookFile::open(path)?.digest()).await;
        match digest {
            Ok(Some(digest)) => Ok(KeptState { digest: Arc::new(digest), look: Some(path) }),
            Err(ChangesError::File { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                Err(ChangesError::UnknownLook(number))
            }
            Err(error) => Err(error),
            Ok(None) => {
                let cause = io::ErrorKind::InvalidData.into();
                Err(ChangesError::File { doing: "read", path, cause })
            }
        }
    }

    /// Returns the rows and texts of a state that is kept on disk. Parts that equal the snapshot's are taken from the
    /// snapshot. Rows that are not kept, or do not belong to the digest, are left out.
    async fn content(
        &self,
        state: &KeptState,
        reference: &Arc<Digest>,
        needed: Needed,
    ) -> Result<(StoreRows, StoreTexts), ChangesError> {
        let baseline = self.looks().baseline(&self.snapshot.id, reference);
        let (look, digest, same) = (state.look.clone(), state.digest.clone(), reference.clone());
        let (tables, paths) = (needed.tables.clone(), needed.texts.clone());
        let read = blocking("read", &baseline, move |baseline| {
            let open = |path: &Path| match LookFile::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                opened => opened.map(Some),
            };
            let (baseline, look) = (open(baseline)?, look.as_deref().map(open).transpose()?.flatten());
            let mut rows = StoreRows::new();
            for (store, table) in
                tables.iter().flat_map(|(store, tables)| tables.iter().map(move |table| (store, table)))
            {
                let of =
                    |digest: &Digest| digest.stores.get(store).and_then(|content| content.tables.get(table)).cloned();
                let file = if of(&digest) == of(&same) { &baseline } else { &look };
                if let Some(found) = file.as_ref().map(|file| file.rows(store, table)).transpose()?.flatten() {
                    rows.entry(store.clone()).or_default().insert(table.clone(), found);
                }
            }
            let texts = look.map(|look| look.texts()).transpose()?.unwrap_or_default();
            Ok((rows, texts))
        });
        let (mut rows, kept_texts) = read.await?;
        if !self.check(&mut rows, &state.digest) {
            tracing::warn!(instance.id = %self.id, "kept rows do not belong to their digest and are left out");
        }
        let folders = self.snapshot_folders();
        let lines = StoreConnections::passing();
        let mut texts = StoreTexts::new();
        for (store, paths) in paths {
            let of = |digest: &Digest, path: &String| {
                digest.stores.get(&store).and_then(|content| content.files.get(path)).map(|file| file.content.clone())
            };
            let (same, other): (Vec<_>, Vec<_>) =
                paths.into_iter().partition(|path| of(&state.digest, path) == of(reference, path));
            let subject = self.subject(&folders, &lines);
            let mut found = match folders.is_empty() {
                true => BTreeMap::new(),
                false => digest::texts(&subject, &store, same, TEXT_MAX).await?,
            };
            let kept = kept_texts.get(&store);
            found.extend(other.into_iter().filter_map(|path| Some((path.clone(), kept?.get(&path)?.clone()))));
            texts.insert(store, found);
        }
        Ok((rows, texts))
    }

    /// Reads the present state, with the rows and texts that differ from another state.
    async fn read(&self, against: &Digest, with_values: bool) -> Result<ReadState, ChangesError> {
        let (folders, lines) = (self.folders(), StoreConnections::kept());
        let subject = self.subject(&folders, &lines);
        let mut attempt = 1;
        let read = loop {
            let state = read_once(&subject, against, with_values, self).await?;
            if state.is_settled || attempt == ATTEMPTS {
                break state;
            }
            attempt += 1;
        };
        lines.close().await;
        Ok(read)
    }

    /// Removes the rows of tables that do not belong to a digest; returns whether all of them do.
    fn check(&self, rows: &mut StoreRows, digest: &Digest) -> bool {
        let mut is_whole = true;
        for (name, tables) in rows {
            let kind = self.site.stores.iter().find(|store| store.name == *name).map(|store| &store.kind);
            let content = digest.stores.get(name);
            tables.retain(|table, rows| {
                let digest = content.and_then(|content| content.tables.get(table));
                let is_of = kind.zip(digest).is_some_and(|(kind, digest)| rows.is_of(digest, kind));
                is_whole &= is_of;
                is_of
            });
        }
        is_whole
    }

    fn folders(&self) -> Folders {
        self.shared.state_folders(self.id, self.site, self.incarnation)
    }

    /// Returns the snapshot's folders in the state root, by service and path in the container.
    fn snapshot_folders(&self) -> Folders {
        let Some(storage) = &self.shared.storage else { return Folders::new() };
        let folders = launch::state_mounts(self.site).into_iter().filter_map(|mount| {
            let tree = mount.of_snapshot(&self.snapshot.id).ok()?;
            Some(((mount.service, mount.path), storage.root().folder(&tree)))
        });
        folders.collect()
    }
}

impl Needed {
    /// Returns the rows and texts that a comparison needs, of the earlier and of the later state.
    fn between(before: &Digest, now: &Digest) -> (Self, Self) {
        let (mut earlier, mut later) = (Self::default(), Self::default());
        for (store, table, ..) in differing_tables(before, now) {
            for side in [&mut earlier, &mut later] {
                side.tables.entry(store.clone()).or_default().push(table.clone());
            }
        }
        (earlier.texts, later.texts) = differing_texts(before, now, TEXT_MAX, TEXTS_MAX);
        (earlier, later)
    }
}

async fn read_once(
    subject: &Subject<'_>,
    against: &Digest,
    with_values: bool,
    candidate: &ProofCandidate<'_>,
) -> Result<ReadState, ChangesError> {
    let digest = digest::take(subject, Known::default()).await?.digest;
    let mut wanted = WantedRows { with_values, ..WantedRows::default() };
    for (store, table, _, now) in differing_tables(against, &digest) {
        if digest.stores.get(&store).is_some_and(|content| content.tables.contains_key(&table)) {
            wanted.add(&store, &table, now);
        }
    }
    let mut rows = digest::take_rows(subject, &wanted).await?;
    let is_settled = candidate.check(&mut rows, &digest);
    let mut texts = StoreTexts::new();
    for (store, paths) in differing_texts(against, &digest, TEXT_MAX, TEXTS_MAX).1 {
        let found = digest::texts(subject, &store, paths, TEXT_MAX).await?;
        texts.insert(store, found);
    }
    Ok(ReadState { digest, rows, texts, is_settled })
}

/// Runs work on files on a blocking thread.
async fn blocking<T: Send + 'static>(
    doing: &'static str,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, ChangesError> {
    let owned = path.to_owned();
    let done = inline::blocking(move || work(&owned)).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|cause| ChangesError::File { doing, path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::ids::{EnvironmentName, SiteName};

    fn id(site: &str) -> InstanceId {
        let environment = EnvironmentName::parse("mini").expect("a name");
        InstanceId { environment, site: SiteName::parse(site).expect("a name"), number: 1 }
    }

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        std::fs::write(path, "").expect("written");
    }

    fn pending(looks: &LookFolder, site: &str) -> PendingLook {
        let digest = Digest { declared: String::new(), stores: BTreeMap::new() };
        let state = ReadState { digest, rows: StoreRows::new(), texts: StoreTexts::new(), is_settled: true };
        PendingLook { folder: looks.generation(&id(site), 7), generation: 7, state }
    }

    #[test]
    fn looks_of_several_instances_have_one_number_that_none_of_them_had() {
        let root = tempfile::tempdir().expect("a folder");
        let looks = LookFolder::new(root.path().join("looks"));
        let numbers = |site: &str| looks.numbers(&id(site), 7).expect("numbers");
        let both = [pending(&looks, "shop"), pending(&looks, "forum")];
        touch(&looks.generation(&id("shop"), 7).join("2"));
        assert_eq!(write_looks(&both).expect("written"), Some(3));
        assert_eq!(write_looks(&both[1..]).expect("written"), Some(4));
        assert_eq!(write_looks(&both).expect("written"), Some(5));
        assert_eq!((numbers("shop"), numbers("forum")), (vec![2, 3, 5], vec![3, 4, 5]));
    }

    #[test]
    fn looks_are_kept_of_all_instances_or_of_none() {
        let root = tempfile::tempdir().expect("a folder");
        let looks = LookFolder::new(root.path().join("looks"));
        let both = [pending(&looks, "shop"), pending(&looks, "forum")];
        for number in 1..=LOOKS_MAX {
            touch(&looks.generation(&id("forum"), 7).join(number.to_string()));
        }
        assert_eq!(write_looks(&both).expect("full"), None);
        assert_eq!(looks.numbers(&id("shop"), 7).expect("numbers"), Vec::<u64>::new());
        // A file in the place of a folder: the second look cannot be written.
        std::fs::remove_dir_all(looks.instance(&id("forum"))).expect("removed");
        touch(&looks.instance(&id("forum")));
        assert!(write_looks(&both).is_err());
        assert_eq!(looks.numbers(&id("shop"), 7).expect("numbers"), Vec::<u64>::new());
    }

    #[test]
    fn looks_and_rows_go_with_their_generation_and_their_snapshot() {
        let root = tempfile::tempdir().expect("a folder");
        let looks = LookFolder::new(root.path().join("looks"));
        let nothing = (BTreeSet::new(), BTreeMap::new());
        looks.retain(&nothing.0, &nothing.1).expect("there is no folder");
        let digest = Digest { declared: "0123456789abcdef0123".to_owned(), stores: BTreeMap::new() };
        let (kept, gone) = (looks.baseline("kept", &digest), looks.baseline("gone", &digest));
        [&kept, &gone].into_iter().for_each(|path| touch(path));
        for (site, generation, number) in [("shop", 7, 10), ("shop", 7, 9), ("shop", 6, 1), ("forum", 3, 1)] {
            touch(&looks.generation(&id(site), generation).join(number.to_string()));
        }
        assert_eq!(looks.numbers(&id("shop"), 7).expect("numbers"), [9, 10]);
        assert_eq!(looks.numbers(&id("shop"), 8).expect("none"), Vec::<u64>::new());
        looks.retain(&BTreeSet::from(["kept".to_owned()]), &BTreeMap::from([(id("shop"), 7)])).expect("removed");
        assert!(kept.exists() && !gone.exists());
        assert_eq!(looks.numbers(&id("shop"), 7).expect("numbers"), [9, 10]);
        assert!(!looks.generation(&id("shop"), 6).exists() && !looks.instance(&id("forum")).exists());
    }
}
