//! The main pages of each site in a browser: all requests succeed, the scripts run, the pictures appear. Also the parts
//! that new users see first: pickers of the forge, the shop's dashboard, faces, dates.

use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser, Observer};

/// A browser that opens pages of a site and collects their errors.
struct BrowserVisit {
    page: BrowserTab,
    observer: Observer,
    origin: String,
    wrong: Vec<String>,
    _browser: HeadlessBrowser,
}

impl BrowserVisit {
    async fn to(arena: &Arena, site: &str) -> Self {
        let url: url::Url = arena.url(site).parse().expect("a URL");
        let browser = HeadlessBrowser::start().await;
        let page = browser.page("about:blank").await;
        let observer = Observer::of(&page).await;
        Self { page, observer, origin: url.origin().ascii_serialization(), wrong: Vec::new(), _browser: browser }
    }

    /// Opens pages and records the errors of each.
    async fn see(&mut self, paths: &[&str]) {
        for path in paths {
            self.page.open(&format!("{}{path}", self.origin)).await;
            self.note(path).await;
        }
    }

    async fn note(&mut self, what: &str) {
        let complaints = self.observer.complaints(&self.page).await;
        self.wrong.extend(complaints.into_iter().map(|complaint| format!("{what}: {complaint}")));
        let broken = "[...document.images].filter(image => image.getAttribute('src') && image.complete && !image.naturalWidth).map(image => image.src)";
        let broken: Vec<String> = self.page.eval(broken).await;
        self.wrong.extend(broken.into_iter().map(|picture| format!("{what}: no picture {picture}")));
    }

    /// Signs in through a form.
    async fn sign_in(&mut self, path: &str, fields: &[(&str, &str)], button: &str, signed_in: &str) {
        self.page.open(&format!("{}{path}", self.origin)).await;
        for (field, value) in fields {
            self.page.fill(field, value).await;
        }
        self.page.click(button).await;
        self.page.wait_until("page after the log-in", signed_in).await;
        self.note("after the log-in").await;
    }

    /// The number of elements on the page.
    async fn count(&self, css: &str) -> usize {
        self.page.eval(&format!("document.querySelectorAll({css:?}).length")).await
    }

    /// The number of different pictures among those that an expression in CSS selects.
    async fn different(&self, css: &str) -> usize {
        self.page.eval(&format!("new Set([...document.querySelectorAll({css:?})].map(image => image.src)).size")).await
    }

    #[track_caller]
    fn finish(self) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}

#[tokio::test]
async fn pages_of_the_shop_are_whole() {
    let arena = SharedArena::with(&["shopping"]);
    let mut visit = BrowserVisit::to(&arena, "shopping").await;
    visit.see(&["/", "/catalogue/", "/catalogue/category/electronics_1/", "/search/?q=larkmoor", "/basket/"]).await;
    visit.page.open(&format!("{}/catalogue/?page=2", visit.origin)).await;
    let product = "[...document.querySelectorAll('article.product_pod')].find(pod => pod.querySelector('.instock')).querySelector('h3 a').href";
    let product: String = visit.page.eval(product).await;
    visit.page.open(&product).await;
    visit.page.fill("#add_to_basket_form input[name=quantity]", "2").await;
    visit.note("a product").await;
    visit.page.click("#add_to_basket_form button[type=submit]").await;
    visit.page.wait_for_text("2 copies of ").await;
    visit.note("a product that was put into the basket").await;
    visit.see(&["/basket/"]).await;
    let quantity: String = visit.page.eval("document.querySelector('input[name=form-0-quantity]').value").await;
    assert_eq!(quantity, "2", "as many as were asked for");
    let fields =
        [("input[name=login-username]", "emma.lopez@gmail.com"), ("input[name=login-password]", "Password.123")];
    let signed_in = "!!document.querySelector('#logout_link') || document.body.innerText.includes('Logout')";
    visit.sign_in("/customer/account/login/", &fields, "button[name=login_submit]", signed_in).await;
    visit
        .see(&["/accounts/profile/", "/accounts/orders/", "/accounts/addresses/", "/checkout/shipping-address/"])
        .await;
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_back_office_are_whole() {
    let arena = SharedArena::with(&["shopping_admin"]);
    let mut visit = BrowserVisit::to(&arena, "shopping_admin").await;
    let fields = [("input[name=username]", "admin"), ("input[name=password]", "admin1234")];
    visit.sign_in("/admin", &fields, "button[type=submit]", "document.body.innerText.includes('Dashboard')").await;
    let bars = "[...document.querySelectorAll('#order_graph .bar-layer span')].filter(bar => bar.getBoundingClientRect().height > 5).length";
    let bars: usize = visit.page.eval(bars).await;
    assert!(bars >= 10, "the graph shows a year: {bars} months");
    let paths =
        ["/dashboard/orders/", "/dashboard/catalogue/", "/dashboard/catalogue/products/1/", "/dashboard/reviews/"];
    visit.see(&paths).await;
    visit.see(&["/dashboard/users/", "/dashboard/reports/", "/dashboard/offers/", "/dashboard/vouchers/"]).await;
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_wiki_are_whole() {
    let arena = SharedArena::with(&["wikipedia"]);
    let mut visit = BrowserVisit::to(&arena, "wikipedia").await;
    let search = "/search?content=arena_en_all&pattern=museum";
    for page in ["/arena_en_all/A/Larkmoor_County.html", "/arena_en_all/A/Port_Elsing.html", search, "/"] {
        visit.see(&[page]).await;
        // Few fonts have these characters.
        let signs = "[...document.body.innerText].filter(sign => sign.codePointAt(0) > 0xffff).length";
        let signs: usize = visit.page.eval(signs).await;
        assert_eq!(signs, 0, "{page}: signs that many machines have no font for");
    }
    visit
        .see(&[
            "/arena_en_all/A/Rowan_Lindqvist.html",
            "/arena_en_all/A/River_Lark.html",
            "/arena_en_all/A/Dunmore_Moor.html",
        ])
        .await;
    assert!(visit.count("#bodyContent img").await >= 1, "a park is pictured");
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_forum_are_whole() {
    let arena = SharedArena::with(&["reddit"]);
    let mut visit = BrowserVisit::to(&arena, "reddit").await;
    visit
        .see(&[
            "/",
            "/categories/",
            "/f/museums",
            "/f/museums/17",
            "/user/rowanlindqvist",
            "/search/threads/?q=lighthouses",
            "/users/",
        ])
        .await;
    visit.see(&["/"]).await;
    assert!(
        visit.different("img[src*='/media/avatars/'], img[src*='/avatar']").await > 5,
        "members have faces of their own"
    );
    let fields = [("input[name=username]", "MarvelsGrantMan136"), ("input[name=password]", "test1234")];
    let signed_in = "!!document.querySelector('#navbar-user-nav-dropdown')";
    visit.sign_in("/login", &fields, ".log-in-form button", signed_in).await;
    visit.see(&["/", "/f/museums", "/user/MarvelsGrantMan136/account"]).await;
    visit.finish();
}

#[tokio::test]
async fn pages_of_turkle_are_whole() {
    let arena = SharedArena::with(&["turkle"]);
    let mut visit = BrowserVisit::to(&arena, "turkle").await;
    visit.see(&["/"]).await;
    let text = visit.page.text().await;
    assert!(text.contains("Museums of Larkmoor") && text.contains("Sign in"), "a stranger sees what there is: {text}");
    let fields = [("#username", "worker"), ("#password", "worker1234")];
    visit
        .sign_in(
            "/login/",
            &fields,
            "form button.form-control",
            "document.body.innerText.includes('Logged in as worker')",
        )
        .await;
    visit.see(&["/", "/batch/1/preview_next_task/", "/stats/"]).await;
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_homepage_are_whole() {
    let arena = SharedArena::with(&["homepage"]);
    let mut visit = BrowserVisit::to(&arena, "homepage").await;
    visit
        .see(&[
            "/",
            "/calculator.html",
            "/password.html",
            "/manuals/",
            "/manuals/shop.html",
            "/static/input_images/",
            "/scratchpad.html",
        ])
        .await;
    let text = visit.page.text().await;
    assert!(
        text.contains("changed on 1 June 2023, 12:00 UTC") && !text.contains("2023-06-01T"),
        "dates for people: {text}"
    );
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_map_are_whole() {
    let arena = SharedArena::with(&["map"]);
    let mut visit = BrowserVisit::to(&arena, "map").await;
    visit.see(&["/", "/search?query=museums+in+Port+Elsing", "/#map=13/47.32/-32.40", "/directions"]).await;
    // The tiles of the first views are in the image.
    let stored = "find /srv/map/drawn/tile -name '*.png' | wc -l";
    let stored: usize = arena.exec_in("map", "map", &["sh", "-c", stored]).trim().parse().expect("a number");
    assert!(stored > 300, "{stored} tiles are drawn ahead");
    visit.finish();
}

#[tokio::test]
async fn pages_of_the_forge_are_whole() {
    let arena = SharedArena::with(&["gitlab"]);
    let mut visit = BrowserVisit::to(&arena, "gitlab").await;
    let project = [
        "/byteblaze/tidegauge",
        "/byteblaze/tidegauge/issues",
        "/byteblaze/tidegauge/pull-requests",
        "/byteblaze/tidegauge/commits/main",
    ];
    visit.see(&["/", "/browse/projects/", "/users/", "/groups/", "/about", "/user/byteblaze"]).await;
    visit.see(&project).await;
    visit.see(&["/byteblaze/tidegauge/tree/main", "/byteblaze/tidegauge/stats", "/byteblaze/tidegauge/roadmap"]).await;
    visit.see(&["/byteblaze/tidegauge/blob/main/f/README.md?text=True"]).await;
    assert!(visit.count(".hljs-ln-numbers").await > 5, "lines are numbered");
    visit.see(&["/users/"]).await;
    let faces: usize = visit.different("img[src*='/avatar/']").await;
    assert!(faces > 10, "everybody has a face of their own: {faces}");

    let fields = [("input[name=username]", "byteblaze"), ("input[name=password]", "hello1234")];
    visit
        .sign_in(
            "/users/sign_in",
            &fields,
            "button[type=submit]",
            "document.body.innerText.includes('Welcome byteblaze')",
        )
        .await;
    visit.see(&["/byteblaze/tidegauge/new_issue"]).await;
    assert!(visit.count(".selectize-control").await >= 2, "tags and assignee are pickers");
    let issue = "[...document.querySelectorAll('a')].map(link => link.getAttribute('href') || '').find(href => /\\/issue\\/\\d+$/.test(href))";
    visit.see(&["/byteblaze/tidegauge/issues"]).await;
    let issue: String = visit.page.eval(issue).await;
    visit.see(&[&issue, "/byteblaze/tidegauge/settings", "/settings", "/new/"]).await;
    visit.finish();
}
