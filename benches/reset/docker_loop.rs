//! One reset as people do it today.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Site;

/// How often the loop looks; arenad's own interval is the definition's.
const LOOK: Duration = Duration::from_millis(10);

/// The container of the plain loop; goes with its owner, also when that panics.
pub struct DockerLoop<'a> {
    name: String,
    image: &'a str,
    site: &'a Site,
}

impl<'a> DockerLoop<'a> {
    /// A loop on the image of a site's snapshot; nothing is started yet.
    pub fn of(image: &'a str, site: &'a Site) -> Self {
        Self { name: format!("arenad-bench-{}", std::process::id()), image, site }
    }

    /// `docker rm -f`, `docker run`, until it is ready. Returns where it answers.
    pub fn cycle(&self) -> SocketAddr {
        let Self { name, image, site } = self;
        docker(&["rm", "-f", name]);
        docker(&["run", "-d", "--name", name, "--cap-drop", "ALL", "--memory", "512m", "--pids-limit", "100", image]);
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let address = docker(&["inspect", "-f", format, name]);
        let socket: SocketAddr = format!("{}:80", address.trim()).parse().expect("an address");
        let deadline = Instant::now() + Duration::from_secs(120);
        while !answers(socket, site) {
            assert!(Instant::now() < deadline, "{image} never became ready");
            std::thread::sleep(LOOK);
        }
        socket
    }
}

impl Drop for DockerLoop<'_> {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "-f", &self.name]).output();
    }
}

fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("docker runs");
    let is_fine = output.status.success() || args.first() == Some(&"rm");
    assert!(is_fine, "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn answers(socket: SocketAddr, site: &Site) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&socket, Duration::from_secs(1)) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let request = format!("GET {} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n", site.path);
    let mut answer = Vec::new();
    let exchanged = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer).map(drop));
    let text = String::from_utf8_lossy(&answer);
    exchanged.is_ok() && text.starts_with("HTTP/1.1 200") && text.contains(site.marker)
}
