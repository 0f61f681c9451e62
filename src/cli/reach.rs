//! Diagnoses why no daemon answered: the one place that distinguishes "no daemon runs" from "this user may not
//! connect", "another program answers" and "the address leads nowhere".

use std::error::Error;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exit_code;
use super::failure::CommandFailure;

/// The place at which a daemon is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonAddress {
    /// The socket in the state directory of this machine.
    Local {
        /// The path of the state directory.
        state_dir: PathBuf,
    },
    /// A socket that `--host` or ARENAD_HOST names.
    Socket(PathBuf),
    /// An HTTP address that `--host` or ARENAD_HOST names.
    Http(String),
}

/// The reason why no daemon answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// There is no listener, and no process holds the state directory.
    NobodyListens {
        /// Whether a socket without a listener exists; otherwise there is none.
        has_socket: bool,
    },
    /// A daemon holds the state directory and does not listen: it is starting up or shutting down.
    NotListening {
        /// The id of its process, if it is known.
        pid: String,
    },
    /// This user may not open the socket.
    Denied {
        /// The user who owns the socket, if that is visible.
        owner: Option<String>,
    },
    /// The connection was accepted, or at least not refused, and no answer came in time.
    TimedOut(Duration),
    /// The host name of the address does not resolve.
    UnknownHost(String),
    /// The program at the address speaks another protocol.
    Foreign(String),
    /// The connection ended before the answer was complete.
    BrokeOff(String),
}

impl DaemonAddress {
    /// Returns the path of the socket, if the place is one.
    pub fn socket(&self) -> Option<PathBuf> {
        match self {
            Self::Local { state_dir } => Some(state_dir.join("arenad.sock")),
            Self::Socket(path) => Some(path.clone()),
            Self::Http(_) => None,
        }
    }

    /// Returns the reason why a request received no answer.
    pub fn silence(&self, error: &reqwest::Error, limit: Duration) -> Silence {
        match (self.silence_now(error, limit), self) {
            // A daemon that was killed accepts connections until the kernel has closed its sockets.
            (Silence::BrokeOff(_), Self::Local { state_dir }) if has_ended(state_dir) => {
                Silence::NobodyListens { has_socket: true }
            }
            (silence, _) => silence,
        }
    }

    /// Returns the reason at this moment. A second connection reveals details that the client's error hides.
    fn silence_now(&self, error: &reqwest::Error, limit: Duration) -> Silence {
        if error.is_timeout() {
            return Silence::TimedOut(limit);
        }
        if !error.is_connect() {
            return match innermost(error) {
                said if is_of_parser(&said) => Silence::Foreign(said),
                said => Silence::BrokeOff(said),
            };
        }
        let kind = match self.socket() {
            Some(socket) => UnixStream::connect(socket).err().map(|error| error.kind()),
            None => io_kind(error),
        };
        match (kind, self) {
            (Some(ErrorKind::PermissionDenied), _) => Silence::Denied { owner: self.owner() },
            (Some(kind @ (ErrorKind::NotFound | ErrorKind::ConnectionRefused)), Self::Local { state_dir }) => {
                match holder(state_dir) {
                    Some(pid) => Silence::NotListening { pid },
                    None => Silence::NobodyListens { has_socket: kind == ErrorKind::ConnectionRefused },
                }
            }
            (Some(kind @ (ErrorKind::NotFound | ErrorKind::ConnectionRefused)), _) => {
                Silence::NobodyListens { has_socket: kind == ErrorKind::ConnectionRefused }
            }
            (Some(ErrorKind::TimedOut), _) => Silence::TimedOut(limit),
            _ => match innermost(error) {
                said if is_of_resolver(error) => Silence::UnknownHost(said),
                said => Silence::BrokeOff(said),
            },
        }
    }

    fn owner(&self) -> Option<String> {
        let path = match self {
            Self::Local { state_dir } => state_dir,
            Self::Socket(path) => path,
            Self::Http(_) => return None,
        };
        let uid = path.metadata().ok()?.uid().to_string();
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        // The format is name:password:uid:…
        let found = users.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()));
        let name = found.and_then(|line| line.split(':').next()).map(str::to_owned);
        Some(name.unwrap_or_else(|| format!("user {uid}")))
    }

    /// Returns the failure of a command that needs a daemon.
    pub fn failure(&self, silence: &Silence) -> CommandFailure {
        let (message, hint) = match self {
            Self::Local { state_dir } => local(state_dir, silence),
            Self::Socket(path) => named(&path.display().to_string(), true, silence),
            Self::Http(url) => named(url, false, silence),
        };
        CommandFailure::new(exit_code::FAILED, anyhow::anyhow!("{message}")).hint(hint)
    }
}

/// Returns the id of the process that holds a state directory; it is empty for an instant at its start.
pub fn holder(state_dir: &Path) -> Option<String> {
    let path = state_dir.join("lock");
    let file = std::fs::File::open(&path).ok()?;
    let is_held = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err();
    is_held.then(|| std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned())
}

/// Returns whether no process holds a state directory, now or within a moment.
fn has_ended(state_dir: &Path) -> bool {
    const LOOKS: u32 = 20;
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        holder(state_dir).is_none()
    })
}

fn local(state_dir: &Path, silence: &Silence) -> (String, String) {
    let place = state_dir.display();
    let log = format!("see its log {}", state_dir.join("arenad.log").display());
    match silence {
        Silence::NobodyListens { .. } => (
            format!("no daemon runs on {place}"),
            "`arenad up` starts one; `arenad serve` runs one in the foreground".to_owned(),
        ),
        Silence::NotListening { pid } => {
            let pid = if pid.is_empty() { String::new() } else { format!(" (pid {pid})") };
            let message = format!("the daemon on {place}{pid} is starting or stopping");
            (message, format!("try again in a moment; {log}"))
        }
        Silence::Denied { owner } => {
            let owner = owner.as_deref().map(|owner| format!(", which belongs to {owner}")).unwrap_or_default();
            let hint = "run the command as that user, such as with sudo; or use a state directory of your own: unset \
                        ARENAD_STATE_DIR, or give --state-dir";
            (format!("this user may not open {place}{owner}"), hint.to_owned())
        }
        Silence::TimedOut(limit) => {
            (format!("the daemon on {place} did not answer within {limit:?}"), format!("try again; {log}"))
        }
        Silence::Foreign(said) => (
            format!("the program on {place}/arenad.sock is not arenad: {said}"),
            "give another state directory with --state-dir".to_owned(),
        ),
        Silence::BrokeOff(said) | Silence::UnknownHost(said) => (
            format!("the daemon on {place} closed the connection before it answered: {said}"),
            format!("`arenad status` shows whether it still runs; {log}"),
        ),
    }
}

fn named(place: &str, is_socket: bool, silence: &Silence) -> (String, String) {
    let listen = if is_socket { "" } else { " --listen ADDRESS:PORT" };
    let start = format!("start it there with `arenad serve{listen}`, or correct --host or ARENAD_HOST");
    let correct = "correct --host or ARENAD_HOST, or unset it to use the daemon of this machine".to_owned();
    match silence {
        Silence::NobodyListens { has_socket: false } if is_socket => (format!("there is no socket {place}"), start),
        Silence::NobodyListens { .. } | Silence::NotListening { .. } => {
            (format!("no daemon answers at {place}: the connection was refused"), start)
        }
        Silence::Denied { owner } => {
            let owner = owner.as_deref().map(|owner| format!(", which belongs to {owner}")).unwrap_or_default();
            (
                format!("this user may not open {place}{owner}"),
                "run the command as a user who may, or start the daemon with `arenad serve --socket-group`".to_owned(),
            )
        }
        Silence::TimedOut(limit) => (
            format!("no answer from {place} within {limit:?}"),
            "check that the host is up and that no firewall blocks the port; --host or ARENAD_HOST gives the address"
                .to_owned(),
        ),
        Silence::UnknownHost(said) => (format!("unknown host in {place}: {said}"), correct),
        Silence::Foreign(said) => (format!("the server at {place} is not arenad: {said}"), correct),
        Silence::BrokeOff(said) => {
            (format!("the connection to {place} ended before the answer: {said}"), "try again".to_owned())
        }
    }
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}

fn io_kind(error: &reqwest::Error) -> Option<ErrorKind> {
    chain(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last().map(std::io::Error::kind)
}

/// Returns the innermost cause, which states what happened; the outer ones only name the layers of the client.
fn innermost(error: &reqwest::Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

fn is_of_resolver(error: &reqwest::Error) -> bool {
    chain(error).any(|cause| cause.to_string().contains("dns error"))
}

/// Returns whether the received bytes were not HTTP.
fn is_of_parser(said: &str) -> bool {
    said.contains("invalid HTTP") || said.contains("message head is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(place: &DaemonAddress, silence: Silence) -> String {
        let failure = place.failure(&silence);
        assert_eq!(failure.code, exit_code::FAILED);
        format!("{} | {}", failure.error, failure.hint.unwrap_or_default())
    }

    #[test]
    fn no_daemon_runs_is_said_of_one_case_alone() {
        let local = DaemonAddress::Local { state_dir: "/s".into() };
        let all = [
            Silence::NotListening { pid: "12".to_owned() },
            Silence::Denied { owner: Some("root".to_owned()) },
            Silence::TimedOut(Duration::from_secs(5)),
            Silence::Foreign("it answered 404 Not Found".to_owned()),
            Silence::BrokeOff("connection closed".to_owned()),
        ];
        let mut words: Vec<String> = all.into_iter().map(|silence| said(&local, silence)).collect();
        assert!(words.iter().all(|words| !words.contains("no daemon runs")), "{words:#?}");
        words.push(said(&local, Silence::NobodyListens { has_socket: false }));
        assert!(words.last().is_some_and(|words| words.starts_with("no daemon runs on /s")), "{words:#?}");
        words.dedup();
        assert_eq!(words.len(), 6, "each has a message of its own: {words:#?}");
    }

    #[test]
    fn a_named_address_is_repeated_and_its_options_are_named() {
        let http = DaemonAddress::Http("http://h:1".to_owned());
        let socket = DaemonAddress::Socket("/x.sock".into());
        assert!(said(&socket, Silence::NobodyListens { has_socket: false }).starts_with("there is no socket /x.sock"));
        assert!(said(&socket, Silence::NobodyListens { has_socket: true }).contains("refused"));
        for silence in [
            Silence::NobodyListens { has_socket: true },
            Silence::TimedOut(Duration::from_secs(5)),
            Silence::UnknownHost("no such name".to_owned()),
            Silence::Foreign("it answered 200 OK".to_owned()),
        ] {
            let words = said(&http, silence);
            assert!(words.contains("http://h:1") && words.contains("ARENAD_HOST"), "{words}");
        }
    }
}
