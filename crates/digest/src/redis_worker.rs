//! The confined process that speaks to a Redis or Valkey server: it sends one command at a time and reads its answer.
//!
//! It supports only the parts of the protocol that its commands need: texts of bounded length, and errors.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use arenad_confined::WorkerConnection;

/// Hidden command that runs this program as the worker.
pub const COMMAND: &str = "confined-keys";

/// Script that returns a page of keys, or only the mark.
const SCRIPT: &str = include_str!("redis.lua");

/// Maximum length of an answer, in bytes: a page has about a thousand keys, with one line each.
const ANSWER_MAX: usize = 16 << 20;

/// Maximum number of keys in a page. Servers return more than the thousand keys that are requested, but not a hundred
/// times as many.
const PAGE_KEYS_MAX: usize = 100_000;

/// Maximum length of the first line of an answer, in bytes. The line contains a length or an error message.
const HEAD_MAX: u64 = 4096;

/// Number of databases that are searched for keys: the default number of databases in a server.
const DATABASES: usize = 16;

/// Cursor that yields a page without keys.
pub(super) const MARK: &str = "mark";

/// A request to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RedisRequest {
    /// Asks which databases have keys; the answer is parsed by [`databases`].
    Databases,
    /// Asks for a page of a database's keys from a cursor; the answer is a [`KeyPage`].
    Page { database: usize, cursor: String },
}

impl RedisRequest {
    /// Returns the command that the server receives.
    pub(super) fn command(&self) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Self::Databases => words(&["INFO", "keyspace"]),
            Self::Page { database, cursor } => words(&["EVAL", SCRIPT, "0", &database.to_string(), cursor]),
        }
    }
}

arenad_model::text_error! {
    /// Why a question has no answer: the server's error message, or a description of the failure.
    #[derive(Serialize, Deserialize)]
    pub(super) struct RedisServerError;
}

/// The answer to a question, or the reason why there is none.
pub(super) type RedisReply<T> = Result<T, RedisServerError>;

/// One answer of the script.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeyPage {
    pub(super) mark: String,
    pub(super) cursor: String,
    /// Each key with its type, the hash of its value and its expiry time.
    pub(super) keys: Vec<(String, String)>,
}

impl KeyPage {
    pub(super) fn read(answer: &str) -> RedisReply<Self> {
        let refused = || -> RedisServerError {
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

/// Returns the databases that have keys. It always includes the first one, whose answer contains the mark.
pub(super) fn databases(said: &str) -> Vec<usize> {
    let others = (1..DATABASES).filter(|number| said.lines().any(|line| line.starts_with(&format!("db{number}:"))));
    [0].into_iter().chain(others).collect()
}

/// Decodes a key to text; invalid UTF-8 becomes the replacement character.
fn unhex(digits: &str) -> Option<String> {
    let digit = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(digit).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// Runs the worker, as the whole of the hidden command.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(work)
}

async fn work(inside: WorkerConnection) -> io::Result<()> {
    let (mut parent, stream) = inside.speak()?;
    let mut server = BufReader::new(stream);
    while let Some(question) = parent.question::<RedisRequest>().await? {
        let said = exchange(&mut server, &request(&question.command())).await;
        match question {
            RedisRequest::Databases => parent.answer(&said.map(|said| databases(&said))).await?,
            RedisRequest::Page { .. } => parent.answer(&said.and_then(|said| KeyPage::read(&said))).await?,
        }
    }
    Ok(())
}

/// Sends a command and reads its answer.
async fn exchange(server: &mut BufReader<UnixStream>, request: &[u8]) -> RedisReply<String> {
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
async fn answer(server: &mut BufReader<UnixStream>) -> RedisReply<String> {
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
            String::from_utf8(text).map_err(|_| "its answer is not valid UTF-8".into())
        }
        (None, _) => {
            let begin: String = head.chars().take(100).collect();
            Err(format!("its answer begins with {begin:?}; expected a text of at most {ANSWER_MAX} bytes").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_mark_the_next_cursor_and_the_keys() {
        let page = KeyPage::read("ok run/1/2 17\n6120c3a4 string abc -1\n").expect("a page");
        assert_eq!((page.mark.as_str(), page.cursor.as_str()), ("run/1/2", "17"));
        assert_eq!(page.keys, [("a ä".to_owned(), "string abc -1".to_owned())]);
    }

    #[test]
    fn what_a_server_says_instead_is_the_reason() {
        for answer in ["", "NOAUTH Authentication required.", "ok mark", "ok mark 0\nnot-hex string a -1"] {
            let reason = KeyPage::read(answer).expect_err("no page");
            assert!(answer.is_empty() || answer.starts_with(&reason.to_string()), "{reason}");
        }
    }

    #[test]
    fn a_page_of_too_many_keys_is_refused() {
        let page = |keys: usize| format!("ok mark 0\n{}", "61 a\n".repeat(keys));
        assert!(KeyPage::read(&page(PAGE_KEYS_MAX)).is_ok());
        assert!(KeyPage::read(&page(PAGE_KEYS_MAX + 1)).is_err());
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
