//! The servers that the gateway is compared with: nginx and tinyproxy, each in a folder of its own.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that is killed when the value is dropped.
pub struct BenchProcess(Child);

impl Drop for BenchProcess {
    fn drop(&mut self) {
        // SIGTERM makes nginx exit at once; a graceful shutdown (SIGQUIT) is not needed.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Returns a free address of this host.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?.local_addr()
}

/// Starts nginx with this part of its configuration, and waits until it listens.
pub fn nginx(
    directory: &Path,
    name: &str,
    workers: usize,
    http: &str,
    listens: SocketAddr,
) -> io::Result<BenchProcess> {
    let own = directory.join(name);
    fs::create_dir(&own)?;
    let at = own.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {at}/{kind};\n"))
        .collect();
    let configuration = own.join("nginx.conf");
    fs::write(
        &configuration,
        format!(
            "daemon off;\nworker_processes {workers};\npid {at}/pid;\nerror_log {at}/error.log warn;\n\
             events {{ worker_connections 4096; }}\nhttp {{\naccess_log off;\nsendfile on;\n\
             keepalive_requests 100000000;\nkeepalive_timeout 300s;\n{temporary}{http}\n}}\n"
        ),
    )?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&configuration);
    start(command, "nginx", listens, &own.join("error.log"))
}

/// Starts tinyproxy, a forward proxy, with a password, and waits until it listens.
pub fn tinyproxy(directory: &Path, user: &str, password: &str, listens: SocketAddr) -> io::Result<BenchProcess> {
    let own = directory.join("tinyproxy");
    fs::create_dir(&own)?;
    let (configuration, log) = (own.join("tinyproxy.conf"), own.join("error.log"));
    fs::write(
        &configuration,
        format!(
            "Port {}\nListen {}\nMaxClients 512\nTimeout 300\nLogFile \"{}\"\nLogLevel Critical\n\
             BasicAuth {user} {password}\n",
            listens.port(),
            listens.ip(),
            log.display(),
        ),
    )?;
    let mut command = Command::new("tinyproxy");
    command.arg("-d").arg("-c").arg(&configuration).stdout(Stdio::null());
    start(command, "tinyproxy", listens, &log)
}

fn start(mut command: Command, name: &str, listens: SocketAddr, log: &Path) -> io::Result<BenchProcess> {
    let child = command.stderr(Stdio::null()).spawn();
    let running = BenchProcess(child.map_err(|error| io::Error::other(format!("start {name}: {error}")))?);
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(listens).is_err() {
        if Instant::now() > until {
            let log = fs::read_to_string(log).unwrap_or_default();
            return Err(io::Error::other(format!("{name} does not listen on {listens}: {log}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(running)
}
