//! Names of units of length in pint 0.25, in lower case, with their metres.

use std::f64::consts::PI;

use super::expression::Quantity;

/// Units whose size is an integer in pint.
const WHOLE: [(&str, i128); 7] = [
    ("meter", 1),
    ("metre", 1),
    ("m", 1),
    ("astronomical_unit", 149_597_870_700),
    ("au", 149_597_870_700),
    ("nautical_mile", 1852),
    ("nmi", 1852),
];

/// All other units, with the size that results from pint's definitions.
const LENGTHS: &[(&[&str], f64)] = &[
    (&["angstrom"], 1e-10),
    (&["micron"], 1e-6),
    (&["fermi", "fm"], 1e-15),
    (&["light_year", "lightyear", "ly"], 9_460_730_472_580_800.0),
    (&["parsec", "pc"], 3.085_677_581_467_191_6e16),
    (&["thou", "th", "mil_length"], 2.539_999_999_999_999_7e-5),
    (&["inch", "in", "international_inch", "inches", "international_inches"], 0.0254),
    (&["hand"], 0.1016),
    (&["foot", "ft", "feet", "international_foot", "international_feet"], 0.304_799_999_999_999_96),
    (&["yard", "yd", "international_yard"], 0.9144),
    (&["mile", "mi", "international_mile"], 1609.344),
    (&["link", "li", "survey_link"], 0.201_168_402_336_804_66),
    (&["survey_foot", "sft"], 0.304_800_609_601_219_2),
    (&["fathom"], 1.828_803_657_607_315),
    (&["rod", "rd", "pole", "perch"], 5.029_210_058_420_117),
    (&["chain"], 20.116_840_233_680_467),
    (&["furlong", "fur"], 201.168_402_336_804_66),
    (&["cables_length"], 219.456_438_912_877_81),
    (&["survey_mile", "smi", "us_statute_mile"], 1_609.347_218_694_437_3),
    (&["league"], 4_828.041_656_083_312),
    (&["pica", "printers_pica"], 0.004_233_333_333_333_333),
    (&["point", "pp", "printers_point", "big_point", "bp"], 0.000_352_777_777_777_777_76),
    (&["css_pixel", "px"], 0.000_264_583_333_333_333_3),
];

const PREFIXES: &[(&[&str], f64)] = &[
    (&["pico", "p"], 1e-12),
    (&["nano", "n"], 1e-9),
    (&["micro", "u", "mu", "mc"], 1e-6),
    (&["milli", "m"], 1e-3),
    (&["centi", "c"], 1e-2),
    (&["deci", "d"], 1e-1),
    (&["deca", "da", "deka"], 1e1),
    (&["hecto", "h"], 1e2),
    (&["kilo", "k"], 1e3),
    (&["mega"], 1e6),
    (&["giga"], 1e9),
    (&["tera"], 1e12),
    (&["semi", "demi"], 0.5),
    (&["sesqui"], 1.5),
];

/// Dimensionless units, which may multiply a length: those with an integer factor, then the others.
const PURE_WHOLE: &[(&[&str], i128)] =
    &[(&["bit", "count", "rad", "radian", "sr", "steradian"], 1), (&["byte", "octet"], 8)];
const PURE: &[(&[&str], f64)] = &[
    (&["arcmin", "arcminute", "arc_minute", "angular_minute"], 0.000_290_888_208_665_721_63),
    (&["arcsec", "arcsecond", "arc_second", "angular_second"], 4.848_136_811_095_36e-6),
    (&["mas", "milliarcsecond"], 4.848_136_811_095_36e-9),
    (&["circle", "cycle", "revolution", "turn"], 2.0 * PI),
    (&["deg", "degree", "arcdeg", "arcdegree", "angular_degree"], PI / 180.0),
    (&["grad", "grade", "gon"], PI / 200.0),
    (&["mil"], PI / 32_000.0),
    (&["permille"], 1e-3),
    (&["pi"], PI),
    (&["ppm"], 1e-6),
];

/// Names that end like a unit of length but denote something else.
const OTHERS: [&str; 2] = ["min", "mins"];

/// The meaning of a name.
pub(super) enum Name {
    /// A unit of length; its size in metres.
    Length(Quantity),
    /// One hundredth, for `percent`.
    Percent,
    /// A dimensionless unit; its factor.
    Pure(Quantity),
    /// Any name that is not usable in a length.
    Other,
}

/// Looks up a name: as it is, in the plural, and with a prefix.
pub(super) fn look_up(name: &str) -> Name {
    if OTHERS.contains(&name) || name.ends_with("bps") {
        return Name::Other;
    }
    if name == "percent" {
        return Name::Percent;
    }
    if let Some(metres) = singular(name).or_else(|| plural(name)) {
        return Name::Length(metres);
    }
    let prefixed = PREFIXES.iter().find_map(|(prefixes, factor)| {
        prefixes.iter().find_map(|prefix| {
            let rest = name.strip_prefix(prefix)?;
            let metres = singular(rest).or_else(|| plural(rest))?;
            Some(Quantity::Float(factor * metres.to_float()))
        })
    });
    match prefixed {
        Some(metres) => Name::Length(metres),
        None => pure(name).or_else(|| name.strip_suffix('s').and_then(pure)).map_or(Name::Other, Name::Pure),
    }
}

fn singular(name: &str) -> Option<Quantity> {
    let whole = WHOLE.iter().find(|(known, _)| *known == name).map(|(_, metres)| Quantity::Whole(*metres));
    whole
        .or_else(|| LENGTHS.iter().find(|(names, _)| names.contains(&name)).map(|(_, metres)| Quantity::Float(*metres)))
}

fn pure(name: &str) -> Option<Quantity> {
    let whole = PURE_WHOLE.iter().find(|(names, _)| names.contains(&name)).map(|(_, factor)| Quantity::Whole(*factor));
    whole.or_else(|| PURE.iter().find(|(names, _)| names.contains(&name)).map(|(_, factor)| Quantity::Float(*factor)))
}

/// Looks up a plural. A name of one letter has none.
fn plural(name: &str) -> Option<Quantity> {
    name.strip_suffix('s').filter(|name| name.len() > 1).and_then(singular)
}
