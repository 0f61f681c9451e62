//! Actions of a customer in the shop, through its pages and forms.

use super::visitor::{TaskVisitor, VisitedPage};

/// A delivery address of an order, or an address in a customer's address book.
#[derive(Clone, Copy)]
pub struct DeliveryAddress {
    pub first: &'static str,
    pub last: &'static str,
    /// House number and street.
    pub line: &'static str,
    pub town: &'static str,
    pub postcode: &'static str,
}

#[derive(Clone, Copy)]
pub struct Review {
    /// Stars, 1 to 5.
    pub stars: &'static str,
    pub title: &'static str,
    pub text: &'static str,
}

/// An order as the customer's order list shows it.
pub struct Listed {
    pub number: String,
    /// The total as the page shows it, such as `$2,276.88`.
    pub total: String,
    /// The date as the page shows it, such as `Oct. 17, 2022, 1:10 p.m.`
    pub date: String,
}

/// Returns the number in a UPC, by which the shop addresses the product.
pub fn number(upc: &str) -> u32 {
    upc.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().expect("a UPC ends in a number")
}

/// Returns the page of a product; its address contains the number in the UPC.
pub async fn product(visitor: &TaskVisitor, upc: &str) -> VisitedPage {
    visitor.open(&format!("/catalogue/_{}/", number(upc))).await
}

/// Returns the page of a product, found by its title.
pub async fn search_product(visitor: &TaskVisitor, title: &str) -> VisitedPage {
    let form = visitor.open("/").await.form("form[action='/search/']");
    let found = visitor.send(form.set("q", title)).await;
    let link = found.link_with(title);
    visitor.open(&link).await
}

/// Puts a product into the basket and sets its quantity there.
pub async fn put_in_basket(visitor: &TaskVisitor, upc: &str, quantity: u32) {
    let page = product(visitor, upc).await;
    visitor.send(page.form("#add_to_basket_form")).await;
    if quantity == 1 {
        return;
    }
    let basket = visitor.open("/basket/").await;
    let lines = basket.attributes(".basket-items h3 a", "href");
    let line = lines.iter().position(|link| link == page.url.path()).expect("the product is in the basket");
    let form = basket.form("#basket_formset").set(&format!("form-{line}-quantity"), &quantity.to_string());
    visitor.send(form).await;
}

/// Orders the contents of the basket, for delivery to this address or to the customer's own.
pub async fn check_out(visitor: &TaskVisitor, to: Option<DeliveryAddress>) {
    let page = visitor.open("/checkout/shipping-address/").await;
    let form = match to {
        None => page.form("form:has([name=address_id])"),
        Some(address) => fill(page.form("#new_shipping_address"), address),
    };
    visitor.send(form).await;
    let preview = visitor.open("/checkout/preview/").await;
    let end = visitor.send(preview.form("#place_order_form")).await;
    assert!(end.url.path().ends_with("/checkout/thank-you/"), "the order is placed: {}", end.url);
}

/// Orders one product in this quantity.
pub async fn order(visitor: TaskVisitor, upc: &'static str, quantity: u32, to: Option<DeliveryAddress>) {
    put_in_basket(&visitor, upc, quantity).await;
    check_out(&visitor, to).await;
}

fn fill(form: super::visitor::PageForm, address: DeliveryAddress) -> super::visitor::PageForm {
    let DeliveryAddress { first, last, line, town, postcode } = address;
    let form = form.set("first_name", first).set("last_name", last).set("line1", line).set("line4", town);
    form.set("postcode", postcode).set("country", "US")
}

pub async fn review(visitor: TaskVisitor, upc: &'static str, review: Review) {
    let path = product(&visitor, upc).await.url.path().to_owned();
    let form = visitor.open(&format!("{path}reviews/add/")).await.form("#add_review_form");
    let form = form.set("title", review.title).set("score", review.stars).set("body", review.text);
    let end = visitor.send(form).await;
    assert!(!end.url.path().contains("reviews/add"), "the review is taken: {}", end.url);
}

/// Creates a wish list and puts products on it, found by their titles.
pub async fn make_wish_list(
    visitor: TaskVisitor,
    name: &'static str,
    visibility: &'static str,
    titles: Vec<&'static str>,
) {
    let form = visitor.open("/accounts/wishlists/create/").await.form("form:has([name=visibility])");
    visitor.send(form.set("name", name).set("visibility", visibility)).await;
    for title in titles {
        let page = search_product(&visitor, title).await;
        let link = page.link_with(&format!("Add to '{name}' wish list"));
        visitor.open(&link).await;
    }
}

pub async fn add_address(visitor: &TaskVisitor, address: DeliveryAddress) {
    let page = visitor.open("/accounts/addresses/add/").await;
    let end = visitor.send(fill(page.form("form:has([name=line1])"), address)).await;
    assert!(!end.url.path().ends_with("/add/"), "the address is taken: {}", end.url);
}

/// Makes the address that is not yet the default for deliveries the default.
pub async fn deliver_there_by_default(visitor: &TaskVisitor) {
    let page = visitor.open("/accounts/addresses/").await;
    visitor.open(&page.link("a[href$='/default_for_shipping/']")).await;
}

/// Overwrites the customer's only address.
pub async fn overwrite_address(visitor: TaskVisitor, address: DeliveryAddress) {
    let page = visitor.open("/accounts/addresses/").await;
    let link = page.link_with("Edit");
    let page = visitor.open(&link).await;
    visitor.send(fill(page.form("form:has([name=line1])"), address)).await;
}

/// Changes fields of the customer's profile.
pub async fn change_profile(visitor: TaskVisitor, fields: Vec<(&'static str, &'static str)>) {
    let form = visitor.open("/accounts/profile/edit/").await.form("#profile_form");
    let form = fields.into_iter().fold(form, |form, (name, value)| form.set(name, value));
    let end = visitor.send(form).await;
    assert!(!end.url.path().ends_with("/edit/"), "the profile is taken: {}", end.url);
}

/// Puts all products of an order into the basket.
pub async fn reorder(visitor: &TaskVisitor, order: &str) {
    let page = visitor.open(&format!("/accounts/orders/{order}/")).await;
    visitor.send(page.form("form:has([name=order_id])")).await;
}

/// Puts the first line of an order into the basket.
pub async fn reorder_first_line(visitor: TaskVisitor, order: &'static str) {
    let page = visitor.open(&format!("/accounts/orders/{order}/")).await;
    visitor.send(page.form("form[id^=line_form]")).await;
}

/// Subscribes to an alert for a product that is out of stock.
pub async fn ask_for_alert(visitor: TaskVisitor, upc: &'static str) {
    let page = product(&visitor, upc).await;
    visitor.send(page.form("#alert_form")).await;
}

/// Returns titles, links and prices of a category's products in the order of the category's page.
pub async fn products_in(visitor: &TaskVisitor, category: &str) -> Vec<(String, String, String)> {
    let home = visitor.open("/").await;
    let page = visitor.open(&home.link_with(category)).await;
    let titles = page.attributes(".product_pod h3 a", "title");
    let links = page.attributes(".product_pod h3 a", "href");
    let prices = page.texts(".product_pod .price_color");
    assert!(titles.len() == links.len() && links.len() == prices.len(), "each product has a price");
    titles.into_iter().zip(links).zip(prices).map(|((title, link), price)| (title, link, price)).collect()
}

/// Returns every order of the customer, latest first.
pub async fn orders(visitor: &TaskVisitor) -> Vec<Listed> {
    let (mut all, mut number) = (Vec::new(), 1);
    loop {
        let page = visitor.open(&format!("/accounts/orders/?page={number}")).await;
        let rows = page.rows("table tr").into_iter().skip(1);
        all.extend(rows.map(|row| Listed { number: row[0].clone(), total: row[2].clone(), date: row[3].clone() }));
        number += 1;
        if page.attributes(&format!("a[href*='page={number}']"), "href").is_empty() {
            return all;
        }
    }
}

/// Converts a text such as `$2,276.88` to cents.
pub fn cents(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    assert!(text.contains('.'), "dollars and cents: {text}");
    digits.parse().expect("an amount")
}

/// Formats cents as dollars and cents.
pub fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
