//! Selects the judge, which decides questions of meaning.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::args::EvalArgs;
use crate::cli::args::Global;
use crate::cli::failure::CommandFailure;
use crate::cli::{client, secrets};
use arenad_folders as folders;
use arenad_judge::{EndpointJudge, Judge, RecordedJudge, Settings};
use arenad_model::site::Secret;

/// The time limit of an endpoint for one reply.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The number of attempts per question; the pauses between them grow.
const ATTEMPTS: usize = 6;
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the judge that the options select; `None` if judging is off.
pub(super) fn of(global: &Global, args: &EvalArgs) -> Result<Option<Box<dyn Judge>>, CommandFailure> {
    if args.judge == "off" {
        return Ok(None);
    }
    if let Some(file) = args.judge.strip_prefix("recorded:") {
        return Ok(Some(Box::new(RecordedJudge::open(Path::new(file))?)));
    }
    if !args.judge.starts_with("http://") && !args.judge.starts_with("https://") {
        return Err(CommandFailure::usage(format!("unknown judge `{}`", args.judge))
            .hint("use off, recorded:FILE, or a URL such as https://api.openai.com/v1 or http://localhost:11434/v1"));
    }
    let model = args.judge_model.clone().ok_or_else(|| {
        CommandFailure::usage(format!("no model is given for the judge at {}", args.judge))
            .hint("pass --judge-model NAME")
    })?;
    let folder = match &args.judge_folder {
        Some(folder) => folder.clone(),
        None => {
            let folder = client::state_dir(global)?.join("judge");
            folders::make_private(&folder).with_context(|| format!("create the folder {}", folder.display()))?;
            folder
        }
    };
    Ok(Some(Box::new(EndpointJudge::new(Settings {
        url: args.judge.clone(),
        model,
        key: secrets::given("the judge's key", args.judge_key.as_deref(), args.judge_key_file.as_deref())?
            .map(Secret::new),
        timeout: TIMEOUT,
        attempts: ATTEMPTS,
        pause: PAUSE,
        folder: Some(folder),
    })?)))
}
