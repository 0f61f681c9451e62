//! The replays of an installation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::counts::AnswerCounts;
use super::server;
use arenad_api::replays::MissKind;
use arenad_episodes::EpisodeToken;
use arenad_gateway::{
    EpisodeAccess, HoldLimits, ProxyDecision, ProxyRefusal, ProxySite, RecordingFilter, Route, Target, WriteRules,
};
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;
use arenad_model::hex::hex;
use arenad_model::ids::ReplayName;
use arenad_replay::{
    AuthorityError, KeptReplay, Origin, ReplayAuthority, ReplayBuilder, ReplayError, ReplayReport, ReplaySettings,
    SourceSet,
};

/// The file of a replay that the daemon writes; a folder without it is not complete.
const HEAD: &str = "replay.json";

/// The folder of the authority.
const AUTHORITY: &str = ".authority";

/// The beginning of the names of folders and files that are not complete, or are being removed.
const PARTIAL: &str = ".partial-";

/// The beginning of the user names by which clients of the proxy reach a replay without an episode.
pub(crate) const USER: &str = "replay.";

/// The version of the folder's format.
const VERSION: u32 = 1;

/// The file of a replay, as the daemon keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ReplayHead {
    version: u32,
    created_at: String,
    /// The secret of the replay's own credentials.
    token: String,
    report: ReplayReport,
}

/// The reason why replays cannot be changed or reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayFailure {
    /// There is a replay of that name.
    #[error("there is already a replay {0}")]
    Exists(ReplayName),
    /// No replay has that name.
    #[error("there is no replay {0}")]
    Unknown(String),
    /// Live episodes use the replay.
    #[error("replay {name} is used by {}", episodes.join(", "))]
    InUse {
        /// The name of the replay.
        name: ReplayName,
        /// The ids of the episodes.
        episodes: Vec<String>,
    },
    /// The recordings cannot be replayed.
    #[error(transparent)]
    Recording(#[from] ReplayError),
    /// The certificates of recorded hosts cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A file could not be written or removed.
    #[error("{doing} {path}")]
    File {
        /// The action as a verb.
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
}

impl ReplayFailure {
    fn file(doing: &'static str, path: &Path, cause: std::io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), cause }
    }
}

/// A replay that is to be added.
pub(crate) struct NewReplay {
    /// The name, which must be free.
    pub(crate) name: ReplayName,
    /// The upload, which is removed when it has been read.
    pub(crate) upload: SpoolFile,
    /// The name that a single file has in messages.
    pub(crate) file: String,
    /// The choices of the client.
    pub(crate) settings: ReplaySettings,
}

/// A file that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SpoolFile(PathBuf);

impl SpoolFile {
    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // If the file stays, the next daemon removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// A replay that is served.
pub(crate) struct LoadedReplay {
    pub(crate) name: ReplayName,
    pub(crate) created_at: String,
    pub(crate) report: ReplayReport,
    pub(crate) counts: AnswerCounts,
    token: String,
    folder: PathBuf,
    /// The entries, which the first request reads.
    kept: OnceLock<Result<KeptReplay, String>>,
    route: Route,
    access: EpisodeAccess,
    authority: Option<ReplayAuthority>,
    stop: CancellationToken,
}

impl LoadedReplay {
    /// Returns the recorded origin with a host and a port.
    pub(crate) fn origin(&self, host: &str, port: u16) -> Option<&Origin> {
        self.report.origins.iter().find(|origin| origin.host == host && origin.port == port)
    }

    /// Returns the user name and the password for the episode proxy.
    pub(crate) fn credentials(&self) -> (String, String) {
        (format!("{USER}{}", self.name), self.token.clone())
    }

    /// Returns the entries. The first call blocks while it reads them.
    pub(crate) fn kept(&self) -> Result<&KeptReplay, &String> {
        let open = || {
            KeptReplay::open(&self.folder, &self.report).map_err(|error| {
                tracing::error!(replay = %self.name, error = describe(&error), "replay {} cannot be read", self.name);
                describe(&error)
            })
        };
        self.kept.get_or_init(open).as_ref()
    }

    /// Returns where a request for a recorded host goes; `None` if the host was not recorded.
    pub(crate) fn site(&self, host: &str, port: u16, access: &EpisodeAccess) -> Option<ProxySite> {
        let origin = self.origin(host, port)?;
        let address = Url::parse(&origin.to_string()).ok()?;
        let canonical = format!("{}:{port}", address.host_str()?);
        let tls = self.authority.as_ref().filter(|_| origin.is_tls).map(|authority| authority.server(host));
        Some(ProxySite { route: self.route.clone(), canonical, generation: None, access: access.clone(), tls })
    }

    /// Counts a request for a host that was not recorded.
    pub(crate) fn forbid(&self, method: &str, host: &str, port: u16) {
        self.counts.missed(MissKind::Forbidden, method, &format!("{host}:{port}"));
    }

    /// Returns the addresses that the replay answers for.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> + '_ {
        self.report.origins.iter().take(ADDRESSES_SHOWN).map(ToString::to_string)
    }
}

/// The number of addresses that a refusal names.
const ADDRESSES_SHOWN: usize = 8;

/// The replays of an installation, each of which is served.
pub struct ReplayRegistry {
    shared: Arc<SharedParts>,
    table: RwLock<BTreeMap<ReplayName, Arc<LoadedReplay>>>,
    authority: OnceLock<ReplayAuthority>,
    /// Held while a replay is added or removed.
    change: tokio::sync::Mutex<()>,
}

impl ReplayRegistry {
    /// Opens the replays in the state directory, and removes what an earlier daemon left incomplete.
    pub async fn open(shared: Arc<SharedParts>) -> Arc<Self> {
        let registry = Arc::new(Self {
            shared,
            table: RwLock::default(),
            authority: OnceLock::new(),
            change: tokio::sync::Mutex::default(),
        });
        let folder = registry.folder();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(PARTIAL) {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                if let Err(error) = removed {
                    tracing::warn!(%error, "{} cannot be removed", path.display());
                }
                continue;
            }
            let Ok(name) = ReplayName::parse(&name) else { continue };
            // A replay that cannot be read does not keep the others from being served.
            if let Err(error) = registry.load(&name).await {
                tracing::error!(replay = %name, error = describe(&error), "replay {name} is not served");
            }
        }
        registry
    }

    fn folder(&self) -> PathBuf {
        self.shared.state_dir.replays()
    }

    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn read<T>(&self, look: impl FnOnce(&BTreeMap<ReplayName, Arc<LoadedReplay>>) -> T) -> T {
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns all replays by name.
    pub(crate) fn list(&self) -> Vec<Arc<LoadedReplay>> {
        self.read(|table| table.values().cloned().collect())
    }

    /// Returns a replay.
    ///
    /// Errors: `ReplayFailure::Unknown`.
    pub(crate) fn get(&self, name: &ReplayName) -> Result<Arc<LoadedReplay>, ReplayFailure> {
        let found = self.read(|table| table.get(name).cloned());
        found.ok_or_else(|| ReplayFailure::Unknown(name.to_string()))
    }

    /// Returns the authority of the installation, and makes it if there is none.
    ///
    /// Errors: `ReplayFailure::Authority`, `ReplayFailure::File`.
    pub(crate) fn authority(&self) -> Result<ReplayAuthority, ReplayFailure> {
        if let Some(known) = self.authority.get() {
            return Ok(known.clone());
        }
        let folder = self.folder().join(AUTHORITY);
        make_private(&folder)?;
        let opened = ReplayAuthority::open(&folder)?;
        Ok(self.authority.get_or_init(|| opened).clone())
    }

    /// Creates the file that an upload is written to.
    ///
    /// Errors: `ReplayFailure::File`.
    pub(crate) fn spool(&self) -> Result<SpoolFile, ReplayFailure> {
        let folder = self.folder();
        make_private(&folder)?;
        Ok(SpoolFile(folder.join(partial_name())))
    }

    /// Adds a replay from an upload. The caller runs it in a task of its own: a cancelled call may leave files until the
    /// next start of the daemon, but never an incomplete replay.
    pub(crate) async fn add(self: &Arc<Self>, new: NewReplay) -> Result<Arc<LoadedReplay>, ReplayFailure> {
        let _change = self.change.lock().await;
        let NewReplay { name, upload, file, settings } = new;
        if self.get(&name).is_ok() {
            return Err(ReplayFailure::Exists(name));
        }
        let folder = self.folder();
        let (partial, complete) = (folder.join(partial_name()), folder.join(name.as_str()));
        let created_at = self.shared.clock.now().to_string();
        let built = tokio::task::spawn_blocking(move || -> Result<(), ReplayFailure> {
            let built = (|| {
                let report = ReplayBuilder::begin(&partial, &settings)?
                    .build(&SourceSet::open(upload.path(), &file)?, &settings)?;
                let token = hex(&rand::random::<[u8; 32]>());
                let head = ReplayHead { version: VERSION, created_at, token, report };
                publish(&partial, &complete, &head)
            })();
            if built.is_err() {
                // If it stays, the next daemon removes it.
                let _ = fs::remove_dir_all(&partial);
            }
            built
        });
        match built.await {
            Ok(built) => built?,
            Err(error) => {
                return Err(ReplayFailure::file("read the recordings for", &folder, std::io::Error::other(error)));
            }
        }
        self.load(&name).await
    }

    /// Serves a complete replay.
    async fn load(self: &Arc<Self>, name: &ReplayName) -> Result<Arc<LoadedReplay>, ReplayFailure> {
        let folder = self.folder().join(name.as_str());
        let path = folder.join(HEAD);
        let failed = |cause| ReplayFailure::file("read", &path, cause);
        let head = fs::read_to_string(&path).map_err(failed)?;
        let head: ReplayHead = serde_json::from_str(&head).map_err(|error| failed(error.into()))?;
        if head.version != VERSION {
            return Err(failed(std::io::Error::other(format!("the format has version {}", head.version))));
        }
        let has_tls = head.report.origins.iter().any(|origin| origin.is_tls);
        let authority = if has_tls { Some(self.authority()?) } else { None };
        let (listener, address) =
            server::listen().await.map_err(|cause| ReplayFailure::file("serve", &folder, cause))?;
        let no_hold = HoldLimits { requests: 0, timeout: Duration::ZERO };
        let title = format!("replay {name}");
        let gateway = &self.shared.gateway;
        let route = gateway.open_without_port(no_hold, WriteRules::default(), RecordingFilter::Nothing, &title);
        route.serve(Target { address, instance: title, generation: 1 });
        let loaded = Arc::new(LoadedReplay {
            name: name.clone(),
            created_at: head.created_at,
            report: head.report,
            counts: AnswerCounts::default(),
            token: head.token,
            folder,
            kept: OnceLock::new(),
            route,
            access: EpisodeAccess::default(),
            authority,
            stop: self.shared.shutdown.child_token(),
        });
        self.shared.tasks.spawn(server::serve(loaded.clone(), listener, loaded.stop.clone()));
        self.table.write().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), loaded.clone());
        Ok(loaded)
    }

    /// Removes a replay that no episode uses. The caller runs it in a task of its own.
    ///
    /// Errors: `ReplayFailure::Unknown`, `ReplayFailure::InUse`, `ReplayFailure::File`.
    pub(crate) async fn remove(
        &self,
        name: &ReplayName,
        users: impl FnOnce() -> Vec<String>,
    ) -> Result<(), ReplayFailure> {
        let _change = self.change.lock().await;
        let replay = self.get(name)?;
        let episodes = users();
        if !episodes.is_empty() {
            return Err(ReplayFailure::InUse { name: name.clone(), episodes });
        }
        // After the rename the replay is gone for good, whatever happens to the rest.
        let leftover = self.folder().join(partial_name());
        fs::rename(&replay.folder, &leftover).map_err(|cause| ReplayFailure::file("remove", &replay.folder, cause))?;
        self.table.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        replay.access.revoke(ProxyRefusal::Ended { reason: format!("the replay {name} was removed") });
        replay.route.clone().close().await;
        replay.stop.cancel();
        // If it stays, the next daemon removes it.
        let removed = tokio::task::spawn_blocking(move || fs::remove_dir_all(leftover)).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!(replay = %name, "files of the replay {name} are left until the next start");
        }
        Ok(())
    }

    /// Returns the replay whose own user name this is.
    pub(crate) fn of_user(&self, user: &str) -> Option<Arc<LoadedReplay>> {
        let name = ReplayName::parse(user.strip_prefix(USER)?).ok()?;
        self.get(&name).ok()
    }

    /// Decides on a request with the credentials of a replay.
    pub(crate) fn resolve(
        &self,
        user: &str,
        token: &str,
        host: &str,
        port: u16,
    ) -> Result<ProxyDecision, ProxyRefusal> {
        let replay = self.of_user(user).ok_or(ProxyRefusal::Credentials)?;
        if !EpisodeToken::presented(token).hash().matches(&EpisodeToken::presented(&replay.token).hash()) {
            return Err(ProxyRefusal::Credentials);
        }
        match replay.site(host, port, &replay.access) {
            Some(site) => Ok(ProxyDecision::Site(site)),
            None => Err(ProxyRefusal::Outside { reachable: replay.addresses().collect() }),
        }
    }
}

/// Gives a folder its name, when all of it is on disk.
fn publish(partial: &Path, complete: &Path, head: &ReplayHead) -> Result<(), ReplayFailure> {
    let path = partial.join(HEAD);
    let failed = |cause| ReplayFailure::file("write", &path, cause);
    let text = serde_json::to_vec_pretty(head).map_err(|error| failed(error.into()))?;
    let sync = |folder: &Path| fs::File::open(folder).and_then(|folder| folder.sync_all());
    fs::write(&path, text).and_then(|()| fs::File::open(&path)?.sync_all()).map_err(failed)?;
    sync(partial).map_err(failed)?;
    fs::rename(partial, complete).map_err(|cause| ReplayFailure::file("complete", complete, cause))?;
    complete.parent().map_or(Ok(()), sync).map_err(|cause| ReplayFailure::file("complete", complete, cause))
}

fn make_private(folder: &Path) -> Result<(), ReplayFailure> {
    arenad_folders::make_private(folder)
        .map_err(|error| ReplayFailure::file("create", folder, std::io::Error::other(error.to_string())))
}

fn partial_name() -> String {
    format!("{PARTIAL}{}", hex(&rand::random::<[u8; 8]>()))
}
