//! The program names of the browser.

/// The program names, in order of preference.
///
/// Chromium's headless shell comes first, because it is the browser without its windows and creates a page in less than
/// half the time. Debian calls it `chromium-headless-shell`; Chrome for Testing, and therefore Playwright, calls it
/// `chrome-headless-shell`.
pub const PROGRAMS: [&str; 7] = [
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];
