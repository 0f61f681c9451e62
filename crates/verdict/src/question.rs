//! What evaluators ask for, and what they are told. They do no I/O themselves: someone else looks, and keeps what was seen
//! as evidence, so that an episode can be judged again without its sites.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that an evaluator wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// The HTML of a page, as the browser has it. The answer is a text.
    Content {
        /// The page.
        place: Place,
    },
    /// What a JavaScript expression gives on a page.
    Script {
        /// The page.
        place: Place,
        /// Expressions that are run before, whose errors do not count.
        prepare: Vec<String>,
        /// The expression.
        expression: String,
    },
    /// What a helper of the benchmark finds, on a page or through the site's interface.
    Helper {
        /// The page that `__page__` means.
        place: Place,
        /// The helper.
        call: Call,
    },
    /// The pictures of a page, fetched from their `src` (which may be relative to the page). The answer is
    /// [`Answer::Pictures`] with one entry for each picture that could be fetched, in the order of the page, and empty if
    /// there is none.
    Pictures {
        /// The page.
        place: Place,
        /// A CSS selector: the matching `img` elements, and all `img` elements within other matching ones. If empty, every
        /// element with the role `img`.
        selector: String,
    },
    /// One picture to compare with: an `http` URL, or a path in the benchmark's repository. The answer is
    /// [`Answer::Pictures`] with one entry.
    Reference {
        /// Where it is.
        source: String,
    },
    /// What someone who sees the pictures of [`Question::Pictures`] answers to a question about each. The answer is a list of
    /// texts, one for each picture that can be read.
    Look {
        /// The page.
        place: Place,
        /// Which pictures, as in [`Question::Pictures`].
        selector: String,
        /// The question.
        question: String,
    },
    /// Whether two texts mean the same. The answer is a truth value.
    Judge(Comparison),
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The page where the agent ended, as it is, not loaded again.
    Last,
    /// The page at a URL.
    Url(String),
    /// The page whose URL a helper finds.
    Found(Call),
}

/// A call of a helper: a name of a fixed list, and texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call {
    /// The helper's name.
    pub name: String,
    /// Its arguments, without `__page__`.
    pub arguments: Vec<String>,
}

/// What a judge is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Comparison {
    /// What kind of sameness.
    pub kind: Sameness,
    /// In whose words the judge is asked, and how its reply is read.
    pub wording: Wording,
    /// The task.
    pub intent: String,
    /// What was expected.
    pub reference: String,
    /// What the agent said.
    pub answer: String,
}

/// What a judge looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sameness {
    /// The answer means what the reference means.
    Answer,
    /// The reason given for not doing the task is the actual one.
    Reason,
}

/// In whose words a judge is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wording {
    /// In those of WebArena's code.
    WebArena,
    /// In those of VisualWebArena's code.
    VisualWebArena,
    /// In arenad's own, from which an answer cannot break out, and whose replies are read to the letter.
    Strict,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A value.
    Value(Value),
    /// Pictures.
    Pictures(Vec<Picture>),
    /// The page's script or the helper failed; the benchmarks take that for an empty text.
    Threw(String),
    /// Nobody could look: the site is down, time ran out. Says nothing about the agent.
    Unavailable(String),
    /// Someone has to judge who is not there.
    NoJudge(String),
    /// Nobody here knows how to find out.
    Unsupported(String),
}

/// A picture as it was fetched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Where it was fetched.
    pub url: String,
    /// The file: PNG, JPEG, GIF, WebP or BMP. Whatever else is there cannot be read, which is for the evaluator to say.
    #[serde(with = "base64_bytes")]
    pub bytes: Arc<[u8]>,
}

/// Bytes as base64, for evidence that is kept as JSON.
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

/// What was seen, by what was asked. As JSON, a list of pairs: evidence by which an episode can be judged again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(Question, Answer)>", into = "Vec<(Question, Answer)>")]
pub struct Told(HashMap<Question, Answer>);

impl From<Vec<(Question, Answer)>> for Told {
    fn from(pairs: Vec<(Question, Answer)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<Told> for Vec<(Question, Answer)> {
    /// In an order that does not change from one time to the next, so that evidence can be compared.
    fn from(told: Told) -> Self {
        let mut pairs: Self = told.0.into_iter().collect();
        pairs.sort_by_cached_key(|(question, _)| format!("{question:?}"));
        pairs
    }
}

impl Told {
    /// Keeps an answer.
    pub fn tell(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }

    /// How many questions have an answer.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes over what somebody else has been told.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether a question has an answer.
    #[must_use]
    pub fn knows(&self, question: &Question) -> bool {
        self.0.contains_key(question)
    }

    /// Forgets what can be found out later without the sites: what there was no judge for, and pictures that were not at hand.
    pub fn reopen(&mut self) {
        self.0.retain(|question, answer| match question {
            Question::Judge(_) | Question::Look { .. } | Question::Reference { .. } => {
                !matches!(answer, Answer::NoJudge(_) | Answer::Unavailable(_))
            }
            _ => true,
        });
    }

    /// The answer to a question; that nobody looked, or judged, if there is none.
    #[must_use]
    pub fn ask(&self, question: &Question) -> Answer {
        self.0.get(question).cloned().unwrap_or_else(|| match question {
            Question::Judge(_) | Question::Look { .. } => Answer::NoJudge("no judge was asked".to_owned()),
            _ => Answer::Unavailable("nobody looked".to_owned()),
        })
    }
}

/// The questions that have no answer yet, each once, in order.
#[must_use]
pub fn open(questions: Vec<Question>, told: &Told) -> Vec<Question> {
    let mut seen = HashSet::new();
    questions.into_iter().filter(|question| !told.0.contains_key(question) && seen.insert(question.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_can_be_kept() {
        let mut told = Told::default();
        let place = Place::Url("http://h/".to_owned());
        let pictures = Question::Pictures { place: place.clone(), selector: ".a".to_owned() };
        let picture = Picture { url: "http://h/a.png".to_owned(), bytes: [0, 255, 7].as_slice().into() };
        told.tell(pictures.clone(), Answer::Pictures(vec![picture]));
        told.tell(Question::Content { place }, Answer::Value(json!("<p>")));
        told.tell(Question::Reference { source: "x".to_owned() }, Answer::Unavailable("the site is down".to_owned()));
        let kept = serde_json::to_string(&told).expect("JSON");
        assert_eq!(serde_json::from_str::<Told>(&kept).expect("evidence"), told);
        assert!(matches!(told.ask(&pictures), Answer::Pictures(pictures) if pictures.len() == 1));
    }
}
