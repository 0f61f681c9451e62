//! The browser in a container, as on a host without a browser.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::value;
use crate::arena::Arena;

#[test]
fn a_browser_in_a_container_reads_pages_and_ends_with_the_daemon() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/browser-image.sh");
    let built = Command::new(script).output().expect("the script runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let arena = Arena::up_with(&[("ARENAD_CHROMIUM", "container")], &["homepage"]);
    assert_eq!(value(&arena, "homepage", "js: document.title @ /scratchpad.html"), "Scratchpad");
    assert_eq!(value(&arena, "homepage", "js: navigator.platform.length > 0 @ /"), true);
    let browsers = browsers();
    assert_eq!(browsers.len(), 1, "one warm browser: {browsers:?}");
    arena.signal_daemon(Signal::KILL);
    let deadline = Instant::now() + Duration::from_secs(60);
    while self::browsers().iter().any(|name| browsers.contains(name)) {
        assert!(Instant::now() < deadline, "the browser outlives its daemon");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The containers of browsers.
fn browsers() -> Vec<String> {
    let output = Command::new("docker").args(["ps", "-aq", "--filter", "label=dev.arenad.role=browser"]).output();
    String::from_utf8_lossy(&output.expect("docker runs").stdout).lines().map(str::to_owned).collect()
}
