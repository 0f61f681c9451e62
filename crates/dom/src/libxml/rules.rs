//! libxml2's tables: which start tag closes which element, and the priority of end tags.

/// Returns whether an element has no content.
pub(super) fn is_empty(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "br"
            | "col"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "isindex"
            | "link"
            | "meta"
            | "param"
    )
}

/// The priority of an element: an end tag does not close elements of a higher one.
pub(super) fn priority(name: &str) -> u32 {
    match name {
        "div" => 150,
        "td" | "th" => 160,
        "tr" => 170,
        "thead" | "tbody" | "tfoot" => 180,
        "table" => 190,
        "head" | "body" => 200,
        "html" => 220,
        _ => 100,
    }
}

/// Block elements by lxml's list.
pub(super) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "blockquote"
            | "caption"
            | "center"
            | "col"
            | "colgroup"
            | "dd"
            | "del"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "hr"
            | "ins"
            | "isindex"
            | "legend"
            | "li"
            | "menu"
            | "noscript"
            | "ol"
            | "optgroup"
            | "option"
            | "p"
            | "pre"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
    )
}

/// Returns whether a start tag closes the current element.
pub(super) fn closes(current: &str, new: &str) -> bool {
    let list: &[&str] = match current {
        "a" => &["a", "fieldset", "table", "td", "th"],
        "address" => &["dd", "dl", "dt", "form", "li", "ul"],
        "b" => &["center", "p", "td", "th"],
        "big" | "s" | "small" | "strike" | "tt" => &["p"],
        "caption" => &["col", "colgroup", "tbody", "tfoot", "thead", "tr"],
        "colgroup" => &["colgroup", "tbody", "tfoot", "thead", "tr"],
        "dd" => &["dt"],
        "dir" => &["dd", "dl", "dt", "form", "ul"],
        "dl" => &["form", "li"],
        "dt" => &["dd", "dl"],
        "font" => &["center", "td", "th"],
        "form" => &["form"],
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => &["fieldset", "form", "li", "p", "table"],
        "head" => &[
            "a",
            "abbr",
            "acronym",
            "address",
            "b",
            "bdo",
            "big",
            "blockquote",
            "body",
            "br",
            "center",
            "cite",
            "code",
            "dd",
            "dfn",
            "dir",
            "div",
            "dl",
            "dt",
            "em",
            "fieldset",
            "font",
            "form",
            "frameset",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "i",
            "iframe",
            "img",
            "kbd",
            "li",
            "listing",
            "map",
            "menu",
            "ol",
            "p",
            "pre",
            "q",
            "s",
            "samp",
            "small",
            "span",
            "strike",
            "strong",
            "sub",
            "sup",
            "table",
            "tt",
            "u",
            "ul",
            "var",
            "xmp",
        ],
        "i" => &["center", "p", "td", "th"],
        "legend" => &["fieldset"],
        "li" => &["li"],
        "listing" | "pre" | "xmp" => &["dd", "dl", "dt", "fieldset", "form", "li", "table", "ul"],
        "menu" => &["dd", "dl", "dt", "form", "ul"],
        "ol" => &["form"],
        "option" => &["optgroup", "option"],
        "p" => &[
            "address",
            "blockquote",
            "body",
            "caption",
            "center",
            "col",
            "colgroup",
            "dd",
            "dir",
            "div",
            "dl",
            "dt",
            "fieldset",
            "form",
            "frameset",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "head",
            "hr",
            "li",
            "listing",
            "menu",
            "ol",
            "p",
            "pre",
            "table",
            "tbody",
            "td",
            "tfoot",
            "th",
            "title",
            "tr",
            "ul",
            "xmp",
        ],
        "script" => &["noscript"],
        "span" => &["td", "th"],
        "style" | "title" | "link" => &["body", "frameset"],
        "tbody" => &["tbody", "tfoot"],
        "td" | "th" => &["tbody", "td", "tfoot", "th", "tr"],
        "tfoot" => &["tbody"],
        "thead" => &["tbody", "tfoot"],
        "tr" => &["tbody", "tfoot", "tr"],
        "u" => &["p", "td", "th"],
        "ul" => &["address", "form", "menu", "pre"],
        _ => &[],
    };
    list.contains(&new)
}
