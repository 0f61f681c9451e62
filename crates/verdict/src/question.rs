//! The questions of evaluators, and the answers to them. Evaluators do no I/O. Their caller finds the answers and
//! stores them as evidence, so that an episode can be judged again without its sites.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question of an evaluator about a site, a picture or a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Asks for the HTML of a page in its current state in the browser. The answer is a text.
    Content {
        /// The page to read.
        place: PagePlace,
    },
    /// Asks for the value of a JavaScript expression on a page.
    Script {
        /// The page on which the expression is run.
        place: PagePlace,
        /// Expressions that are run first. Their errors are ignored.
        prepare: Vec<String>,
        /// The expression whose value is returned.
        expression: String,
    },
    /// Asks for the result of a helper of the benchmark, which reads a page or the site's API.
    Helper {
        /// The page that `__page__` refers to.
        place: PagePlace,
        /// The call of the helper.
        call: BenchmarkCall,
    },
    /// Asks for the pictures of a page, fetched from their `src` (which may be relative to the page). The answer is
    /// [`Answer::Pictures`] with one entry for each picture that could be fetched, in the order of the page. It is
    /// empty if there are no pictures.
    Pictures {
        /// The page to read.
        place: PagePlace,
        /// A CSS selector, which selects the matching `img` elements and all `img` elements within other matching ones.
        /// An empty selector selects every element with the role `img`.
        selector: String,
    },
    /// Asks for a reference picture: an `http` URL, or a path in the benchmark's repository. The answer is
    /// [`Answer::Pictures`] with one entry.
    Reference {
        /// URL or path of the picture.
        source: String,
    },
    /// Asks a judge a question about each of the pictures of [`Question::Pictures`]. The answer is a list of texts, one
    /// for each picture that can be decoded.
    Look {
        /// The page with the pictures.
        place: PagePlace,
        /// The selector of the pictures, as in [`Question::Pictures`].
        selector: String,
        /// The question about each picture.
        question: String,
    },
    /// Asks whether two texts mean the same. The answer is a Boolean.
    Judge(TextComparison),
    /// Asks how far a text satisfies a rule in words. The answer is a number from 0 to 1.
    Rule(RuleQuestion),
}

/// A page that a question refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PagePlace {
    /// The page on which the agent ended, in its current state, without loading it again.
    Last,
    /// The page at a URL.
    Url(String),
    /// The page whose URL a helper returns.
    Found(BenchmarkCall),
}

/// A call of a helper from a fixed list, with texts as arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkCall {
    /// Name of the helper.
    pub name: String,
    /// Arguments of the helper, without `__page__`.
    pub arguments: Vec<String>,
}

/// A comparison of two texts by a judge.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TextComparison {
    /// The kind of equivalence to decide.
    pub kind: Sameness,
    /// The wording of the prompt, which also determines how the reply is parsed.
    pub wording: Wording,
    /// The instruction of the task.
    pub intent: String,
    /// The text that was expected.
    pub reference: String,
    /// The text that the agent gave.
    pub answer: String,
}

/// A rule in words, such as "Decide whether the place is New York", and the text that it is applied to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct RuleQuestion {
    /// The rule, in the words of the task.
    pub rule: String,
    /// The text of the agent.
    pub answer: String,
    /// Whether the wording is that of arenad, which the text cannot break out of. Otherwise it is WebCanvas' own.
    pub strict: bool,
}

/// The kind of equivalence that a judge decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// The answer means the same as the reference.
    Answer,
    /// The stated reason for not completing the task is the actual reason.
    Reason,
}

/// The wording of a judge's prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wording {
    /// The wording of WebArena's code.
    WebArena,
    /// The wording of VisualWebArena's code.
    VisualWebArena,
    /// The wording of arenad. An answer cannot break out of it, and replies are matched exactly.
    Strict,
}

/// The answer to an evaluator's question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The value that was asked for.
    Value(Value),
    /// The pictures that were fetched.
    Pictures(Vec<Picture>),
    /// The page's script or the helper failed. The benchmarks treat this as an empty text.
    Threw(String),
    /// The question could not be answered, for example because the site is down or time ran out. This says nothing
    /// about the agent.
    Unavailable(String),
    /// The question needs a judge, and none was available.
    NoJudge(String),
    /// The question is of a kind that cannot be answered here.
    Unsupported(String),
}

/// A picture in the form in which it was fetched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// URL or path from which the picture was fetched.
    pub url: String,
    /// The content of the file: PNG, JPEG, GIF, WebP or BMP. Other content cannot be decoded, which the evaluator
    /// reports.
    #[serde(with = "base64_bytes")]
    #[schemars(with = "String")]
    pub bytes: Arc<[u8]>,
}

/// Bytes as base64, for evidence in JSON files.
mod base64_bytes {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(input)?;
        STANDARD.decode(text).map(Arc::from).map_err(D::Error::custom)
    }
}

/// Answers by question. The JSON form is a list of pairs, which belongs to an episode's evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<(Question, Answer)>", into = "Vec<(Question, Answer)>")]
pub struct KnownAnswers(HashMap<Question, Answer>);

impl From<Vec<(Question, Answer)>> for KnownAnswers {
    fn from(pairs: Vec<(Question, Answer)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<KnownAnswers> for Vec<(Question, Answer)> {
    /// Returns the pairs in a reproducible order, so that evidence can be compared.
    fn from(told: KnownAnswers) -> Self {
        let mut pairs: Self = told.0.into_iter().collect();
        pairs.sort_by_cached_key(|(question, _)| format!("{question:?}"));
        pairs
    }
}

impl KnownAnswers {
    /// Stores the answer to a question.
    pub fn tell(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }

    /// Returns the number of questions that have an answer.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds all answers of `other`.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns whether a question has an answer.
    #[must_use]
    pub fn knows(&self, question: &Question) -> bool {
        self.0.contains_key(question)
    }

    /// Removes the answers that can be found later without the sites: those that lacked a judge, and those about
    /// pictures that were unavailable.
    pub fn reopen(&mut self) {
        self.0.retain(|question, answer| match question {
            Question::Judge(_) | Question::Rule(_) | Question::Look { .. } | Question::Reference { .. } => {
                !matches!(answer, Answer::NoJudge(_) | Answer::Unavailable(_))
            }
            _ => true,
        });
    }

    /// Returns the answer to a question. If there is none, the returned answer says that no judge was asked, or that
    /// the value is unavailable.
    #[must_use]
    pub fn ask(&self, question: &Question) -> Answer {
        self.0.get(question).cloned().unwrap_or_else(|| match question {
            Question::Judge(_) | Question::Rule(_) | Question::Look { .. } => {
                Answer::NoJudge("no judge was asked".to_owned())
            }
            _ => Answer::Unavailable("the question was not answered".to_owned()),
        })
    }
}

/// Returns the questions that have no answer yet, in order and without duplicates.
#[must_use]
pub fn open(questions: Vec<Question>, told: &KnownAnswers) -> Vec<Question> {
    let mut seen = HashSet::new();
    questions.into_iter().filter(|question| !told.0.contains_key(question) && seen.insert(question.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_can_be_kept() {
        let mut told = KnownAnswers::default();
        let place = PagePlace::Url("http://h/".to_owned());
        let pictures = Question::Pictures { place: place.clone(), selector: ".a".to_owned() };
        let picture = Picture { url: "http://h/a.png".to_owned(), bytes: [0, 255, 7].as_slice().into() };
        told.tell(pictures.clone(), Answer::Pictures(vec![picture]));
        told.tell(Question::Content { place }, Answer::Value(json!("<p>")));
        told.tell(Question::Reference { source: "x".to_owned() }, Answer::Unavailable("the site is down".to_owned()));
        let kept = serde_json::to_string(&told).expect("JSON");
        assert_eq!(serde_json::from_str::<KnownAnswers>(&kept).expect("evidence"), told);
        assert!(matches!(told.ask(&pictures), Answer::Pictures(pictures) if pictures.len() == 1));
    }
}
