//! The score of key nodes over the steps of an agent. Source: `step_evaluate` in `evaluate/evaluate_utils.py`.

use arenad_verdict::question::{Answer, KnownAnswers, Question, RuleQuestion};
use arenad_verdict::{Verdict, unseen};

use super::Raised;
use super::matching::{self, Method, Page, PathMatch, Rule};
use super::strict;
use super::task::{KeyNode, NodeRule, Target};

/// One step as it was seen: the page, and the action that the agent chose on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// The address of the page.
    pub url: String,
    /// The page's HTML; `None` if it was not stored.
    pub html: Option<String>,
    /// The selector or XPath of the action's element.
    pub selector: Option<String>,
    /// The value of the action: the typed text, or the label of the element.
    pub element_value: Option<String>,
    /// A text that the agent stores or answers with.
    pub text_content: Option<String>,
}

/// Why a node has no score at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// A judge has to decide; the verdict and the reason say why it has not.
    Judge(Verdict, Box<Question>, String),
    /// The page's HTML is needed.
    Html,
}

/// The scores of the key nodes of a task. A score never falls.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<'a> {
    nodes: &'a [KeyNode],
    scores: Vec<f64>,
    reached_at: Vec<Option<usize>>,
    found: Vec<Option<String>>,
    open: Vec<Option<Open>>,
    steps: usize,
    is_strict: bool,
}

impl<'a> Progress<'a> {
    /// Begins with no node reached.
    #[must_use]
    pub fn new(nodes: &'a [KeyNode]) -> Self {
        let count = nodes.len();
        Self {
            nodes,
            scores: vec![0.0; count],
            reached_at: vec![None; count],
            found: vec![None; count],
            open: vec![None; count],
            steps: 0,
            is_strict: false,
        }
    }

    /// Begins with no node reached, and compares by the strict rules.
    #[must_use]
    pub fn strict(nodes: &'a [KeyNode]) -> Self {
        Self { is_strict: true, ..Self::new(nodes) }
    }

    /// Compares the nodes that are not reached yet with one step.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises. The nodes before the one at fault keep their new scores, and the
    /// others are not compared with this step. The strict rules compare the others too, and give no error.
    pub fn see(&mut self, step: &Observation, told: &KnownAnswers) -> Result<(), Raised> {
        let at = self.steps;
        self.steps += 1;
        let page = step.html.as_deref().map(Page::new);
        for (index, node) in self.nodes.iter().enumerate() {
            #[expect(clippy::float_cmp, reason = "a reached node has exactly 1")]
            if self.scores[index] == 1.0 {
                continue;
            }
            let compared = match self.is_strict {
                false => compare(node, step, page.as_ref(), told)?,
                true => strict::compare(node, step, page.as_ref(), told),
            };
            if let Some(found) = compared.found {
                self.found[index] = Some(found);
            }
            match compared.score {
                Ok(score) => {
                    if score >= 1.0 {
                        self.reached_at[index] = Some(at);
                        self.open[index] = None;
                    }
                    self.scores[index] = self.scores[index].max(score);
                }
                Err(open) => self.open[index] = Some(open),
            }
        }
        Ok(())
    }

    /// The scores of all nodes.
    #[must_use]
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The sum of the scores.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.scores.iter().sum()
    }

    /// The nodes that are reached, in the order of the task.
    pub fn reached(&self) -> impl Iterator<Item = &'a KeyNode> + '_ {
        self.nodes.iter().zip(&self.scores).filter(|(_, score)| **score >= 1.0).map(|(node, _)| node)
    }

    /// The step at which a node was reached, counted from 0.
    #[must_use]
    pub fn reached_at(&self, node: usize) -> Option<usize> {
        self.reached_at.get(node).copied().flatten()
    }

    /// The last value that a node was compared with.
    #[must_use]
    pub fn found(&self, node: usize) -> Option<&str> {
        self.found.get(node)?.as_deref()
    }

    /// Returns the data that were missing to compare a node that is not reached.
    #[must_use]
    pub fn open(&self, node: usize) -> Option<&Open> {
        self.open.get(node)?.as_ref()
    }

    /// Whether every node is reached.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.scores.iter().all(|score| *score >= 1.0)
    }
}

/// The comparison of one node with one step.
pub(super) struct Compared {
    pub(super) score: Result<f64, Open>,
    pub(super) found: Option<String>,
}

impl Compared {
    pub(super) fn of(fits: bool, found: Option<&str>) -> Self {
        Self { score: Ok(if fits { 1.0 } else { 0.0 }), found: found.map(str::to_owned) }
    }
}

/// `page` is the parsed `html` of the step.
fn compare(
    node: &KeyNode,
    step: &Observation,
    page: Option<&Page<'_>>,
    told: &KnownAnswers,
) -> Result<Compared, Raised> {
    let rule = node.rule();
    let plain = if rule == NodeRule::Included { Rule::Included } else { Rule::Exact };
    match &node.target {
        _ if rule == NodeRule::Unknown => Ok(Compared::of(false, None)),
        Target::Url { key } => {
            let part = matching::url_part(&step.url, key, plain);
            Ok(match (rule, part) {
                (_, None) => Compared::of(false, None),
                (NodeRule::Semantic, Some(part)) => judged(node, &part, told),
                (_, Some(part)) => Compared::of(plain.holds(&part, &node.reference), Some(&part)),
            })
        }
        Target::Path { method, netloc } => {
            let site = matching::get_netloc(&step.url)?;
            let found = step.selector.as_deref();
            if site != *netloc {
                return Ok(Compared::of(false, found));
            }
            let Some(page) = page else {
                return Ok(Compared { score: Err(Open::Html), ..Compared::of(false, found) });
            };
            Ok(Compared::of(is_at(page, *method, found, &node.reference)?, found))
        }
        Target::Value { path, netloc } => {
            let (Some(selector), Some(value)) = (&step.selector, &step.element_value) else {
                return Ok(Compared::of(false, None));
            };
            let site = matching::get_netloc(&step.url)?;
            if site != *netloc || (rule == NodeRule::Semantic && value.is_empty()) {
                return Ok(Compared::of(false, Some(value)));
            }
            // Without the page, a value that does not fit anyway needs no element.
            let is_judged = rule == NodeRule::Semantic;
            if !is_judged && !plain.holds(value, &node.reference) {
                return Ok(Compared::of(false, Some(value)));
            }
            if let Some(path) = path {
                let Some(page) = page else {
                    return Ok(Compared { score: Err(Open::Html), ..Compared::of(false, Some(value)) });
                };
                if !is_at(page, Method::Selector, Some(selector), path)? {
                    return Ok(Compared::of(false, Some(value)));
                }
            }
            Ok(if is_judged { judged(node, value, told) } else { Compared::of(true, Some(value)) })
        }
        Target::Cache | Target::Answer => match step.text_content.as_deref() {
            None | Some("") => Ok(Compared::of(false, None)),
            // The published code forgets to wait for the judge, and compares its future with a number.
            Some(_) if rule == NodeRule::Semantic => {
                Err(Raised::new("TypeError", format!("`{}` is not awaited", node.function)))
            }
            Some(text) => Ok(Compared::of(matching::text_matches(text, &node.reference, plain), Some(text))),
        },
    }
}

/// Both sites are the same here.
fn is_at(page: &Page<'_>, method: Method, found: Option<&str>, reference: &str) -> Result<bool, Raised> {
    matching::path_matches(PathMatch { page, method, found, reference, found_netloc: "", reference_netloc: "" })
}

/// The score that a judge gives, clamped and rounded as in `semantic_match`.
fn judged(node: &KeyNode, found: &str, told: &KnownAnswers) -> Compared {
    let question = question(node, found, false);
    let score = match told.ask(&question) {
        Answer::Value(value) => Ok(value.as_f64().map_or(0.0, rounded)),
        // Three replies without a number count as 0.
        Answer::Threw(_) => Ok(0.0),
        other => Err(undecided(question, &other)),
    };
    Compared { score, found: Some(found.to_owned()) }
}

/// Returns the open state that follows from an answer without a value.
pub(super) fn undecided(question: Question, answer: &Answer) -> Open {
    let (verdict, reason) = unseen(answer).unwrap_or((Verdict::Inconclusive, "the judge gave no number"));
    Open::Judge(verdict, Box::new(question), reason.to_owned())
}

/// The question of a semantic node.
pub(super) fn question(node: &KeyNode, found: &str, is_strict: bool) -> Question {
    Question::Rule(RuleQuestion { rule: node.reference.clone(), answer: found.to_owned(), strict: is_strict })
}

/// Clamps a score and rounds it to two decimals as `round(score, 2)` does.
fn rounded(score: f64) -> f64 {
    let score = score.clamp(0.0, 1.0);
    format!("{score:.2}").parse().unwrap_or(score)
}
