//! Replies of judges: an endpoint's answer over HTTP, a single reply, and a file of replies. A reply is a verdict only
//! if it is one of the requested words, it is read back unchanged, and it never contains the key.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_judge::{EndpointJudge, Judge, Prompt, RecordedJudge, Settings, compare};
use arenad_model::site::Secret;
use arenad_verdict::question::{Answer, Picture, Sameness, TextComparison, Wording};

use crate::hostile::{Hostile, Move};
use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        DIVIDER,
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 401 Unauthorized\r\n",
        "HTTP/1.1 429 Too Many Requests\r\n",
        "Retry-After: 0\r\n",
        "Retry-After: 99999999999999999999\r\n",
        "Content-Length: 60\r\n",
        "Transfer-Encoding: chunked\r\n",
        "\r\n\r\n",
        "{\"choices\":[{\"message\":{\"content\":\"correct\"}}]}",
        "\"content\":null",
        "\"usage\":{\"prompt_tokens\":18446744073709551615,\"completion_tokens\":1}",
        "\"error\":{\"message\":\"no\"}",
        "sk-of-the-judge",
        "correct",
        "incorrect",
        "partially correct",
        "Correct.",
        "'correct'",
        "same",
        "different",
        "{\"about\":{\"comparison\":{\"kind\":\"answer\",\"wording\":\"strict\",\"intent\":\"i\",\"reference\":\"r\",\"answer\":\"a\"}},",
        "\"reply\":\"correct\"}\n",
        "\"unusable\":true",
        "\"model\":\"m\"",
        "\"at\":\"2026-01-31T12:00:00Z\"",
        "\\u0000",
        "\u{130}",
        "\n",
    ],
    ..FuzzTarget::new("judges", open)
};

const KEY: &str = "sk-of-the-judge";

/// The time limit of an endpoint.
const LIMIT: Duration = Duration::from_millis(100);

fn open() -> InputCheck {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let input: Arc<Mutex<Vec<u8>>> = Arc::default();
    let served = Arc::clone(&input);
    let server = Hostile::answering(move |_| vec![Move::Say(served.lock().expect("no panic").clone())]);
    let folder = scratch();
    let mut settings = Settings {
        url: format!("http://{}/v1", server.address),
        model: "m".to_owned(),
        key: Some(Secret::new(KEY)),
        timeout: LIMIT,
        attempts: 2,
        pause: Duration::from_millis(1),
        folder: Some(folder.clone()),
    };
    let replies = folder.join("replies.jsonl");
    let picture = Picture { url: String::new(), bytes: Arc::from(&b"GIF89a"[..]) };
    let mut asked = 0_u64;
    Box::new(move |bytes| {
        let mut parts = pieces(bytes).into_iter();
        let [answer, reply, file] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let reply = String::from_utf8_lossy(&reply);
        asked += 1;
        let questions = questions(asked);
        let read: Vec<Option<bool>> = questions.iter().map(|question| read(question, &reply)).collect();
        let look = Prompt::look("What is it?", &picture);
        assert_eq!(look.accepts(&reply), !reply.trim().is_empty());

        // An endpoint may request a pause of up to a minute.
        let is_slow = String::from_utf8_lossy(&answer).to_ascii_lowercase().contains("retry-after");
        settings.attempts = if is_slow { 1 } else { 2 };
        *input.lock().expect("no panic") = answer;
        let _ = std::fs::remove_file(&replies);
        let endpoint = EndpointJudge::new(settings.clone()).expect("an endpoint");
        let found = runtime.block_on(compare(&endpoint, &questions[0]));
        let said = format!("{found:?}");
        assert!(!said.contains(KEY), "the key is repeated: {said}");
        let kept = std::fs::read_to_string(&replies).unwrap_or_default();
        assert!(!kept.contains(KEY), "the key is kept: {kept}");
        if let Answer::Value(value) = &found {
            // Judging again yields the same verdict without a request.
            let again = RecordedJudge::open(&replies).expect("what was kept is read");
            let again = runtime.block_on(compare(&again, &questions[0]));
            assert_eq!(again, Answer::Value(value.clone()));
        }

        std::fs::write(&replies, &file).expect("a file");
        // The file is also read as one that grows: a truncated last line is dropped then.
        let is_kept = EndpointJudge::new(settings.clone()).is_ok();
        let recorded = match RecordedJudge::open(&replies) {
            Ok(recorded) => format!("{:?}", runtime.block_on(recorded.reply(&Prompt::of(&questions[0]))).is_ok()),
            Err(error) => error.to_string().rsplit_once(": ").map_or_else(String::new, |(_, why)| why.to_owned()),
        };
        let kind: String = said.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect();
        format!("{read:?} {kind} {recorded} {is_kept}")
    })
}

/// The same question in each wording, with a different number each time.
fn questions(number: u64) -> Vec<TextComparison> {
    let of = |kind, wording| TextComparison {
        kind,
        wording,
        intent: format!("question {number}"),
        reference: "r".to_owned(),
        answer: "a".to_owned(),
    };
    let wordings = [Wording::Strict, Wording::WebArena, Wording::VisualWebArena];
    wordings.into_iter().flat_map(|wording| [of(Sameness::Answer, wording), of(Sameness::Reason, wording)]).collect()
}

/// A strict verdict is one word, and no reply that says no counts as a yes, in any wording.
fn read(question: &TextComparison, reply: &str) -> Option<bool> {
    let prompt = Prompt::of(question);
    let verdict = prompt.verdict(reply);
    assert_eq!(prompt.accepts(reply), verdict.is_some());
    let lower = reply.to_lowercase();
    let (yes, no) = match question.kind {
        Sameness::Answer => ("correct", "incorrect"),
        Sameness::Reason => ("same", "different"),
    };
    if verdict == Some(true) {
        assert!(lower.contains(yes) && !lower.contains(no), "{reply:?}");
    }
    if question.wording == Wording::Strict && verdict.is_some() {
        let letters: String = lower.chars().filter(|c| c.is_alphabetic() || *c == ' ').collect();
        assert!([yes, no, "partially correct"].contains(&letters.trim()), "{reply:?}");
    }
    verdict
}
