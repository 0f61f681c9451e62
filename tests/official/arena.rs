//! An official environment on stand-in images: its own two files, in which only names and image references are changed.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::support::world::{CommandOutput, copy, free_port, install_busybox};
use crate::support::{TestEngine, World};

/// The host name in public URLs.
pub const HOST: &str = "arena.example.org";

/// The programs of the official images that arenad calls, except those that it calls by their paths.
const PROGRAMS: [&str; 14] = [
    "curl",
    "find",
    "gitlab-ctl",
    "gitlab-psql",
    "gitlab-redis-cli",
    "mysql",
    "mysqladmin",
    "php",
    "psql",
    "redis-cli",
    "rm",
    "sed",
    "su",
    "supervisorctl",
];

/// The sites and their well-known ports.
const PORTS: [(&str, u16); 8] = [
    ("SHOPPING", 7770),
    ("SHOPPING_ADMIN", 7780),
    ("REDDIT", 9999),
    ("GITLAB", 8023),
    ("WIKIPEDIA", 8888),
    ("MAP", 3000),
    ("HOMEPAGE", 4399),
    ("CLASSIFIEDS", 9980),
];

/// An official environment on stand-in images.
pub struct OfficialArena {
    pub world: World,
    /// The address of the public ports, which belongs to this arena only, so that well-known ports are free.
    pub address: Ipv4Addr,
    /// The sites' public ports.
    pub ports: Vec<(&'static str, u16)>,
    /// Declared after the world: its containers are removed before their images.
    images: OfficialImages,
}

/// Removes the images of an arena at its end. They are names of one image, which is removed with the last of them.
struct OfficialImages(String);

impl Drop for OfficialImages {
    fn drop(&mut self) {
        let engine = TestEngine::of_the_machine();
        let filter = format!("reference={}/*", self.0);
        let list = ["images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", &filter];
        let found = engine.try_docker(&list).unwrap_or_default();
        let _ = engine.try_docker(&[&["rmi"], found.lines().collect::<Vec<_>>().as_slice()].concat());
    }
}

impl OfficialArena {
    /// The environment with the well-known ports.
    pub fn known_ports(environment: &str) -> Self {
        Self::new(environment, "known", &PORTS)
    }

    /// The environment with other ports.
    pub fn other_ports(environment: &str) -> Self {
        Self::new(environment, "other", &PORTS.map(|(site, _)| (site, free_port())))
    }

    fn new(environment: &str, kind: &str, ports: &[(&'static str, u16)]) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [_, _, third, second] = std::process::id().to_be_bytes();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = Ipv4Addr::new(127, second.max(2), third, number);
        let world = World::bare(&format!("{environment}-{number}"));
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        copy(&project.join("compose/webarena"), &world.root().join("compose/webarena"));
        let read = |file: String| std::fs::read_to_string(project.join(file)).expect("a definition");
        let mut definition = read(format!("environments/{environment}.yaml"));
        let mut compose = read(format!("compose/{environment}.yaml"));
        definition = definition.replacen(&format!("name: {environment}\n"), &format!("name: {}\n", world.name), 1);
        let images = OfficialImages(format!("arenad-toy/{}", world.name));
        let arena = Self { world, address, ports: ports.to_vec(), images };
        let stand_in = arena.build_stand_in();
        for (number, image) in named_images(&compose).into_iter().enumerate() {
            let name = arena.image(&format!("image{number}"));
            for text in [&mut compose, &mut definition] {
                *text = text.replace(&format!("image: {image}\n"), &format!("image: {name}\n"));
                *text = text.replace(&format!("  {image}:"), &format!("  {name}:"));
            }
            if !image.contains("homepage") {
                arena.world.engine.docker(&["tag", &stand_in, &name]);
            }
        }
        std::fs::write(arena.world.file("environment"), definition).expect("write a definition");
        std::fs::write(arena.world.file("compose"), compose).expect("write a definition");
        let mut variables = format!("ARENAD_HOST_NAME={HOST}\nARENAD_PUBLIC_ADDRESS={address}\n");
        variables += &format!("ARENAD_HOMEPAGE_BASE_IMAGE={}\n", arena.build_base());
        if kind == "other" {
            variables += "ARENAD_RESET_PORT=17565\n";
            variables.extend(ports.iter().map(|(site, port)| format!("ARENAD_{site}_PORT={port}\n")));
        }
        std::fs::write(arena.world.root().join("compose/.env"), variables).expect("write the variables");
        arena.bring_data();
        arena
    }

    fn image(&self, name: &str) -> String {
        format!("{}/{name}:1", self.images.0)
    }

    /// Adds a line to the variables.
    pub fn set(&self, variable: &str, value: &str) {
        let file = self.world.root().join("compose/.env");
        let text = std::fs::read_to_string(&file).expect("the variables");
        std::fs::write(file, format!("{text}{variable}={value}\n")).expect("write the variables");
    }

    /// Brings the environment up. The stand-ins do not need the memory that the definitions request.
    pub fn up(&self) -> CommandOutput {
        self.world.run(&["up", &self.world.name, "--force"])
    }

    /// Gives an image a fault.
    pub fn ails(&self, image_key: &str, service: &str, illness: &str) {
        let illness = format!("    environment: {{ STAND_IN: {illness} }}\n    {image_key}");
        let text = std::fs::read_to_string(self.world.file("compose")).expect("a definition");
        let at = text.find(&format!("\n  {service}:\n")).expect("the service");
        let key = at + text[at..].find(&format!("    {image_key}")).expect("the key");
        let text = format!("{}{illness}{}", &text[..key], &text[key + 4 + image_key.len()..]);
        std::fs::write(self.world.file("compose"), text).expect("write a definition");
    }

    /// Builds the image that replaces all others.
    fn build_stand_in(&self) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/stand-in"), folder.path());
        let root = folder.path().join("root");
        install_busybox(&root.join("bin"));
        // Busybox's own shell prefers its built-in commands to those in the path.
        std::fs::remove_file(root.join("bin/sh")).expect("remove a link");
        install_dynamic("/bin/dash", &root, "bin/sh");
        let program = folder.path().join("srv/program");
        for (path, name) in [("var/www/magento2/bin", "magento"), ("opt/gitlab/embedded/bin", "pg_resetwal")] {
            std::fs::create_dir_all(root.join(path)).expect("a folder");
            std::fs::copy(&program, root.join(path).join(name)).expect("copy the program");
        }
        std::fs::create_dir_all(folder.path().join("srv/bin")).expect("a folder");
        for name in PROGRAMS {
            std::fs::copy(&program, folder.path().join("srv/bin").join(name)).expect("copy the program");
        }
        std::fs::create_dir_all(folder.path().join("srv/state")).expect("a folder");
        for path in ["tmp", "etc"] {
            std::fs::create_dir_all(root.join(path)).expect("a folder");
        }
        // No layer is shared with another world, because a build fails if another world removes a shared layer
        // meanwhile.
        for path in ["root/name", "srv/name"] {
            std::fs::write(folder.path().join(path), &self.world.name).expect("write a file");
        }
        self.build("stand-in", folder.path())
    }

    /// Builds the base of the homepage, whose own Dockerfile is used unchanged.
    fn build_base(&self) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        install_busybox(&folder.path().join("root/bin"));
        std::fs::write(folder.path().join("root/name"), &self.world.name).expect("write a file");
        std::fs::write(folder.path().join("Dockerfile"), "FROM scratch\nCOPY root /\n").expect("write a file");
        self.build("base", folder.path())
    }

    fn build(&self, name: &str, folder: &Path) -> String {
        let image = self.image(name);
        self.world.engine.docker(&["build", "--quiet", "--tag", &image, &folder.display().to_string()]);
        image
    }

    /// Creates the files in the data folder that services mount.
    fn bring_data(&self) {
        let data = self.data();
        for folder in ["classifieds/mysql", "homepage/input_images", "map/dump", "wikipedia"] {
            std::fs::create_dir_all(data.join(folder)).expect("a folder");
        }
        for folder in ["tile", "search", "flatnode", "car", "bike", "foot"] {
            std::fs::create_dir_all(data.join("map").join(folder)).expect("a folder");
        }
        let website = [
            (
                "config/settings.yml",
                "nominatim_url: \"http://metis.lti.cs.cmu.edu:\"\nfossgis_osrm_url: \"http://metis.lti.cs.cmu.edu:8085/\"\n",
            ),
            (
                "app/assets/javascripts/osm.js.erb",
                "OSM = {\n  NOMINATIM_URL: <%= Settings.nominatim_url.to_json %>,\n};\n",
            ),
            (
                "app/assets/javascripts/index/directions/fossgis_osrm.js",
                "\"car\": \"5000\",\n\"bike\": \"5001\",\n\"foot\": \"5002\"\n",
            ),
            ("vendor/assets/leaflet/leaflet.osm.js", "url: 'http://ogma.lti.cs.cmu.edu:8080/tile/{z}/{x}/{y}.png',\n"),
        ];
        for (file, text) in website {
            let file = data.join("openstreetmap-website").join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("write a file");
        }
        let rails = data.join("openstreetmap-website/bin/rails");
        std::fs::create_dir_all(rails.parent().expect("a folder")).expect("a folder");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/stand-in/srv/program");
        std::fs::copy(program, rails).expect("copy the program");
        for file in [
            "wikipedia/wikipedia_en_all_maxi_2022-05.zim",
            "classifieds/mysql/osclass_craigslist.sql",
            "homepage/input_images/task.png",
        ] {
            std::fs::write(data.join(file), "").expect("write a file");
        }
    }

    /// The folder with the sites' data.
    pub fn data(&self) -> PathBuf {
        self.world.root().join("data")
    }

    /// A site's public port.
    pub fn port(&self, site: &str) -> u16 {
        self.ports.iter().find(|(known, _)| *known == site).map(|(_, port)| *port).expect("a site")
    }

    /// Fetches a page of a site under its public host name; returns status, location and body.
    pub fn get(&self, site: &str, path: &str) -> (u16, String) {
        self.request("GET", site, path)
    }

    /// Sends an empty form.
    pub fn post(&self, site: &str, path: &str) {
        let (status, answer) = self.request("POST", site, path);
        assert_eq!(status, 200, "{site}{path}: {answer}");
    }

    fn request(&self, method: &str, site: &str, path: &str) -> (u16, String) {
        let port = self.port(site);
        let mut stream = TcpStream::connect((self.address, port)).expect("the gateway listens");
        stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a limit");
        write!(stream, "{method} {path} HTTP/1.0\r\nHost: {HOST}:{port}\r\nContent-Length: 0\r\n\r\n")
            .expect("send the request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("read the answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, answer)
    }

    /// Returns every recorded action on a service's containers, for the baseline and since. Requests of probes are
    /// listed once, at the end, because their number varies.
    pub fn record(&self, service: &str) -> String {
        let engine = &self.world.engine;
        let filters = [format!("label={}", self.world.label()), format!("label=dev.arenad.service={service}")];
        let container = engine.docker(&["ps", "--quiet", "--filter", &filters[0], "--filter", &filters[1]]);
        let text = engine.docker(&["exec", &container, "busybox", "cat", "/var/log/record"]);
        let (asked, done): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| is_question(line));
        let asked: BTreeSet<&str> = asked.into_iter().collect();
        let lines = done.into_iter().map(str::to_owned).chain(asked.into_iter().map(|line| format!("? {line}")));
        lines.fold(format!("{service}\n"), |text, line| format!("{text}  {}\n", line.trim_end()))
    }

    /// Returns the records of several services.
    pub fn records(&self, services: &[&str]) -> String {
        services.iter().map(|service| self.record(service)).collect::<Vec<_>>().join("\n")
    }

    /// Replaces values that differ from run to run by fixed names.
    pub fn neutral(&self, text: &str) -> String {
        let mut text =
            text.replace(&self.world.root().canonicalize().expect("it exists").display().to_string(), "<root>");
        if self.ports != PORTS {
            for (site, port) in &self.ports {
                text = text.replace(&port.to_string(), &format!("<{site}>"));
            }
        }
        text.replace(&self.world.name, "<name>")
    }
}

/// The images in a Compose file, in its order.
fn named_images(compose: &str) -> Vec<String> {
    let named = compose.lines().filter_map(|line| line.strip_prefix("    image: "));
    named.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns whether a recorded command belongs to a probe.
fn is_question(line: &str) -> bool {
    let asks = ["curl ", "redis-cli ping", "gitlab-redis-cli ping", "gitlab-ctl status", "gitlab-psql "];
    asks.iter().any(|start| line.starts_with(start)) || line.contains(" -N -B -e ") || line.contains(" -At ")
}

/// Copies a program with the libraries that it needs.
fn install_dynamic(program: &str, root: &Path, target: &str) {
    std::fs::copy(program, root.join(target)).expect("copy the program");
    let listed = Command::new("ldd").arg(program).output().expect("run ldd").stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
        std::fs::copy(library, target).expect("copy a library");
    }
}
