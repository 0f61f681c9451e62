//! The shop and its back office in a browser: an order and a price change, made as a person would, recorded by the
//! gateway, and undone by a reset.

use serde_json::{Value, json};

use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser};

const CUSTOMER: (&str, &str) = ("emma.lopez@gmail.com", "Password.123");
const ADMINISTRATOR: (&str, &str) = ("admin", "admin1234");

#[tokio::test]
async fn an_order_and_a_price_change_are_undone() {
    let arena = SharedArena::with(&["shopping", "shopping_admin"]);
    let before = dumps(&arena);
    let browser = HeadlessBrowser::start().await;

    order(&browser.page(&arena.url("shopping")).await).await;
    change_price(&browser.page(&arena.url("shopping_admin")).await).await;
    let changed = dumps(&arena);
    assert!(changed[0] != before[0] && changed[1] != before[1], "both were written to");
    what_was_done_is_recorded(&arena);

    arena.json(&["reset", "shopping", "shopping_admin", "--json"]);
    assert!(dumps(&arena) == before, "the baseline is back");
    assert_eq!(traced(&arena, "shopping", "trace: * | count"), 0, "a recording is of one generation");
    let page = browser.page(&arena.url("shopping")).await;
    sign_in(&page).await;
    assert!(!page.text().await.contains("100301"), "the order is gone");
}

fn traced(arena: &Arena, site: &str, locator: &str) -> Value {
    arena.json(&["locate", site, locator, "--json"])["value"].clone()
}

fn what_was_done_is_recorded(arena: &Arena) {
    let ordered = |locator: &str| traced(arena, "shopping", locator);
    assert_eq!(ordered("trace: POST /basket/add/* | count"), 1);
    assert_eq!(ordered("trace: POST /basket/add/* | jsonpath: $.body.quantity"), "1");
    assert_eq!(ordered("trace: POST /customer/account/login/ | jsonpath: $.body['login-username']"), CUSTOMER.0);
    // The recording contains the pages as they were shown, whatever their content coding.
    let shown = "trace: GET /checkout/thank-you/ | jq: .answer | contains(\"100301\")";
    assert_eq!(ordered(shown), true);
    let prices = "trace: POST /dashboard/catalogue/products/1/ | jq: [.body | to_entries[] | select(.key | endswith(\"-0-price\")) | .value]";
    assert_eq!(traced(arena, "shopping_admin", prices), json!(["123.45"]));
    let har = arena.arenad(&["har"]);
    let text = String::from_utf8(har.stdout).expect("UTF-8");
    for secret in [CUSTOMER.1, ADMINISTRATOR.1] {
        assert!(!text.contains(secret), "{secret} is in the HAR");
    }
    let har: Value = serde_json::from_str(&text).expect("a HAR");
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert!(entries.iter().all(|entry| entry["response"]["status"] != 0), "every request has an answer");
    let hidden = |entry: &&Value| entry["response"]["cookies"].as_array().is_some_and(|set| !set.is_empty());
    let cookies = entries.iter().filter(hidden).flat_map(|entry| entry["response"]["cookies"].as_array());
    let sessions = cookies.flatten().filter(|cookie| cookie["httpOnly"] == true);
    assert!(sessions.clone().count() > 0 && sessions.clone().all(|cookie| cookie["value"] == "[redacted]"));
}

fn dumps(arena: &Arena) -> [String; 2] {
    ["shopping", "shopping_admin"].map(|site| arena.exec(site, &["/srv/shop/db-dump"]))
}

async fn sign_in(page: &BrowserTab) {
    let origin: String = page.eval("location.origin").await;
    page.open(&format!("{origin}/customer/account/login/?next=/accounts/orders/")).await;
    page.fill("input[name=login-username]", CUSTOMER.0).await;
    page.fill("input[name=login-password]", CUSTOMER.1).await;
    page.click("button[name=login_submit]").await;
    page.wait_for_text("Order History").await;
}

async fn order(page: &BrowserTab) {
    sign_in(page).await;
    let origin: String = page.eval("location.origin").await;
    page.open(&format!("{origin}/catalogue/")).await;
    page.click("article.product_pod h3 a").await;
    page.click("#add_to_basket_form button[type=submit]").await;
    page.wait_for_text("has been added to your basket").await;
    page.open(&format!("{origin}/checkout/shipping-address/")).await;
    page.click("button.ship-address").await;
    page.click("#view_preview").await;
    page.click("#place-order").await;
    page.wait_for_text("100301").await;
}

async fn change_price(page: &BrowserTab) {
    page.fill("input[name=username]", ADMINISTRATOR.0).await;
    page.fill("input[name=password]", ADMINISTRATOR.1).await;
    page.click("button[type=submit]").await;
    page.wait_for_text("Dashboard").await;
    let origin: String = page.eval("location.origin").await;
    page.open(&format!("{origin}/dashboard/catalogue/products/1/")).await;
    let price = "input[name$='-0-price']";
    page.eval::<bool>("document.querySelector('a[href=\"#product_stock\"]').click() || true").await;
    page.fill(price, "123.45").await;
    page.click("button[value=continue]").await;
    page.wait_until("saved price", &format!("document.querySelector(\"{price}\")?.value === '123.45' && document.body.innerText.includes('pdated product')")).await;
}
