//! A real browser that is used as a person would: look, click, type, look again. No call waits for a fixed time. A
//! condition that does not hold before the deadline panics with the content of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chromiumoxide::auth::Credentials;
use chromiumoxide::browser::{Browser as Chromium, BrowserConfig};
use chromiumoxide::cdp::IntoEventKind;
use chromiumoxide::cdp::browser_protocol::input::InsertTextParams;
use chromiumoxide::cdp::browser_protocol::log::{EventEntryAdded, LogEntryLevel};
use chromiumoxide::cdp::browser_protocol::network::{
    EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventResponseReceived,
};
use chromiumoxide::cdp::browser_protocol::page::{EventJavascriptDialogOpening, HandleJavaScriptDialogParams};
use chromiumoxide::cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams};
use chromiumoxide::cdp::js_protocol::runtime::{ConsoleApiCalledType, EventConsoleApiCalled, EventExceptionThrown};
use chromiumoxide::page::ScreenshotParams;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// A limit that no page reaches on a slow, busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// A headless Chromium with its own profile; it ends when the value is dropped.
pub struct HeadlessBrowser {
    chromium: Chromium,
    events: JoinHandle<()>,
    _profile: TempDir,
}

impl HeadlessBrowser {
    /// Starts Chromium, in which only the host names of the tests resolve.
    pub async fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let config = BrowserConfig::builder()
            .chrome_executable(deaf_chromium(profile.path()))
            .user_data_dir(profile.path())
            .new_headless_mode()
            .no_sandbox()
            .window_size(1280, 900)
            .viewport(None)
            .request_timeout(PATIENCE)
            .launch_timeout(PATIENCE)
            .disable_https_first()
            .args(["disable-gpu", "disable-dev-shm-usage", "disable-quic", "disable-background-networking"])
            .args(["disable-component-update", "disable-sync", "no-first-run"])
            .build()
            .expect("a configuration");
        let (chromium, mut handler) = Chromium::launch(config).await.expect("chromium starts");
        let events = tokio::spawn(async move { while handler.next().await.is_some() {} });
        Self { chromium, events, _profile: profile }
    }

    /// The address of its debugging interface: `ws://HOST:PORT/…`.
    pub fn address(&self) -> String {
        self.chromium.websocket_address().clone()
    }

    /// Opens a page in its own browser context, which shares no cookies with other pages.
    pub async fn page(&self, url: &str) -> BrowserTab {
        self.page_in(CreateBrowserContextParams::default(), None, url).await
    }

    /// Opens a page in its own browser context, all of whose requests go through a proxy.
    pub async fn proxied_page(&self, server: &str, username: &str, password: &str, url: &str) -> BrowserTab {
        let context =
            CreateBrowserContextParams::builder().proxy_server(server).proxy_bypass_list("<-loopback>").build();
        self.page_in(context, Some(Credentials { username: username.into(), password: password.into() }), url).await
    }

    /// Waits for a page that another client of the browser has opened.
    pub async fn foreign_page(&self, url: &str) -> BrowserTab {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for tab in self.chromium.pages().await.expect("the pages") {
                if tab.url().await.ok().flatten().is_some_and(|shown| shown == url) {
                    return BrowserTab { tab };
                }
            }
            assert!(Instant::now() < deadline, "no page shows {url}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn page_in(
        &self,
        context: CreateBrowserContextParams,
        credentials: Option<Credentials>,
        url: &str,
    ) -> BrowserTab {
        let context = self.chromium.create_browser_context(context).await.expect("a context");
        let blank = CreateTargetParams::builder().url("about:blank").browser_context_id(context).build();
        let tab = self.chromium.new_page(blank.expect("a target")).await.expect("a page");
        if let Some(credentials) = credentials {
            tab.authenticate(credentials).await.expect("the page takes credentials");
        }
        // Confirmation dialogs are accepted, because an open dialog stops everything else on the page.
        let mut dialogs = tab.event_listener::<EventJavascriptDialogOpening>().await.expect("the page's events");
        let asked = tab.clone();
        tokio::spawn(async move {
            while dialogs.next().await.is_some() {
                let _ = asked.execute(HandleJavaScriptDialogParams::new(true)).await;
            }
        });
        let page = BrowserTab { tab };
        page.open(url).await;
        page
    }
}

/// Creates a program in `folder` that runs Chromium without notifications about the host's networks.
///
/// Chromium aborts requests with `ERR_NETWORK_CHANGED` when an address appears on the host, which happens whenever
/// another test creates containers. It learns of addresses through a netlink socket, and continues to work if it gets
/// none.
fn deaf_chromium(folder: &Path) -> PathBuf {
    const SOCKET: u32 = if cfg!(target_arch = "x86_64") { 41 } else { 198 };
    const AF_NETLINK: u32 = 16;
    const EAFNOSUPPORT: u32 = 97;
    // `struct sock_filter` of linux/filter.h: code, jumps if true and false, operand. The data is `struct
    // seccomp_data`.
    let rules: [(u16, u8, u8, u32); 6] = [
        (0x20, 0, 0, 0),          // load the number of the system call
        (0x15, 0, 3, SOCKET),     // another one is allowed
        (0x20, 0, 0, 16),         // load its first argument
        (0x15, 0, 1, AF_NETLINK), // another family is allowed
        (0x06, 0, 0, 0x0005_0000 | EAFNOSUPPORT),
        (0x06, 0, 0, 0x7fff_0000),
    ];
    let encode = |(code, yes, no, operand): (u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[yes, no], &operand.to_ne_bytes()].concat()
    };
    let filter = folder.join("no-netlink.bpf");
    std::fs::write(&filter, rules.map(encode).concat()).expect("the filter is written");
    let program = folder.join("chromium");
    let script = format!(
        "#!/bin/sh\nexec bwrap --dev-bind / / --die-with-parent --seccomp 9 -- /usr/bin/chromium \"$@\" 9<'{}'\n",
        filter.display()
    );
    std::fs::write(&program, script).expect("the program is written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("the program may be run");
    program
}

impl Drop for HeadlessBrowser {
    fn drop(&mut self) {
        if let Some(child) = self.chromium.get_mut_child() {
            let _ = child.inner.start_kill();
        }
        self.events.abort();
    }
}

/// A tab of the browser.
pub struct BrowserTab {
    tab: chromiumoxide::Page,
}

impl BrowserTab {
    /// Opens a URL and waits until the page has loaded. On a busy machine Chromium sometimes fails to load a page for
    /// an unknown reason, so there is a second attempt.
    pub async fn open(&self, url: &str) {
        let mut why = String::new();
        for _ in 0..2 {
            match tokio::time::timeout(PATIENCE, self.tab.goto(url)).await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = format!("not loaded within {PATIENCE:?}"),
            }
            eprintln!("{url}: {why}");
        }
        panic!("{url}: {why}");
    }

    /// Returns the URL of the page.
    pub async fn url(&self) -> String {
        self.eval("location.href").await
    }

    /// Returns the visible text of the page.
    pub async fn text(&self) -> String {
        self.eval("document.body ? document.body.innerText : ''").await
    }

    /// Returns the value of a JavaScript expression; the evaluation is repeated while the page changes.
    pub async fn eval<T: DeserializeOwned>(&self, expression: &str) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.tab.evaluate(expression).await.map(|value| value.into_value::<T>()) {
                Ok(Ok(value)) => return value,
                Ok(Err(error)) => panic!("{expression}: {error}"),
                Err(error) if Instant::now() > deadline => panic!("{expression}: {error}"),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits until a JavaScript expression is true.
    pub async fn wait_until(&self, what: &str, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A page that is being left does not answer; the next one will.
            let seen = self.tab.evaluate(expression).await.ok().and_then(|value| value.into_value::<bool>().ok());
            if seen == Some(true) {
                return;
            }
            if Instant::now() > deadline {
                panic!("no {what} on {}, which says:\n{}", self.url().await, self.text().await);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for a visible element.
    pub async fn wait_for(&self, css: &str) {
        let seen = format!(
            "(() => {{ const found = document.querySelector({}); return !!found && found.getClientRects().length > 0 }})()",
            json!(css)
        );
        self.wait_until(css, &seen).await;
    }

    /// Waits for a visible text.
    pub async fn wait_for_text(&self, text: &str) {
        self.wait_until(
            &format!("text {text:?}"),
            &format!("!!document.body && document.body.innerText.includes({})", json!(text)),
        )
        .await;
    }

    /// Clicks on an element with the mouse, once the page is complete and the element has come to rest: a script that
    /// rearranges the page would move it away from under the pointer.
    pub async fn click(&self, css: &str) {
        self.wait_for(css).await;
        let resting = format!(
            "(() => {{ const box = document.querySelector({})?.getBoundingClientRect(); const at = box && `${{box.x}} ${{box.y}}`; \
             const rests = at === window.arenadLast; window.arenadLast = at; return !!at && rests && document.readyState === 'complete' }})()",
            json!(css)
        );
        self.wait_until(&format!("resting {css}"), &resting).await;
        let element = self.tab.find_element(css).await.unwrap_or_else(|error| panic!("{css}: {error}"));
        match tokio::time::timeout(PATIENCE, element.click()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("click on {css}: {error}"),
            Err(_) => panic!("click on {css}: the page has not answered within {PATIENCE:?}"),
        }
    }

    /// Replaces the content of a text field by typing.
    pub async fn fill(&self, css: &str, text: &str) {
        self.wait_for(css).await;
        let _: bool = self.eval(&format!("(() => {{ const field = document.querySelector({}); field.focus(); field.select?.(); return true }})()", json!(css))).await;
        self.tab.execute(InsertTextParams::new(text)).await.unwrap_or_else(|error| panic!("type into {css}: {error}"));
    }

    /// Selects an option of a list by its value, or moves a slider, and triggers the page's events.
    pub async fn choose(&self, css: &str, value: &str) {
        self.wait_for(css).await;
        let script = format!(
            "(() => {{ const field = document.querySelector({}); field.value = {}; \
             for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {{ bubbles: true }})); return field.value }})()",
            json!(css),
            json!(value)
        );
        let chosen: String = self.eval(&script).await;
        assert_eq!(chosen, value, "{css} takes the value");
    }

    /// Closes the tab, as a person does.
    pub async fn close(self) {
        self.tab.close().await.expect("the tab closes");
    }

    /// Takes a screenshot of the whole page, for the investigation of failures.
    pub async fn screenshot(&self, path: &Path) {
        let whole = ScreenshotParams::builder().full_page(true).build();
        self.tab.save_screenshot(whole, path).await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The number of consecutive checks without a pending request after which a page counts as quiet.
const QUIET_LOOKS: u32 = 8;

/// Returns whether a browser sends this request on its own.
fn is_browsers_own(url: &str) -> bool {
    url.ends_with("/favicon.ico")
}

/// Collects errors of a page: requests that fail or get an error status, errors on the console, exceptions.
pub struct Observer {
    seen: Arc<Mutex<TabActivity>>,
    listeners: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct TabActivity {
    /// Requests that have started: id and URL.
    begun: BTreeMap<String, String>,
    /// Requests that have ended. Each kind of event has its own listener, so the end of a request may be reported
    /// before its beginning.
    ended: BTreeSet<String>,
    complaints: Vec<String>,
}

impl Observer {
    /// Observes a page from now on.
    pub async fn of(page: &BrowserTab) -> Self {
        let mut observer = Self { seen: Arc::default(), listeners: Vec::new() };
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventRequestWillBeSent| {
                seen.begun.insert(event.request_id.inner().clone(), event.request.url.clone());
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventLoadingFinished| {
                seen.ended.insert(event.request_id.inner().clone());
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventLoadingFailed| {
                seen.ended.insert(event.request_id.inner().clone());
                let url = seen.begun.get(event.request_id.inner()).cloned();
                // A page that is left cancels its requests.
                if event.canceled != Some(true) {
                    seen.complaints.push(format!("{}: {}", url.unwrap_or_default(), event.error_text));
                }
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventResponseReceived| {
                if event.response.status >= 400 && !is_browsers_own(&event.response.url) {
                    seen.complaints.push(format!("{}: HTTP {}", event.response.url, event.response.status));
                }
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventExceptionThrown| {
                let details = &event.exception_details;
                let told = details.exception.as_ref().and_then(|exception| exception.description.as_ref());
                seen.complaints.push(format!("exception: {}", told.unwrap_or(&details.text)));
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventConsoleApiCalled| {
                if event.r#type == ConsoleApiCalledType::Error {
                    let values: Vec<String> =
                        event.args.iter().filter_map(|value| value.value.as_ref()).map(ToString::to_string).collect();
                    seen.complaints.push(format!("console: {}", values.join(" ")));
                }
            })
            .await;
        observer
            .listen(page, |seen: &mut TabActivity, event: &EventEntryAdded| {
                if event.entry.level == LogEntryLevel::Error {
                    let url = event.entry.url.as_deref().unwrap_or_default();
                    if !is_browsers_own(url) {
                        seen.complaints.push(format!("log: {} {url}", event.entry.text));
                    }
                }
            })
            .await;
        observer
    }

    async fn listen<E: IntoEventKind + Unpin>(
        &mut self,
        page: &BrowserTab,
        note: impl Fn(&mut TabActivity, &E) + Send + 'static,
    ) {
        let mut events = page.tab.event_listener::<E>().await.expect("the page's events");
        let seen = self.seen.clone();
        self.listeners.push(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                note(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), &event);
            }
        }));
    }

    /// Waits until the page has no pending requests, and returns the errors since the last call.
    pub async fn complaints(&self, page: &BrowserTab) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            let is_complete: bool = page.eval("document.readyState === 'complete'").await;
            let under_way = self.under_way();
            quiet = if is_complete && under_way.is_empty() { quiet + 1 } else { 0 };
            assert!(Instant::now() < deadline, "{} still waits for {under_way:?}", page.url().await);
            tokio::time::sleep(PAUSE).await;
        }
        std::mem::take(&mut self.lock().complaints)
    }

    /// The URLs of pending requests.
    fn under_way(&self) -> Vec<String> {
        let seen = self.lock();
        let open = seen.begun.iter().filter(|(id, _)| !seen.ended.contains(*id));
        open.map(|(_, url)| url.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TabActivity> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
    }
}
