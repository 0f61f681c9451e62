//! Signing in to a small site of the test's own: the requests, the stored session, and the messages of failures.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arenad_accounts::{LoginFailure, LoginSession, VisitAddress, log_in};
use arenad_model::ids::ServiceName;
use arenad_model::login::{FormLogin, Login, LoginRecipe, Template, TokenLogin};
use arenad_model::probe::HttpProbe;
use arenad_model::site::{Account, Secret};
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::alone::is_alone;

const USER: &str = "emma@example.com";
const PASSWORD: &str = "Pass&word=1+2";
const TOKEN: &str = "t0ken-of-emma";

/// The requests that the site received, one line each.
type SeenRequests = Arc<Mutex<Vec<String>>>;

fn text(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body.to_owned())).unwrap()
}

fn given<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

const FORM: &str = r#"<form action="/search"><input name="q"></form>
    <form id="login" method="post" action="/login?next=%2Fhome"><input type="hidden" name="csrf" value="c5rf">
    <input name="user"><input name="pass" type="password"><button name="do" value="in">Sign in</button></form>"#;

/// A page of 90 KB with millions of elements: each paragraph has all of the open ones before it once more.
fn bomb() -> String {
    let open: String = (0..400).map(|number| format!("<b a={number}>")).collect();
    format!("<!doctype html><p>{open}{}{FORM}", "<p>x".repeat(20_000))
}

async fn site(State(seen): State<SeenRequests>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(axum::body::to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
    let headers = &head.headers;
    let cookies = given(headers, "cookie").to_owned();
    seen.lock().unwrap().push(format!("{} {} [{cookies}] {body}", head.method, head.uri));
    let host = given(headers, "host");
    assert_eq!(host, "shop.test:7770", "the site sees its public address");
    let filled = "csrf=c5rf&user=emma%40example.com&pass=Pass%26word%3D1%2B2&do=in";
    match (head.method.as_str(), head.uri.path()) {
        ("GET", "/login") => text(200, &[("set-cookie", "pre=1; Path=/"), ("set-cookie", "old=x; Max-Age=0")], FORM),
        ("POST", "/login") => {
            assert_eq!(given(headers, "origin"), "http://shop.test:7770");
            assert_eq!(given(headers, "referer"), "http://shop.test:7770/login");
            if body != filled || !cookies.contains("pre=1") {
                return text(200, &[], "<p>wrong password");
            }
            let session = "sid=s3cret; Path=/; HttpOnly; SameSite=Strict; Expires=Fri, 01 Jan 2100 00:00:00 GMT";
            text(302, &[("location", &format!("http://{host}/home")), ("set-cookie", session)], "")
        }
        ("GET", "/home") => text(200, &[("set-cookie", "seen=1; Path=/home; Domain=shop.test")], "welcome"),
        ("GET", "/profile")
            if cookies.contains("sid=s3cret") || given(headers, "x-login") == format!("{USER}:{PASSWORD}") =>
        {
            text(200, &[("set-cookie", "visits=1")], USER)
        }
        ("GET", "/profile") if given(headers, "authorization") == format!("Bearer {TOKEN}") => text(200, &[], USER),
        ("GET", "/profile") => text(302, &[("location", "/login?next=/profile")], ""),
        ("POST", "/token") if body == format!(r#"{{"user":"{USER}","password":"{PASSWORD}"}}"#) => {
            assert_eq!(given(headers, header::CONTENT_TYPE.as_str()), "application/json");
            text(200, &[], &format!("\"{TOKEN}\""))
        }
        ("POST", "/token/deep") => text(200, &[], &format!(r#"{{"data": {{"token": "{TOKEN}"}}}}"#)),
        ("POST", "/token" | "/token/refused") => text(401, &[], &format!("no such account: {body}")),
        ("POST", "/token/page") => text(200, &[], "<html>"),
        ("GET", "/away") => text(302, &[("location", "http://elsewhere.test/login")], ""),
        ("GET", "/round") => text(302, &[("location", "/round")], ""),
        ("GET", "/foreign") => text(
            200,
            &[],
            r#"<form method=post action="https://elsewhere.test/"><input name=user><input name=pass></form>"#,
        ),
        ("GET", "/bomb") => text(200, &[], &bomb()),
        ("GET", "/slow") => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            text(200, &[], "")
        }
        _ => text(500, &[], "broken"),
    }
}

async fn serve() -> (SocketAddr, SeenRequests) {
    let seen = SeenRequests::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(site).with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, seen)
}

fn form(page: &str) -> FormLogin {
    let field = |name: &str, text: &str| (name.to_owned(), Template::new(text));
    FormLogin {
        page: page.to_owned(),
        form: None,
        fields: vec![field("user", "{username}"), field("pass", "{password}")],
        action: None,
    }
}

fn token(path: &str, pointer: &str) -> LoginRecipe {
    LoginRecipe::Token(TokenLogin {
        path: path.to_owned(),
        json: r#"{"user":"{username}","password":"{password}"}"#.to_owned(),
        pointer: pointer.to_owned(),
        headers: vec![("Authorization".to_owned(), Template::new("Bearer {token}"))],
    })
}

async fn try_at(entry: SocketAddr, recipe: LoginRecipe) -> Result<LoginSession, LoginFailure> {
    try_as(entry, recipe, PASSWORD).await
}

async fn try_as(entry: SocketAddr, recipe: LoginRecipe, password: &str) -> Result<LoginSession, LoginFailure> {
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let client = SiteClient::new(Dialer::tcp());
    let proof = HttpProbe {
        service: ServiceName::parse("shop").unwrap(),
        port: 80,
        method: "GET".to_owned(),
        path: "/profile".to_owned(),
        headers: Vec::new(),
        status: vec![200],
        redirect: None,
        contains: vec![USER.to_owned()],
        bytes_at_least: None,
        json: Vec::new(),
    };
    let login = Login { recipe, proof, timeout: Duration::from_millis(1500) };
    let account = Account {
        name: "customer".to_owned(),
        username: USER.to_owned(),
        password: Secret::new(password),
        login: None,
    };
    let place = VisitAddress { host: "shop.test".to_owned(), port: 7770, entry };
    let result = log_in(&client, &place, &account, &login).await;
    let shown = format!("{result:?} {}", result.as_ref().err().map(ToString::to_string).unwrap_or_default());
    for secret in [password, TOKEN, "s3cret", "c5rf"] {
        assert!(!shown.contains(secret), "{secret} is shown: {shown}");
    }
    result
}

async fn fails(recipe: LoginRecipe) -> String {
    let (entry, _) = serve().await;
    try_at(entry, recipe).await.expect_err("it fails").to_string()
}

#[tokio::test]
async fn a_form_is_filled_in_and_its_session_kept() {
    let (entry, seen) = serve().await;
    let session = try_at(entry, LoginRecipe::Form(form("/login"))).await.expect("signed in");
    let kept: Vec<String> = session
        .cookies
        .iter()
        .map(|cookie| {
            let expires = cookie.expires.map_or_else(|| "-".to_owned(), |at| at.to_string());
            let same_site = cookie.same_site.as_deref().unwrap_or("-");
            let (value, http_only) = (cookie.value.expose(), cookie.http_only);
            format!("{}={value} {} {} {expires} {http_only} {same_site}", cookie.name, cookie.domain, cookie.path)
        })
        .collect();
    let expected = [
        "pre=1 shop.test / - false -",
        "seen=1 .shop.test /home - false -",
        "sid=s3cret shop.test / 2100-01-01T00:00:00Z true Strict",
        "visits=1 shop.test / - false -",
    ];
    assert_eq!(kept, expected);
    assert!(session.headers.is_empty());
    let asked: Vec<String> =
        seen.lock().unwrap().iter().map(|line| line.split(" [").next().unwrap().to_owned()).collect();
    assert_eq!(asked, ["GET /login", "POST /login?next=%2Fhome", "GET /home", "GET /profile"]);
}

#[tokio::test]
async fn headers_and_tokens_are_carried_by_every_request() {
    let (entry, _) = serve().await;
    let headers = vec![("X-Login".to_owned(), Template::new("{username}:{password}"))];
    let session = try_at(entry, LoginRecipe::Header(headers)).await.expect("signed in");
    let carried: Vec<String> =
        session.headers.iter().map(|(name, value)| format!("{name}: {}", value.expose())).collect();
    assert_eq!(carried, [format!("x-login: {USER}:{PASSWORD}")]);
    assert_eq!(session.cookies.len(), 1, "cookies count as well");
    for (path, pointer) in [("/token", ""), ("/token/deep", "/data/token")] {
        let session = try_at(entry, token(path, pointer)).await.expect("signed in");
        assert_eq!(session.headers[0].1.expose(), format!("Bearer {TOKEN}"));
    }
}

#[tokio::test]
async fn a_failure_names_the_step_and_what_was_expected() {
    let with_form = |page: &str| LoginRecipe::Form(form(page));
    let (entry, _) = serve().await;
    let wrong = try_as(entry, with_form("/login"), "another secret").await.expect_err("refused").to_string();
    assert_eq!(wrong, "prove the log-in with /profile: status 302 to /login, expected 200");
    assert_eq!(fails(with_form("/missing")).await, "open the log-in page /missing: status 500, expected a page");
    let no_form = fails(with_form("/home")).await;
    assert_eq!(no_form, "fill in the form on /home: the page has no form, expected one with `user` and `pass`");
    let selected = LoginRecipe::Form(FormLogin { form: Some("#sign-in".to_owned()), ..form("/login") });
    assert_eq!(fails(selected).await, "fill in the form on /login: the page has no element `#sign-in`");
    let action = LoginRecipe::Form(FormLogin { action: Some("/nowhere".to_owned()), ..form("/login") });
    assert_eq!(fails(action).await, "send the form to /nowhere: status 500, expected a page");
    let refused = fails(token("/token/refused", "")).await;
    assert_eq!(refused, "ask /token/refused for a token: status 401, expected 200");
    assert_eq!(fails(token("/token/page", "")).await, "ask /token/page for a token: the answer is not JSON");
    let elsewhere = fails(token("/token/deep", "/token")).await;
    assert_eq!(elsewhere, "ask /token/deep for a token: the answer has no text at `/token`");
    let broken = LoginRecipe::Header(vec![("X-Login".to_owned(), Template::new("{password}\n"))]);
    assert!(fails(broken).await.starts_with("put the account into the headers: what is put into the header `X-Login`"));
}

#[tokio::test]
async fn nothing_leaves_the_site_and_nothing_goes_on_for_ever() {
    let with_form = |page: &str| LoginRecipe::Form(form(page));
    let away = fails(with_form("/away")).await;
    assert!(away.contains("it leads to http://elsewhere.test, away from http://shop.test:7770"), "{away}");
    let foreign = fails(with_form("/foreign")).await;
    assert!(foreign.starts_with("fill in the form on /foreign: it leads to https://elsewhere.test"), "{foreign}");
    assert!(fails(with_form("/round")).await.contains("more than 10 redirects in a row"));
    let slow = fails(with_form("/slow")).await;
    assert_eq!(slow, "open the log-in page /slow: no answer before the log-in's time was over");
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let refused = try_at(nobody, with_form("/login")).await.expect_err("nobody listens").to_string();
    assert!(refused.starts_with("open the log-in page /login: Connection refused"), "{refused}");
}

/// The peak of this process's memory, in bytes.
fn peak() -> u64 {
    let status = procfs::process::Process::myself().and_then(|this| this.status()).unwrap();
    status.vmhwm.unwrap() << 10
}

#[tokio::test]
async fn a_page_that_explodes_takes_neither_this_process_nor_its_time() {
    if !is_alone(a_page_that_explodes_takes_neither_this_process_nor_its_time) {
        return;
    }
    let (before, begun) = (peak(), Instant::now());
    let failed = fails(LoginRecipe::Form(form("/bomb"))).await;
    assert!(failed.contains("/bomb"), "{failed}");
    let growth = peak().saturating_sub(before);
    assert!(growth < 128 << 20, "it took {} MiB here", growth >> 20);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
