//! Answers to evaluators' questions, found by locators on the sites of an environment.
//!
//! Evaluators ask for pages, scripts and helpers, and know nothing of sites; locators know sites, and nothing of tasks.
//! What the environment is at fault for is `Unavailable`, so that nobody takes it for the agent's failure.

use std::collections::BTreeMap;

use super::instance::InstanceHandle;
use super::locate::{self, LocatingError, Look};
use super::shared::Shared;
use crate::domain::helper::{Helper, HelperCall};
use crate::domain::locator::{JsLocator, JsPage, Locator, LocatorKind, Value};
use crate::evaluators::question::{Answer, Call, Place, Question};
use crate::locators::{LocateError, json};

/// The page as its browser has it, with what stands before its first element; as Playwright's `content()` does it.
const CONTENT: &str = "(document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '') \
    + (document.documentElement ? document.documentElement.outerHTML : '')";

/// Whom to ask.
pub struct Witness<'a> {
    /// The daemon's common ground.
    pub shared: &'a Shared,
    /// The sites of the environment.
    pub handles: &'a [InstanceHandle],
    /// The host name of public URLs.
    pub host: &'a str,
    /// The CDP address of the agent's browser.
    pub cdp: Option<&'a str>,
    /// As whom each site is looked at, by the site's name; others as their first account that can sign in.
    pub accounts: &'a BTreeMap<String, String>,
}

/// Why there is no value.
enum Doubt {
    Locating(LocatingError),
    Unsupported(String),
}

impl From<LocatingError> for Doubt {
    fn from(error: LocatingError) -> Self {
        Self::Locating(error)
    }
}

impl Witness<'_> {
    /// Looks.
    pub async fn answer(&self, question: &Question) -> Answer {
        let seen = match question {
            Question::Content { place } => self.on_page(place, CONTENT, &[]).await,
            Question::Script { place, prepare, expression } => self.on_page(place, expression, prepare).await,
            Question::Helper { place, call } => self.helper(call, Some(place)).await,
            Question::Judge(_) => Err(Doubt::Unsupported("a judge answers this, not a look at a site".to_owned())),
        };
        match seen {
            Ok(value) => Answer::Value(json::plain(&value)),
            Err(Doubt::Unsupported(reason)) => Answer::Unsupported(reason),
            Err(Doubt::Locating(LocatingError::Locate(LocateError::Threw(reason)))) => Answer::Threw(reason),
            Err(Doubt::Locating(error)) => match &error {
                LocatingError::Ask(_) | LocatingError::Reset(_) => Answer::Unavailable(error.to_string()),
                LocatingError::Locate(cause) if cause.is_environment_fault() => Answer::Unavailable(error.to_string()),
                LocatingError::Locate(LocateError::Failed(reason)) => Answer::Threw(reason.clone()),
                LocatingError::Locate(_) => Answer::Unsupported(error.to_string()),
            },
        }
    }

    async fn on_page(&self, place: &Place, expression: &str, prepare: &[String]) -> Result<Value, Doubt> {
        let found = match place {
            Place::Found(call) => self.page_of(call).await?,
            Place::Last | Place::Url(_) => None,
        };
        let url = match place {
            Place::Last => None,
            Place::Url(url) => Some(url.as_str()),
            Place::Found(_) => found.as_deref(),
        };
        let (handle, page) = match url {
            None if matches!(place, Place::Last) => (self.any()?, JsPage::Live),
            None => return Err(failed("the helper found no page")),
            Some(url) => self.place(url).map(|(handle, path)| (handle, JsPage::Path(path)))?,
        };
        let account = if page == JsPage::Live { None } else { self.account(handle) };
        let js =
            JsLocator { expression: expression.to_owned(), page, account, wait_for: None, prepare: prepare.to_vec() };
        self.run(handle, &Locator { kind: LocatorKind::Js(js), timeout: None }, None).await
    }

    async fn page_of(&self, call: &Call) -> Result<Option<String>, Doubt> {
        Ok(Box::pin(self.helper(call, None)).await?.text().filter(|url| !url.is_empty()))
    }

    /// Runs a helper; `page` is what a locator without a page looks at.
    async fn helper(&self, call: &Call, page: Option<&Place>) -> Result<Value, Doubt> {
        let own = match page {
            Some(Place::Url(url)) => self.place(url).ok(),
            _ => None,
        };
        // The site of the page comes first: two sites may have a helper of one name.
        let first = own.as_ref().map(|(handle, _)| *handle);
        let known = first.into_iter().chain(self.handles).find_map(|handle| Some((handle, named(handle, &call.name)?)));
        let (handle, helper) = known
            .ok_or_else(|| Doubt::Unsupported(format!("no site of the environment has a helper `{}`", call.name)))?;
        let call = HelperCall { name: call.name.clone(), arguments: call.arguments.clone() };
        let arguments = helper.arguments(&call.arguments).map_err(|error| Doubt::Unsupported(error.to_string()))?;
        let mut locator = helper.locator.clone().with(&arguments);
        let mut path = None;
        if let LocatorKind::Js(js) = &mut locator.kind
            && js.page == JsPage::Given
        {
            match page {
                Some(Place::Last) => js.page = JsPage::Live,
                Some(Place::Url(_)) => {
                    path = own.map(|(_, path)| path);
                    js.account = js.account.take().or_else(|| self.account(handle));
                }
                Some(Place::Found(_)) | None => {}
            }
        }
        let value = self.run(handle, &locator, path).await?;
        Ok(helper.gives(value, &origin(handle, self.host)))
    }

    async fn run(&self, handle: &InstanceHandle, locator: &Locator, page: Option<String>) -> Result<Value, Doubt> {
        let look = Look { page, live: self.cdp.map(str::to_owned) };
        Ok(locate::locate(self.shared, handle, self.host, locator, look).await?.value)
    }

    /// The site that an address belongs to, and what follows the site's host and port.
    fn place(&self, url: &str) -> Result<(&InstanceHandle, String), Doubt> {
        let wrong = || Doubt::Unsupported(format!("no site of the environment has the address {url}"));
        let parsed = reqwest::Url::parse(url).map_err(|_| wrong())?;
        let is_there = |handle: &&InstanceHandle| {
            parsed.scheme() == "http" && parsed.port_or_known_default() == Some(handle.site.public.port)
        };
        let handle =
            self.handles.iter().find(is_there).filter(|_| parsed.host_str() == Some(self.host)).ok_or_else(wrong)?;
        Ok((handle, after_port(&parsed)))
    }

    fn any(&self) -> Result<&InstanceHandle, Doubt> {
        self.handles.first().ok_or_else(|| Doubt::Unsupported("no site is up".to_owned()))
    }

    fn account(&self, handle: &InstanceHandle) -> Option<String> {
        let named = self.accounts.get(handle.site.name.as_str()).cloned();
        named.or_else(|| handle.site.accounts.iter().find(|it| it.login.is_some()).map(|it| it.name.clone()))
    }
}

/// The helper of that name.
pub fn named<'a>(handle: &'a InstanceHandle, name: &str) -> Option<&'a Helper> {
    handle.site.helpers.iter().find(|helper| helper.name == name)
}

/// The site's `http://HOST:PORT`.
pub fn origin(handle: &InstanceHandle, host: &str) -> String {
    format!("http://{host}:{}", handle.site.public.port)
}

/// Path, query and fragment.
fn after_port(url: &reqwest::Url) -> String {
    let part = |sign: char, text: Option<&str>| text.map(|text| format!("{sign}{text}")).unwrap_or_default();
    format!("{}{}{}", url.path(), part('?', url.query()), part('#', url.fragment()))
}

fn failed(reason: &str) -> Doubt {
    LocatingError::from(LocateError::Failed(reason.to_owned())).into()
}
