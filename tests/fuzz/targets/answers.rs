//! Answers of a hostile site. For any bytes the client gets one well-formed answer or a broken connection, and the next
//! client gets the answer to its own request.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::requests::{Passage, site};
use super::wire;
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 304 Not Modified\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 099 \r\n",
        "HTTP/2 200\r\n",
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        "\0",
        "Content-Length: 5\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Set-Cookie: a=b\r\n",
        "Upgrade: h2c\r\n",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
        "ffffffffffffffff\r\n",
        ": ",
        " ",
    ],
    ..FuzzTarget::new("gateway-answers", open)
};

/// The time that a client waits for more of an answer that may never end.
const PATIENCE: Duration = Duration::from_millis(40);

/// The path whose answer is the input.
const HOSTILE: &str = "/hostile";

fn serve(mut stream: TcpStream, input: &Mutex<Vec<u8>>) {
    let mut from = BufReader::new(stream.try_clone().expect("a second handle"));
    while let Ok(request) = wire::request(&mut from) {
        let path = request.second();
        if path != HOSTILE {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
            let _ = write!(stream, "{head}{path}");
            continue;
        }
        let input = input.lock().expect("no panic").clone();
        let _ = stream.write_all(&input);
        // Most servers close the connection; with the others, a client must wait to learn that the answer is complete.
        if input.iter().fold(0, |sum: u8, byte| sum ^ byte) % 8 != 0 {
            return;
        }
    }
}

fn open() -> InputCheck {
    let input: Arc<Mutex<Vec<u8>>> = Arc::default();
    let served = Arc::clone(&input);
    let passage = Passage::to(site(move |stream| serve(stream, &served)));
    let mut number = 0;
    Box::new(move |bytes| {
        *input.lock().expect("no panic") = bytes.to_vec();
        let method = if bytes.len() % 8 == 0 { "HEAD" } else { "GET" };
        let is_upgrade = bytes.windows(6).any(|window| window.eq_ignore_ascii_case(b"pgrade"));
        // Without an upgrade the answer ends with the connection, so that the client need not wait longer.
        let upgrade = if is_upgrade { "upgrade\r\nUpgrade: websocket\r\n" } else { "close\r\n" };
        let mut client = passage.connect();
        client.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        write!(client, "{method} {HOSTILE} HTTP/1.1\r\nHost: a\r\nConnection: {upgrade}\r\n").expect("sent");
        let answer = last(&mut BufReader::new(&client), method);
        drop(client);
        number += 1;
        passage.visit(&format!("/visitor/{number}"));
        answer
    })
}

/// The last answer, after the informational ones.
fn last(from: &mut BufReader<&TcpStream>, method: &str) -> String {
    loop {
        match wire::answer(from, method) {
            Ok(answer) if matches!(answer.second(), "100" | "102" | "103") => {}
            Ok(answer) => {
                let is_tunnel = answer.second() == "101";
                let mut rest = Vec::new();
                let end = from.read_to_end(&mut rest).map_err(|error| error.kind());
                assert!(is_tunnel || rest.is_empty(), "a second answer: {:?}", rest.escape_ascii().to_string());
                return format!("{} {:?}", answer.first, end.is_ok());
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return "it takes long".to_owned();
            }
            Err(error) => return format!("broken: {:?}", error.kind()),
        }
    }
}
