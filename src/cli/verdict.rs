//! `arenad verdict`: verifies certificates of verdicts, without the sites and, with `--key`, without the daemon.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Value, json};

use super::args::{Global, VerdictCommand, VerdictVerifyArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, output, report};
use arenad_api::episodes::CertificateKey;
use arenad_certificate::{CertificateError, CertifiedStatement, PublicKey, canonical, verify};

/// Runs a subcommand of `arenad verdict`.
pub async fn run(global: &Global, command: &VerdictCommand) -> Result<u8, CommandFailure> {
    match command {
        VerdictCommand::Verify(args) => check(global, args).await,
        VerdictCommand::Key => key(global).await,
    }
}

async fn key(global: &Global) -> Result<u8, CommandFailure> {
    let found = installation_key(global).await?;
    match global.json {
        true => output::print_json(&found)?,
        false => outln!("{}", found.key),
    }
    Ok(exit_code::OK)
}

async fn installation_key(global: &Global) -> Result<CertificateKey, CommandFailure> {
    ApiClient::new(global)?.json(Method::GET, "/v1/certificates/key").await
}

async fn check(global: &Global, args: &VerdictVerifyArgs) -> Result<u8, CommandFailure> {
    let text = certificate(&read(&args.file)?);
    let trusted: PublicKey = match &args.key {
        Some(given) => given_key(given)?,
        None => {
            let found = installation_key(global).await;
            let found = found.map_err(|failure| match failure.is_answer {
                true => failure,
                false => failure.hint("pass the public key with --key; `arenad verdict key` prints it"),
            })?;
            found.key.parse()?
        }
    };
    let statement = verify(&text, &trusted).map_err(|error| refused(error, &args.file))?;
    print(global, &statement, &trusted)
}

/// Returns the certificate in a text, which is a certificate or the evaluation of an episode.
fn certificate(text: &str) -> String {
    let inner = canonical::parse(text).ok().and_then(|mut document| Some(document.get_mut("certificate")?.take()));
    inner.filter(Value::is_object).map_or_else(|| text.to_owned(), |certificate| certificate.to_string())
}

fn read(path: &Path) -> Result<String, CommandFailure> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.with_context(|| format!("read {}", path.display()))
        .map_err(|error| CommandFailure::new(exit_code::USAGE, error))?;
    Ok(text)
}

/// Returns the key that the option names: the key itself, or the content of a file.
fn given_key(given: &str) -> Result<PublicKey, CommandFailure> {
    if let Ok(key) = given.parse() {
        return Ok(key);
    }
    let wrong = |error: anyhow::Error| {
        let failure = CommandFailure::new(exit_code::USAGE, error.context(format!("read the public key `{given}`")));
        failure.hint("`arenad verdict key` prints the key on the machine that issued the certificate")
    };
    let text = std::fs::read_to_string(given).map_err(|error| wrong(error.into()))?;
    text.trim().parse().map_err(|error: arenad_certificate::InvalidKey| wrong(error.into()))
}

fn refused(error: CertificateError, file: &Path) -> CommandFailure {
    let (code, hint) = match &error {
        CertificateError::Malformed(_) => {
            (exit_code::USAGE, "give the `certificate` of an evaluation: `POST /v1/episodes/ID/evaluations` answers it")
        }
        CertificateError::OtherKey { .. } => {
            (exit_code::BAD_SIGNATURE, "give the key of the installation that issued the certificate with --key")
        }
        CertificateError::BadSignature => (exit_code::BAD_SIGNATURE, "do not rely on the verdict"),
        CertificateError::OtherVerdict(_) => {
            (exit_code::OTHER_VERDICT, "judge again with the version of arenad that the certificate names")
        }
    };
    let error = anyhow::Error::from(error).context(format!("verify {}", file.display()));
    CommandFailure::new(code, error).hint(hint)
}

fn print(global: &Global, statement: &CertifiedStatement, key: &PublicKey) -> Result<u8, CommandFailure> {
    let CertifiedStatement { episode, evaluator, task, verdict, reward, .. } = statement;
    if global.json {
        output::print_json(&json!({
            "verdict": verdict,
            "reward": reward,
            "task": task.name,
            "evaluator": evaluator,
            "episode": episode,
            "key": key.to_string(),
        }))?;
        return Ok(exit_code::OK);
    }
    outln!("{}: task {} of {} {}", report::word(*verdict), task.name, evaluator.name, evaluator.version);
    outln!(
        "episode {} of {}, judged at {} by arenad {}",
        episode.id,
        episode.environment,
        episode.judged_at,
        episode.arenad
    );
    outln!("signed with {key}");
    Ok(exit_code::OK)
}
