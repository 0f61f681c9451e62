//! Finding the element of a recorded action on a page that may have changed.
//!
//! Several properties are tried in a fixed order. The first one that leaves a single element decides; an element that
//! only resembles the recorded one is never acted on, but named as a possible repair.

use std::collections::BTreeSet;

use arenad_api::browser::PageElement;

/// The likeness from which on an element is named as a repair, of 1.
const SIMILAR: f64 = 0.5;

/// The share of common words from which on the surroundings of two elements count as the same.
const SAME_SURROUNDINGS: f64 = 0.5;

/// The property by which an element was found that is no longer where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// The attribute `id`, if the page has it once.
    Id,
    /// The role and the label.
    Label,
    /// The address of a link.
    Address,
    /// Role, label and the text around it.
    Surroundings,
    /// The place in the page, although the label is another one.
    Place,
}

/// The state of a recorded element on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementSight {
    /// It is where it was.
    Same,
    /// It is elsewhere, or has another label.
    Moved {
        /// The property by which it was found.
        by: FoundBy,
        /// The element as it is now.
        element: Box<PageElement>,
    },
    /// Several elements have its role and its label, and nothing tells them apart.
    Ambiguous {
        /// The number of these elements.
        alike: usize,
    },
    /// No element of the page is the recorded one.
    Gone {
        /// The element that resembles it most.
        similar: Option<Box<PageElement>>,
    },
}

impl ElementSight {
    /// Returns the element that an action is to be performed on, given the recorded one.
    pub fn found<'a>(&'a self, recorded: &'a PageElement) -> Option<&'a PageElement> {
        match self {
            Self::Same => Some(recorded),
            Self::Moved { element, .. } => Some(element),
            Self::Ambiguous { .. } | Self::Gone { .. } => None,
        }
    }
}

/// Finds a recorded element among those of a page.
pub fn find(recorded: &PageElement, page: &[PageElement]) -> ElementSight {
    let there = page.iter().find(|element| element.selector == recorded.selector && element.tag == recorded.tag);
    if there.is_some_and(|there| there.name == recorded.name && there.id == recorded.id) {
        return ElementSight::Same;
    }
    let moved = |by, element: &PageElement| ElementSight::Moved { by, element: Box::new(element.clone()) };
    let is_kind = |element: &&PageElement| element.tag == recorded.tag && element.role == recorded.role;
    let same_id: Vec<&PageElement> =
        page.iter().filter(is_kind).filter(|it| !it.id.is_empty() && it.id == recorded.id).collect();
    if let [element] = same_id[..] {
        return moved(FoundBy::Id, element);
    }
    let labelled: Vec<&PageElement> = page
        .iter()
        .filter(|it| it.role == recorded.role && !recorded.name.is_empty() && it.name == recorded.name)
        .collect();
    match labelled[..] {
        [] => {}
        [element] => return moved(FoundBy::Label, element),
        _ => {
            // Links to the same address, such as a picture and its title, do the same.
            let same_address = labelled.iter().find(|it| !it.href.is_empty() && it.href == recorded.href);
            if let Some(element) = same_address {
                return moved(FoundBy::Address, element);
            }
            return match nearest(recorded, &labelled) {
                Some(element) => moved(FoundBy::Surroundings, element),
                None => ElementSight::Ambiguous { alike: labelled.len() },
            };
        }
    }
    // The same place in the same surroundings is the same element under another label; in other surroundings it is
    // another element that has taken the place.
    let is_same_place = |there: &&PageElement| {
        there.role == recorded.role && common(&there.near, &recorded.near) >= SAME_SURROUNDINGS
            || there.id == recorded.id && !there.id.is_empty()
            || there.href == recorded.href && !there.href.is_empty()
    };
    match there.filter(is_same_place) {
        Some(there) => moved(FoundBy::Place, there),
        None => ElementSight::Gone { similar: similar(recorded, page).cloned().map(Box::new) },
    }
}

/// Returns the one of several alike elements whose surroundings are those of the recorded one, and of no other.
fn nearest<'a>(recorded: &PageElement, alike: &[&'a PageElement]) -> Option<&'a PageElement> {
    let mut ranked: Vec<(f64, &PageElement)> =
        alike.iter().map(|element| (common(&element.near, &recorded.near), *element)).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    match ranked[..] {
        [(first, element), (second, _), ..] if first >= SAME_SURROUNDINGS && first > second => Some(element),
        _ => None,
    }
}

/// Returns the element that resembles the recorded one most, if any does.
fn similar<'a>(recorded: &PageElement, page: &'a [PageElement]) -> Option<&'a PageElement> {
    let ranked = page.iter().map(|element| (likeness(recorded, element), element));
    let best = ranked.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness >= SIMILAR).map(|(_, element)| element)
}

/// Returns how much two elements resemble each other, from 0 to 1: by role, label and surroundings.
fn likeness(one: &PageElement, other: &PageElement) -> f64 {
    let role = if one.role == other.role { 1.0 } else { 0.0 };
    0.25 * role + 0.5 * common(&one.name, &other.name) + 0.25 * common(&one.near, &other.near)
}

/// Returns the share of words that two texts have in common.
fn common(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let all = one.union(&other).count();
    if all == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "the texts have at most 200 characters")]
    let share = one.intersection(&other).count() as f64 / all as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(place: u32, name: &str, near: &str) -> PageElement {
        PageElement {
            selector: format!("html > body:nth-child(2) > a:nth-child({place})"),
            tag: "a".to_owned(),
            role: "link".to_owned(),
            name: name.to_owned(),
            near: near.to_owned(),
            ..PageElement::default()
        }
    }

    fn place_of(sight: &ElementSight) -> Option<(FoundBy, &str)> {
        match sight {
            ElementSight::Moved { by, element } => Some((*by, element.selector.rsplit(' ').next().unwrap_or_default())),
            _ => None,
        }
    }

    #[test]
    fn an_element_is_found_where_it_was() {
        let cart = link(1, "Cart", "Shop Cart Account");
        assert_eq!(find(&cart, &[cart.clone(), link(2, "Cart", "")]), ElementSight::Same);
    }

    #[test]
    fn an_element_that_has_moved_is_found_by_id_then_by_label() {
        let cart = link(1, "Cart", "Shop Cart Account");
        let with_id = |element: PageElement| PageElement { id: "cart".to_owned(), ..element };
        let page = [link(1, "Offers", "Shop"), link(2, "Cart", "Shop"), with_id(link(3, "Basket", "Shop"))];
        assert_eq!(place_of(&find(&with_id(cart.clone()), &page)), Some((FoundBy::Id, "a:nth-child(3)")));
        assert_eq!(place_of(&find(&cart, &page)), Some((FoundBy::Label, "a:nth-child(2)")));
    }

    #[test]
    fn alike_elements_are_told_apart_by_address_and_by_surroundings() {
        let recorded = link(9, "Add to cart", "Steel kettle 1.7 l $30 Add to cart");
        let others = [
            link(1, "Add to cart", "Oak chair $80 Add to cart"),
            link(2, "Add to cart", "Steel kettle 1.7 l $28 Add to cart"),
        ];
        assert_eq!(place_of(&find(&recorded, &others)), Some((FoundBy::Surroundings, "a:nth-child(2)")));
        let alike = [link(1, "Add to cart", "Oak chair"), link(2, "Add to cart", "Tin mug")];
        assert_eq!(find(&recorded, &alike), ElementSight::Ambiguous { alike: 2 });
        let to = |element: &PageElement, href: &str| PageElement { href: href.to_owned(), ..element.clone() };
        let page = [to(&alike[0], "/add/1"), to(&alike[1], "/add/7")];
        assert_eq!(place_of(&find(&to(&recorded, "/add/7"), &page)), Some((FoundBy::Address, "a:nth-child(2)")));
    }

    #[test]
    fn a_new_label_in_the_same_place_is_the_element_and_another_element_is_not() {
        let recorded = link(3, "Log in", "Shop Log in Cart Help");
        let renamed = [link(3, "Sign in", "Shop Sign in Cart Help")];
        assert_eq!(place_of(&find(&recorded, &renamed)), Some((FoundBy::Place, "a:nth-child(3)")));
        let other = [link(3, "Terms", "Imprint Terms Privacy"), link(4, "Log in now", "Shop Cart Help")];
        let ElementSight::Gone { similar: Some(similar) } = find(&recorded, &other) else { panic!("it is gone") };
        assert_eq!(similar.name, "Log in now");
        assert_eq!(find(&recorded, &other[..1]), ElementSight::Gone { similar: None });
    }
}
