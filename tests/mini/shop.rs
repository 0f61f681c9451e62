//! Actions of customers and administrators in the shop, over HTTP with cookies and forms, as a browser would.

use std::collections::BTreeMap;

use reqwest::Client;
use scraper::{Html, Selector};

fn visitor() -> Client {
    Client::builder().cookie_store(true).no_proxy().build().expect("a client")
}

async fn get(client: &Client, url: &str) -> (String, String) {
    let answer = client.get(url).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(answer.status().is_success(), "{url}: {}", answer.status());
    let at = answer.url().to_string();
    (at, answer.text().await.expect("a page"))
}

async fn post(client: &Client, url: &str, form: &BTreeMap<String, String>) -> (String, String) {
    let answer = client.post(url).form(form).send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(answer.status().is_success(), "{url}: {}", answer.status());
    let at = answer.url().to_string();
    (at, answer.text().await.expect("a page"))
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

/// The fields of the form that has a field with this name, as a browser would send them.
fn form_with(page: &str, field: &str) -> BTreeMap<String, String> {
    let page = Html::parse_document(page);
    let has = selector(&format!("[name='{field}']"));
    let form = page.select(&selector("form")).find(|form| form.select(&has).next().is_some());
    let form = form.unwrap_or_else(|| panic!("no form has a field {field}"));
    let mut fields = BTreeMap::new();
    for input in form.select(&selector("input[name], textarea[name]")) {
        let kind = input.attr("type").unwrap_or("text");
        let is_off = kind == "checkbox" && input.attr("checked").is_none();
        if is_off || ["submit", "file", "button"].contains(&kind) {
            continue;
        }
        let value = match input.value().name() {
            "textarea" => input.text().collect::<String>().trim_start_matches('\n').to_owned(),
            _ => input.attr("value").unwrap_or(if kind == "checkbox" { "on" } else { "" }).to_owned(),
        };
        fields.insert(input.attr("name").unwrap_or_default().to_owned(), value);
    }
    for select in form.select(&selector("select[name]")) {
        let chosen = select.select(&selector("option[selected]")).next().and_then(|option| option.attr("value"));
        fields.insert(select.attr("name").unwrap_or_default().to_owned(), chosen.unwrap_or_default().to_owned());
    }
    fields
}

fn filled(mut form: BTreeMap<String, String>, values: &[(&str, &str)]) -> BTreeMap<String, String> {
    form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    form
}

async fn customer(shop: &str) -> Client {
    let client = visitor();
    let (at, page) = get(&client, &format!("{shop}/customer/account/login/")).await;
    let form = form_with(&page, "login-username");
    let form = filled(
        form,
        &[("login-username", "emma.lopez@gmail.com"), ("login-password", "Password.123"), ("login_submit", "Sign In")],
    );
    let (at, _) = post(&client, &at, &form).await;
    assert!(!at.contains("login"), "signed in: {at}");
    client
}

/// The path of the first product in the catalogue.
pub async fn first_product(shop: &str) -> String {
    let (_, page) = get(&visitor(), &format!("{shop}/catalogue/")).await;
    let page = Html::parse_document(&page);
    let link = page.select(&selector("article.product_pod h3 a")).next().expect("a product");
    link.attr("href").expect("an address").to_owned()
}

/// Orders one unit of a product as the customer; returns the order's number.
pub async fn place_order(shop: &str, product: &str) -> String {
    let client = customer(shop).await;
    let (_, page) = get(&client, &format!("{shop}{product}")).await;
    let number = product.trim_end_matches('/').rsplit('_').next().expect("a number");
    let form = filled(form_with(&page, "quantity"), &[("quantity", "1")]);
    post(&client, &format!("{shop}/basket/add/{number}/"), &form).await;
    let (at, page) = get(&client, &format!("{shop}/checkout/shipping-address/")).await;
    let form = filled(form_with(&page, "address_id"), &[("action", "ship_to")]);
    post(&client, &at, &form).await;
    let (at, page) = get(&client, &format!("{shop}/checkout/preview/")).await;
    let token = form_with(&page, "csrfmiddlewaretoken").remove("csrfmiddlewaretoken").expect("a token");
    let form = filled(BTreeMap::new(), &[("csrfmiddlewaretoken", &token), ("action", "place_order")]);
    let (at, page) = post(&client, &at, &form).await;
    assert!(at.ends_with("/checkout/thank-you/"), "the order is placed: {at}");
    let number = page.split(|c: char| !c.is_ascii_digit()).find(|word| word.len() == 6 && word.starts_with("100"));
    number.expect("an order number").to_owned()
}

/// Posts a review of a product as the customer.
pub async fn post_review(shop: &str, product: &str, title: &str) {
    let client = customer(shop).await;
    let (at, page) = get(&client, &format!("{shop}{product}reviews/add/")).await;
    let form = filled(form_with(&page, "score"), &[("title", title), ("score", "5"), ("body", "Works well.")]);
    let (at, _) = post(&client, &at, &form).await;
    assert!(!at.contains("reviews/add"), "the review is taken: {at}");
}

/// Changes the price of the first product in the back office.
pub async fn change_price(admin: &str, price: &str) {
    let client = visitor();
    let origin = admin.trim_end_matches("/admin");
    let (at, page) = get(&client, admin).await;
    let form = filled(form_with(&page, "username"), &[("username", "admin"), ("password", "admin1234")]);
    let (at, _) = post(&client, &at, &form).await;
    assert!(at.ends_with("/dashboard/"), "signed in: {at}");
    let (at, page) = get(&client, &format!("{origin}/dashboard/catalogue/products/1/")).await;
    let mut form = form_with(&page, "upc");
    let field = form.keys().find(|name| name.ends_with("-price")).expect("a price").clone();
    form.insert(field, price.to_owned());
    form.insert("action".to_owned(), "continue".to_owned());
    let (_, page) = post(&client, &at, &form).await;
    let saved = form_with(&page, "upc");
    assert!(saved.iter().any(|(name, value)| name.ends_with("-price") && value == price), "the price is saved");
}

/// Returns a page without the tokens that differ between requests.
pub async fn page(url: &str) -> String {
    let (_, page) = get(&visitor(), url).await;
    let token = regex::Regex::new(r#"name="csrfmiddlewaretoken" value="[^"]+""#).expect("a pattern");
    token.replace_all(&page, "").into_owned()
}
