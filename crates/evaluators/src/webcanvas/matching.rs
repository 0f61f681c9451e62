//! The match functions of key nodes: of the page's address, the element of an action, its value, and texts.
//!
//! Source: `evaluate/step_score.py` and `get_netloc` in `evaluate/evaluate_utils.py`.

use std::cell::OnceCell;

use arenad_dom::{NodeId, NodeKind, Tree, css, libxml, soup, xpath};

use super::Raised;
use crate::text::urls::{parse_qsl, unquote, urlsplit};

/// How a found text has to relate to the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The texts are equal.
    Exact,
    /// The reference is part of the found text.
    Included,
}

impl Rule {
    /// Compares a found text with a reference.
    #[must_use]
    pub fn holds(self, found: &str, reference: &str) -> bool {
        match self {
            Self::Exact => found == reference,
            Self::Included => found.contains(reference),
        }
    }
}

/// Returns the text of a URL that a rule is applied to; `None` if the URL has no such parameter. With a key, that is the
/// first value of the parameter, which is decoded twice; blank values do not exist.
#[must_use]
pub fn url_part(url: &str, key: &str, rule: Rule) -> Option<String> {
    if !key.is_empty() {
        let query = urlsplit(url).ok()?.query;
        let (_, value) = parse_qsl(&query).into_iter().find(|(name, value)| name == key && !value.is_empty())?;
        return Some(unquote(&value));
    }
    let part = match (rule, urlsplit(url)) {
        (Rule::Included, Ok(split)) => {
            let (path, _) = split.path_and_parameters();
            let hash = if split.fragment.is_empty() { String::new() } else { format!("#{}", split.fragment) };
            format!("{}{path}{hash}", split.netloc)
        }
        _ => url.to_owned(),
    };
    Some(unquote(&part))
}

/// `url_exact_match` and `url_include_match`.
#[must_use]
pub fn url_matches(url: &str, reference: &str, key: &str, rule: Rule) -> bool {
    url_part(url, key, rule).is_some_and(|part| rule.holds(&part, reference))
}

/// `get_netloc`: the part of the host that the benchmark takes for the site, such as `target` of `www.target.com`.
///
/// # Errors
///
/// Returns an error if Python refuses the URL.
pub fn get_netloc(url: &str) -> Result<String, Raised> {
    let netloc = urlsplit(url).map_err(|error| Raised::new("ValueError", error.to_string()))?.netloc;
    Ok(site_of(&netloc).unwrap_or_default())
}

/// The same of a host; `None` if it has too few dots.
pub(super) fn site_of(netloc: &str) -> Option<String> {
    let after = match netloc.starts_with("www") {
        true => netloc.split_once('.')?.1,
        false => netloc,
    };
    after.split_once('.').map(|(site, _)| site.to_owned())
}

/// Elements of a reference whose ancestors count as well.
const CLIMBING: [&str; 11] = ["span", "h1", "h2", "h3", "h4", "h5", "h6", "div", "li", "ul", "p"];

/// The number of ancestors that count.
const CLIMBED_MAX: usize = 3;

/// How an element path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A CSS selector, as all key nodes have.
    Selector,
    /// An XPath, as the code also accepts.
    XPath,
    /// Any other word, with which nothing matches.
    Other,
}

impl Method {
    /// Reads the `method` of a key node.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "selector" => Self::Selector,
            "xpath" => Self::XPath,
            _ => Self::Other,
        }
    }
}

/// The HTML of a page. It is parsed when the first selector is compared, and once for all of them.
#[derive(Debug)]
pub struct Page<'a> {
    html: &'a str,
    /// `None` if Python refuses the markup.
    tree: OnceCell<Option<Tree>>,
}

impl<'a> Page<'a> {
    /// Returns a page that is not parsed yet.
    #[must_use]
    pub fn new(html: &'a str) -> Self {
        Self { html, tree: OnceCell::new() }
    }

    fn tree(&self) -> Option<&Tree> {
        self.tree.get_or_init(|| soup::try_parse(self.html)).as_ref()
    }
}

/// Two element paths on a page, and the sites that they belong to.
#[derive(Debug, Clone, Copy)]
pub struct PathMatch<'a> {
    /// The page that both paths belong to.
    pub page: &'a Page<'a>,
    /// How the paths are written.
    pub method: Method,
    /// The path of the element that the agent chose.
    pub found: Option<&'a str>,
    /// The path of the key node.
    pub reference: &'a str,
    /// The site of the page.
    pub found_netloc: &'a str,
    /// The site of the key node.
    pub reference_netloc: &'a str,
}

/// `path_exact_match`: both paths lead to the same element, or the found one to one of the three next ancestors of the
/// reference, if that is a mere container.
///
/// # Errors
///
/// Returns an error if the benchmark's code raises, which it does for an XPath without a match.
pub fn path_matches(paths: PathMatch<'_>) -> Result<bool, Raised> {
    if paths.method == Method::Other || paths.found_netloc != paths.reference_netloc {
        return Ok(false);
    }
    match paths.method {
        Method::XPath => xpath_matches(paths),
        _ => Ok(selector_matches(paths)),
    }
}

/// Elements that people act on.
const INTERACTIVE: [&str; 9] = ["a", "button", "input", "label", "option", "select", "summary", "textarea", "area"];

/// Whether both selectors lead to the same element, or the found one to the nearest ancestor of the reference that people
/// act on: the link around a word, for example.
pub(super) fn is_same_control(page: &Page<'_>, found: &str, reference: &str) -> bool {
    let Some(tree) = page.tree() else { return false };
    let find = |selector: &str| css::select_one(tree, selector).ok().flatten();
    let (Some(found), Some(reference)) = (find(found), find(reference)) else { return false };
    let acts = |node: &NodeId| {
        tree.name(*node).is_some_and(|name| INTERACTIVE.contains(&name)) || tree.attribute(*node, "role").is_some()
    };
    found == reference || (!acts(&reference) && tree.ancestors(reference).find(acts) == Some(found))
}

fn selector_matches(paths: PathMatch<'_>) -> bool {
    let Some(tree) = paths.page.tree() else { return false };
    let find = |selector: &str| css::select_one(tree, selector).ok().flatten();
    let Some(found) = paths.found.and_then(find) else { return false };
    find(paths.reference).is_some_and(|reference| is_at(tree, found, reference))
}

fn is_at(tree: &Tree, found: NodeId, reference: NodeId) -> bool {
    let climbs = tree.name(reference).is_some_and(|name| CLIMBING.contains(&name));
    found == reference || (climbs && tree.ancestors(reference).take(CLIMBED_MAX).any(|ancestor| ancestor == found))
}

fn xpath_matches(paths: PathMatch<'_>) -> Result<bool, Raised> {
    // A failure within the code's own `try` leaves its variables without a value.
    let unbound = |what: String| Raised::new("UnboundLocalError", what);
    let Some((tree, context)) = libxml::fromstring(paths.page.html) else {
        return Err(unbound("the page is empty".to_owned()));
    };
    let Some(found) = paths.found else { return Err(unbound("there is no XPath".to_owned())) };
    let evaluate = |path: &str| xpath::evaluate(&tree, context, path).map_err(|error| unbound(error.to_string()));
    let (found, reference) = (evaluate(found)?, evaluate(paths.reference)?);
    match (first(&tree, &found)?, first(&tree, &reference)?) {
        (First::Node(found), First::Node(reference)) => Ok(is_at(&tree, found, reference)),
        // Python keeps one object for each short character.
        (First::Letter(found), First::Letter(reference)) => Ok(found == reference && found <= '\u{ff}'),
        _ => Ok(false),
    }
}

/// The first entry of a result, as `result[0]` gives it.
enum First {
    /// An element or a comment, which has one object.
    Node(NodeId),
    Letter(char),
    /// A text or an attribute, whose object is made anew by each expression.
    Fresh,
}

fn first(tree: &Tree, value: &xpath::Value) -> Result<First, Raised> {
    let empty = || Raised::new("IndexError", "the XPath matches nothing".to_owned());
    match value {
        xpath::Value::Nodes(nodes) => match nodes.first() {
            None => Err(empty()),
            Some(xpath::Item::Node(node)) => Ok(match tree.kind(*node) {
                NodeKind::Element { .. } | NodeKind::Comment(_) => First::Node(*node),
                _ => First::Fresh,
            }),
            Some(_) => Ok(First::Fresh),
        },
        xpath::Value::Text(text) => text.chars().next().map(First::Letter).ok_or_else(empty),
        _ => Err(Raised::new("TypeError", "the XPath gives no nodes".to_owned())),
    }
}

/// `element_value_exact_match` and `element_value_include_match`.
#[must_use]
pub fn value_matches(found: &str, reference: &str, found_netloc: &str, reference_netloc: &str, rule: Rule) -> bool {
    found_netloc == reference_netloc && rule.holds(found, reference)
}

/// `text_exact_match` and `text_included_match`.
#[must_use]
pub fn text_matches(found: &str, reference: &str, rule: Rule) -> bool {
    rule.holds(&found.to_lowercase(), &reference.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_twice_and_blank_ones_do_not_exist() {
        let part = |url: &str, key: &str| url_part(url, key, Rule::Exact);
        assert_eq!(part("http://h/?q=red%2520shoes", "q").as_deref(), Some("red shoes"));
        assert_eq!(part("http://h/?q=&q=2", "q").as_deref(), Some("2"));
        assert_eq!(part("http://h/?q=1;r=2", "r"), None);
        assert_eq!(part("http://h/?Q=1", "q"), None);
        assert_eq!(part("http://[::1/?q=1", "q"), None);
    }

    #[test]
    fn what_is_included_lacks_scheme_parameters_and_query() {
        let part = |url: &str| url_part(url, "", Rule::Included).unwrap_or_default();
        assert_eq!(part("https://u@h:1/a/b;p=1?q#f"), "u@h:1/a/b#f");
        assert_eq!(part("https://h/a;x/b"), "h/a;x/b");
        assert_eq!(part("http://[::1/x?q"), "http://[::1/x?q");
    }

    #[test]
    fn sites_are_cut_out_of_hosts() {
        let cases = [
            ("https://jobs.target.com", "jobs"),
            ("https://www.target.com", "target"),
            ("https://www2.hm.com", "hm"),
            ("https://www", ""),
            ("https://www.x", ""),
            ("http://localhost:7770", ""),
            ("http://user@www.x.com", "user@www"),
        ];
        for (url, site) in cases {
            assert_eq!(get_netloc(url).as_deref(), Ok(site), "{url}");
        }
        assert!(get_netloc("http://[::1/").is_err());
    }

    #[test]
    fn a_container_lends_its_place_to_three_ancestors() {
        let html = "<div id=a><section id=b><div id=c><div id=d><p id=e>x</p></div></div></section></div>";
        let fits = |found: &str, reference: &str| {
            let (method, site) = (Method::Selector, "h");
            let (page, found) = (&Page::new(html), Some(found));
            path_matches(PathMatch { page, method, found, reference, found_netloc: site, reference_netloc: site })
        };
        assert_eq!(fits("#e", "#e"), Ok(true));
        assert_eq!([fits("#d", "#e"), fits("#c", "#e"), fits("#b", "#e")], [Ok(true), Ok(true), Ok(true)]);
        assert_eq!(fits("#a", "#e"), Ok(false), "the fourth ancestor");
        assert_eq!(fits("#e", "#d"), Ok(false), "the other direction");
        assert_eq!(fits("#a", "#b"), Ok(false), "a section does not lend its place");
    }
}
