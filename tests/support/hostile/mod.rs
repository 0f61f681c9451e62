//! Hostile servers. A script determines a server's behaviour towards each client, and each protocol has a list of
//! scripts that its clients must survive.

pub mod http;
pub mod mysql;
pub mod postgres;
pub mod redis;
mod visited;
pub mod websocket;

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use visited::Visited;

/// The pause between two bytes of a server that sends slowly.
const DRIP: Duration = Duration::from_millis(50);

/// The next action of a server. After the last one it closes the connection.
#[derive(Debug, Clone)]
pub enum Move {
    /// The server waits for bytes from its client.
    Hear,
    /// The server sends these bytes.
    Say(Vec<u8>),
    /// The server sends the same bytes repeatedly, until its client has disconnected.
    Repeat(Vec<u8>),
    /// The server answers everything with the same bytes.
    Answer(Vec<u8>),
    /// The server sends one byte at a time, slowly.
    Drip(Vec<u8>),
    /// The server sends nothing more, and waits until its client has disconnected.
    Silence,
}

/// The actions of a server towards one client.
pub type ServerScript = Vec<Move>;

/// A script with its name.
pub type ServerAttack = (&'static str, ServerScript);

/// A server. It ends with the process, which is soon enough in tests.
pub struct Hostile {
    /// The address that the server listens on.
    pub address: SocketAddr,
}

impl Hostile {
    /// Starts a server that follows a script with each client.
    pub fn start(script: ServerScript) -> Self {
        Self::with(move |client| follow(client, &script))
    }

    /// Starts a server that first reads from a client, and then follows the script chosen by these bytes.
    pub fn answering(choose: impl Fn(&[u8]) -> ServerScript + Send + Sync + 'static) -> Self {
        Self::with(move |client| {
            let heard = hear(client)?;
            follow(client, &choose(&heard))
        })
    }

    /// Starts a server on a port within a network namespace. It runs the current script for each client.
    pub fn within(namespace: &Path, port: u16, script: Arc<Mutex<ServerScript>>) -> Self {
        let bind = || {
            let namespace = File::open(namespace).expect("a namespace");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("rights of root");
            TcpListener::bind(("0.0.0.0", port)).expect("a free port")
        };
        // A separate thread enters the namespace, because it cannot return.
        let listener = std::thread::scope(|scope| scope.spawn(bind).join()).expect("no panic");
        Self::on(listener, move |client| {
            let script = script.lock().expect("no panic").clone();
            follow(client, &script)
        })
    }

    fn with(serve: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port"), serve)
    }

    fn on(listener: TcpListener, serve: impl Fn(&mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("an address");
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let serve = Arc::clone(&serve);
                // The thread ends without an error when its client disconnects.
                std::thread::spawn(move || client.set_nodelay(true).and_then(|()| serve(&mut client)));
            }
        });
        Self { address }
    }
}

fn follow(client: &mut TcpStream, script: &[Move]) -> io::Result<()> {
    for next in script {
        match next {
            Move::Hear => drop(hear(client)?),
            Move::Say(bytes) => client.write_all(bytes)?,
            Move::Repeat(bytes) => loop {
                client.write_all(bytes)?;
            },
            Move::Answer(bytes) => loop {
                hear(client)?;
                client.write_all(bytes)?;
            },
            Move::Drip(bytes) => {
                for byte in bytes.iter().cycle() {
                    client.write_all(&[*byte])?;
                    std::thread::sleep(DRIP);
                }
            }
            Move::Silence => drop(io::copy(client, &mut io::sink())?),
        }
    }
    Ok(())
}

/// Reads the next bytes of a client. Errors: the client has disconnected.
fn hear(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut heard = vec![0; 1 << 16];
    let length = client.read(&mut heard)?;
    heard.truncate(length);
    if length == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(heard) }
}

/// Returns the attacks that apply to every protocol.
pub fn attacks() -> Vec<ServerAttack> {
    vec![
        ("it hangs up", vec![]),
        ("it hangs up when it has heard enough", vec![Move::Hear]),
        ("silence", vec![Move::Silence]),
        ("five bytes", vec![Move::Hear, Move::Say(b"R\0\0\0\0".to_vec())]),
        ("five bytes and silence", vec![Move::Hear, Move::Say(b"R\0\0\0\0".to_vec()), Move::Silence]),
        ("noise without end", vec![Move::Repeat(vec![b'x'; 1 << 20])]),
        ("lines without end", vec![Move::Hear, Move::Repeat(b"$1\r\n".repeat(1 << 16))]),
        ("it drips", vec![Move::Hear, Move::Drip(b"x".to_vec())]),
    ]
}
