//! A project whose images come from archives.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::archive::{self, ArchiveLayout, Saved};
use crate::support::world::CommandOutput;
use crate::support::{OwnEngine, TestEngine, World};

/// A world with one site, whose image comes from `shop.tar`.
pub struct ImageProject {
    pub world: World,
    /// The image's reference, which is unique to the test.
    pub image: String,
}

impl ImageProject {
    /// Creates a project on the machine's engine. `section` goes below the image's entry, indented by four spaces.
    pub fn new(label: &str, section: &str) -> Self {
        Self::of(World::single(label), section)
    }

    /// Creates a project on an engine of the test's own.
    pub fn on(engine: &OwnEngine, label: &str, section: &str) -> Self {
        Self::of(World::on(engine, label), section)
    }

    fn of(world: World, section: &str) -> Self {
        // Worlds remove images with this name at their end.
        let image = format!("arenad-toy/{}-shop", world.name);
        let compose = format!("services:\n  toy:\n    image: {image}\n    ports: [\"{}:80\"]\n", world.port);
        fs::write(world.file("compose"), compose).unwrap();
        let project = Self { world, image };
        project.declare(section, "");
        project
    }

    /// Rewrites the environment file with other lines for the image and other sections at its end.
    pub fn declare(&self, section: &str, more: &str) {
        let (name, image) = (&self.world.name, &self.image);
        let text = format!(
            "name: {name}\nsites:\n  toy:\n    entry: {{ port: 80 }}\n    ready: {{ probes: [ {{ http: {{ path: / }} }} ] }}\n\
             images:\n  {image}:\n    archive: shop.tar\n{section}{more}"
        );
        fs::write(self.world.file("environment"), text).unwrap();
    }

    /// A path in the project's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.world.root().join(name)
    }

    /// A path on the shelf.
    pub fn shelved(&self, name: &str) -> PathBuf {
        self.world.state_dir().join("archives").join(name)
    }

    /// Writes the image's archive.
    pub fn save(&self, name: &str, seed: u64, content: u64) -> Saved {
        archive::save(&self.path(name), &self.image, ArchiveLayout::Classic, seed, content)
    }

    /// The words of an `arenad images` command.
    pub fn words<'a>(&'a self, verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["images", verb, self.world.name.as_str()], more].concat()
    }

    /// Runs an `arenad images` command to its end.
    #[track_caller]
    pub fn images(&self, verb: &str, more: &[&str]) -> CommandOutput {
        self.world.run(&self.words(verb, more))
    }

    /// Returns an item of `arenad images ls --json`.
    #[track_caller]
    pub fn item(&self, name: &str) -> Value {
        let listed = self.images("ls", &["--json"]).code(0).json();
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name} in {listed:#}")).clone()
    }

    /// The state of the image.
    #[track_caller]
    pub fn state(&self) -> String {
        self.item(&self.image)["state"].as_str().unwrap().to_owned()
    }

    /// The id under which the engine has the image.
    pub fn engine_id(&self) -> Option<String> {
        self.engine().try_docker(&["image", "inspect", "--format", "{{.Id}}", &self.image]).ok()
    }

    pub fn engine(&self) -> &TestEngine {
        &self.world.engine
    }

    /// Insists that the engine has the image, whole, and that nothing else is claimed.
    #[track_caller]
    pub fn assert_present(&self, saved: &Saved) {
        assert_eq!(self.engine_id().as_deref(), Some(saved.id.as_str()));
        let item = self.item(&self.image);
        assert_eq!((item["state"].as_str(), item["id"].as_str()), (Some("present"), Some(saved.id.as_str())));
    }

    /// Asserts that the engine does not have the image, and that arenad does not claim it.
    #[track_caller]
    pub fn assert_absent(&self) {
        assert_eq!(self.engine_id(), None);
        let state = self.state();
        assert!(["missing", "partial", "downloaded"].contains(&state.as_str()), "{state}");
    }
}
