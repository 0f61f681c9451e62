//! The wiki in a browser.

use crate::arena::shared::SharedArena;
use crate::browser::HeadlessBrowser;

#[tokio::test]
async fn a_reader_searches_and_follows_links() {
    let arena = SharedArena::with(&["wikipedia"]);
    let browser = HeadlessBrowser::start().await;
    let page = browser.page(&arena.url("wikipedia")).await;
    page.wait_for_text("Larkmoor County").await;

    let origin: String = page.eval("location.origin").await;
    page.open(&format!("{origin}/search?content=arena_en_all&pattern=museum")).await;
    page.click(".results a").await;
    page.wait_until(
        "page of a museum",
        "location.pathname.startsWith('/arena_en_all/') && document.body.innerText.includes('useum')",
    )
    .await;
    let broken: u32 =
        page.eval("[...document.images].filter(image => image.complete && !image.naturalWidth).length").await;
    assert_eq!(broken, 0, "every picture is shown");
    assert_eq!(arena.reset("wikipedia"), "keep", "it is only read");
}
