//! The errors of the state root.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::StoreTree;
use super::disk::DiskError;
use arenad_model::cause::Cause;

/// The reason why an operation on a tree failed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The file system is full, or a quota is exhausted.
    #[error("{doing} {path}: no room is left on its file system")]
    NoRoom {
        /// The action: `write`, `clone`, …
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
    /// The operation is reserved for root: files of other owners, devices, some attributes.
    #[error("{doing} {path}: only root may do that")]
    NotPermitted {
        /// The action: `give its owner to`, …
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
    /// A file or folder could not be read or written.
    #[error("{doing} {path}")]
    File {
        /// The action: `read`, `write`, …
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: io::Error,
    },
    /// The archive is not one that the engine would have sent.
    #[error("unpack `{}`: {what}", member.display())]
    Archive {
        /// The path of the faulty member.
        member: PathBuf,
        /// A description of the fault.
        what: String,
    },
    /// The archive ended early.
    #[error("read the archive")]
    Stream(#[source] io::Error),
    /// The archive could not be written to its receiver.
    #[error("write the archive")]
    Sink(#[source] io::Error),
    /// A tree of that name exists.
    #[error("make the tree {0}: it is there already")]
    Exists(StoreTree),
    /// The tree does not exist.
    #[error("use the tree {0}: it is not there")]
    Missing(StoreTree),
    /// An exchange of the tree was interrupted.
    #[error("use the tree {0}: its last exchange was cut off")]
    NotWhole(StoreTree),
    /// A process wrote to the tree while it was exchanged.
    #[error("exchange {path}: something still writes to its folder")]
    StillWritten {
        /// The path of the file, or of the folder if the file is unknown.
        path: PathBuf,
    },
    /// A folder is deeper than the maximum length of paths.
    #[error("look through {0}: a folder in it is deeper than any path may be long")]
    TooDeep(PathBuf),
    /// The disk that holds the trees could not be mounted.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The name is not valid for a folder.
    #[error(
        "`{0}` cannot name a tree: 1 to 100 characters of a-z, A-Z, 0-9, '.', '-' and '_', beginning with none of the last three"
    )]
    Name(String),
}

impl StorageError {
    /// Returns the cause, if a person can take specific action against it.
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

    /// Returns a hint on the next step, if there is one.
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

    /// Builds the error for an action on a path from the system's error.
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
