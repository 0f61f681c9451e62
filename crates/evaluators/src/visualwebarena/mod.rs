//! VisualWebArena's evaluators: `string_match`, `url_match`, `program_html`, `page_image_query`.
//!
//! They began as a copy of WebArena's and now differ in many places. Tasks have the same form, so [`read`],
//! [`WebArenaTask`] and [`EpisodeContext`] are WebArena's.
//!
//! Pictures are not reproduced to the bit. JPEG files are decoded by another library, which changes the value of a
//! pixel by one or two of 256; formats that this library does not know (AVIF) count as unreadable.

mod numbers;
mod pages;
pub(super) mod pictures;
pub mod similarity;
pub mod strings;
mod urls;

pub use urls::{exact, gold_in_pred};

pub use super::webarena::{
    EpisodeContext, Eval, HelperSignature, Returns, TaskError, WebArenaFileError, WebArenaTask, read,
};

use super::{strict, webarena};
use arenad_verdict::question::{KnownAnswers, Question, open};
use arenad_verdict::{Check, Profile, Report};

pub use numbers::satisfies;
pub use pictures::sources;

/// The helpers that VisualWebArena's tasks may call.
pub const HELPERS: [HelperSignature; 17] = [
    HelperSignature::of_page("get_query_text", 1, Returns::Text),
    HelperSignature::of_page("get_query_text_lowercase", 1, Returns::Text),
    HelperSignature::of_page("gitlab_get_project_memeber_role", 1, Returns::Text),
    HelperSignature::of_page("reddit_get_latest_comment_content_by_username", 1, Returns::Text),
    HelperSignature::of_page("reddit_get_parent_comment_username_of_latest_comment_by_username", 1, Returns::Text),
    HelperSignature::of_site("reddit_get_post_url", 1, Returns::Url),
    HelperSignature::of_site("shopping_get_latest_order_url", 0, Returns::Url),
    HelperSignature::of_page("shopping_get_num_reviews", 0, Returns::Number),
    HelperSignature::of_page("shopping_get_order_product_name_list", 0, Returns::Text),
    HelperSignature::of_page("shopping_get_order_product_option", 2, Returns::Text),
    HelperSignature::of_page("shopping_get_order_product_quantity", 1, Returns::Number),
    HelperSignature::of_page("shopping_get_product_attributes", 1, Returns::Text),
    HelperSignature::of_page("shopping_get_product_price", 0, Returns::Number),
    HelperSignature::of_page("shopping_get_rating_as_percentage", 0, Returns::Number),
    webarena::SHOP_REVIEWS[0],
    webarena::SHOP_REVIEWS[1],
    webarena::SHOP_REVIEWS[2],
];

/// The properties of VisualWebArena that the strict profile needs.
const DIALECT: strict::BenchmarkDialect = strict::BenchmarkDialect {
    eval_types: &["string_match", "url_match", "program_html", "page_image_query"],
    url_rule: "EXACT",
    helpers: &HELPERS,
    is: |reference, answer| strings::exact_match(reference, &strings::clean_answer(answer)),
    includes: |reference, answer, _| strings::must_include(reference, &strings::clean_answer(answer)),
};

/// Returns the open questions under a profile, each once. Questions may depend on earlier answers, so the caller asks
/// again until none is left; two rounds are enough.
///
/// # Errors
///
/// Returns an error if the benchmark's own code would fail on the task.
pub fn questions(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    profile: Profile,
) -> Result<Vec<Question>, TaskError> {
    if profile == Profile::Strict {
        return Ok(open(strict::questions(context, eval, told, &DIALECT)?, told));
    }
    let mut questions = Vec::new();
    for kind in &eval.eval_types {
        match kind.as_str() {
            "string_match" => questions.extend(strings::questions(context, eval)?),
            "program_html" => questions.extend(pages::questions(context, eval, told)?),
            "page_image_query" => questions.extend(pictures::questions(context, eval, &HELPERS)?),
            _ => {}
        }
    }
    Ok(open(questions, told))
}

/// The reason why an evaluation ends early.
enum Halt {
    /// The benchmark's code fails on the task, independently of the agent.
    Task(TaskError),
    /// The benchmark's code raises an error on the agent's output. It then returns no score, which counts as 0,
    /// whatever the other checks say.
    Found(Box<Check>),
}

impl From<TaskError> for Halt {
    fn from(error: TaskError) -> Self {
        Self::Task(error)
    }
}

/// Judges a task: every evaluator of `eval_types` has to pass. If the benchmark's own code raises an error on the
/// agent's output, the task is failed, and the only check gives the reason.
///
/// # Errors
///
/// Returns an error if the benchmark's own code would fail on the task, independently of the agent.
pub fn evaluate(
    context: &EpisodeContext,
    eval: &Eval,
    told: &KnownAnswers,
    profile: Profile,
) -> Result<Report, TaskError> {
    if profile == Profile::Strict {
        return strict::evaluate(context, eval, told, &DIALECT);
    }
    match checks(context, eval, told) {
        Ok(checks) => Ok(Report::of(Profile::Compat, checks)),
        Err(Halt::Found(check)) => Ok(Report::of(Profile::Compat, vec![*check])),
        Err(Halt::Task(error)) => Err(error),
    }
}

fn checks(context: &EpisodeContext, eval: &Eval, told: &KnownAnswers) -> Result<Vec<Check>, Halt> {
    let mut checks = Vec::new();
    for kind in &eval.eval_types {
        checks.extend(match kind.as_str() {
            "string_match" => strings::string_match(context, eval, told)?,
            "url_match" => urls::url_match(context, eval)?,
            "program_html" => pages::program_html(context, eval, told)?,
            "page_image_query" => pictures::page_image_query(context, eval, told, &HELPERS)?,
            _ => {
                let expected = "string_match, url_match, program_html or page_image_query";
                return Err(TaskError::new("eval_types", expected, &kind.as_str().into()).into());
            }
        });
    }
    Ok(checks)
}
