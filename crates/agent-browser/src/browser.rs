//! The browser of one episode: its tabs, and the effects of actions on them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use url::Url;

use crate::acted::{self, ActedPage};
use crate::action::{Action, ScrollDirection};
use crate::archived;
use crate::blank::{BlankBrowser, BrowserContext};
use crate::elements::{Bounds, Element, Elements};
use crate::error::{ActionError, BrowserFault, StepError};
use crate::files::{self, UploadFiles};
use crate::input;
use crate::listed;
use crate::observe::{self, Observation, ObservationKind, ObservedTab, PageFingerprint};
use crate::pool::BrowserSeat;
use crate::tab::{BRIEFLY_QUIET, LOAD_LIMIT, QUIET, Rest, Rested, Tab, limited};
use arenad_api::StorageCookie;
use arenad_api::browser::{PageElements, PageSnapshot};
use arenad_chromium::Cdp;

/// The size of the viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    /// The width of the page's visible part.
    pub width: u32,
    /// The height of the page's visible part.
    pub height: u32,
}

impl Default for Viewport {
    /// The size that WebArena's code has by default.
    fn default() -> Self {
        Self { width: 1280, height: 720 }
    }
}

/// The properties of a browser that stay the same for its whole life.
#[derive(Clone, Default)]
pub struct BrowserSettings {
    /// The size of the viewport.
    pub viewport: Viewport,
    /// The form of observations.
    pub observation: ObservationKind,
    /// Whether observations leave out what the viewport does not show.
    pub is_viewport_only: bool,
    /// Whether observations have a screenshot. Those with marks have one in any case.
    pub has_screenshot: bool,
    /// Whether callers want the elements of observations. The browser has them in any case.
    pub lists_elements: bool,
    /// The cookies of the accounts that are signed in.
    pub cookies: Vec<StorageCookie>,
    /// The files that the agent can upload.
    pub files: UploadFiles,
    /// Whether recorded sites are reached, whose certificates only the installation's own authority vouches for.
    /// Certificates are not checked then, and service workers are off.
    pub reaches_replays: bool,
    /// The milliseconds to add to the time that recorded pages see, by their origins, such as `https://www.example.com`.
    pub clock_shifts: BTreeMap<String, i64>,
    /// Whether steps tell the page and the element that each action was chosen on.
    pub tells_acted: bool,
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct StepOutcome {
    /// The page after the action.
    pub observation: Observation,
    /// The reason why the action failed, if it did.
    pub error: Option<ActionError>,
    /// The answer, if the action was `stop`.
    pub answer: Option<String>,
    /// The page that the action was chosen on. `None` unless the settings ask for it, and without an action.
    pub acted: Option<ActedPage>,
}

/// The browser of an episode. Dropping it closes it.
///
/// Errors of all methods: [`BrowserFault`]. The browser cannot be used afterwards, except after `Refused`.
pub struct EpisodeBrowser {
    // The order of the fields is that of their ends: the place in the process is free when the pages are gone.
    tabs: Vec<Tab>,
    context: BrowserContext,
    current: usize,
    elements: Elements,
    /// The wait that began with the last action, or with the navigation that it was.
    rest: Rest,
    /// Whether the page was still busy at the end of that wait.
    is_busy: bool,
    settings: BrowserSettings,
    seat: BrowserSeat,
}

/// The separator of several addresses. Source: WebArena's task files.
const AND: &str = " |AND| ";

impl EpisodeBrowser {
    /// Opens a tab for each of the addresses in `url`, which ` |AND| ` separates; the first one is current. Without an
    /// address, the tab is empty. Returns the browser, and the reason why an address could not be opened.
    pub async fn open(
        blank: BlankBrowser,
        settings: BrowserSettings,
        url: Option<&str>,
    ) -> Result<(Self, Option<ActionError>), BrowserFault> {
        let BlankBrowser { tab, context, seat } = blank;
        context.set_cookies(&settings.cookies).await?;
        tab.configure(&settings).await?;
        let mut browser = Self {
            tabs: vec![tab],
            context,
            current: 0,
            elements: Elements::new(),
            rest: Rest::begin(),
            is_busy: false,
            settings,
            seat,
        };
        let mut failed = None;
        for (number, url) in url.unwrap_or_default().split(AND).enumerate() {
            let tab = match number {
                0 => 0,
                _ => browser.open_tab().await?,
            };
            if url.is_empty() {
                continue;
            }
            match browser.goto(tab, url).await {
                Ok(()) => {}
                Err(StepError::Action(error)) => failed = failed.or(Some(error)),
                Err(StepError::Fault(fault)) => return Err(fault),
            }
        }
        browser.focus(0).await?;
        Ok((browser, failed))
    }

    /// Returns the settings that the browser was opened with.
    pub fn settings(&self) -> &BrowserSettings {
        &self.settings
    }

    /// Returns the connection to the browser, and the id of the session of the current tab; `None` without a tab.
    pub fn current_session(&self) -> Option<(Cdp, String)> {
        self.tabs.get(self.current).map(Tab::session)
    }

    /// Whether the process of the browser has ended, or one of its pages has crashed.
    pub fn is_lost(&self) -> bool {
        self.seat.cdp().is_gone() || self.tabs.iter().any(Tab::is_crashed)
    }

    /// Returns the reason why the browser is lost.
    pub fn loss(&self) -> BrowserFault {
        match self.seat.cdp().is_gone() {
            true => BrowserFault::Gone,
            false => BrowserFault::Crashed,
        }
    }

    /// Returns the elements of the current page that people act on.
    pub async fn listed(&self) -> Result<PageElements, BrowserFault> {
        let page = self.current_tab()?.evaluate(&listed::script()).await?;
        // A page that navigates away meanwhile shows nothing.
        Ok(serde_json::from_value(page).unwrap_or_default())
    }

    /// Returns the whole content of the current page. `selector` is a CSS selector of the element that the caller wants to
    /// find in it.
    pub async fn snapshot(&self, selector: Option<&str>) -> Result<PageSnapshot, BrowserFault> {
        let tab = self.current_tab()?;
        let mut snapshot = archived::snapshot(tab).await?;
        if let Some(selector) = selector {
            let object = object(tab, selector).await?;
            snapshot.element = if object.is_null() { None } else { backend_node(tab, &object).await? };
        }
        Ok(snapshot)
    }

    /// Gives the element with a CSS selector the name `id`, as if the last observation had shown it, and scrolls it into
    /// view. Returns whether there is such an element.
    async fn name(&mut self, id: &str, selector: &str) -> Result<bool, BrowserFault> {
        let tab = self.current_tab()?;
        let object = object(tab, selector).await?;
        if object.is_null() {
            return Ok(false);
        }
        let boxed = json!({ "functionDeclaration": listed::BOX, "objectId": object, "returnByValue": true });
        let boxed = tab.call("Runtime.callFunctionOn", boxed).await?;
        let sides = boxed["result"]["value"].as_array().into_iter().flatten().filter_map(Json::as_f64);
        let [x, y, width, height] = sides.collect::<Vec<_>>()[..] else { return Ok(false) };
        let bounds = Some(Bounds { x, y, width, height });
        let backend_node = backend_node(tab, &object).await?;
        self.elements.insert(id.to_owned(), Element { backend_node, bounds, text: selector.to_owned() });
        Ok(true)
    }

    /// Performs an action, waits until the page has come to rest, and observes it.
    pub async fn step(&mut self, action: &str) -> Result<StepOutcome, BrowserFault> {
        match Action::parse(action) {
            Ok(action) => self.perform(action).await,
            Err(error) => self.failed(error.into()).await,
        }
    }

    /// Performs an action as [`Self::step`] does, on the first element that a CSS selector matches instead of the one that
    /// the action names.
    pub async fn step_on(&mut self, action: &str, selector: &str) -> Result<StepOutcome, BrowserFault> {
        let action = match Action::parse(action) {
            Ok(action) => action,
            Err(error) => return self.failed(error.into()).await,
        };
        if let Some(id) = action.element().map(str::to_owned) {
            match self.name(&id, selector).await {
                Ok(true) => {}
                // A page that navigates away meanwhile has no such element any more.
                Ok(false) | Err(BrowserFault::Refused(_)) => {
                    let missing = format!("no element matches the selector {selector}");
                    return self.failed(ActionError::Failed(missing)).await;
                }
                Err(fault) => return Err(fault),
            }
        }
        self.perform(action).await
    }

    /// Observes the page after an action that was not performed.
    async fn failed(&mut self, error: ActionError) -> Result<StepOutcome, BrowserFault> {
        let observation = self.observe().await?;
        Ok(StepOutcome { observation, error: Some(error), answer: None, acted: None })
    }

    async fn perform(&mut self, action: Action) -> Result<StepOutcome, BrowserFault> {
        let answer = match &action {
            Action::Stop(answer) => Some(answer.clone()),
            _ => None,
        };
        let acted = match self.settings.tells_acted {
            true => Some(self.acted(&action).await?),
            false => None,
        };
        let tabs = self.tabs.len();
        let done = match self.act(action).await {
            Ok(()) => self.follow(tabs).await.map_err(StepError::from),
            failed => failed,
        };
        let error = match done {
            Ok(()) => None,
            Err(StepError::Action(error)) => Some(error),
            Err(StepError::Fault(fault)) => return Err(fault),
        };
        let observation = self.observe().await?;
        Ok(StepOutcome { observation, error, answer, acted })
    }

    /// Returns the page, and the element of an action that is about to be performed. An element that is gone has no
    /// selector.
    async fn acted(&self, action: &Action) -> Result<ActedPage, BrowserFault> {
        let tab = self.current_tab()?;
        let page = ActedPage::of_page(&tab.evaluate(&acted::page_script()).await?);
        let is_pointed_at = matches!(action, Action::Hover(_));
        let Some(element) = action.element().filter(|_| !is_pointed_at) else { return Ok(page) };
        let object = match self.object(element).await {
            Ok(object) => object,
            Err(StepError::Action(_) | StepError::Fault(BrowserFault::Refused(_))) => return Ok(page),
            Err(StepError::Fault(fault)) => return Err(fault),
        };
        let wanted =
            json!({ "functionDeclaration": acted::element_function(), "objectId": object, "returnByValue": true });
        match tab.call("Runtime.callFunctionOn", wanted).await {
            Ok(answer) => Ok(page.with_element(&answer["result"]["value"], action)),
            Err(BrowserFault::Refused(_)) => Ok(page),
            Err(fault) => Err(fault),
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), StepError> {
        match action {
            Action::Click(element) => {
                let center = self.center(&element)?;
                input::click(self.tab()?, center).await?;
            }
            Action::Hover(element) => {
                let center = self.center(&element)?;
                input::hover(self.tab()?, center).await?;
            }
            Action::Type { element, text } => {
                let center = self.center(&element)?;
                input::click(self.tab()?, center).await?;
                input::write(self.tab()?, &text).await?;
            }
            Action::Press(combination) => input::press(self.tab()?, &combination).await?,
            Action::Scroll(direction) => {
                let sign = match direction {
                    ScrollDirection::Up => '-',
                    ScrollDirection::Down => '+',
                };
                let scroller = "(document.scrollingElement || document.body)";
                self.tab()?.evaluate(&format!("{scroller}.scrollTop {sign}= window.innerHeight")).await?;
            }
            Action::Goto(url) => return self.goto(self.current, &url).await,
            Action::NewTab => {
                let tab = self.open_tab().await?;
                self.focus(tab).await?;
            }
            Action::GoBack => self.go(-1).await?,
            Action::GoForward => self.go(1).await?,
            Action::TabFocus(index) => {
                self.note_tabs().await?;
                if index >= self.tabs.len() {
                    return Err(ActionError::NoTab.into());
                }
                self.focus(index).await?;
            }
            Action::CloseTab => self.close_tab().await?,
            Action::Select { element, option } => self.select(&element, &option).await?,
            Action::Upload { element, file } => {
                let center = self.center(&element)?;
                let content = self.settings.files.get(&file)?;
                files::upload(self.tab()?, center, &file, content).await?;
            }
            Action::Stop(_) => return Ok(()),
        }
        self.rest = Rest::begin();
        self.settle(self.current).await?;
        Ok(())
    }

    /// Waits until the page of a tab has loaded and may be at rest.
    async fn settle(&mut self, tab: usize) -> Result<Rested, BrowserFault> {
        let tab = self.tabs.get(tab).ok_or_else(no_tab)?;
        let rested = tab.rest(&mut self.rest, BRIEFLY_QUIET).await?;
        self.is_busy = rested != Rested::Quiet;
        Ok(rested)
    }

    /// Makes a tab that an action has opened the current one, as VisualWebArena does. The list of marks shows no tabs.
    async fn follow(&mut self, tabs: usize) -> Result<(), BrowserFault> {
        if self.settings.observation != ObservationKind::SetOfMarks {
            return Ok(());
        }
        self.note_tabs().await?;
        match self.tabs.len() > tabs {
            true => self.focus(self.tabs.len() - 1).await,
            false => Ok(()),
        }
    }

    /// Observes the current page when it is at rest.
    pub async fn observe(&mut self) -> Result<Observation, BrowserFault> {
        /// The number of further tries after the page has navigated meanwhile.
        const TRIES: usize = 3;
        let mut tries = 0;
        let mut observed = match self.is_busy {
            true => Ok(None),
            false => self.observe_ahead().await,
        };
        loop {
            match observed {
                Ok(Some(observation)) => return Ok(observation),
                Ok(None) => {}
                Err(BrowserFault::Refused(reason)) if tries < TRIES => {
                    tracing::debug!(reason, "a page is observed once more");
                    tries += 1;
                    self.note_tabs().await?;
                }
                Err(fault) => return Err(fault),
            }
            let tab = self.tabs.get(self.current).ok_or_else(no_tab)?;
            tab.rest(&mut self.rest, QUIET).await?;
            observed = self.observe_once().await.map(|(observation, _)| Some(observation));
        }
    }

    /// Observes the current page while the rest of its quiet time passes. Returns `None` if it or the list of tabs has
    /// changed by the end of that time.
    async fn observe_ahead(&mut self) -> Result<Option<Observation>, BrowserFault> {
        let event = self.current_tab()?.last_event();
        let (observation, before) = self.observe_once().await?;
        let tab = self.tabs.get(self.current).ok_or_else(no_tab)?;
        tab.rest(&mut self.rest, QUIET).await?;
        let is_same = tab.last_event() == event && observe::fingerprint(tab).await? == before;
        let tabs = self.note_tabs().await?;
        let is_same = is_same && tabs.iter().map(|tab| &tab.url).eq(observation.tabs.iter().map(|tab| &tab.url));
        Ok(is_same.then_some(observation))
    }

    /// Observes the current page as it is, and returns its fingerprint from before.
    async fn observe_once(&mut self) -> Result<(Observation, PageFingerprint), BrowserFault> {
        let mut tabs = self.note_tabs().await?;
        for (tab, observed) in self.tabs.iter().zip(&mut tabs) {
            observed.title = tab.evaluate("document.title").await?.as_str().unwrap_or_default().to_owned();
        }
        let tab = self.current_tab()?;
        let fingerprint = observe::fingerprint(tab).await?;
        let (content, elements, screenshot) = observe::content(tab, &self.settings).await?;
        let text = match self.settings.observation {
            ObservationKind::Nothing => String::new(),
            // VisualWebArena lists the tabs of a page without elements only.
            ObservationKind::SetOfMarks if !content.is_empty() => content,
            _ => format!("{}\n\n{content}", observe::tabs_line(&tabs, self.current)),
        };
        self.elements = elements.clone();
        Ok((Observation { text, elements, screenshot, tabs, current: self.current }, fingerprint))
    }

    fn current_tab(&self) -> Result<&Tab, BrowserFault> {
        self.tabs.get(self.current).ok_or_else(no_tab)
    }

    fn tab(&self) -> Result<&Tab, StepError> {
        Ok(self.current_tab()?)
    }

    fn center(&self, element: &str) -> Result<(f64, f64), ActionError> {
        let known = self.elements.get(element).ok_or_else(|| ActionError::NoElement(element.to_owned()))?;
        known.bounds.map(|bounds| bounds.center()).ok_or(ActionError::NoBounds)
    }

    /// Opens a tab after all others, and returns its index.
    async fn open_tab(&mut self) -> Result<usize, BrowserFault> {
        let tab = Tab::open(self.seat.cdp(), &self.context.id).await?;
        tab.configure(&self.settings).await?;
        self.tabs.push(tab);
        Ok(self.tabs.len() - 1)
    }

    async fn focus(&mut self, index: usize) -> Result<(), BrowserFault> {
        if index != self.current {
            (self.current, self.rest, self.is_busy) = (index, Rest::begin(), false);
        }
        self.current_tab()?.call("Page.bringToFront", json!({})).await?;
        Ok(())
    }

    async fn close_tab(&mut self) -> Result<(), BrowserFault> {
        let target = json!({ "targetId": self.current_tab()?.target });
        limited(self.seat.cdp(), None, "Target.closeTarget", target).await?;
        self.tabs.remove(self.current);
        let last = match self.tabs.len().checked_sub(1) {
            Some(last) => last,
            None => self.open_tab().await?,
        };
        self.focus(last).await
    }

    /// Finds the tabs that pages have opened or closed, and returns all of them without their titles.
    async fn note_tabs(&mut self) -> Result<Vec<ObservedTab>, BrowserFault> {
        let open = self.context.tabs().await?;
        let current = self.tabs.get(self.current).map(|tab| tab.target.clone());
        self.tabs.retain(|tab| open.iter().any(|(target, _)| *target == tab.target));
        for (target, _) in &open {
            if !self.tabs.iter().any(|tab| tab.target == *target) {
                let tab = Tab::attach(self.seat.cdp(), target.clone()).await?;
                tab.configure(&self.settings).await?;
                tab.rest(&mut Rest::begin(), QUIET).await?;
                self.tabs.push(tab);
            }
        }
        if self.tabs.is_empty() {
            self.open_tab().await?;
        }
        // A page that has closed itself is followed by the last one, as after `close_tab`.
        let kept = self.tabs.iter().position(|tab| Some(&tab.target) == current.as_ref());
        self.current = kept.unwrap_or(self.tabs.len() - 1);
        let url_of = |tab: &Tab| open.iter().find(|(target, _)| *target == tab.target).map(|(_, url)| url.clone());
        let observed = |tab: &Tab| ObservedTab {
            title: String::new(),
            url: url_of(tab).unwrap_or_else(|| "about:blank".to_owned()),
        };
        Ok(self.tabs.iter().map(observed).collect())
    }

    /// Opens an address in a tab, and waits until the page has loaded.
    async fn goto(&mut self, tab: usize, url: &str) -> Result<(), StepError> {
        // Other schemes reach the files of the browser, or pages that crash it.
        let is_allowed = match Url::parse(url) {
            Ok(parsed) => matches!(parsed.scheme(), "http" | "https") || url == "about:blank",
            Err(_) => false,
        };
        if !is_allowed {
            let refused = "Protocol error (Page.navigate): Cannot navigate to invalid URL";
            return Err(ActionError::Failed(refused.to_owned()).into());
        }
        self.rest = Rest::begin();
        let timed_out = || ActionError::Failed(format!("Timeout {}ms exceeded.", LOAD_LIMIT.as_millis()));
        let page = self.tabs.get(tab).ok_or_else(no_tab)?;
        let navigated = page.navigate(url).await?.ok_or_else(timed_out)?;
        if let Some(reason) = navigated["errorText"].as_str() {
            return Err(ActionError::Failed(format!("{reason} at {url}")).into());
        }
        match self.settle(tab).await? {
            Rested::Quiet | Rested::Busy => Ok(()),
            Rested::Loading => Err(timed_out().into()),
        }
    }

    /// Moves in the history of the tab, if there is a page.
    async fn go(&self, by: i64) -> Result<(), StepError> {
        let tab = self.tab()?;
        let history = tab.call("Page.getNavigationHistory", json!({})).await?;
        let index = history["currentIndex"].as_i64().map(|index| index + by);
        let entry = index.and_then(|index| usize::try_from(index).ok()).map(|index| &history["entries"][index]["id"]);
        if let Some(entry) = entry.filter(|entry| !entry.is_null()) {
            tab.call("Page.navigateToHistoryEntry", json!({ "entryId": entry })).await?;
        }
        Ok(())
    }

    /// Returns the browser's reference to an element. A mark stands for the element at its centre, as for clicks.
    async fn object(&self, element: &str) -> Result<Json, StepError> {
        let known = self.elements.get(element).ok_or_else(|| ActionError::NoElement(element.to_owned()))?;
        let tab = self.tab()?;
        let world = tab.world().await?;
        let mut found = match known.backend_node {
            Some(node) => {
                let wanted = json!({ "backendNodeId": node, "executionContextId": world });
                tab.call("DOM.resolveNode", wanted).await?["object"].take()
            }
            None => {
                let (x, y) = self.center(element)?;
                let expression = format!("document.elementFromPoint({x}, {y}) || document.documentElement");
                let wanted = json!({ "expression": expression, "contextId": world });
                tab.call("Runtime.evaluate", wanted).await?["result"].take()
            }
        };
        Ok(found["objectId"].take())
    }

    /// Selects an option of a list, as a user would.
    async fn select(&self, element: &str, option: &str) -> Result<(), StepError> {
        let object = self.object(element).await?;
        let tab = self.tab()?;
        let wanted = json!({
            "functionDeclaration": SELECT, "objectId": object,
            "arguments": [{ "value": option }], "returnByValue": true, "userGesture": true,
        });
        let answer = tab.call("Runtime.callFunctionOn", wanted).await?;
        match answer["result"]["value"].as_str() {
            Some("selected") => Ok(()),
            Some(reason) => Err(ActionError::Failed(reason.to_owned()).into()),
            None => Err(ActionError::Failed("the option could not be selected".to_owned()).into()),
        }
    }
}

/// Selects the option whose text or value is the argument, and returns `selected` or the reason why it does not.
const SELECT: &str = "function (wanted) {
    const element = this.nodeType === 1 ? this : this.parentElement;
    const list = element && element.closest('select');
    if (!list) return 'Error: Element is not a <select> element';
    const text = option => option.label.trim().replace(/\\s+/g, ' ');
    const option = [...list.options].find(option => text(option) === wanted.trim() || option.value === wanted);
    if (!option) return 'Error: did not find some options';
    if (option.disabled || list.disabled) return 'Error: option being selected is not enabled';
    list.focus();
    option.selected = true;
    list.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    list.dispatchEvent(new Event('change', { bubbles: true }));
    return 'selected';
}";

/// Returns the id of the script object of the first element that a selector matches; null without one.
async fn object(tab: &Tab, selector: &str) -> Result<Json, BrowserFault> {
    let wanted = json!({ "expression": listed::found_by(selector), "contextId": tab.world().await? });
    Ok(tab.call("Runtime.evaluate", wanted).await?["result"]["objectId"].take())
}

/// Returns the id by which the browser finds the node of a script object.
async fn backend_node(tab: &Tab, object: &Json) -> Result<Option<i64>, BrowserFault> {
    let described = tab.call("DOM.describeNode", json!({ "objectId": object })).await?;
    Ok(described["node"]["backendNodeId"].as_i64())
}

fn no_tab() -> BrowserFault {
    BrowserFault::Refused("there is no tab".to_owned())
}
