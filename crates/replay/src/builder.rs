//! Writes the folder of a replay from its recordings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::exchange::{ReadExchange, shortened, value};
use super::kept::{self, BodyPlace, EntryProblem, KeptEntry, Origin, ReplayReport};
use super::moving::MovingRules;
use super::source::{FileSlice, SourceSet};
use super::{BODIES_MAX, BODY_MAX, ENTRIES_MAX, ReplayError, har, mhtml, warc};

/// The number of problems that a report lists.
const PROBLEMS_KEPT: usize = 200;

/// The statuses that lead to another address (RFC 9110, section 15.4).
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// The choices for a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplaySettings {
    /// Names of parameters that differ at each visit, in addition to those that are known.
    pub moving: Vec<String>,
    /// Whether recordings that cannot be read are named and left out, instead of refused.
    pub skip_broken: bool,
}

/// Writes the exchanges of recordings into a folder.
pub struct ReplayBuilder {
    folder: PathBuf,
    rules: MovingRules,
    entries: BufWriter<File>,
    bodies: BufWriter<File>,
    written: u64,
    known: HashMap<[u8; 32], BodyPlace>,
    report: ReplayReport,
    origins: BTreeSet<Origin>,
    /// The name of the recording that is being read.
    file: String,
    targets: BTreeSet<String>,
    redirects: BTreeMap<String, (String, String)>,
}

/// The kinds of recordings, by their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordingKind {
    Har,
    Mhtml,
    Warc,
    Zip,
}

impl RecordingKind {
    fn of(name: &str, beginning: &[u8]) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        let first = text.iter().copied().find(|byte| !byte.is_ascii_whitespace());
        if beginning.starts_with(b"PK\x03\x04") {
            Some(Self::Zip)
        } else if beginning.starts_with(b"WARC/") || (beginning.starts_with(b"\x1f\x8b") && ends(&[".warc.gz"])) {
            Some(Self::Warc)
        } else if ends(&[".mhtml", ".mht"]) || is_mhtml(beginning) {
            Some(Self::Mhtml)
        } else if ends(&[".har"]) || (first == Some(b'{') && memmem(beginning, b"\"log\"")) {
            Some(Self::Har)
        } else if ends(&[".warc", ".warc.gz"]) {
            Some(Self::Warc)
        } else {
            None
        }
    }
}

fn is_mhtml(beginning: &[u8]) -> bool {
    let head = String::from_utf8_lossy(beginning).to_ascii_lowercase();
    head.contains("\nmime-version:") && head.contains("multipart/related")
}

fn memmem(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

impl ReplayBuilder {
    /// Begins a replay in a folder, which is created.
    ///
    /// Errors: `ReplayError::File`.
    pub fn begin(folder: &Path, settings: &ReplaySettings) -> Result<Self, ReplayError> {
        fs::create_dir_all(folder).map_err(|cause| failed("create", folder, cause))?;
        let create = |name: &str| {
            let path = folder.join(name);
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
            file.map(BufWriter::new).map_err(|cause| failed("create", &path, cause))
        };
        Ok(Self {
            folder: folder.to_owned(),
            rules: MovingRules::new(&settings.moving),
            entries: create(kept::ENTRIES)?,
            bodies: create(kept::BODIES)?,
            written: 0,
            known: HashMap::new(),
            report: ReplayReport { moving: settings.moving.clone(), ..ReplayReport::default() },
            origins: BTreeSet::new(),
            file: String::new(),
            targets: BTreeSet::new(),
            redirects: BTreeMap::new(),
        })
    }

    /// Reads all recordings of an upload, and completes the replay.
    ///
    /// Errors: `ReplayError::Broken` for the first recording that cannot be read, unless such recordings are skipped;
    /// `ReplayError::NoRecording` and `ReplayError::Empty` if nothing can be replayed.
    pub fn build(mut self, sources: &SourceSet, settings: &ReplaySettings) -> Result<ReplayReport, ReplayError> {
        for source in sources.files() {
            let name = source.name.clone();
            match self.read(&name, &source.content, sources, 0) {
                Err(ReplayError::Broken { file, what }) if settings.skip_broken => {
                    self.report.skipped.push(EntryProblem { file, place: String::new(), what });
                }
                read => read?,
            }
        }
        if self.report.recordings.is_empty() && self.report.skipped.is_empty() {
            return Err(ReplayError::NoRecording { files: sources.described() });
        }
        self.finish()
    }

    fn read(&mut self, name: &str, content: &FileSlice, set: &SourceSet, depth: u32) -> Result<(), ReplayError> {
        let failed = |cause: io::Error| ReplayError::broken(name, cause.to_string());
        let beginning = content.beginning(4096).map_err(failed)?;
        let Some(kind) = RecordingKind::of(name, &beginning) else { return Ok(()) };
        if kind == RecordingKind::Zip && depth == 0 {
            return self.read_zip(name, content);
        }
        name.clone_into(&mut self.file);
        match kind {
            RecordingKind::Har => {
                let beside = |part: &str| -> io::Result<Option<Vec<u8>>> {
                    set.beside(name, part).map(|slice| whole(slice, part)).transpose()
                };
                har::read(self, name, content.clone(), beside)?;
            }
            RecordingKind::Mhtml => mhtml::read(self, name, content.clone())?,
            RecordingKind::Warc => warc::read(self, name, content.clone())?,
            RecordingKind::Zip => return Ok(()),
        }
        self.report.recordings.push(name.to_owned());
        Ok(())
    }

    /// Reads the recordings in a ZIP archive: Playwright's HAR with its bodies, WACZ, or any recordings.
    fn read_zip(&mut self, name: &str, content: &FileSlice) -> Result<(), ReplayError> {
        let broken = |what: String| ReplayError::broken(name, what);
        let mut archive =
            ZipArchive::new(content.clone()).map_err(|error| broken(format!("the ZIP archive is broken ({error})")))?;
        let members: Vec<String> = archive.file_names().map(str::to_owned).collect();
        let mut members: Vec<&String> = members.iter().collect();
        members.sort();
        for member in members {
            let place = format!("{name}/{member}");
            let failed = |error: &dyn std::fmt::Display| ReplayError::broken(&place, error.to_string());
            let kind = {
                let mut opened = archive.by_name(member).map_err(|error| failed(&error))?;
                let mut beginning = Vec::new();
                opened.by_ref().take(4096).read_to_end(&mut beginning).map_err(|error| failed(&error))?;
                RecordingKind::of(member, &beginning)
            };
            let mut others = archive.clone();
            let opened = archive.by_name(member).map_err(|error| failed(&error))?;
            self.file.clone_from(&place);
            match kind {
                Some(RecordingKind::Har) => {
                    let folder = member.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
                    let beside = |part: &str| -> io::Result<Option<Vec<u8>>> {
                        match others.by_name(&format!("{folder}{part}")) {
                            Ok(found) => whole(found, part).map(Some),
                            Err(zip::result::ZipError::FileNotFound) => Ok(None),
                            Err(error) => Err(io::Error::other(error)),
                        }
                    };
                    har::read(self, &place, opened, beside)?;
                }
                Some(RecordingKind::Mhtml) => mhtml::read(self, &place, opened)?,
                Some(RecordingKind::Warc) => warc::read(self, &place, opened)?,
                Some(RecordingKind::Zip) | None => continue,
            }
            self.report.recordings.push(place);
        }
        Ok(())
    }

    /// Adds an exchange, or names the reason why it cannot be replayed.
    pub(crate) fn add(&mut self, mut exchange: ReadExchange) -> Result<(), ReplayError> {
        let url = match exchange.target() {
            Ok(url) => url,
            Err(what) => {
                // Browsers record addresses that no server answers.
                if !["data:", "blob:", "about:", "chrome", "cid:"].iter().any(|it| exchange.url.starts_with(it)) {
                    self.problem(&exchange.place, what);
                }
                return Ok(());
            }
        };
        if exchange.status == 101 {
            self.problem(
                &exchange.place,
                format!("{} is a WebSocket, which cannot be replayed", shortened(url.as_str())),
            );
            return Ok(());
        }
        if !(200..=599).contains(&exchange.status) {
            self.problem(&exchange.place, format!("{} has no response", shortened(url.as_str())));
            return Ok(());
        }
        if self.report.entries >= ENTRIES_MAX {
            return Err(ReplayError::TooLarge { what: "the number of exchanges", limit: ENTRIES_MAX.to_string() });
        }
        exchange.clean();
        if REDIRECTS.contains(&exchange.status)
            && let Some(to) = value(&exchange.headers, "location").and_then(|location| url.join(location).ok())
        {
            let mut to = to;
            to.set_fragment(None);
            let from = (self.file.clone(), format!("{}: {}", exchange.place, shortened(url.as_str())));
            self.redirects.entry(to.to_string()).or_insert(from);
        }
        self.targets.insert(url.to_string());
        if let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) {
            let is_tls = url.scheme() == "https";
            self.origins.insert(Origin { host: host.trim_matches(['[', ']']).to_ascii_lowercase(), port, is_tls });
        }
        let sent = match exchange.sent.take() {
            None => None,
            Some(bytes) => Some(self.rules.body_keys(&bytes, &exchange.request_headers)),
        };
        let body = self.keep(&exchange.body)?;
        let entry = KeptEntry {
            method: exchange.method.to_ascii_uppercase(),
            url: url.to_string(),
            request_headers: exchange.request_headers,
            sent,
            status: exchange.status,
            headers: exchange.headers,
            body,
            file: self.file.clone(),
            at: exchange.at.clone(),
        };
        if let Some(at) = exchange.at {
            let is_earlier = self.report.recorded_from.as_ref().is_none_or(|from| at < *from);
            let is_later = self.report.recorded_until.as_ref().is_none_or(|until| at > *until);
            if is_earlier {
                self.report.recorded_from = Some(at.clone());
            }
            if is_later {
                self.report.recorded_until = Some(at);
            }
        }
        let path = self.folder.join(kept::ENTRIES);
        let mut line = serde_json::to_vec(&entry).map_err(|error| failed("write", &path, error.into()))?;
        line.push(b'\n');
        self.entries.write_all(&line).map_err(|cause| failed("write", &path, cause))?;
        self.report.entries += 1;
        Ok(())
    }

    /// Names an exchange that cannot be replayed.
    pub(crate) fn problem(&mut self, place: &str, what: impl Into<String>) {
        self.report.left_out += 1;
        self.note(place, what);
    }

    fn note(&mut self, place: &str, what: impl Into<String>) {
        if self.report.problems.len() < PROBLEMS_KEPT {
            let problem = EntryProblem { file: self.file.clone(), place: place.to_owned(), what: what.into() };
            self.report.problems.push(problem);
        }
    }

    /// Keeps a body once, whatever the number of exchanges that have it.
    fn keep(&mut self, bytes: &[u8]) -> Result<BodyPlace, ReplayError> {
        if bytes.is_empty() {
            return Ok(BodyPlace::default());
        }
        let hash: [u8; 32] = Sha256::digest(bytes).into();
        if let Some(place) = self.known.get(&hash) {
            return Ok(*place);
        }
        let place = BodyPlace { offset: self.written, length: bytes.len() as u64 };
        if place.offset + place.length > BODIES_MAX {
            return Err(ReplayError::TooLarge { what: "the size of all bodies", limit: "8 GiB".to_owned() });
        }
        let path = self.folder.join(kept::BODIES);
        self.bodies.write_all(bytes).map_err(|cause| failed("write", &path, cause))?;
        self.written += place.length;
        self.known.insert(hash, place);
        Ok(place)
    }

    fn finish(mut self) -> Result<ReplayReport, ReplayError> {
        if self.report.entries == 0 {
            let problem = self.report.problems.first().or(self.report.skipped.first());
            let first = problem.map_or_else(|| "the recordings are empty".to_owned(), EntryProblem::to_string);
            return Err(ReplayError::Empty { first });
        }
        let dangling: Vec<(String, (String, String))> = self
            .redirects
            .iter()
            .filter(|(to, _)| !self.targets.contains(*to))
            .map(|(to, from)| (to.clone(), from.clone()))
            .collect();
        for (to, (file, from)) in dangling {
            self.file = file;
            self.note(&from, format!("redirects to {}, which was not recorded", shortened(&to)));
        }
        self.report.origins = std::mem::take(&mut self.origins).into_iter().collect();
        self.report.body_bytes = self.written;
        for (writer, name) in [(self.entries, kept::ENTRIES), (self.bodies, kept::BODIES)] {
            let path = self.folder.join(name);
            let file = writer.into_inner().map_err(|error| failed("write", &path, error.into_error()))?;
            file.sync_all().map_err(|cause| failed("write", &path, cause))?;
        }
        Ok(self.report)
    }
}

fn failed(doing: &'static str, path: &Path, cause: io::Error) -> ReplayError {
    ReplayError::File { doing, path: path.to_owned(), cause }
}

/// Reads a body to its end.
fn whole(reader: impl Read, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(BODY_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BODY_MAX {
        true => Err(io::Error::other(format!("{name} is longer than 256 MiB"))),
        false => Ok(bytes),
    }
}
