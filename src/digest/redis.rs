//! Redis and Valkey: a script in the server says what its keys hold, a page at a time.

use std::collections::BTreeMap;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::container_socket;
use super::content::Content;
use super::lines::{Duplex, Line, Stream};
use super::rules::volatile_keys;
use super::{DigestError, Look, Subject};
use crate::domain::store::{RedisAccess, Store};
use crate::probes::describe;

/// Answers a page of keys, or the mark alone.
const SCRIPT: &str = include_str!("redis.lua");

/// The longest answer that is read, in bytes: a page has a thousand keys and each of them a line.
const ANSWER_MAX: usize = 16 << 20;

/// How many databases are asked for keys: as many as a server has unless it was told otherwise.
const DATABASES: usize = 16;

/// The mark of a server: what it counts of its changes.
pub(super) async fn mark(
    subject: &Subject<'_>,
    store: &Store,
    access: &RedisAccess,
) -> Result<Option<String>, DigestError> {
    let answer = Server { subject, store, access }.eval("0", "mark").await?;
    Ok(Some(Page::read(store, &answer)?.mark))
}

/// All keys of a server.
pub(super) async fn look(subject: &Subject<'_>, store: &Store, access: &RedisAccess) -> Result<Look, DigestError> {
    let server = Server { subject, store, access };
    let volatile = volatile_keys(store);
    let mut content = Content::default();
    let mut marks = Vec::new();
    for database in server.databases().await? {
        let mut cursor = "0".to_owned();
        loop {
            let page = Page::read(store, &server.eval(&database, &cursor).await?)?;
            // A scan may name a key twice.
            for (key, value) in page.keys.into_iter().filter(|(key, _)| !volatile.is_match(key)) {
                let name = if database == "0" { key } else { format!("{database}:{key}") };
                content.keys.insert(name, value);
            }
            marks.push(page.mark);
            cursor = page.cursor;
            if cursor == "0" {
                break;
            }
        }
    }
    marks.dedup();
    // Pages of which the mark is not the same show different times.
    let mark = if marks.len() == 1 { marks.pop() } else { None };
    Ok(Look { content, mark, paths: None })
}

/// One answer of the script.
struct Page {
    mark: String,
    cursor: String,
    keys: BTreeMap<String, String>,
}

impl Page {
    fn read(store: &Store, answer: &str) -> Result<Self, DigestError> {
        let refused = || DigestError::Redis {
            store: store.name.clone(),
            reason: answer.lines().next().unwrap_or("it said nothing").chars().take(200).collect(),
        };
        let mut lines = answer.trim_end().lines();
        let mut head = lines.next().unwrap_or_default().split(' ');
        let (Some("ok"), Some(mark), Some(cursor)) = (head.next(), head.next(), head.next()) else {
            return Err(refused());
        };
        let keys = lines.map(|line| {
            let (key, value) = line.split_once(' ')?;
            Some((unhex(key)?, value.to_owned()))
        });
        let keys = keys.collect::<Option<_>>().ok_or_else(refused)?;
        Ok(Self { mark: mark.to_owned(), cursor: cursor.to_owned(), keys })
    }
}

/// A key as text; bytes that are none are shown as the character for that.
fn unhex(digits: &str) -> Option<String> {
    let digit = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(digit).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// A way to the server.
struct Server<'a> {
    subject: &'a Subject<'a>,
    store: &'a Store,
    access: &'a RedisAccess,
}

impl Server<'_> {
    async fn eval(&self, database: &str, cursor: &str) -> Result<String, DigestError> {
        self.call(&["EVAL", SCRIPT, "0", database, cursor]).await
    }

    /// The databases that have keys; at least the first, whose answer carries the mark.
    async fn databases(&self) -> Result<Vec<String>, DigestError> {
        let said = self.call(&["INFO", "keyspace"]).await?;
        let others = (1..DATABASES).filter(|number| said.lines().any(|line| line.starts_with(&format!("db{number}:"))));
        Ok([0].into_iter().chain(others).map(|number| number.to_string()).collect())
    }

    async fn call(&self, words: &[&str]) -> Result<String, DigestError> {
        match self.access {
            RedisAccess::Client { command } => self.through_client(command, words).await,
            RedisAccess::Tcp { .. } | RedisAccess::Socket { .. } => {
                self.over_line(words).await.map_err(|reason| self.failed(reason))
            }
        }
    }

    fn failed(&self, reason: String) -> DigestError {
        DigestError::Redis { store: self.store.name.clone(), reason }
    }

    async fn through_client(&self, command: &[String], words: &[&str]) -> Result<String, DigestError> {
        let container = self.subject.incarnation.containers.get(&self.store.service);
        let container = container.ok_or_else(|| self.failed(format!("{} has no container", self.store.service)))?;
        let command: Vec<String> = command.iter().cloned().chain(words.iter().map(|&word| word.to_owned())).collect();
        let output = self.subject.engine.exec(container, &command, None, self.store.timeout).await;
        let output = output.map_err(|cause| DigestError::Client { store: self.store.name.clone(), cause })?;
        if output.code != 0 {
            let said = output.stderr.trim().lines().last().unwrap_or("it said nothing");
            return Err(self.failed(format!("{} ended with code {}: {said}", command[0], output.code)));
        }
        Ok(output.stdout)
    }

    /// Asks on a line that was kept, if it still works, else on a new one.
    async fn over_line(&self, words: &[&str]) -> Result<String, String> {
        let (store, lines) = (self.store, self.subject.lines);
        let request = request(words);
        if let Some(Line::Stream(mut stream)) = lines.take(store, "")
            && let Ok(answer) = exchange(&mut stream, &request).await
        {
            lines.put(store, "", Line::Stream(stream)).await;
            return Ok(answer);
        }
        let mut stream = BufReader::new(self.connect().await?);
        let answer = exchange(&mut stream, &request).await?;
        lines.put(store, "", Line::Stream(stream)).await;
        Ok(answer)
    }

    async fn connect(&self) -> Result<Box<dyn Duplex>, String> {
        let service = &self.store.service;
        match self.access {
            RedisAccess::Tcp { port } => {
                let socket = self.subject.incarnation.socket(service, *port);
                let socket = socket.ok_or_else(|| format!("{service} has no address: its container is not running"))?;
                let stream =
                    TcpStream::connect(socket).await.map_err(|error| format!("connect to {socket}: {error}"))?;
                // A command must not wait for the acknowledgement of the last one.
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                Ok(Box::new(stream))
            }
            RedisAccess::Socket { path } => {
                let container = self.subject.incarnation.containers.get(service);
                let container = container.ok_or_else(|| format!("{service} has no container"))?;
                let status = self.subject.engine.inspect(container).await.map_err(|error| describe(&error))?;
                let pid = status.pid.ok_or_else(|| format!("the container of {service} is not running"))?;
                let stream = container_socket::connect(pid, path).await;
                Ok(Box::new(stream.map_err(|error| format!("connect to {path} in {service}: {error}"))?))
            }
            RedisAccess::Client { .. } => Err("it is asked through a client".to_owned()),
        }
    }
}

/// Sends a command and reads its answer.
async fn exchange(stream: &mut Stream, request: &[u8]) -> Result<String, String> {
    stream.write_all(request).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    answer(stream).await
}

/// A command in the protocol's form.
fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request.into_bytes()
}

/// Reads an answer that is one text.
async fn answer(stream: &mut Stream) -> Result<String, String> {
    let mut head = String::new();
    // The first line is a length, or an error in words.
    (&mut *stream).take(4096).read_line(&mut head).await.map_err(|error| error.to_string())?;
    let head = head.trim_end();
    let length = head.strip_prefix('$').and_then(|length| length.parse::<usize>().ok());
    match (head.strip_prefix('-'), length) {
        (Some(error), _) => Err(error.to_owned()),
        (None, Some(length)) if length <= ANSWER_MAX => {
            let mut text = vec![0; length];
            stream.read_exact(&mut text).await.map_err(|error| error.to_string())?;
            String::from_utf8(text).map_err(|_| "its answer is no text".to_owned())
        }
        (None, _) => Err(format!("its answer begins with {head:?}, which is no text of at most {ANSWER_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ServiceName;
    use crate::domain::store::StoreKind;

    fn store() -> Store {
        Store {
            name: "queue".into(),
            service: ServiceName::parse("web").expect("valid"),
            path: "/data/queue".into(),
            kind: StoreKind::Redis { access: RedisAccess::Tcp { port: 6379 } },
            volatile: Vec::new(),
            timeout: std::time::Duration::from_secs(1),
        }
    }

    #[test]
    fn a_page_has_its_mark_the_next_cursor_and_the_keys() {
        let page = Page::read(&store(), "ok run/1/2 17\n6120c3a4 string abc -1\n").expect("a page");
        assert_eq!((page.mark.as_str(), page.cursor.as_str()), ("run/1/2", "17"));
        assert_eq!(page.keys, BTreeMap::from([("a ä".to_owned(), "string abc -1".to_owned())]));
    }

    #[test]
    fn what_a_server_says_instead_is_the_reason() {
        for answer in ["", "NOAUTH Authentication required.", "ok mark", "ok mark 0\nnot-hex string a -1"] {
            let error = Page::read(&store(), answer).err().expect("no page").to_string();
            assert!(error.starts_with("ask the server of the store queue: "), "{error}");
        }
        let error = Page::read(&store(), "NOAUTH Authentication required.").err().expect("no page").to_string();
        assert!(error.ends_with("NOAUTH Authentication required."), "{error}");
    }

    #[test]
    fn commands_carry_the_length_of_each_word_in_bytes() {
        assert_eq!(request(&["GET", "ä"]), "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n".as_bytes());
    }
}
