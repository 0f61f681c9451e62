//! Answers of a browser over its pipe, from its first page to the value of an expression: one or more messages for each
//! command.

use std::time::Duration;

use arenad_locators::SIZE_MAX;
use arenad_locators::js::{client, look_through};
use arenad_model::locator::{JsLocator, LocatorKind, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::hostile::Visited;
use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        DIVIDER,
        "\0",
        "\0\0",
        "{\"id\":1,\"result\":{\"browserContextId\":\"C\"}}",
        "{\"id\":2,\"result\":{\"targetId\":\"T\"}}",
        "{\"id\":3,\"result\":{}}",
        "\"id\":",
        "\"id\":18446744073709551615",
        "\"result\":{",
        "\"error\":{\"message\":\"Cannot find context\"}",
        "\"error\":{}",
        "\"frameTree\":{\"frame\":{\"id\":\"A\"}}",
        "\"executionContextId\":1",
        "\"exceptionDetails\":{\"exception\":{\"description\":\"Error\"}}",
        "\"exceptionDetails\":{\"text\":\"terminated\"}",
        "\"errorText\":\"net::ERR\"",
        "\"value\":\"http://a/\\nj[1]\"",
        "\\nt",
        "\\nl9999999",
        "\\nb99999999999999999999999999999999999999999",
        "\\nn-Infinity",
        "\0{\"sessionId\":\"S\",\"method\":\"Page.loadEventFired\"}",
        "\0{\"sessionId\":\"S\",\"method\":\"Page.javascriptDialogOpening\"}",
        "\0{\"sessionId\":\"S\",\"method\":\"Inspector.targetCrashed\"}",
        "null",
        "\\ud800",
    ],
    ..FuzzTarget::new("pipes", open)
};

/// The time that a browser waits for a command before it closes the pipe.
const PAUSE: Duration = Duration::from_millis(10);

/// The time limit of an expression.
const LIMIT: Duration = Duration::from_millis(200);

fn open() -> InputCheck {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let visited = Visited::at(([127, 0, 0, 1], 9).into(), "");
    let locator = parse("js: document.title @ /page").expect("a locator");
    let LocatorKind::Js(locator): LocatorKind = locator.kind else { panic!("an expression") };
    let locator = JsLocator { prepare: vec!["1".to_owned()], wait_for: Some("a".to_owned()), ..locator };
    let client = client().expect("a client");
    Box::new(move |input| {
        let answers = pieces(input);
        runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let browser = tokio::spawn(browser(theirs, answers));
            let ends = tokio::io::split(ours);
            let seen = look_through(ends, &client, &visited.scene(), ("/page", &locator), LIMIT).await;
            browser.abort();
            match seen {
                Ok(value) => {
                    let text = value.text().unwrap_or_default();
                    assert!(text.len() <= 2 * SIZE_MAX, "{} bytes", text.len());
                    value.type_name().to_owned()
                }
                Err(error) => {
                    error.to_string().chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect()
                }
            }
        })
    })
}

/// Sends the next answer after each command, and closes the pipe after the last.
async fn browser(mut line: tokio::io::DuplexStream, answers: Vec<Vec<u8>>) -> std::io::Result<()> {
    let mut heard = vec![0; 1 << 12];
    let mut commands = 0;
    for answer in answers {
        while commands == 0 {
            let read = tokio::time::timeout(PAUSE, line.read(&mut heard)).await;
            let length = read.map_err(std::io::Error::other)??;
            if length == 0 {
                return Ok(());
            }
            commands = heard[..length].iter().filter(|byte| **byte == 0).count();
        }
        commands -= 1;
        line.write_all(&answer).await?;
        line.write_all(b"\0").await?;
    }
    // Reads the last message before the connection ends.
    let _ = tokio::time::timeout(PAUSE, line.read(&mut heard)).await;
    Ok(())
}
