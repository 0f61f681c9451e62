//! The confined process that speaks to a Redis or Valkey server: sends one command after the other, and reads the answers.
//!
//! Of the protocol it knows texts of a bounded length and errors; no command that it sends is answered by anything else.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use arenad_confined::Inside;

/// The hidden command that makes this program the worker.
pub const COMMAND: &str = "confined-keys";

/// Answers a page of keys, or the mark alone.
const SCRIPT: &str = include_str!("redis.lua");

/// The longest answer that is read, in bytes: a page has a thousand keys and each of them a line.
const ANSWER_MAX: usize = 16 << 20;

/// The most keys of a page. Servers return more than the thousand that they are asked for, but not a hundred times as many.
const PAGE_KEYS_MAX: usize = 100_000;

/// The longest first line of an answer, in bytes: a length, or an error in words.
const HEAD_MAX: u64 = 4096;

/// How many databases are asked for keys: as many as a server has unless it was told otherwise.
const DATABASES: usize = 16;

/// A cursor that yields a page without keys.
pub(super) const MARK: &str = "mark";

/// A request to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// Which databases have keys: [`databases`].
    Databases,
    /// A page of the keys of a database, from a cursor on: [`Page`].
    Page { database: usize, cursor: String },
}

impl Question {
    /// The command that answers it.
    pub(super) fn command(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Self::Databases => words(&["INFO", "keyspace"]),
            Self::Page { database, cursor } => words(&["EVAL", SCRIPT, "0", &database.to_string(), cursor]),
        }
    }
}

arenad_model::text_error! {
    /// The words of a server, or about it, where an answer cannot be had.
    #[derive(Serialize, Deserialize)]
    pub(super) struct ServerWords;
}

/// What comes back: what was asked for, or why it cannot be had.
pub(super) type Answer<T> = Result<T, ServerWords>;

/// One answer of the script.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Page {
    pub(super) mark: String,
    pub(super) cursor: String,
    /// Each key with its type, the hash of its value and its expiry.
    pub(super) keys: Vec<(String, String)>,
}

impl Page {
    pub(super) fn read(answer: &str) -> Answer<Self> {
        let refused = || -> ServerWords {
            answer.lines().next().unwrap_or("it said nothing").chars().take(200).collect::<String>().into()
        };
        let mut lines = answer.trim_end().lines();
        let mut head = lines.next().unwrap_or_default().split(' ');
        let (Some("ok"), Some(mark), Some(cursor)) = (head.next(), head.next(), head.next()) else {
            return Err(refused());
        };
        let mut keys = Vec::new();
        for line in lines {
            if keys.len() == PAGE_KEYS_MAX {
                return Err(format!("its answer has more than {PAGE_KEYS_MAX} keys").into());
            }
            let (key, value) = line.split_once(' ').ok_or_else(refused)?;
            keys.push((unhex(key).ok_or_else(refused)?, value.to_owned()));
        }
        Ok(Self { mark: mark.to_owned(), cursor: cursor.to_owned(), keys })
    }
}

/// The databases that have keys; at least the first, whose answer carries the mark.
pub(super) fn databases(said: &str) -> Vec<usize> {
    let others = (1..DATABASES).filter(|number| said.lines().any(|line| line.starts_with(&format!("db{number}:"))));
    [0].into_iter().chain(others).collect()
}

/// A key as text; bytes that are none are shown as the character for that.
fn unhex(digits: &str) -> Option<String> {
    let digit = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(digit).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// Does the worker's work; the hidden command's whole life.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(work)
}

async fn work(inside: Inside) -> io::Result<()> {
    let (mut parent, stream) = inside.speak()?;
    let mut server = BufReader::new(stream);
    while let Some(question) = parent.question::<Question>().await? {
        let said = exchange(&mut server, &request(&question.command())).await;
        match question {
            Question::Databases => parent.answer(&said.map(|said| databases(&said))).await?,
            Question::Page { .. } => parent.answer(&said.and_then(|said| Page::read(&said))).await?,
        }
    }
    Ok(())
}

/// Sends a command and reads its answer.
async fn exchange(server: &mut BufReader<UnixStream>, request: &[u8]) -> Answer<String> {
    server.write_all(request).await.map_err(|error| error.to_string())?;
    answer(server).await
}

/// A command in the protocol's form.
fn request(words: &[String]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request.into_bytes()
}

/// Reads an answer that is one text, with the line end after it.
async fn answer(server: &mut BufReader<UnixStream>) -> Answer<String> {
    let mut head = Vec::new();
    (&mut *server).take(HEAD_MAX).read_until(b'\n', &mut head).await.map_err(|error| error.to_string())?;
    if head.is_empty() {
        return Err("it hung up".into());
    }
    let head = String::from_utf8_lossy(&head);
    let head = head.trim_end();
    let length = head.strip_prefix('$').and_then(|length| length.parse::<usize>().ok());
    match (head.strip_prefix('-'), length) {
        (Some(error), _) => Err(error.into()),
        (None, Some(length)) if length <= ANSWER_MAX => {
            let mut text = vec![0; length + 2];
            server.read_exact(&mut text).await.map_err(|error| error.to_string())?;
            text.truncate(length);
            String::from_utf8(text).map_err(|_| "its answer is no text".into())
        }
        (None, _) => {
            let begin: String = head.chars().take(100).collect();
            Err(format!("its answer begins with {begin:?}, which is no text of at most {ANSWER_MAX} bytes").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_mark_the_next_cursor_and_the_keys() {
        let page = Page::read("ok run/1/2 17\n6120c3a4 string abc -1\n").expect("a page");
        assert_eq!((page.mark.as_str(), page.cursor.as_str()), ("run/1/2", "17"));
        assert_eq!(page.keys, [("a ä".to_owned(), "string abc -1".to_owned())]);
    }

    #[test]
    fn what_a_server_says_instead_is_the_reason() {
        for answer in ["", "NOAUTH Authentication required.", "ok mark", "ok mark 0\nnot-hex string a -1"] {
            let reason = Page::read(answer).expect_err("no page");
            assert!(answer.is_empty() || answer.starts_with(&reason.to_string()), "{reason}");
        }
    }

    #[test]
    fn a_page_of_too_many_keys_is_refused() {
        let page = |keys: usize| format!("ok mark 0\n{}", "61 a\n".repeat(keys));
        assert!(Page::read(&page(PAGE_KEYS_MAX)).is_ok());
        assert!(Page::read(&page(PAGE_KEYS_MAX + 1)).is_err());
    }

    #[test]
    fn commands_carry_the_length_of_each_word_in_bytes() {
        let words = ["GET".to_owned(), "ä".to_owned()];
        assert_eq!(request(&words), "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n".as_bytes());
    }

    #[test]
    fn the_first_database_and_those_with_keys_are_asked() {
        assert_eq!(databases("# Keyspace\r\ndb3:keys=1,expires=0\r\ndb11:keys=2\r\ndb99:keys=1\r\n"), [0, 3, 11]);
        assert_eq!(databases(""), [0]);
    }

    #[tokio::test]
    async fn answers_follow_one_another() {
        let (client, mut server) = UnixStream::pair().expect("a pair");
        server.write_all(b"$5\r\none\r\n\r\n$0\r\n\r\n-ERR no\r\n$3\r\ntwo\r\n").await.expect("written");
        drop(server);
        let mut client = BufReader::new(client);
        let mut said = Vec::new();
        for _ in 0..5 {
            said.push(answer(&mut client).await.unwrap_or_else(|error| format!("error: {error}")));
        }
        assert_eq!(said, ["one\r\n", "", "error: ERR no", "two", "error: it hung up"]);
    }
}
