//! The effects of actions, and the words of those that fail.

use super::{SITE, Stage, act, id_of, tried};
use arenad_agent_browser::BrowserFault;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_clicks_types_selects_and_presses() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let clicked = act(&mut browser, "click [ID]", "button 'Press me'").await;
    assert!(clicked.text.contains("button 'Clicked'"), "{}", clicked.text);
    let hovered = act(&mut browser, "hover [ID]", "menu 'Menu'").await;
    assert!(hovered.text.contains("Menu is open"), "{}", hovered.text);
    let pressed = act(&mut browser, "press [Meta+b]", "").await;
    assert!(pressed.text.starts_with("Tab 0 (current): Key b with Control"), "{}", pressed.text);
    act(&mut browser, "click [ID]", "checkbox 'In stock'").await;
    let chosen = act(&mut browser, "select [ID] [Price: low to high]", "combobox 'Sort by'").await;
    assert!(chosen.text.contains("Price: low to high"), "{}", chosen.text);
    let typed = act(&mut browser, "type [ID] [Größe \"M\"] [0]", "textbox 'Search'").await;
    assert!(typed.text.contains("Größe \"M\""), "{}", typed.text);
    // The text is replaced, and Enter sends the form.
    act(&mut browser, "press [Control+a]", "").await;
    let sent = act(&mut browser, "type [ID] [blue chair]", "textbox 'Search'").await;
    assert_eq!(sent.url().split('?').next(), Some("http://shop.test/search"), "{}", sent.url());
    assert!(sent.url().contains("sort=p"), "{}", sent.url());
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_moves_in_tabs_and_history() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let basket = act(&mut browser, "click [ID]", "link 'Basket'").await;
    assert_eq!(basket.url(), format!("{SITE}basket"));
    assert_eq!(act(&mut browser, "go_back", "").await.url(), SITE);
    assert_eq!(act(&mut browser, "go_back", "").await.url(), "about:blank", "the tab began empty");
    assert_eq!(act(&mut browser, "go_back", "").await.url(), "about:blank", "there is no page before it");
    act(&mut browser, "go_forward", "").await;
    assert_eq!(act(&mut browser, "go_forward", "").await.url(), format!("{SITE}basket"));
    // A page that a link opens becomes a tab, and not the current one.
    act(&mut browser, "go_back", "").await;
    let offers = act(&mut browser, "click [ID]", "link 'Offers'").await;
    assert!(offers.text.starts_with("Tab 0 (current): One Stop Market | Tab 1: Offers\n\n"), "{}", offers.text);
    let offers = act(&mut browser, "tab_focus [1]", "").await;
    assert_eq!((offers.url(), offers.current), (format!("{SITE}new").as_str(), 1));
    let empty = act(&mut browser, "new_tab", "").await;
    assert_eq!((empty.tabs.len(), empty.current, empty.url()), (3, 2, "about:blank"));
    let left = act(&mut browser, "close_tab", "").await;
    assert_eq!((left.tabs.len(), left.current), (2, 1));
    act(&mut browser, "close_tab", "").await;
    let last = act(&mut browser, "close_tab", "").await;
    assert_eq!((last.tabs.len(), last.url()), (1, "about:blank"), "the last tab is followed by an empty one");
    let closes = tried(&mut browser, &format!("goto [{SITE}closes]"), "").await;
    assert_eq!(closes.observation.tabs.len(), 1, "a page may not close what it has not opened");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_have_webarenas_words_and_change_nothing() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let before = browser.observe().await.expect("an observation");
    let heading = id_of(&before, "heading");
    for (action, words) in [
        ("dance [1]", "Invalid action dance [1]".to_owned()),
        ("click [x]", "Invalid click action click [x]".to_owned()),
        ("click [999999]", "'999999'".to_owned()),
        ("tab_focus [7]", "list index out of range".to_owned()),
        ("press [ctrl+a]", "Unknown key: \"ctrl\"".to_owned()),
        ("goto [nowhere]", "Protocol error (Page.navigate): Cannot navigate to invalid URL".to_owned()),
        ("goto [chrome://crash]", "Protocol error (Page.navigate): Cannot navigate to invalid URL".to_owned()),
        ("goto [javascript:alert(1)]", "Protocol error (Page.navigate): Cannot navigate to invalid URL".to_owned()),
        (&format!("select [{heading}] [x]"), "Error: Element is not a <select> element".to_owned()),
    ] {
        let outcome = browser.step(action).await.expect("the browser works");
        assert_eq!(outcome.error.map(|error| error.to_string()), Some(words), "{action}");
        assert_eq!(outcome.observation.text, before.text, "{action}");
    }
    let outcome = tried(&mut browser, "select [ID] [no such]", "combobox").await;
    let words = outcome.error.map(|error| error.to_string());
    assert_eq!(words.as_deref(), Some("Error: did not find some options"));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialogs_are_dismissed_and_an_answer_ends_the_task() {
    let stage = Stage::new().await;
    let mut browser = stage.open("alert").await;
    let warned = act(&mut browser, "click [ID]", "button 'Warn'").await;
    assert!(warned.text.contains("button 'alerted'"), "{}", warned.text);
    let stopped = browser.step("stop [$12.50]").await.expect("the browser works");
    assert_eq!(stopped.answer.as_deref(), Some("$12.50"));
    assert_eq!(stopped.error, None);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_dies_is_lost_and_the_next_one_starts() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let folder = stage._folder.path().display().to_string();
    let processes = procfs::process::all_processes().expect("processes").flatten();
    for process in processes {
        let is_its = process.cmdline().is_ok_and(|words| words.iter().any(|word| word.starts_with(&folder)));
        if let Some(pid) = rustix::process::Pid::from_raw(process.pid).filter(|_| is_its) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    let lost = browser.step("scroll [down]").await;
    assert!(matches!(lost, Err(BrowserFault::Gone)), "{lost:?}");
    assert!(browser.is_lost());
    let mut next = stage.open("basket").await;
    assert!(next.observe().await.expect("an observation").text.contains("Your basket"));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_does_not_answer_is_a_failure_of_the_action_and_not_of_the_browser() {
    let stage = Stage::new().await;
    let mut browser = stage.open("").await;
    let outcome = tried(&mut browser, &format!("goto [{SITE}never]"), "").await;
    assert_eq!(outcome.error.map(|error| error.to_string()).as_deref(), Some("Timeout 30000ms exceeded."));
    assert_eq!(outcome.observation.url(), SITE, "the page that was there stays");
    let begun = std::time::Instant::now();
    let basket = act(&mut browser, "click [ID]", "link 'Basket'").await;
    assert!(basket.url().ends_with("/basket") && begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    stage.close().await;
}
