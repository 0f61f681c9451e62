//! The action `upload`: files that the browser was opened with, in fields of a page.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{SITE, Stage, act, tried};
use arenad_agent_browser::{BrowserSettings, EpisodeBrowser, ObservationKind, UploadFiles};

async fn open(stage: &Stage, observation: ObservationKind) -> EpisodeBrowser {
    let files = BTreeMap::from([
        ("notes.txt".to_owned(), b"first line".to_vec()),
        ("Foto [1].png".to_owned(), vec![0, 0xff, 0x80, b'\n']),
    ]);
    let files = UploadFiles::new(files).expect("files");
    let settings = BrowserSettings { files, observation, ..stage.settings() };
    stage.open_with(settings, &format!("{SITE}upload")).await
}

/// Sends the form, and returns the text of the page that shows what the site got. On a busy machine the form is sent after
/// the page seems to be at rest.
async fn sent(browser: &mut EpisodeBrowser) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut seen = act(browser, "click [ID]", "button 'Send'").await;
    while seen.url() != format!("{SITE}uploaded") {
        assert!(Instant::now() < deadline, "the form is not sent: {}", seen.text);
        tokio::time::sleep(Duration::from_millis(50)).await;
        seen = browser.observe().await.expect("an observation");
    }
    seen.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_uploads_files_that_the_browser_was_opened_with() {
    let stage = Stage::new().await;
    let mut browser = open(&stage, ObservationKind::AccessibilityTree).await;
    // A hidden field that a button opens: the page sees the events, the name, the type and every byte.
    let chosen = act(&mut browser, "upload [ID] [Foto [1].png]", "button 'Choose a picture'").await;
    assert!(chosen.text.contains("input change Foto [1].png image/png 0,255,128,10"), "{}", chosen.text);
    let framed = act(&mut browser, "upload [ID] [notes.txt]", "button 'In a frame'").await;
    assert!(framed.text.contains("frame: notes.txt"), "{}", framed.text);
    // A field of a form, whose content the site gets.
    act(&mut browser, "upload [ID] [notes.txt]", "button 'Notes").await;
    let text = sent(&mut browser).await;
    assert!(text.contains("filename=\"notes.txt\"") && text.contains("first line"), "{text}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_files_and_other_elements_are_refused() {
    let stage = Stage::new().await;
    let mut browser = open(&stage, ObservationKind::AccessibilityTree).await;
    for file in ["/etc/passwd", "../notes.txt", "missing.txt"] {
        let outcome = tried(&mut browser, &format!("upload [ID] [{file}]"), "button 'Notes").await;
        let words = outcome.error.map(|error| error.to_string());
        assert_eq!(words, Some(format!("ENOENT: no such file or directory, stat '{file}'")));
    }
    let outcome = tried(&mut browser, "upload [ID] [notes.txt]", "button 'Count'").await;
    let words = outcome.error.map(|error| error.to_string());
    assert_eq!(words.as_deref(), Some("Timeout 2000ms exceeded while waiting for event \"filechooser\""));
    assert!(outcome.observation.text.contains("button 'clicked'"), "the click stays: {}", outcome.observation.text);
    // A click on a field opens nothing, and the next upload is not disturbed by it.
    act(&mut browser, "click [ID]", "button 'Notes").await;
    act(&mut browser, "upload [ID] [notes.txt]", "button 'Notes").await;
    let text = sent(&mut browser).await;
    assert!(text.contains("first line"), "{text}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_uploads_to_marks() {
    let stage = Stage::new().await;
    let mut browser = open(&stage, ObservationKind::SetOfMarks).await;
    let chosen = act(&mut browser, "upload [ID] [notes.txt]", "[BUTTON] [Choose a picture]").await;
    assert!(chosen.text.contains("input change notes.txt text/plain"), "{}", chosen.text);
    stage.close().await;
}
