//! Visitors that write to the sites over HTTP with cookies and forms, as a browser would.

use std::collections::BTreeMap;

use reqwest::Client;
use scraper::{ElementRef, Html, Selector};
use url::Url;

/// A visitor with its cookies and its current page.
struct PageVisitor {
    client: Client,
    at: Url,
    page: String,
}

impl PageVisitor {
    async fn to(url: &str) -> Self {
        let client = Client::builder().cookie_store(true).no_proxy().build().expect("a client");
        let mut visitor = Self { client, at: Url::parse(url).expect("a URL"), page: String::new() };
        visitor.open(url).await;
        visitor
    }

    async fn open(&mut self, path: &str) {
        let url = self.at.join(path).expect("a URL");
        self.show(self.client.get(url)).await;
    }

    async fn show(&mut self, request: reqwest::RequestBuilder) {
        let answer = request.send().await.expect("an answer");
        let (status, at) = (answer.status(), answer.url().clone());
        let page = answer.text().await.expect("a page");
        assert!(status.is_success(), "{at}: {status}: {page}");
        (self.at, self.page) = (at, page);
    }

    /// Fills in the form that the selector names with the given values, and sends it.
    async fn send(&mut self, form: &str, values: &[(&str, &str)]) {
        let (action, mut fields) = {
            let page = Html::parse_document(&self.page);
            let form = page.select(&selector(form)).next().unwrap_or_else(|| panic!("{} has no form {form}", self.at));
            (form.attr("action").unwrap_or_default().to_owned(), fields(form))
        };
        fields.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let url = self.at.join(&action).expect("a URL");
        let request = self.client.post(url).header("Referer", self.at.as_str()).form(&fields);
        self.show(request).await;
    }
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

/// Returns the fields of a form with their values.
fn fields(form: ElementRef<'_>) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    for field in form.select(&selector("input[name], textarea[name], select[name]")) {
        let kind = field.attr("type").unwrap_or("text");
        let is_off = ["checkbox", "radio"].contains(&kind) && field.attr("checked").is_none();
        if is_off || ["submit", "file", "button"].contains(&kind) {
            continue;
        }
        let value = match field.value().name() {
            "textarea" => field.text().collect(),
            "select" => {
                let chosen = field.select(&selector("option[selected]")).next();
                chosen.and_then(|option| option.attr("value")).unwrap_or_default().to_owned()
            }
            _ => field.attr("value").unwrap_or_default().to_owned(),
        };
        fields.insert(field.attr("name").unwrap_or_default().to_owned(), value);
    }
    fields
}

/// A customer reviews a product.
pub async fn shop(url: &str) {
    let mut visitor = PageVisitor::to(&format!("{url}/customer/account/login/")).await;
    let account =
        [("login-username", "emma.lopez@gmail.com"), ("login-password", "Password.123"), ("login_submit", "Sign In")];
    visitor.send("#login_form", &account).await;
    visitor.open("/catalogue/").await;
    let product = {
        let page = Html::parse_document(&visitor.page);
        let link = selector("article.product_pod h3 a");
        let first = page.select(&link).next();
        first.and_then(|link| link.attr("href")).expect("a product").to_owned()
    };
    visitor.open(&format!("{product}reviews/add/")).await;
    let review = [("title", "A digest of it"), ("score", "5"), ("body", "Works well.")];
    visitor.send("form:has([name=score])", &review).await;
}

/// The administrator opens the orders.
pub async fn shop_admin(url: &str) {
    let origin = Url::parse(url).expect("a URL").origin().ascii_serialization();
    let mut visitor = PageVisitor::to(&format!("{origin}/dashboard/login/")).await;
    visitor.send("#dashboard_login_form", &[("username", "admin"), ("password", "admin1234")]).await;
    visitor.open("/dashboard/orders/").await;
}

/// A member starts a thread through the forum's API, as its pages do.
pub async fn forum(url: &str) {
    let mut visitor = PageVisitor::to(&format!("{url}/login")).await;
    visitor.send("form:has([name=password])", &[("username", "MarvelsGrantMan136"), ("password", "test1234")]).await;
    visitor.open("/f/museums").await;
    let token = between(&visitor.page, "csrfmiddlewaretoken\" value=\"", "\"").to_owned();
    let category = visitor.at.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let thread = serde_json::json!({ "category": category, "title": "A digest of museums", "post": "Is there one?" });
    let request = visitor.client.post(visitor.at.join("/api/threads/").expect("a URL"));
    visitor.show(request.header("X-CSRFToken", token).header("Referer", url).json(&thread)).await;
}

/// A worker accepts a task.
pub async fn turkle(url: &str) {
    let mut visitor = PageVisitor::to(&format!("{url}/login/")).await;
    visitor.send("form:has([name=password])", &[("username", "worker"), ("password", "worker1234")]).await;
    visitor.send("form[action='/batch/1/accept_next_task/']", &[]).await;
}

/// Writes a note on the homepage.
pub async fn homepage(url: &str) {
    let mut visitor = PageVisitor::to(&format!("{url}/scratchpad.html")).await;
    let note = [("title", "A digest"), ("text", "of notes")];
    let request = visitor.client.post(visitor.at.clone()).form(&note);
    visitor.show(request).await;
}

/// A member opens an issue and commits a file, which the worker processes.
pub async fn forge(url: &str) {
    let mut visitor = PageVisitor::to(&format!("{url}/users/sign_in")).await;
    visitor.send("form:has([name=password])", &[("username", "byteblaze"), ("password", "hello1234")]).await;
    visitor.open("/byteblaze/heronry/-/issues/new").await;
    let issue = [("title", "A digest of herons"), ("issue_content", "There is none.")];
    visitor.send("form:has(#issue_content)", &issue).await;
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let rest = text.split_once(from).map_or("", |(_, rest)| rest);
    rest.split_once(to).map_or("", |(found, _)| found)
}
