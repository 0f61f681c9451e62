//! A second environment of the same installation, with a site of the same name.

use crate::support::World;
use crate::support::world::free_port;

/// An environment that is brought up beside a world's own; its leftovers are removed when it is dropped.
pub struct Second<'a> {
    world: &'a World,
    pub name: String,
    pub port: u16,
}

impl<'a> Second<'a> {
    /// Writes its definition: the world's under another name, with another port and another variable.
    pub fn of(world: &'a World) -> Self {
        let second = Self { world, name: format!("{}-b", world.name), port: free_port() };
        for (kind, folder) in [("environment", "environments"), ("compose", "compose")] {
            let text = std::fs::read_to_string(world.file(kind)).unwrap();
            let text =
                text.replace(&world.name, &second.name).replace(&world.port.to_string(), &second.port.to_string());
            let text = text.replace("variable: SHOPPING", "variable: GITLAB");
            std::fs::write(world.root().join(folder).join(format!("{}.yaml", second.name)), text).unwrap();
        }
        second
    }

    /// Brings both sites up.
    pub fn up(&self) {
        self.world.up();
        self.world.run(&["up", &self.name]).code(0);
    }

    /// Returns the text that the second site has stored, or `None` if the port is closed.
    pub fn page(&self) -> Option<String> {
        crate::support::http::get(self.port, "/cgi-bin/page").map(|answer| answer.body)
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        // A daemon that a failing test leaves behind would recreate removed objects.
        if std::thread::panicking()
            && let Some(pid) = self.world.daemon()
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let label = format!("dev.arenad.environment={}", self.name);
        self.world.engine.sweep(&label, &format!("arenad-toy/{}*", self.name));
    }
}
