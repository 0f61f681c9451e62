//! A server of pages that answers requests as a proxy would.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use tokio::task::JoinHandle;

pub(super) struct PageServer {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl PageServer {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task =
            tokio::spawn(async move { axum::serve(listener, Router::new().fallback(page)).await.expect("served") });
        Self { address, task }
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A shop: lists, forms, pictures, tables, hidden parts, a part below the viewport, scripts.
const SHOP: &str = r#"<!doctype html><html><head><title>One Stop Market</title></head><body>
<nav aria-label="Main"><ul><li><a href="/basket">Basket</a></li><li><a href="/new" target="_blank">Offers</a></li></ul></nav>
<h1>Ann's "best" offers</h1>
<p>Only <strong>today</strong>: everything is <em>half</em> price.</p>
<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7" alt="A chair" width="40" height="30">
<form action="/search"><label for="q">Search</label><input id="q" name="q" required placeholder="What?">
<select name="sort" aria-label="Sort by"><option value="n">Name</option><option value="p">Price: low to high</option></select>
<input type="checkbox" id="c"><label for="c">In stock</label><button>Go</button></form>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>Chair</td><td>$12.50</td></tr></table>
<div style="display:none">hidden text</div><button onclick="this.textContent='Clicked'">Press me</button>
<div id="menu" onmouseover="this.textContent='Menu is open'" role="menu" aria-label="Menu">Menu</div>
<div style="height:3000px"></div><a href="/footer">Footer link</a>
<script>document.addEventListener('keydown', event => { document.title = 'Key ' + event.key + (event.ctrlKey ? ' with Control' : ''); });</script>
</body></html>"#;

/// Fields for files: one in a form, one that is hidden behind a button, and one in a frame.
const UPLOAD: &str = r#"<!doctype html><title>Upload</title>
<form action="/uploaded" method="post" enctype="multipart/form-data"><input type="file" name="notes" aria-label="Notes"><button>Send</button></form>
<button onclick="picture.click()">Choose a picture</button><input type="file" id="picture" style="display:none"><p id="chosen">nothing</p>
<button onclick="frames[0].document.querySelector('input').click()">In a frame</button><p id="framed">nothing</p>
<iframe srcdoc="<input type=file onchange='parent.framed.textContent = `frame: ${this.files[0].name}`'>"></iframe>
<button onclick="this.textContent = 'clicked'">Count</button>
<script>
    const seen = [];
    picture.oninput = () => seen.push('input');
    picture.onchange = async () => {
        const [file] = picture.files, bytes = new Uint8Array(await file.arrayBuffer());
        chosen.textContent = [...seen, 'change', file.name, file.type, bytes.join()].join(' ');
    };
</script>"#;

/// Fields of a form, a button with a picture, and a button in a shadow tree.
const FIELDS: &str = r#"<!doctype html><html><head><title>Fields</title></head><body>
<form action="/search"><input name="name" aria-label="Name"><input type="password" aria-label="Password"><button>Go</button></form>
<button type="button" title="Close"><svg width="10" height="10"></svg></button>
<div id="host"></div><script>host.attachShadow({ mode: 'open' }).innerHTML = '<button>Inside</button>';</script>
</body></html>"#;

async fn page(request: Request) -> Response {
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let titled = |title: &str, body: &str| Html(format!("<title>{title}</title>{body}")).into_response();
    match path.as_str() {
        "/" => Html(SHOP).into_response(),
        "/basket" => titled("Basket", "<h1>Your basket</h1>"),
        "/new" => titled("Offers", "<h1>All offers</h1>"),
        "/fields" => Html(FIELDS).into_response(),
        "/upload" => Html(UPLOAD).into_response(),
        "/uploaded" => {
            let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.expect("a body");
            titled("Uploaded", &format!("<p>{}</p>", String::from_utf8_lossy(&body)))
        }
        "/search" => titled("Results", &format!("<p>Query {query}</p>")),
        "/footer" => titled("Footer", "<p>The end</p>"),
        "/slow" => {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            titled("Slow", "<p>after all</p>")
        }
        "/late" => titled(
            "Late",
            "<p id=p>before</p><script>setTimeout(() => fetch('/slow').then(() => p.textContent = 'fetched'), 50)</script>",
        ),
        "/timer" => {
            let change = match query.as_str() {
                "text" => "p.firstChild.data = 'after'",
                "value" => "i.value = 'after'",
                "tab" => "open('/after')",
                "shadow" => "d.shadowRoot.textContent = 'after'",
                // A style sheet moves elements and leaves the document as it is.
                _ => "s.replaceSync('p { padding-top: 40px }'); document.adoptedStyleSheets = [s]",
            };
            let script = format!(
                "const s = new CSSStyleSheet(); d.attachShadow({{ mode: 'open' }}).textContent = 'x'; setTimeout(() => {{ {change} }}, 100)"
            );
            titled("Timer", &format!("<p id=p>before</p><input id=i><div id=d></div><script>{script}</script>"))
        }
        "/poll" => titled("Poll", "<p>polls</p><script>fetch('/never')</script>"),
        "/never" => std::future::pending().await,
        "/alert" => titled("Alert", "<button onclick=\"alert('x'); this.textContent = 'alerted'\">Warn</button>"),
        "/cookies" => {
            let sent = request.headers().get(header::COOKIE).and_then(|value| value.to_str().ok()).unwrap_or("none");
            let page = format!("<title>Cookies</title><p>cookies: {sent}</p>");
            ([(header::SET_COOKIE, "seen=1; Path=/")], Html(page)).into_response()
        }
        "/large" => titled("Large", &format!("<p>{}</p>", "word ".repeat(2 << 20))),
        "/forged" => titled(
            "Forged",
            "<p>text</p><button>Real</button><script>Element.prototype.getBoundingClientRect = () => ({x: 0, y: 0, width: 0, height: 0})</script>",
        ),
        "/crowded" => Html(super::marks::crowded()).into_response(),
        "/clobbered" => titled(
            "Clobbered",
            "<div><form tabindex=0>In a form<input name=getBoundingClientRect><input type=hidden name=textContent></form></div>\
            <button>Real</button><script>Element.prototype.getBoundingClientRect = () => ({width: 0, height: 0})</script>",
        ),
        "/closes" => titled("Closes", "<script>setTimeout(() => window.close(), 100)</script>"),
        _ => (axum::http::StatusCode::NOT_FOUND, Html("<title>Nothing</title><p>404</p>")).into_response(),
    }
}
