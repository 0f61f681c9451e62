//! Cases about commands that run in containers.

use std::time::Duration;

use arenad_engine::EngineError;

use crate::bed::{Bed, PATIENCE, WantedContainer, shell};

pub async fn commands_answer_with_code_and_output(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let output = bed.sh(&handle, "echo out; echo err >&2; exit 3").await;
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
    let command = ["cat", "/base/file"].map(str::to_owned);
    let output = bed.engine.exec(&handle, &command, None, PATIENCE).await.unwrap();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "of the base", ""));
    assert_eq!(bed.sh(&handle, "echo x > /x && cat /x").await.stdout, "x\n");
}

pub async fn commands_read_their_input_to_its_end(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    // More than any pipe holds, so that input and output have to move at the same time.
    let text = "line of the input\n".repeat(20_000);
    let input = || Some(bytes::Bytes::from(text.clone()));
    let output = bed.engine.exec_with_input(&handle, &shell("cat"), None, input(), PATIENCE).await.unwrap();
    assert_eq!((output.code, output.stdout.len()), (0, text.len()));
    let output = bed.engine.exec_with_input(&handle, &shell("exit 4"), None, input(), PATIENCE).await.unwrap();
    assert_eq!(output.code, 4, "a command need not read its input");
}

pub async fn commands_run_as_the_user_that_is_named(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    assert_eq!(bed.sh(&handle, "id -u").await.stdout, "0\n");
    let output = bed.engine.exec(&handle, &shell("id -u"), Some("1234"), PATIENCE).await.unwrap();
    assert_eq!(output.stdout, "1234\n");
}

pub async fn commands_end_at_their_limit_for_the_caller(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let limit = Duration::from_secs(2);
    let before = tokio::time::Instant::now();
    let error = bed.engine.exec(&handle, &shell("echo x > /x; sleep 100"), None, limit).await.unwrap_err();
    assert!(matches!(error, EngineError::TimedOut { .. }), "{error:?}");
    assert!(before.elapsed() >= limit && before.elapsed() < PATIENCE);
    assert_eq!(bed.read(&handle, "/x").await, "x\n");
}

pub async fn commands_that_do_not_exist_fail(bed: Bed) {
    let handle = bed.start("one", WantedContainer::default()).await;
    let command = ["no-such-command".to_owned()];
    let output = bed.engine.exec(&handle, &command, None, PATIENCE).await.unwrap();
    assert!(matches!(output.code, 126 | 127), "{output:?}");
}

pub async fn commands_need_a_running_container(bed: Bed) {
    let handle = bed.create("one", WantedContainer::default()).await;
    let error = bed.engine.exec(&handle, &shell("true"), None, PATIENCE).await.unwrap_err();
    assert!(matches!(error, EngineError::Conflict { .. }), "{error:?}");
}
