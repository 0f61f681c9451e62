//! Answers to evaluators' questions, read by locators on the sites of an environment.
//!
//! Evaluators ask for pages, scripts and helpers and do not depend on sites; locators read sites and do not depend on
//! tasks. A failure that the environment caused becomes `Unavailable`, so that it is not counted against the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::locate::{self, LocateOptions, LocatingError};
use arenad_evaluators::visualwebarena::sources;
use arenad_instance::InstanceHandle;
use arenad_instance::shared::SharedParts;
use arenad_locators::LocateError;
use arenad_locators::js::LivePage;
use arenad_model::helper::Helper;
use arenad_model::locator::json;
use arenad_model::locator::{HttpLocator, JsLocator, JsPage, Locator, LocatorKind, Selection, Value};
use arenad_verdict::LookedAt;
use arenad_verdict::question::{Answer, BenchmarkCall, PagePlace, Picture, Question};

/// A script that returns the page's HTML, including the doctype, like Playwright's `content()`.
const CONTENT: &str = "(document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '') \
    + (document.documentElement ? document.documentElement.outerHTML : '')";

/// The largest number of pictures that are fetched from one page, and their largest total size in bytes.
const PICTURES_MAX: usize = 500;
const PICTURES_SIZE_MAX: usize = 64 << 20;

/// Answers the questions about one episode by reading the sites.
pub(crate) struct Witness<'a> {
    /// The state that the daemon's parts share.
    pub shared: &'a SharedParts,
    /// The sites of the environment.
    pub handles: &'a [InstanceHandle],
    /// The host name in public URLs.
    pub host: &'a str,
    /// The page of the agent.
    pub live: Option<LivePage>,
    /// The account that each site is read as, by the site's name. Other sites are read as their first account that can
    /// sign in.
    pub accounts: &'a BTreeMap<String, String>,
    /// The instances and generations that answers have come from so far.
    looked_at: Mutex<BTreeSet<LookedAt>>,
}

/// The reason why a question has no value.
enum Doubt {
    Locating(LocatingError),
    Unsupported(String),
}

impl From<LocatingError> for Doubt {
    fn from(error: LocatingError) -> Self {
        Self::Locating(error)
    }
}

impl<'a> Witness<'a> {
    /// Returns a witness that has not read any site yet.
    pub(crate) fn new(
        shared: &'a SharedParts,
        handles: &'a [InstanceHandle],
        host: &'a str,
        live: Option<LivePage>,
        accounts: &'a BTreeMap<String, String>,
    ) -> Self {
        Self { shared, handles, host, live, accounts, looked_at: Mutex::default() }
    }

    /// Answers one question by reading a site.
    pub(crate) async fn answer(&self, question: &Question) -> Answer {
        let seen = match question {
            Question::Content { place } => self.on_page(place, CONTENT, &[]).await,
            Question::Script { place, prepare, expression } => self.on_page(place, expression, prepare).await,
            Question::Helper { place, call } => self.helper(call, Some(place)).await,
            Question::Judge(_) | Question::Rule(_) | Question::Look { .. } => {
                Err(Doubt::Unsupported("a judge answers this, not a look at a site".to_owned()))
            }
            Question::Pictures { place, selector } => return answer_of(self.pictures(place, selector).await),
            Question::Reference { source } => return answer_of(self.reference(source).await),
        };
        answer_of(seen.map(|value| Answer::Value(json::plain(&value))))
    }

    /// Returns whether a site of the environment could answer the question; a judge or files answer other questions.
    pub(crate) fn knows(&self, question: &Question) -> bool {
        match question {
            Question::Judge(_) | Question::Rule(_) | Question::Look { .. } => false,
            Question::Reference { source } => self.place(source).is_ok(),
            Question::Content { .. }
            | Question::Script { .. }
            | Question::Helper { .. }
            | Question::Pictures { .. } => true,
        }
    }

    /// Returns the instances and generations that answers have come from so far.
    pub(crate) fn looked_at(&self) -> Vec<LookedAt> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns the pictures of a page.
    ///
    /// They are fetched again without the page's session, as the benchmark's code does. Addresses that yield no picture
    /// or that belong to no site of the environment are left out.
    async fn pictures(&self, place: &PagePlace, selector: &str) -> Result<Answer, Doubt> {
        let found = self.on_page(place, &sources(selector), &[]).await?;
        let sources = json::plain(&found);
        let sources: Vec<&str> = sources.as_array().into_iter().flatten().filter_map(|url| url.as_str()).collect();
        if sources.len() > PICTURES_MAX {
            let reason = format!("the page has {} pictures, which is more than {PICTURES_MAX}", sources.len());
            return Err(Doubt::Unsupported(reason));
        }
        let (mut pictures, mut size) = (Vec::new(), 0);
        for source in sources {
            if let Some(picture) = self.picture(source).await? {
                size += picture.bytes.len();
                if size > PICTURES_SIZE_MAX {
                    let most = PICTURES_SIZE_MAX >> 20;
                    return Err(Doubt::Unsupported(format!("the page's pictures have more than {most} MiB")));
                }
                pictures.push(picture);
            }
        }
        Ok(Answer::Pictures(pictures))
    }

    /// Returns a reference picture that is on one of the sites.
    async fn reference(&self, source: &str) -> Result<Answer, Doubt> {
        let elsewhere = || Doubt::Unsupported(format!("{source} is on no site of the environment"));
        self.place(source).map_err(|_| elsewhere())?;
        match self.picture(source).await? {
            Some(picture) => Ok(Answer::Pictures(vec![picture])),
            None => Ok(Answer::Unavailable(format!("{source} cannot be fetched"))),
        }
    }

    /// Fetches a file of a site; returns `None` if the site has no such file or the address belongs to no site.
    async fn picture(&self, url: &str) -> Result<Option<Picture>, Doubt> {
        let Ok((handle, path)) = self.place(url) else { return Ok(None) };
        let http = HttpLocator {
            method: "GET".to_owned(),
            path,
            account: None,
            headers: Vec::new(),
            body: None,
            follows: true,
            selection: Selection::Body,
        };
        let bytes = match self.run(handle, &Locator { kind: LocatorKind::Http(http), timeout: None }, None).await {
            Ok(Value::Bytes(bytes)) => bytes,
            Ok(Value::Text(text) | Value::Json(text)) => text.into_bytes(),
            Ok(_) | Err(Doubt::Locating(LocatingError::Locate(LocateError::Failed(_)))) => return Ok(None),
            Err(doubt) => return Err(doubt),
        };
        Ok(Some(Picture { url: url.to_owned(), bytes: bytes.into() }))
    }

    async fn on_page(&self, place: &PagePlace, expression: &str, prepare: &[String]) -> Result<Value, Doubt> {
        let found = match place {
            PagePlace::Found(call) => self.page_of(call).await?,
            PagePlace::Last | PagePlace::Url(_) => None,
        };
        let url = match place {
            PagePlace::Last => None,
            PagePlace::Url(url) => Some(url.as_str()),
            PagePlace::Found(_) => found.as_deref(),
        };
        let (handle, page) = match url {
            None if matches!(place, PagePlace::Last) => (self.any()?, JsPage::Live),
            None => return Err(failed("the helper found no page")),
            Some(url) => self.place(url).map(|(handle, path)| (handle, JsPage::Path(path)))?,
        };
        let account = if page == JsPage::Live { None } else { self.account(handle) };
        let js =
            JsLocator { expression: expression.to_owned(), page, account, wait_for: None, prepare: prepare.to_vec() };
        self.run(handle, &Locator { kind: LocatorKind::Js(js), timeout: None }, None).await
    }

    async fn page_of(&self, call: &BenchmarkCall) -> Result<Option<String>, Doubt> {
        Ok(Box::pin(self.helper(call, None)).await?.text().filter(|url| !url.is_empty()))
    }

    /// Runs a helper; `page` is the page that a locator without a page of its own reads.
    async fn helper(&self, call: &BenchmarkCall, page: Option<&PagePlace>) -> Result<Value, Doubt> {
        let own = match page {
            Some(PagePlace::Url(url)) => self.place(url).ok(),
            _ => None,
        };
        // The page's site is tried first, because two sites may have helpers with the same name.
        let first = own.as_ref().map(|(handle, _)| *handle);
        let known = first.into_iter().chain(self.handles).find_map(|handle| Some((handle, named(handle, &call.name)?)));
        let (handle, helper) = known
            .ok_or_else(|| Doubt::Unsupported(format!("no site of the environment has a helper `{}`", call.name)))?;
        let arguments = helper.arguments(&call.arguments).map_err(|error| Doubt::Unsupported(error.to_string()))?;
        let mut locator = helper.locator.clone().with(&arguments);
        let mut path = None;
        if let LocatorKind::Js(js) = &mut locator.kind
            && js.page == JsPage::Given
        {
            match page {
                Some(PagePlace::Last) => js.page = JsPage::Live,
                Some(PagePlace::Url(_)) => {
                    path = own.map(|(_, path)| path);
                    js.account = js.account.take().or_else(|| self.account(handle));
                }
                Some(PagePlace::Found(_)) | None => {}
            }
        }
        let value = self.run(handle, &locator, path).await?;
        Ok(helper.gives(value, &origin(handle, self.host)))
    }

    async fn run(&self, handle: &InstanceHandle, locator: &Locator, page: Option<String>) -> Result<Value, Doubt> {
        let look = LocateOptions { page, live: self.live.clone(), traffic: None };
        let located = locate::locate(self.shared, handle, self.host, locator, look).await?;
        let is_live = matches!(&locator.kind, LocatorKind::Js(js) if js.page == JsPage::Live);
        if !is_live {
            let (instance, generation) = (located.evidence.instance, located.evidence.generation);
            let seen = LookedAt { site: handle.site.name.to_string(), instance, generation };
            self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).insert(seen);
        }
        Ok(located.value)
    }

    /// Returns the site that a URL belongs to, and the rest of the URL after the host and port.
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

/// Converts a result to the answer for the evaluator. A failure caused by the environment is not the agent's.
fn answer_of(seen: Result<Answer, Doubt>) -> Answer {
    match seen {
        Ok(answer) => answer,
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

/// Returns the site's helper with the given name.
pub(crate) fn named<'a>(handle: &'a InstanceHandle, name: &str) -> Option<&'a Helper> {
    handle.site.helpers.iter().find(|helper| helper.name == name)
}

/// Returns the site's origin, `http://HOST:PORT`.
pub(crate) fn origin(handle: &InstanceHandle, host: &str) -> String {
    format!("http://{host}:{}", handle.site.public.port)
}

/// Returns the path, query and fragment of a URL.
fn after_port(url: &reqwest::Url) -> String {
    let part = |sign: char, text: Option<&str>| text.map(|text| format!("{sign}{text}")).unwrap_or_default();
    format!("{}{}{}", url.path(), part('?', url.query()), part('#', url.fragment()))
}

fn failed(reason: &str) -> Doubt {
    LocatingError::from(LocateError::Failed(reason.to_owned())).into()
}
