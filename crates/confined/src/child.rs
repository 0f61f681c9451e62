//! The child's side: it drops its privileges before it reads untrusted data, and answers the parent's questions.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rustix::process::{
    Gid, Resource, Rlimit, Signal, Uid, chroot, fchdir, geteuid, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// The user ID of workers if arenad runs as root. No distribution, service manager or container allocates this ID.
pub(super) const USER: u32 = 1_893_000_002;

/// The maximum memory that a worker may map, in bytes. It suffices for the program and several times the longest
/// answer.
const MEMORY_MAX: u64 = 768 << 20;

/// The maximum length of a question, in bytes. It suffices for a page in which each character is escaped as `\u0000`.
const QUESTION_MAX: usize = 32 << 20;

/// The maximum size of a file that a worker with a folder may write, in bytes. Neither a copy nor any file next to it
/// is larger.
const FILE_MAX: u64 = 4 << 30;

/// System calls that a worker does not need once it has its connection. They open connections, create, control or
/// inspect processes, or change files other than by writing.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_kill,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_memfd_create,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// System calls for opening files, which only a worker with a folder needs.
const OPENING: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
];

/// The connection of a new worker, and its channel to the parent.
pub struct WorkerConnection {
    connection: OwnedFd,
    line: Framed<UnixStream, LengthDelimitedCodec>,
}

/// A worker that has given up its privileges and can only use the connections that it has.
pub struct Locked {
    line: Framed<UnixStream, LengthDelimitedCodec>,
}

/// Drops all privileges, and runs a worker until its parent or its connection ends. Hidden commands call this function.
///
/// Errors: a privilege could not be dropped, or the parent has ended.
pub fn serve<F>(work: impl FnOnce(WorkerConnection) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    run(0, work)
}

/// Runs a worker that received a folder instead of a connection. The folder becomes the working directory. If arenad
/// runs as root, or the kernel allows user namespaces, the folder is also the worker's root directory.
pub fn serve_within<F>(work: impl FnOnce(WorkerConnection) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    fchdir(io::stdin())?;
    if geteuid().is_root() {
        chroot(".")?;
    } else {
        hide_files()?;
    }
    run(FILE_MAX, work)
}

/// Makes the current directory the root directory. A user other than root needs a user namespace for this. If the
/// kernel grants no namespace, or one without privileges, the worker keeps access to all files that the user may open.
fn hide_files() -> io::Result<()> {
    #[expect(deprecated, reason = "unsafe for tables of open files alone, which a namespace of users does not touch")]
    let entered = rustix::thread::unshare(UnshareFlags::NEWUSER);
    if entered.is_ok() && chroot(".").is_ok() {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    }
    Ok(())
}

fn run<F>(file_max: u64, work: impl FnOnce(WorkerConnection) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    give_up_rights(file_max)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { work(WorkerConnection::take()?).await })
}

fn give_up_rights(file_max: u64) -> io::Result<()> {
    if geteuid().is_root() {
        let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        // Changing the user also drops root's capabilities.
        set_thread_res_uid(user, user, user)?;
    }
    set_no_new_privs(true)?;
    // A change of the user would reset this signal, so it is set afterwards.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, most) in
        [(Resource::As, MEMORY_MAX), (Resource::Fsize, file_max), (Resource::Core, 0), (Resource::Nofile, 64)]
    {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

impl WorkerConnection {
    fn take() -> io::Result<Self> {
        let connection = io::stdin().as_fd().try_clone_to_owned()?;
        let line: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(QUESTION_MAX).new_codec();
        let line = Framed::new(UnixStream::from_std(line.into())?, codec);
        Ok(Self { connection, line })
    }

    /// Returns the next question, or `None` if the parent has closed the channel.
    pub async fn question<Q: DeserializeOwned>(&mut self) -> io::Result<Option<Q>> {
        question(&mut self.line).await
    }

    /// Locks a worker that does not use its connection.
    pub fn alone(self) -> io::Result<Locked> {
        lock(&[REFUSED, OPENING])?;
        Ok(Locked { line: self.line })
    }

    /// Locks a worker that implements the protocol itself, and returns its connection, whatever kind of socket it is.
    pub fn speak(self) -> io::Result<(Locked, UnixStream)> {
        lock(&[REFUSED, OPENING])?;
        // Reading and writing work alike on all kinds of stream sockets.
        Ok((Locked { line: self.line }, UnixStream::from_std(self.connection.into())?))
    }

    /// Opens files in the worker's folder, and locks the worker before it reads their content. Files can still be
    /// opened afterwards.
    pub async fn open<C>(self, opening: impl Future<Output = C>) -> io::Result<(Locked, C)> {
        let opened = opening.await;
        lock(&[REFUSED])?;
        Ok((Locked { line: self.line }, opened))
    }

    /// Connects a client library that requires a socket path, and locks the worker before either side sends data. The
    /// client's data is forwarded over the worker's connection.
    ///
    /// `connect` receives the folder in which the socket has the given `name`.
    pub async fn connect<C, F>(self, name: &str, connect: impl FnOnce(PathBuf) -> F) -> io::Result<(Locked, C)>
    where
        F: Future<Output = C>,
    {
        let Self { connection, line } = self;
        let mut connection = TcpStream::from_std(connection.into())?;
        let folder = TempDir::new_in("/tmp")?;
        let listener = UnixListener::bind(folder.path().join(name))?;
        let connecting = connect(folder.path().to_owned());
        let bridging = async move {
            let (mut client, _) = listener.accept().await?;
            // The socket is removed now, so that nothing is left behind however the worker ends.
            drop((listener, folder));
            lock(&[REFUSED, OPENING])?;
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut connection).await });
            Ok::<_, io::Error>(())
        };
        let ((), client) = tokio::try_join!(bridging, async { Ok(connecting.await) })?;
        Ok((Locked { line }, client))
    }
}

impl Locked {
    /// Returns the next question, or `None` if the parent has closed the channel.
    pub async fn question<Q: DeserializeOwned>(&mut self) -> io::Result<Option<Q>> {
        question(&mut self.line).await
    }

    /// Sends the answer to the last question.
    pub async fn answer(&mut self, answer: &impl Serialize) -> io::Result<()> {
        self.line.send(Bytes::from(serde_json::to_vec(answer)?)).await
    }
}

async fn question<Q: DeserializeOwned>(line: &mut Framed<UnixStream, LengthDelimitedCodec>) -> io::Result<Option<Q>> {
    match line.next().await {
        None => Ok(None),
        Some(question) => Ok(Some(serde_json::from_slice(&question?)?)),
    }
}

/// Makes the given system calls fail from now on, in the existing threads as well.
fn lock(calls: &[&[libc::c_long]]) -> io::Result<()> {
    let refused: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        calls.iter().copied().flatten().map(|call| (*call, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, denied, arch).map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    seccompiler::apply_filter_all_threads(&program).map_err(io::Error::other)
}
