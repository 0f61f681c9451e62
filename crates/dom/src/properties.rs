//! Properties of all parsers: no text makes them fail, and trees are whole.

use proptest::prelude::*;

use crate::{NodeId, Tree, css, libxml, soup, xpath};

/// Markup with more tags, quotes and references than arbitrary text has.
fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,5}",
        "<(div|p|li|td|tr|table|a|b|option|form|body|html|head|title|script|textarea|x-y)( (id|class)=['\"]?[a-c ]{0,3}['\"]?)?/?>?",
        "</(div|p|li|td|tr|table|a|b|script|body|html|x-y) ?>?",
        prop::sample::select(vec![
            "<",
            ">",
            "&",
            "&#",
            "&#x41",
            "&amp;",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<!",
            "<?",
            "\0",
            "é",
            "</",
            "=\"",
            "'"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn is_whole(tree: &Tree) -> bool {
    let below: Vec<NodeId> = tree.descendants(Tree::DOCUMENT).collect();
    let in_order = below.windows(2).all(|pair| pair[0] < pair[1]);
    in_order && below.iter().all(|node| tree.parent(*node).is_some_and(|parent| tree.children(parent).contains(node)))
}

proptest! {
    #[test]
    fn any_markup_gives_a_whole_tree(html in markup()) {
        prop_assert!(is_whole(&soup::parse(&html)));
        prop_assert!(is_whole(&libxml::parse(&html)));
        let _ = libxml::fromstring(&html);
    }

    #[test]
    fn any_selector_is_read_or_refused(html in markup(), selector in "[a-z.#:\\[\\]()=>+~ ,*|'\"\\\\0-9-]{0,20}|\\PC{0,10}") {
        let tree = soup::parse(&html);
        let all = css::select(&tree, &selector);
        prop_assert_eq!(css::check(&selector).is_ok(), all.is_ok());
        if let Ok(all) = all {
            prop_assert_eq!(css::select_one(&tree, &selector).ok().flatten(), all.first().copied());
        }
    }

    #[test]
    fn any_expression_is_evaluated_or_refused(html in markup(), path in "[a-z/@\\[\\]()=|*.'\"0-9:+ -]{0,20}|\\PC{0,10}") {
        if let Some((tree, context)) = libxml::fromstring(&html) {
            let _ = xpath::evaluate(&tree, context, &path);
        }
    }

    /// Elements are unique by their place, however the tree was built.
    #[test]
    fn a_path_by_places_leads_back(html in markup()) {
        let tree = soup::parse(&html);
        for element in tree.breadth_first() {
            let mut path = String::new();
            for node in std::iter::once(element).chain(tree.ancestors(element)).filter(|node| tree.is_element(*node)) {
                let parent = tree.parent(node).expect("a parent");
                let place = tree.elements(parent).position(|child| child == node).expect("a child") + 1;
                path = format!(" > *:nth-child({place}){path}");
            }
            let selector = path.trim_start_matches(" > ").to_owned();
            if selector.contains(" > ") || tree.root() == Some(element) {
                let found = css::select(&tree, &selector).expect("a selector");
                prop_assert!(found.contains(&element), "{} on {}", selector, html);
            }
        }
    }
}

#[test]
fn nothing_is_implied_by_the_parser_of_python() {
    let tree = soup::parse("<div id=o><p>one<div id=i>two</div><p>three</p><li>x<li class=k>y</div>");
    let parent = |selector: &str| {
        let found = css::select_one(&tree, selector).expect("a selector").expect("an element");
        tree.parent(found).and_then(|parent| tree.name(parent)).map(str::to_owned)
    };
    // Each is inside of the one before it, for no end tag came in between.
    assert_eq!(parent("#i").as_deref(), Some("p"));
    assert_eq!(parent(".k").as_deref(), Some("li"));
    let closed = soup::parse("<br></br><div/>x<p a=1 a=2 b>");
    assert_eq!(closed.attribute(css::select_one(&closed, "p").expect("a selector").expect("p"), "a"), Some("2"));
    assert_eq!(css::select(&closed, "br").expect("a selector").len(), 1);
}

#[test]
fn libxml_implies_and_closes() {
    let (tree, context) = libxml::fromstring("<table><tr><td>a<td class=b>c<tr><td>d</table><p>z").expect("a document");
    let text = |path: &str| match xpath::evaluate(&tree, context, path) {
        Ok(xpath::Value::Nodes(nodes)) => nodes.iter().map(|node| node.text(&tree)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(text("/html/div/table/tr[1]/td[2]"), ["c"], "the body has become a div");
    assert_eq!(text("//td[last()]"), ["c", "d"]);
    assert_eq!(text("//td[not(@class)] | //p"), ["a", "d", "z"]);
    assert!(xpath::evaluate(&tree, context, "//p[").is_err() && xpath::evaluate(&tree, context, "$x").is_err());
}

#[test]
fn long_selectors_are_refused() {
    let tree = soup::parse("<p>");
    assert!(css::select_one(&tree, &"p ".repeat(100_000)).is_err());
    assert!(xpath::evaluate(&tree, Tree::DOCUMENT, &"1+".repeat(100_000)).is_err());
    assert!(css::check(&":not(".repeat(1000)).is_err());
}
