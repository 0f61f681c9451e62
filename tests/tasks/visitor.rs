//! A browser without scripts: it keeps cookies, and sends forms with the fields that the page contains.

use std::sync::Arc;

use reqwest::cookie::{CookieStore, Jar};
use reqwest::{Client, Method, Url};
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

/// The cookies of one browser for one site.
#[derive(Clone)]
pub struct TaskVisitor {
    client: Client,
    jar: Arc<Jar>,
    origin: &'static str,
}

/// The response to a request, after redirects.
pub struct VisitedPage {
    /// The URL after redirects.
    pub url: Url,
    html: String,
}

/// A form of a page, to be filled in and sent.
pub struct PageForm {
    page: Url,
    action: Url,
    is_post: bool,
    fields: Vec<(String, String)>,
}

impl TaskVisitor {
    /// Creates a visitor of `origin` with these cookies, each as `name=value`.
    pub fn new(origin: &'static str, cookies: &[String]) -> Self {
        let (jar, url) = (Arc::new(Jar::default()), Url::parse(origin).expect("an origin"));
        for cookie in cookies {
            jar.add_cookie_str(cookie, &url);
        }
        let client = Client::builder().cookie_provider(jar.clone()).no_proxy().build().expect("a client");
        Self { client, jar, origin }
    }

    /// Opens a page by its path or by a link from another page.
    pub async fn open(&self, path: &str) -> VisitedPage {
        let url = Url::parse(self.origin).and_then(|origin| origin.join(path)).expect("an address");
        self.open_url(url).await
    }

    async fn open_url(&self, url: Url) -> VisitedPage {
        VisitedPage::read(self.client.get(url.clone()), &url).await
    }

    /// Sends a GET request to the site's API.
    pub async fn json(&self, path: &str) -> Value {
        let page = self.open(path).await;
        serde_json::from_str(&page.html).unwrap_or_else(|error| panic!("{}: {error}", page.url))
    }

    /// Sends JSON as a page's script does, with the CSRF token from the named cookie.
    pub async fn call(&self, method: Method, path: &str, token: &str, body: &Value) -> Value {
        let url = Url::parse(self.origin).and_then(|origin| origin.join(path)).expect("an address");
        let prefix = format!("{token}=");
        let cookies = self.jar.cookies(&url).unwrap_or_else(|| panic!("{url}: no cookies"));
        let mut cookies = cookies.to_str().expect("cookies are text").split("; ");
        let value =
            cookies.find_map(|cookie| cookie.strip_prefix(&prefix)).unwrap_or_else(|| panic!("no cookie {token}"));
        let request =
            self.client.request(method, url.clone()).header("X-CSRFToken", value).header("Referer", url.as_str());
        let answer = request.json(body).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        let status = answer.status();
        let text = answer.text().await.expect("an answer");
        assert!(status.is_success(), "{url}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Sends a form with its current values.
    pub async fn send(&self, form: PageForm) -> VisitedPage {
        let PageForm { page, mut action, is_post, fields } = form;
        if is_post {
            let request = self.client.post(action.clone()).header("Referer", page.as_str()).form(&fields);
            return VisitedPage::read(request, &action).await;
        }
        action.query_pairs_mut().clear().extend_pairs(fields);
        self.open_url(action).await
    }
}

impl VisitedPage {
    async fn read(request: reqwest::RequestBuilder, asked: &Url) -> Self {
        let answer = request.send().await.unwrap_or_else(|error| panic!("{asked}: {error}"));
        assert!(answer.status().is_success(), "{asked}: {}", answer.status());
        let url = answer.url().clone();
        Self { url, html: answer.text().await.expect("a page") }
    }

    /// The HTML as the site sent it.
    pub fn html(&self) -> &str {
        &self.html
    }

    /// Returns the texts of all elements that a selector finds, with white space normalized.
    pub fn texts(&self, css: &str) -> Vec<String> {
        Html::parse_document(&self.html).select(&selector(css)).map(words).collect()
    }

    /// Returns an attribute of every element that a selector finds.
    pub fn attributes(&self, css: &str, name: &str) -> Vec<String> {
        let html = Html::parse_document(&self.html);
        html.select(&selector(css)).filter_map(|element| element.attr(name)).map(str::to_owned).collect()
    }

    /// Returns the target of the first link that a selector finds.
    pub fn link(&self, css: &str) -> String {
        self.attributes(css, "href").into_iter().next().unwrap_or_else(|| panic!("no link {css} on {}", self.url))
    }

    /// Returns the target of the link with this text.
    pub fn link_with(&self, text: &str) -> String {
        let html = Html::parse_document(&self.html);
        let link = html.select(&selector("a[href]")).find(|link| words(*link) == text);
        let link = link.unwrap_or_else(|| panic!("no link {text:?} on {}", self.url));
        link.attr("href").expect("the selector asks for it").to_owned()
    }

    /// Returns the target of the first link in the table row that has a cell with this text.
    pub fn link_beside(&self, text: &str) -> String {
        let html = Html::parse_document(&self.html);
        let (rows, cells, links) = (selector("tr"), selector("td"), selector("a[href]"));
        let row = html.select(&rows).find(|row| row.select(&cells).any(|cell| words(cell) == text));
        let link = row.and_then(|row| row.select(&links).next()).and_then(|link| link.attr("href"));
        link.unwrap_or_else(|| panic!("no link beside {text:?} on {}", self.url)).to_owned()
    }

    /// Returns the table rows that a selector finds, each as the texts of its cells.
    pub fn rows(&self, css: &str) -> Vec<Vec<String>> {
        let html = Html::parse_document(&self.html);
        let cells = selector("th, td");
        html.select(&selector(css)).map(|row| row.select(&cells).map(words).collect()).collect()
    }

    /// Returns the text beside a heading in a table with two columns.
    pub fn beside(&self, heading: &str) -> String {
        let row = self.rows("tr").into_iter().find(|row| row.len() == 2 && row[0] == heading);
        row.unwrap_or_else(|| panic!("no row {heading:?} on {}", self.url)).remove(1)
    }

    /// Returns the value of a list's option, found by its text or by the last part of a text such as `Grocery > Tea`.
    pub fn option(&self, list: &str, text: &str) -> String {
        let html = Html::parse_document(&self.html);
        let options = selector(&format!("select[name={list}] option"));
        let option = html.select(&options).find(|option| words(*option).rsplit(" > ").next() == Some(text));
        let option = option.unwrap_or_else(|| panic!("no option {text:?} of {list} on {}", self.url));
        option.attr("value").unwrap_or_default().to_owned()
    }

    /// Returns the first form that a selector finds, with the values that the site put in.
    pub fn form(&self, css: &str) -> PageForm {
        let html = Html::parse_document(&self.html);
        let found = html.select(&selector(css)).next();
        let form = found.unwrap_or_else(|| panic!("no form {css} on {}: {}", self.url, self.html));
        let action = self.url.join(form.attr("action").unwrap_or_default()).expect("an address");
        let is_post = form.attr("method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
        let controls = selector("input[name], textarea[name], select[name]");
        PageForm { page: self.url.clone(), action, is_post, fields: form.select(&controls).flat_map(values).collect() }
    }
}

impl PageForm {
    /// Returns the value of a field.
    pub fn value(&self, name: &str) -> &str {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no field {name} on {}", self.page))
    }

    /// Replaces the value of a field. A field that the form lacks belongs to a button or would be added by a script.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Ticks one more of several checkboxes with the same name.
    pub fn tick(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a checkbox from the sent fields.
    pub fn untick(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self
    }
}

/// Returns the names and values that a form control sends.
fn values(control: ElementRef<'_>) -> Vec<(String, String)> {
    let name = control.attr("name").unwrap_or_default();
    let kind = control.attr("type").unwrap_or("text");
    let sent: Vec<String> = match (control.value().name(), kind) {
        ("textarea", _) => vec![control.text().collect::<String>().trim_start_matches('\n').to_owned()],
        ("select", _) => chosen(control),
        (_, "submit" | "button" | "file" | "image") => Vec::new(),
        (_, "checkbox" | "radio") if control.attr("checked").is_none() => Vec::new(),
        (_, "checkbox" | "radio") => vec![control.attr("value").unwrap_or("on").to_owned()],
        _ => vec![control.attr("value").unwrap_or_default().to_owned()],
    };
    sent.into_iter().map(|value| (name.to_owned(), value)).collect()
}

/// Returns the selected options of a list. If a single-choice list has no selected option, browsers select the first.
fn chosen(list: ElementRef<'_>) -> Vec<String> {
    let options = selector("option");
    let value = |option: ElementRef<'_>| option.attr("value").unwrap_or_default().to_owned();
    let chosen: Vec<String> =
        list.select(&options).filter(|option| option.attr("selected").is_some()).map(value).collect();
    if chosen.is_empty() && list.attr("multiple").is_none() {
        return list.select(&options).next().map(value).into_iter().collect();
    }
    chosen
}

fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn selector(css: &str) -> Selector {
    Selector::parse(css).unwrap_or_else(|error| panic!("{css}: {error}"))
}
