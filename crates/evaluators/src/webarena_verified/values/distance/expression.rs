//! `pint.UnitRegistry().parse_expression(text).to("meter")` for lengths: numbers, units, and arithmetic.
//!
//! Source: pint 0.25, `util.py` (`string_preprocessor`) and `pint_eval.py`.

use std::sync::LazyLock;

use fancy_regex::Regex;

use super::units::{Name, look_up};

/// A number in Python: an integer until it is divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    Whole(i128),
    Float(f64),
}

impl Quantity {
    #[expect(clippy::cast_precision_loss, reason = "Python's float(int) rounds as well")]
    pub(super) fn to_float(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    fn both(self, other: Self, whole: fn(i128, i128) -> Option<i128>, float: fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) if whole(one, other).is_some() => {
                Self::Whole(whole(one, other).unwrap_or_default())
            }
            _ => Self::Float(float(self.to_float(), other.to_float())),
        }
    }

    fn times(self, other: Self) -> Self {
        self.both(other, i128::checked_mul, |one, other| one * other)
    }
}

/// A number times a power of a length: the number in the original unit, and the metres of that unit.
#[derive(Debug, Clone, Copy)]
struct LengthPower {
    size: Quantity,
    unit: Quantity,
    power: i32,
}

/// The deepest nesting; the benchmark does not read deeper expressions as distances either.
const DEPTH: usize = 64;

/// Returns the metres of an expression, or `None` if it is not a length.
pub(super) fn metres(text: &str) -> Option<Quantity> {
    let mut reader = ExpressionReader { tokens: tokens(&prepared(text))?, at: 0 };
    let length = reader.tree("", 0).filter(|length| length.power == 1 && reader.at >= reader.tokens.len())?;
    Some(length.size.times(length.unit))
}

/// Replaces blanks by multiplications, and words such as `squared` by powers.
fn prepared(text: &str) -> String {
    static STEPS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let name = "[_a-zA-Z][_a-zA-Z0-9]*";
        [
            (r"([\w.\-+*\\^])\s+".to_owned(), "${1} "),
            (format!("({name}) squared"), "${1}**2"),
            (format!("({name}) cubed"), "${1}**3"),
            (format!("cubic ({name})"), "${1}**3"),
            (format!("square ({name})"), "${1}**2"),
            (format!("sq ({name})"), "${1}**2"),
            (r"\b([0-9]+\.?[0-9]*)(?=[e|E][a-zA-Z]|[a-df-zA-DF-Z])".to_owned(), "${1}*"),
            (r"([\w.)])\s+(?=[\w(])".to_owned(), "${1}*"),
        ]
        .map(|(pattern, with)| (Regex::new(&pattern).expect("a pattern of ours"), with))
        .into()
    });
    let text = text.replace(',', "").replace(" per ", "/").replace('%', " percent");
    let text = STEPS.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned());
    text.replace('^', "**")
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Quantity),
    Name(String),
    Operator(&'static str),
}

const OPERATORS: [(&str, u8); 8] = [("**", 3), ("//", 1), ("*", 1), ("/", 1), ("+", 0), ("-", 0), ("(", 0), (")", 0)];

fn priority(operator: &str) -> Option<u8> {
    match operator {
        "unary" => Some(2),
        "implicit" => Some(1),
        other => {
            OPERATORS.iter().find(|(known, _)| *known == other && !"()".contains(other)).map(|(_, priority)| *priority)
        }
    }
}

/// Splits a text into Python's tokens. Texts in quotes, comments after a hash, and symbols that pint does not use as
/// operators are skipped. Returns `None` if Python's tokenizer raises.
fn tokens(text: &str) -> Option<Vec<Token>> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        let digits = "[0-9](?:_?[0-9])*";
        let exponent = format!("[eE][-+]?{digits}");
        let pattern = format!(
            r"^(?:(?:{digits}\.(?:{digits})?|\.{digits})(?:{exponent})?|{digits}{exponent}|0(?:_?0)*|[1-9](?:_?[0-9])*)"
        );
        Regex::new(&pattern).expect("a pattern of ours")
    });
    let mut tokens = Vec::new();
    // The depth of brackets of all kinds. The tokenizer only requires equal numbers of opening and closing ones.
    let mut open = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        open += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        if let Some(length) = quoted(rest)? {
            rest = &rest[length..];
        } else if let Some(after) = rest.strip_prefix("...") {
            rest = after;
        } else if let Ok(Some(found)) = NUMBER.find(rest) {
            let digits = found.as_str().replace('_', "");
            let number = match digits.parse() {
                Ok(whole) => Quantity::Whole(whole),
                Err(_) => Quantity::Float(digits.parse().unwrap_or(f64::NAN)),
            };
            tokens.push(Token::Number(number));
            rest = &rest[found.end()..];
        } else if c.is_ascii_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some((operator, _)) = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator)) {
            tokens.push(Token::Operator(operator));
            rest = &rest[operator.len()..];
        } else if c == '#' {
            break;
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    (open == 0).then_some(tokens)
}

/// Returns the length of the text in quotes at the start, which may have a prefix such as `r` and one or three quotes;
/// `Some(None)` if there is none. A single quote without an end is an ordinary character; three quotes without an end
/// are an error, the outer `None`.
#[expect(clippy::option_option, reason = "an error, or none, or a length")]
fn quoted(text: &str) -> Option<Option<usize>> {
    let Some(start) = text.find(['\'', '"']).filter(|start| *start <= 2) else { return Some(None) };
    let prefix = text[..start].to_ascii_lowercase();
    if !["", "b", "r", "u", "f", "br", "rb", "fr", "rf"].contains(&prefix.as_str()) {
        return Some(None);
    }
    let quote = &text[start..=start];
    let (open, is_long) = (quote.repeat(3), text[start..].starts_with(&quote.repeat(3)));
    let close = if is_long { open.as_str() } else { quote };
    let mut at = start + close.len();
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(close) {
            return Some(Some(at + close.len()));
        }
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    if is_long { None } else { Some(None) }
}

/// Evaluates tokens in the order in which pint's tree builder reads them.
struct ExpressionReader {
    tokens: Vec<Token>,
    at: usize,
}

impl ExpressionReader {
    /// Evaluates the tokens up to the end, or up to an operator of lower precedence than the previous one. Returns
    /// `None` if pint raises.
    fn tree(&mut self, before: &'static str, depth: usize) -> Option<LengthPower> {
        if depth > DEPTH {
            return None;
        }
        let binds = priority(before);
        let mut result: Option<LengthPower> = None;
        while let Some(token) = self.tokens.get(self.at).cloned() {
            match token {
                Token::Operator(")") => return if depth == 0 { None } else { result },
                Token::Operator("(") => {
                    self.at += 1;
                    let inner = self.tree("(", depth + 1)?;
                    if self.tokens.get(self.at) != Some(&Token::Operator(")")) {
                        return None;
                    }
                    self.at += 1;
                    result = Some(match result {
                        Some(result) => times(result, inner)?,
                        None => inner,
                    });
                }
                Token::Operator(operator) => {
                    let own = priority(operator)?;
                    if let Some(left) = result {
                        if operator != "**" && binds.is_some_and(|binds| own <= binds) {
                            return result;
                        }
                        self.at += 1;
                        let right = self.tree(operator, depth + 1)?;
                        result = Some(combined(left, operator, right)?);
                    } else {
                        self.at += 1;
                        let right = self.tree("unary", depth + 1)?;
                        result = Some(match operator {
                            "+" => right,
                            "-" => LengthPower { size: right.size.times(Quantity::Whole(-1)), ..right },
                            _ => return None,
                        });
                    }
                }
                Token::Number(_) | Token::Name(_) => {
                    if let Some(left) = result {
                        if binds.is_some_and(|binds| 1 <= binds) {
                            return result;
                        }
                        let right = self.tree("implicit", depth + 1)?;
                        result = Some(times(left, right)?);
                    } else {
                        result = Some(Self::operand(token)?);
                        self.at += 1;
                    }
                }
            }
        }
        result
    }

    fn operand(token: Token) -> Option<LengthPower> {
        let number = |size| LengthPower { size, unit: Quantity::Whole(1), power: 0 };
        match token {
            Token::Number(size) => Some(number(size)),
            Token::Name(name) if name == "inf" || name == "infinity" => Some(number(Quantity::Float(f64::INFINITY))),
            Token::Name(name) => match look_up(&name) {
                Name::Percent => Some(number(Quantity::Float(0.01))),
                Name::Length(unit) => Some(LengthPower { size: Quantity::Whole(1), unit, power: 1 }),
                Name::Pure(factor) => Some(number(factor)),
                Name::Other => None,
            },
            Token::Operator(_) => None,
        }
    }
}

fn times(one: LengthPower, other: LengthPower) -> Option<LengthPower> {
    let power = one.power + other.power;
    let unit = if one.power == 0 { other.unit } else { one.unit };
    let size = one.size.times(other.size);
    if one.power != 0 && other.power != 0 {
        // The product of two lengths is an area, unless the powers cancel out.
        let size = Quantity::Float(size.to_float() * other.unit.to_float() / unit.to_float());
        return Some(LengthPower { size, unit, power });
    }
    Some(LengthPower { size, unit, power })
}

fn combined(left: LengthPower, operator: &str, right: LengthPower) -> Option<LengthPower> {
    match operator {
        "*" => times(left, right),
        "/" => {
            if right.size.to_float() == 0.0 {
                return None;
            }
            let size = Quantity::Float(left.size.to_float() / right.size.to_float());
            let power = left.power - right.power;
            match (left.power, right.power) {
                (_, 0) => Some(LengthPower { size, ..left }),
                (0, _) => Some(LengthPower { size, unit: right.unit, power }),
                _ => {
                    let size = Quantity::Float(size.to_float() * left.unit.to_float() / right.unit.to_float());
                    Some(LengthPower { size, unit: left.unit, power })
                }
            }
        }
        "+" | "-" if left.power == right.power => {
            let sign = if operator == "+" { Quantity::Whole(1) } else { Quantity::Whole(-1) };
            let right_size = if left.unit == right.unit || right.power == 0 {
                right.size
            } else {
                Quantity::Float(right.size.to_float() * (right.unit.to_float() / left.unit.to_float()))
            };
            let size = left.size.both(right_size.times(sign), i128::checked_add, |one, other| one + other);
            Some(LengthPower { size, ..left })
        }
        "**" if right.power == 0 => {
            let Quantity::Whole(exponent) = right.size else { return None };
            let exponent = i32::try_from(exponent).ok().filter(|exponent| (0..=16).contains(exponent))?;
            let size = match left.size {
                Quantity::Whole(whole) => whole.checked_pow(u32::try_from(exponent).ok()?).map(Quantity::Whole)?,
                Quantity::Float(float) => Quantity::Float(float.powi(exponent)),
            };
            Some(LengthPower { size, unit: left.unit, power: left.power * exponent })
        }
        _ => None,
    }
}
