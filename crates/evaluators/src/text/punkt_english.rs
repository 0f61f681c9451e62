//! The parameters of the Punkt model for English that can affect texts in lower case.
//!
//! Source: NLTK's `punkt_tab/english` (Kiss and Strunk 2006, trained on the Wall Street Journal). The model has
//! orthographic contexts of 20,366 words. Only four of them matter here: those that it has seen at the beginning of a
//! sentence in lower case but never in upper case. Before any other word in lower case, a number with a full stop does
//! not end a sentence.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words that are abbreviations if a full stop follows.
pub(super) static ABBREVIATIONS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "
     . . a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v calif chg
     cie co col colo conn corp cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f
     g.k ga gen h h.c h.f h.m i.m.s ill inc j.b j.c j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a
     m.d.c m.j maj messrs mg mich minn mr mrs ms n n.c n.d n.h n.j n.m n.v n.y nev nov oct ok okla ore p p.a.m
     p.m pa ph.d prof r r.a r.h r.i r.j r.k r.t rep reps s s.a s.a.y s.c s.g s.p.a s.s sen sep sept sr st sw t
     t.j tenn tues u.k u.n u.s u.s.a u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr
    "
    .split_whitespace()
    .collect()
});

/// Pairs of words between which a full stop does not end a sentence.
pub(super) const COLLOCATIONS: &[(&str, &str)] = &[
    ("##number##", "abreast"),
    ("##number##", "aes"),
    ("##number##", "business"),
    ("##number##", "cbot"),
    ("##number##", "colgate"),
    ("##number##", "commodities"),
    ("##number##", "cooper"),
    ("##number##", "corrections"),
    ("##number##", "credit"),
    ("##number##", "dividend"),
    ("##number##", "financing"),
    ("##number##", "genentech"),
    ("##number##", "henley"),
    ("##number##", "insider"),
    ("##number##", "international"),
    ("##number##", "leisure"),
    ("##number##", "letters"),
    ("##number##", "notable"),
    ("##number##", "pay-fone"),
    ("##number##", "pegasus"),
    ("##number##", "pepper"),
    ("##number##", "review"),
    ("##number##", "rj"),
    ("##number##", "wedgestone"),
    ("##number##", "who"),
    ("##number##", "zimmer"),
    ("b", "edelman"),
    ("b", "levine"),
    ("b", "smith"),
    ("b", "stewart"),
    ("b", "wigton"),
    ("i", "magnin"),
    ("i", "toussie"),
    ("j", "aron"),
    ("j", "fialka"),
    ("j", "walter"),
    ("o", "ludcke"),
];

/// Words in lower case before which a number with a full stop may end a sentence.
pub(super) const SENTENCE_STARTERS: &[&str] = &["administrators", "b-week", "r-revised", "z-holiday"];
