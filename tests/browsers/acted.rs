//! Steps tell the page and the element that their actions were chosen on.

use super::{SITE, Stage, tried};
use arenad_agent_browser::{ActedPage, BrowserSettings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_tell_the_page_before_the_action_and_its_element() {
    let stage = Stage::new().await;
    let settings = BrowserSettings { tells_acted: true, ..stage.settings() };
    let mut browser = stage.open_with(settings, &format!("{SITE}fields")).await;
    let mut told = async |action: &str, text: &str| -> ActedPage {
        tried(&mut browser, action, text).await.acted.unwrap_or_else(|| panic!("{action} is told"))
    };
    let of_form =
        |field: usize| Some(format!("html > body:nth-child(2) > form:nth-child(1) > input:nth-child({field})"));

    let typed = told("type [ID] [ann] [0]", "textbox 'Name'").await;
    assert_eq!((typed.url, typed.selector, typed.value), (format!("{SITE}fields"), of_form(1), Some("ann".to_owned())));
    assert!(typed.html.is_some_and(|html| html.starts_with("<html><head><title>Fields</title></head><body>")));
    let secret = told("type [ID] [hunter2] [0]", "textbox 'Password'").await;
    assert_eq!((secret.selector, secret.value.as_deref()), (of_form(2), Some("[redacted]")));
    let inside = told("click [ID]", "button 'Inside'").await;
    assert_eq!((inside.selector, inside.value.as_deref()), (None, Some("Inside")), "a shadow tree is not in the page");
    let labelled = told("click [ID]", "button 'Close'").await;
    assert_eq!(labelled.value.as_deref(), Some("Close"), "a button with a picture has its title");
    let gone = told("click [99999]", "").await;
    assert_eq!((gone.selector, gone.value), (None, None), "there is no such element");
    // Enter sends the form, but the step is of the page before it.
    let sent = told("type [ID] [lee] [1]", "textbox 'Name'").await;
    assert_eq!((sent.url, sent.value.as_deref()), (format!("{SITE}fields"), Some("lee")));
    let after = told("scroll [down]", "").await;
    assert!(after.url.starts_with(&format!("{SITE}search?")), "{}", after.url);
    assert_eq!(tried(&mut browser, "clack [7]", "").await.acted, None, "the name of the action is misspelt");
    stage.close().await;
}
