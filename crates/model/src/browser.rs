//! The browser: what it is called.

/// The programs that are looked for, the first one that is there is taken.
///
/// Chromium's headless shell comes first: it is what remains of the browser without its windows, and makes a page of its own
/// in less than half the time. Debian has it as `chromium-headless-shell`; Chrome for Testing, and with it Playwright, as
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
