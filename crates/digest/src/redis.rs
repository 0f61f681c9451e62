//! Reads Redis and Valkey through a script that runs in the server and returns the keys page by page.
//!
//! Over a connection, a confined process exchanges commands with the server (see [`super::redis_worker`]). The output
//! of a client in the container is parsed here: its length is bounded, and it has no nested structure.

use std::os::fd::OwnedFd;

use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use super::container_socket;
use super::content::StoreContent;
use super::lines::StoreConnection;
use super::redis_worker::{COMMAND, KeyPage, MARK, RedisReply, RedisRequest, databases};
use super::rules::volatile_keys;
use super::{DigestError, StoreReading, Subject};
use arenad_confined::Worker;
use arenad_model::error::describe;
use arenad_model::store::{RedisAccess, Store};

/// Maximum memory for all keys of a server, in bytes: enough for more than a million keys.
const MEMORY_MAX: usize = 192 << 20;

/// Memory that a key takes in addition to its name and its description, in bytes.
const KEY_BYTES: usize = 100;

/// Returns the mark of a server, which is derived from the server's count of changes.
pub(super) async fn mark(
    subject: &Subject<'_>,
    store: &Store,
    access: &RedisAccess,
) -> Result<Option<String>, DigestError> {
    let mut server = RedisServer::open(subject, store, access);
    let page = server.page(0, MARK).await?;
    server.end().await;
    Ok(Some(page.mark))
}

/// Reads all keys of a server.
pub(super) async fn look(
    subject: &Subject<'_>,
    store: &Store,
    access: &RedisAccess,
) -> Result<StoreReading, DigestError> {
    let mut server = RedisServer::open(subject, store, access);
    let volatile = volatile_keys(store);
    let (mut content, mut size) = (StoreContent::default(), 0);
    let (mut mark, mut is_settled) = (None, true);
    for database in server.databases().await? {
        let mut cursor = "0".to_owned();
        loop {
            let page = server.page(database, &cursor).await?;
            for (key, value) in page.keys.into_iter().filter(|(key, _)| !volatile.is_match(key)) {
                let name = if database == 0 { key } else { format!("{database}:{key}") };
                size += name.len() + value.len() + KEY_BYTES;
                // A scan may return a key twice.
                content.keys.insert(name, value);
            }
            if size > MEMORY_MAX {
                return Err(server.failed(format!("its keys take more than {} MiB", MEMORY_MAX >> 20)));
            }
            // Pages with different marks show different states.
            is_settled &= *mark.get_or_insert_with(|| page.mark.clone()) == page.mark;
            cursor = page.cursor;
            if cursor == "0" {
                break;
            }
        }
    }
    server.end().await;
    Ok(StoreReading { content, mark: mark.filter(|_| is_settled), paths: None })
}

/// Access to a server, through a worker or a client in the container.
struct RedisServer<'a> {
    subject: &'a Subject<'a>,
    store: &'a Store,
    access: &'a RedisAccess,
    /// Worker that is connected to the server; `None` before the first question or if a client in the container is
    /// used.
    worker: Option<Box<Worker>>,
    /// Whether the worker was kept from an earlier check and has not been used since: the server may have closed its
    /// connection.
    is_kept: bool,
}

impl<'a> RedisServer<'a> {
    fn open(subject: &'a Subject<'a>, store: &'a Store, access: &'a RedisAccess) -> Self {
        let worker = match subject.lines.take(store, "") {
            Some(StoreConnection::Keys(worker)) => Some(worker),
            _ => None,
        };
        let is_kept = worker.is_some();
        Self { subject, store, access, worker, is_kept }
    }

    /// Keeps the worker for the next check. Every answer must have been read.
    async fn end(self) {
        if let Some(worker) = self.worker {
            self.subject.lines.put(self.store, "", StoreConnection::Keys(worker)).await;
        }
    }

    async fn databases(&mut self) -> Result<Vec<usize>, DigestError> {
        self.ask(&RedisRequest::Databases, |said| Ok(databases(said))).await
    }

    async fn page(&mut self, database: usize, cursor: &str) -> Result<KeyPage, DigestError> {
        self.ask(&RedisRequest::Page { database, cursor: cursor.to_owned() }, KeyPage::read).await
    }

    /// Asks the worker, or a client in the container whose output `read` parses.
    async fn ask<T: DeserializeOwned>(
        &mut self,
        question: &RedisRequest,
        read: impl Fn(&str) -> RedisReply<T>,
    ) -> Result<T, DigestError> {
        let answer = match self.access {
            RedisAccess::Client { command } => read(&self.through_client(command, question.command()).await?),
            RedisAccess::Tcp { .. } | RedisAccess::Socket { .. } => self.over_line(question).await,
        };
        answer.map_err(|words| self.failed(words.to_string()))
    }

    fn failed(&self, reason: String) -> DigestError {
        DigestError::Redis { store: self.store.name.clone(), reason }
    }

    async fn through_client(&self, command: &[String], words: Vec<String>) -> Result<String, DigestError> {
        let container = self.subject.incarnation.containers.get(&self.store.service);
        let container = container.ok_or_else(|| self.failed(format!("{} has no container", self.store.service)))?;
        let command: Vec<String> = command.iter().cloned().chain(words).collect();
        let output = self.subject.engine.exec(container, &command, None, self.store.timeout).await;
        let output = output.map_err(|cause| DigestError::Client { store: self.store.name.clone(), cause })?;
        if output.code != 0 {
            let said = output.stderr.trim().lines().last().unwrap_or("it said nothing");
            return Err(self.failed(format!("{} exited with code {}: {said}", command[0], output.code)));
        }
        Ok(output.stdout)
    }

    /// Asks the worker. Starts a new one if there is none, or if a kept one no longer works.
    async fn over_line<T: DeserializeOwned>(&mut self, question: &RedisRequest) -> RedisReply<T> {
        let was_kept = std::mem::take(&mut self.is_kept);
        if let Some(mut worker) = self.worker.take() {
            let answer = ask(&mut worker, question).await;
            if answer.is_ok() {
                self.worker = Some(worker);
            }
            if answer.is_ok() || !was_kept {
                return answer;
            }
        }
        let worker = Worker::speaking(COMMAND, self.connect().await?);
        let mut worker = Box::new(worker.map_err(|error| error.to_string())?);
        let answer = ask(&mut worker, question).await?;
        self.worker = Some(worker);
        Ok(answer)
    }

    async fn connect(&self) -> RedisReply<OwnedFd> {
        let service = &self.store.service;
        match self.access {
            RedisAccess::Tcp { port } => {
                let socket = self.subject.incarnation.socket(service, *port);
                let socket = socket.ok_or_else(|| format!("{service} has no address: its container is not running"))?;
                let connected = async {
                    let stream = TcpStream::connect(socket).await?;
                    // A command must not wait for the acknowledgement of the previous one.
                    stream.set_nodelay(true)?;
                    stream.into_std()
                };
                let stream = connected.await.map_err(|error| format!("connect to {socket}: {error}"))?;
                Ok(stream.into())
            }
            RedisAccess::Socket { path } => {
                let container = self.subject.incarnation.containers.get(service);
                let container = container.ok_or_else(|| format!("{service} has no container"))?;
                let status = self.subject.engine.inspect(container).await.map_err(|error| describe(&error))?;
                let pid = status.pid.ok_or_else(|| format!("the container of {service} is not running"))?;
                let connected = async { container_socket::connect(pid, path).await?.into_std() };
                let stream = connected.await.map_err(|error| format!("connect to {path} in {service}: {error}"))?;
                Ok(stream.into())
            }
            RedisAccess::Client { .. } => Err("it is asked through a client".into()),
        }
    }
}

async fn ask<T: DeserializeOwned>(worker: &mut Worker, question: &RedisRequest) -> RedisReply<T> {
    worker.ask::<RedisReply<T>>(question).await.unwrap_or_else(|error| Err(error.to_string().into()))
}
