//! Observations of pages: their texts, their limits, and the moment at which they are made.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{SITE, Stage, act, cookie, id_of};
use arenad_agent_browser::{BrowserFault, BrowserSettings, EpisodeBrowser, ObservationKind, Viewport};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_accessibility_tree_has_webarenas_form() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let seen = browser.observe().await.expect("an observation");
    let (tabs, tree) = seen.text.split_once("\n\n").expect("tabs and a tree");
    assert_eq!(tabs, "Tab 0 (current): One Stop Market");
    let lines: Vec<&str> = tree.lines().map(str::trim_start).collect();
    let has = |end: &str| lines.iter().any(|line| line.split_once("] ").is_some_and(|(_, rest)| rest.starts_with(end)));
    for expected in [
        "RootWebArea 'One Stop Market'",
        "link 'Basket'",
        "heading 'Ann\\'s \"best\" offers'",
        "image 'A chair' url: data:image/gif",
        "textbox 'Search' required: True",
        "combobox 'Sort by' hasPopup: menu expanded: False",
        "checkbox 'In stock' checked: false",
        "button 'Press me'",
        "link 'Footer link'",
    ] {
        assert!(has(expected), "{expected}: {tree}");
    }
    assert!(!tree.contains("hidden text"), "{tree}");
    assert!(!tree.contains("StaticText 'Basket'"), "the link's text is not repeated: {tree}");
    assert_eq!(seen.url(), SITE);
    assert_eq!(seen.screenshot, None);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_viewport_bounds_what_is_seen_and_moves_with_the_page() {
    let stage = Stage::new().await;
    let settings = BrowserSettings { is_viewport_only: true, ..stage.settings() };
    let mut browser = stage.open_with(settings, SITE).await;
    let seen = browser.observe().await.expect("an observation");
    assert!(seen.text.contains("link 'Basket'") && !seen.text.contains("Footer link"), "{}", seen.text);
    let mut below = seen;
    for _ in 0..6 {
        below = act(&mut browser, "scroll [down]", "").await;
    }
    assert!(below.text.contains("Footer link") && !below.text.contains("link 'Basket'"), "{}", below.text);
    let footer = act(&mut browser, "click [ID]", "Footer link").await;
    assert_eq!(footer.url(), format!("{SITE}footer"));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dom_tree_and_the_screenshot_show_the_same_page() {
    let stage = Stage::new().await;
    let viewport = Viewport { width: 640, height: 400 };
    let settings =
        BrowserSettings { observation: ObservationKind::Html, has_screenshot: true, viewport, ..stage.settings() };
    let mut browser = stage.open_with(settings, SITE).await;
    let seen = browser.observe().await.expect("an observation");
    assert!(seen.text.contains("<A href=\"/basket\"> \n"), "{}", seen.text);
    assert!(seen.text.contains("<#text> Basket\n"), "{}", seen.text);
    let png = STANDARD.decode(seen.screenshot.expect("a screenshot")).expect("base64");
    let picture = image::load_from_memory(&png).expect("a picture");
    assert_eq!((picture.width(), picture.height()), (640, 400));
    // Elements are named by the ids of this text.
    let basket = browser.observe().await.map(|seen| id_of(&seen, "<A href=\"/basket\">")).expect("an observation");
    let followed = browser.step(&format!("click [{basket}]")).await.expect("the browser works");
    assert_eq!(followed.observation.url(), format!("{SITE}basket"));
    let settings = BrowserSettings { observation: ObservationKind::Nothing, ..stage.settings() };
    let mut blind = stage.open_with(settings, SITE).await;
    assert_eq!(blind.observe().await.expect("an observation").text, "");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_seen_when_they_have_come_to_rest() {
    let stage = Stage::new().await;
    let mut browser = stage.open("slow").await;
    assert!(browser.observe().await.expect("an observation").text.contains("after all"));
    // A request that begins after the page has loaded is waited for; one that never ends is not.
    let late = act(&mut browser, &format!("goto [{SITE}late]"), "").await;
    assert!(late.text.contains("fetched"), "{}", late.text);
    let begun = std::time::Instant::now();
    let poll = act(&mut browser, &format!("goto [{SITE}poll]"), "").await;
    assert!(poll.text.contains("polls") && begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    stage.close().await;
}

/// A page is observed ahead, while its quiet time passes. Its timers change it during that time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_change_while_they_are_observed_are_observed_again() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    for change in ["text", "value", "shadow"] {
        let seen = act(&mut browser, &format!("goto [{SITE}timer?{change}]"), "").await;
        assert!(seen.text.contains("after"), "{change}: {}", seen.text);
    }
    let seen = act(&mut browser, &format!("goto [{SITE}timer?place]"), "").await;
    let text = &seen.elements[&id_of(&seen, "StaticText 'before'")];
    assert!(text.bounds.is_some_and(|bounds| bounds.y > 40.0), "{text:?}");
    let seen = act(&mut browser, &format!("goto [{SITE}timer?tab]"), "").await;
    assert_eq!(seen.tabs.len(), 2, "{}", seen.text);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browsers_of_one_process_share_nothing() {
    let stage = Stage::new().await;
    let settings = BrowserSettings { cookies: vec![cookie("session", "ann")], ..stage.settings() };
    let mut ann = stage.open_with(settings, &format!("{SITE}cookies")).await;
    let mut other = stage.open("cookies").await;
    assert_eq!(stage.pool.counts().await, (1, 2), "one process for both");
    let text = |seen: arenad_agent_browser::Observation| seen.text;
    assert!(text(ann.observe().await.expect("seen")).contains("cookies: session=ann"));
    assert!(text(other.observe().await.expect("seen")).contains("cookies: none"));
    let again = act(&mut other, &format!("goto [{SITE}cookies]"), "").await;
    assert!(again.text.contains("cookies: seen=1"), "{}", again.text);
    let again = act(&mut ann, &format!("goto [{SITE}cookies]"), "").await;
    assert!(again.text.contains("session=ann") && again.text.contains("seen=1"), "{}", again.text);
    drop((ann, other));
    assert_eq!(stage.pool.counts().await, (1, 0));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_pages_are_bounded_and_forge_nothing() {
    let stage = Stage::new().await;
    let settings = BrowserSettings { is_viewport_only: true, ..stage.settings() };
    let mut browser = stage.open_with(settings, &format!("{SITE}forged")).await;
    assert!(browser.observe().await.expect("an observation").text.contains("button 'Real'"));
    let large = browser.step(&format!("goto [{SITE}large]")).await;
    assert!(matches!(large, Err(BrowserFault::TooLarge { .. })), "{large:?}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_addresses_are_opened_in_tabs() {
    let stage = Stage::new().await;
    let mut browser = stage.open_with(stage.settings(), &format!("{SITE} |AND| {SITE}basket")).await;
    let seen = browser.observe().await.expect("an observation");
    assert!(seen.text.starts_with("Tab 0 (current): One Stop Market | Tab 1: Basket\n\n"), "{}", seen.text);
    let blank = stage.blank().await;
    let (mut browser, error) =
        EpisodeBrowser::open(blank, stage.settings(), Some("file:///etc/passwd")).await.expect("it opens");
    let refused = "Protocol error (Page.navigate): Cannot navigate to invalid URL";
    assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(refused));
    assert_eq!(browser.observe().await.expect("an observation").url(), "about:blank");
    stage.close().await;
}
