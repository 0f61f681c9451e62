//! Causes of failures that a person can take a specific action against.
//!
//! Each error type states the causes of its variants, and the hint is chosen by the cause, never by matching arenad's
//! own messages. Foreign messages are an exception: an engine forwards messages of its kernel and its registry, and
//! neither the engine nor a site's servers have a code for a full disk. Those messages are matched here, at the place
//! where they enter.

use std::io;

/// The cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A disk or a quota is full.
    NoSpace,
    /// The engine does not answer at its address.
    EngineUnreachable,
    /// A container is paused.
    Paused,
    /// The kernel killed a container's process because memory ran out.
    OutOfMemory,
    /// An archive of an image or of data, which the definition lists, has not been fetched.
    NotFetched,
    /// A registry does not have an image, or does not provide it.
    NotPulled,
    /// A file of a site is larger than what is read of one.
    FileTooLarge,
    /// The stores differ from those of the snapshot.
    NotAsSnapshot,
    /// The site has created a folder that is nested deeper than the maximum length of a path.
    TooDeep,
    /// The baseline could not be built, for a reason that has no cause of its own.
    Baseline,
}

/// The hint for [`Cause::FileTooLarge`], also where the instance is unknown.
pub const SHORTEN_FILE: &str = "remove or shorten the file within the site, or reset the site with `arenad reset`";

impl Cause {
    /// Returns the cause of an error of the operating system.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Self::NoSpace),
            io::ErrorKind::FileTooLarge => Some(Self::FileTooLarge),
            _ => None,
        }
    }

    /// Returns the cause that a kernel, a database server or another program of a site states in its own words, for
    /// example in a container's log.
    pub fn stated_by_program(text: &str) -> Option<Self> {
        const FULL: [&str; 4] = ["no space left", "disk full", "disk is full", "disk quota"];
        let text = text.to_lowercase();
        FULL.iter().any(|words| text.contains(words)).then_some(Self::NoSpace)
    }

    /// Returns the cause that an engine states in the message of a refusal.
    pub fn stated_by_engine(message: &str) -> Option<Self> {
        const NOT_PULLED: [&str; 2] = ["pull access denied", "manifest unknown"];
        Self::stated_by_program(message).or_else(|| {
            let message = message.to_lowercase();
            if NOT_PULLED.iter().any(|words| message.contains(words)) {
                Some(Self::NotPulled)
            } else {
                message.contains("is paused").then_some(Self::Paused)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_kernels_servers_and_registries_are_understood() {
        let engine = |text| Cause::stated_by_engine(text);
        assert_eq!(engine("write /var/lib/docker: no space left on device"), Some(Cause::NoSpace));
        assert_eq!(engine("pull access denied for x, repository does not exist"), Some(Cause::NotPulled));
        assert_eq!(engine("manifest unknown: manifest unknown"), Some(Cause::NotPulled));
        assert_eq!(engine("Container 5 is paused, unpause the container before exec"), Some(Cause::Paused));
        assert_eq!(engine("no such container"), None);
        let program = |text| Cause::stated_by_program(text);
        assert_eq!(program("db | Disk is full writing './a.MYD' (OS errno 28)"), Some(Cause::NoSpace));
        assert_eq!(program("could not extend file: No space left on device"), Some(Cause::NoSpace));
        assert_eq!(program("Disk quota exceeded"), Some(Cause::NoSpace));
        assert_eq!(program("worker 3 is paused"), None, "a site's programs pause what they like");
        assert_eq!(Cause::of_io(&io::Error::from(io::ErrorKind::StorageFull)), Some(Cause::NoSpace));
        assert_eq!(Cause::of_io(&io::Error::from(io::ErrorKind::FileTooLarge)), Some(Cause::FileTooLarge));
        assert_eq!(Cause::of_io(&io::Error::from(io::ErrorKind::NotFound)), None);
    }
}
