//! Actions of an administrator in the back office, through its pages and forms.

use super::shop::number;
use super::visitor::{PageForm, TaskVisitor, VisitedPage};

/// Returns the page on which a product is edited; its address contains the number in the UPC.
pub async fn product(visitor: &TaskVisitor, upc: &str) -> VisitedPage {
    visitor.open(&format!("/dashboard/catalogue/products/{}/", number(upc))).await
}

/// Edits a product. `change` fills its form.
pub async fn edit(visitor: &TaskVisitor, upc: &str, change: impl FnOnce(PageForm) -> PageForm) {
    let page = product(visitor, upc).await;
    let form = change(page.form("#create_update_product_form")).set("action", "save");
    let end = visitor.send(form).await;
    assert_ne!(end.url.path(), page.url.path(), "the product is saved");
}

/// Sets one field of a product. Fields such as the price belong to its stock record.
pub async fn set(visitor: TaskVisitor, upc: &'static str, field: &'static str, value: String) {
    edit(&visitor, upc, |form| form.set(field, &value)).await;
}

/// Unticks one checkbox of a product.
pub async fn untick(visitor: TaskVisitor, upc: &'static str, field: &'static str) {
    edit(&visitor, upc, |form| form.untick(field)).await;
}

pub async fn delete_product(visitor: TaskVisitor, upc: &'static str) {
    let path = product(&visitor, upc).await.url.path().to_owned();
    let page = visitor.open(&format!("{path}delete/")).await;
    visitor.send(page.form(".page-content form[method=post]")).await;
}

/// Returns the UPCs of a maker's products, which the back office finds by their titles.
pub async fn products_of(visitor: &TaskVisitor, maker: &str) -> Vec<String> {
    let form = visitor.open("/dashboard/catalogue/").await.form("#search_product_form");
    let found = visitor.send(form.set("title", maker)).await;
    let rows = found.rows("tr:has(.selected_product)").into_iter().filter(|row| row[1].starts_with(maker));
    rows.map(|row| row[2].clone()).collect()
}

/// Lowers the price of a product by an amount.
pub async fn cut_price(visitor: &TaskVisitor, upc: &str, amount: f64) {
    edit(visitor, upc, |form| {
        let price: f64 = form.value("stockrecords-0-price").parse().expect("a price");
        form.set("stockrecords-0-price", &format!("{:.2}", price - amount))
    })
    .await;
}

/// Returns the numbers of the orders with this status, latest first.
pub async fn orders_of_status(visitor: &TaskVisitor, status: &str) -> Vec<String> {
    orders(visitor, "status", status).await.into_iter().map(|(number, _)| number).collect()
}

/// Returns the numbers of a customer's orders, latest first.
pub async fn orders_of_customer(visitor: &TaskVisitor, name: &str) -> Vec<String> {
    // The search also finds customers who share one of the two names.
    orders(visitor, "name", name).await.into_iter().filter(|(_, who)| who == name).map(|(number, _)| number).collect()
}

/// Returns the numbers and customers of the orders that a search finds.
async fn orders(visitor: &TaskVisitor, field: &'static str, value: &str) -> Vec<(String, String)> {
    let page = visitor.open("/dashboard/orders/").await;
    let form = page.form("form:has([name=response_format])").set(field, value).set("response_format", "html");
    let found = visitor.send(form).await;
    let rows = found.rows("tr:has([name=selected_order])").into_iter();
    rows.map(|row| (row[1].clone(), row[5].clone())).collect()
}

pub async fn set_status(visitor: &TaskVisitor, order: &str, status: &str) {
    let page = visitor.open(&format!("/dashboard/orders/{order}/")).await;
    visitor.send(page.form("#order_status_form").set("new_status", status)).await;
}

/// Sets the status of the lines of an order and leaves the status of the order itself.
pub async fn set_line_statuses(visitor: TaskVisitor, order: &'static str, status: &'static str) {
    let page = visitor.open(&format!("/dashboard/orders/{order}/")).await;
    let lines = page.attributes("#order_lines_form [name=selected_line]", "value");
    let form = page.form("#order_lines_form").set("line_action", "change_line_statuses").set("new_status", status);
    visitor.send(lines.iter().fold(form, |form, line| form.tick("selected_line", line))).await;
}

pub async fn add_note(visitor: &TaskVisitor, order: &str, note: &str) {
    let page = visitor.open(&format!("/dashboard/orders/{order}/")).await;
    visitor.send(page.form("#order_note_form").set("message", note)).await;
}

/// Returns links to the reviews of a product that await moderation.
pub async fn waiting_reviews(visitor: &TaskVisitor, product: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut number = 1;
    loop {
        let page = visitor.open(&format!("/dashboard/reviews/?status=0&page={number}")).await;
        let reviews = page.attributes("td:has(.selected_review) + td a", "href");
        let products = page.texts("td:has(.selected_review) + td + td a");
        links.extend(reviews.into_iter().zip(products).filter(|(_, title)| title == product).map(|(link, _)| link));
        number += 1;
        if page.attributes(&format!("a[href*='page={number}']"), "href").is_empty() {
            return links;
        }
    }
}

/// Sets the status of a review: 0 is pending, 1 is approved, 2 is rejected.
pub async fn moderate(visitor: &TaskVisitor, review: &str, status: &str) {
    let page = visitor.open(review).await;
    visitor.send(page.form("#create_update_review_form").set("status", status)).await;
}

/// Returns the page with the customers that a search by name or email address finds.
pub async fn customers(visitor: &TaskVisitor, field: &'static str, value: &str) -> VisitedPage {
    let form = visitor.open("/dashboard/users/").await.form("#search_users_form");
    visitor.send(form.set(field, value).set("search", "Search")).await
}

/// Returns the page of the customer with this email address.
pub async fn customer(visitor: &TaskVisitor, email: &str) -> VisitedPage {
    let found = customers(visitor, "email", email).await;
    visitor.open(&found.link_with(email)).await
}

/// Deactivates or activates accounts.
pub async fn lock(visitor: TaskVisitor, emails: Vec<&'static str>, action: &'static str) {
    for email in emails {
        let found = customers(&visitor, "email", email).await;
        let ids = found.attributes(".selected_user", "value");
        assert_eq!(ids.len(), 1, "one customer has {email}");
        visitor.send(found.form("#user_list_form").set("action", action).set("selected_user", &ids[0])).await;
    }
}

/// A range of products and the offer for it.
#[derive(Clone, Copy)]
pub struct Offer {
    pub range: &'static str,
    /// The UPCs of the products in the range; `None` means every product.
    pub upcs: Option<&'static str>,
    /// The name of the offer; `None` creates the range without an offer.
    pub name: Option<&'static str>,
    pub kind: &'static str,
    pub value: &'static str,
    /// The number of products of the range that the basket must contain.
    pub from: &'static str,
}

/// Creates a range and an offer in the steps that the back office prescribes.
pub async fn make_offer(visitor: TaskVisitor, offer: Offer) {
    let form = visitor.open("/dashboard/ranges/create/").await.form("#create_update_range_form");
    let form = form.set("name", offer.range).set("action", "Save and edit products");
    match offer.upcs {
        Some(upcs) => {
            let page = visitor.send(form).await;
            visitor.send(page.form("#add_products_range_form").set("query", upcs)).await;
        }
        None => drop(visitor.send(form.set("includes_all_products", "on")).await),
    }
    let Some(name) = offer.name else { return };

    let step = |page: &VisitedPage| page.form("#create_update_offer_step_form");
    let page = visitor.open("/dashboard/offers/new/metadata/").await;
    let page = visitor.send(step(&page).set("name", name).set("offer_type", "Site")).await;
    let range = page.option("range", offer.range);
    let incentive = step(&page).set("range", &range).set("type", offer.kind).set("value", offer.value);
    let page = visitor.send(incentive).await;
    let condition = step(&page).set("range", &range).set("type", "Count").set("value", offer.from);
    let page = visitor.send(condition).await;
    let end = visitor.send(step(&page)).await;
    assert!(!end.url.path().contains("/new/"), "the offer is made: {}", end.url);
}
