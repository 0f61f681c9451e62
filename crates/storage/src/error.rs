//! Why a tree could not be made, exchanged or removed.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::Tree;
use super::disk::DiskError;
use arenad_model::cause::Cause;

/// Why a tree could not be made, exchanged or removed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The file system is full, or a quota is.
    #[error("{doing} {path}: no room is left on its file system")]
    NoRoom {
        /// `write`, `clone`, …
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The system keeps it for root: files of other owners, devices, some attributes.
    #[error("{doing} {path}: only root may do that")]
    NotPermitted {
        /// `give its owner to`, …
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A file or folder could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// `read`, `write`, …
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The archive is not one that the engine would have sent.
    #[error("unpack `{}`: {what}", member.display())]
    Archive {
        /// Which of its members.
        member: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The archive did not arrive to its end.
    #[error("read the archive")]
    Stream(#[source] io::Error),
    /// The archive could not be handed on.
    #[error("write the archive")]
    Sink(#[source] io::Error),
    /// There is such a tree already.
    #[error("make the tree {0}: it is there already")]
    Exists(Tree),
    /// There is no such tree.
    #[error("use the tree {0}: it is not there")]
    Missing(Tree),
    /// An exchange of the tree was cut off.
    #[error("use the tree {0}: its last exchange was cut off")]
    NotWhole(Tree),
    /// Something put a file into a tree while it was exchanged.
    #[error("exchange {path}: something still writes to its folder")]
    StillWritten {
        /// The file, or the folder where it is not known which.
        path: PathBuf,
    },
    /// A folder lies deeper than paths reach.
    #[error("look through {0}: a folder in it is deeper than any path may be long")]
    TooDeep(PathBuf),
    /// The disk that the trees are on could not be mounted.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A name that cannot be a folder's.
    #[error(
        "`{0}` cannot name a tree: 1 to 100 characters of a-z, A-Z, 0-9, '.', '-' and '_', beginning with none of the last three"
    )]
    Name(String),
}

impl StorageError {
    /// Returns the cause, if a person can do something specific about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::NoRoom { .. } => Some(Cause::NoSpace),
            Self::TooDeep(_) => Some(Cause::TooDeep),
            Self::File { cause, .. } | Self::Stream(cause) | Self::Sink(cause) => Cause::of_io(cause),
            Self::Disk(_)
            | Self::NotPermitted { .. }
            | Self::Archive { .. }
            | Self::Exists(_)
            | Self::Missing(_)
            | Self::NotWhole(_)
            | Self::StillWritten { .. }
            | Self::Name(_) => None,
        }
    }

    /// What to do next, where something can be said.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Disk(error) => return error.hint(),
            Self::NoRoom { .. } => "`arenad df` shows what takes the room, `arenad prune` makes some",
            Self::NotPermitted { .. } => {
                "run the daemon as root; without, sites are reset by making their containers anew, and their stores are read \
                 through the engine, which takes longer"
            }
            Self::NotWhole(_) => "reset the site: it gets a new tree",
            Self::StillWritten { .. } => "the site's quiesce steps must stop everything that writes to the store",
            Self::Stream(_) => "try again; if it happens again, the engine's log may say why",
            _ => return None,
        })
    }

    /// Completes what the system said with what was done to which file.
    pub(super) fn at<C: Into<io::Error>>(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(C) -> Self {
        let path = path.into();
        move |cause| {
            let cause = cause.into();
            match Errno::from_io_error(&cause) {
                Some(Errno::NOSPC | Errno::DQUOT) => Self::NoRoom { doing, path, cause },
                Some(Errno::PERM) => Self::NotPermitted { doing, path, cause },
                _ => Self::File { doing, path, cause },
            }
        }
    }
}
