//! A site's successive answers to a log-in: cookies, redirects, forms, tokens. No answer leads away from the site, and
//! no error message contains the password.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_accounts::log_in;
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

use super::requests::site;
use crate::hostile::{Hostile, Move, Visited};
use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        DIVIDER,
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 302 Found\r\n",
        "HTTP/1.1 307 Temporary Redirect\r\n",
        "HTTP/1.1 401 Unauthorized\r\n",
        "Location: /next\r\n",
        "Location: http://127.0.0.1:7770/\r\n",
        "Location: http://127.0.0.1:7771/\r\n",
        "Location: //evil.test/\r\n",
        "Location: http://127.0.0.1:7770@evil.test/\r\n",
        "Location: http://2130706433:7770/\r\n",
        "Location: \\\\evil.test\r\n",
        "Set-Cookie: a=b; Path=/; HttpOnly\r\n",
        "Set-Cookie: a=b; Domain=evil.test\r\n",
        "Set-Cookie: a=b; Max-Age=-1; Expires=x\r\n",
        "Set-Cookie: =\r\n",
        "Set-Cookie: a=\u{1}b; SameSite=None; Secure\r\n",
        "Content-Type: application/json\r\n",
        "Connection: close\r\n",
        "Content-Length: 5\r\n",
        "\r\n\r\n",
        "<form action=http://evil.test/ method=post>",
        "<form action='//127.0.0.1:7771/'>",
        "<form action='javascript:x'>",
        "<input name=user><input name=pass>",
        "{\"token\":\"a\"}",
        "{\"token\":\"a\\r\\nX: y\"}",
        "welcome",
    ],
    ..FuzzTarget::new("logins", open)
};

const PASSWORD: &str = "s3cret-of-emma";

/// The time by which a log-in may exceed its limit before it fails.
const SLACK: Duration = Duration::from_secs(3);

fn open() -> InputCheck {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let answers: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let served = Arc::clone(&answers);
    let server = Hostile::answering(move |_| {
        let mut answers = served.lock().expect("no panic");
        if answers.is_empty() { Vec::new() } else { vec![Move::Say(answers.remove(0))] }
    });
    // A request to this server would have left the site.
    let strays = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&strays);
    let elsewhere = site(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let account = |login: &str| {
        let keys = format!(
            "accounts:\n      emma:\n        username: emma\n        password: {PASSWORD}\n        \
             login: {{ timeout: 2s, proof: {{ path: /home, contains: welcome }}, {login} }}"
        );
        Visited::at(server.address, &keys)
    };
    let ways = [
        account("form: { page: /login, fields: { user: '{username}', pass: '{password}' } }"),
        account(
            "token: { path: /token, json: { u: '{username}', p: '{password}' }, pointer: /token, \
             header: { Authorization: 'Bearer {token}' } }",
        ),
    ];
    let client = SiteClient::new(Dialer::tcp());
    Box::new(move |input| {
        let text = String::from_utf8_lossy(input).replace(":7771", &format!(":{}", elsewhere.port()));
        let way = &ways[usize::from(input.len() % 4 == 0)];
        let account = way.site.accounts.first().expect("an account");
        let login = account.login.as_ref().expect("a way to sign in");
        *answers.lock().expect("no panic") = pieces(text.as_bytes());
        let place = way.scene().place;
        let signed_in = runtime.block_on(async {
            tokio::time::timeout(login.timeout + SLACK, log_in(&client, &place, account, login)).await
        });
        assert_eq!(strays.load(Ordering::SeqCst), 0, "a request has left the site");
        match signed_in.expect("it ends in time") {
            Ok(session) => {
                assert!(session.headers.iter().all(|(_, value)| !value.expose().contains(['\r', '\n'])));
                format!("signed in, {} cookies", session.cookies.len().min(9))
            }
            Err(failure) => {
                let said = failure.to_string();
                assert!(!said.contains(PASSWORD), "{said}");
                said.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect()
            }
        }
    })
}
