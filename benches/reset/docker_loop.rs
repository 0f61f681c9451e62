//! A reset without arenad: the container is removed and started again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sites::BenchedSite;

/// The interval of the loop's readiness probe. arenad uses the interval of the definition.
const LOOK: Duration = Duration::from_millis(10);

/// The container of the plain loop; it is removed when the value is dropped, also after a panic.
pub struct DockerLoop<'a> {
    name: String,
    image: &'a str,
    site: &'a BenchedSite,
}

impl<'a> DockerLoop<'a> {
    /// Creates a loop on the image of a site's snapshot and starts nothing yet.
    pub fn of(image: &'a str, site: &'a BenchedSite) -> Self {
        Self { name: format!("arenad-bench-{}", std::process::id()), image, site }
    }

    /// Runs `docker rm -f` and `docker run`, and waits until the site is ready. Returns the site's address.
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

fn answers(socket: SocketAddr, site: &BenchedSite) -> bool {
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
