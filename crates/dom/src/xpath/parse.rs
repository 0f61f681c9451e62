//! Expressions to trees: the grammar of XPath 1.0.

/// An expression as a tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Binary(Operator, Box<Expression>, Box<Expression>),
    Negated(Box<Expression>),
    Union(Box<Expression>, Box<Expression>),
    Path(Path),
    Number(f64),
    Text(String),
    Call(String, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divided,
    Modulo,
}

/// Steps from a start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub(super) start: Start,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Start {
    Context,
    Document,
    Filtered(Box<Expression>, Vec<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Expression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    Name(String),
    Any,
    Node,
    Text,
    Comment,
    Instruction,
}

type Failure = (usize, String);

/// The depth of nested expressions at which libxml2 gives up, roughly.
const DEPTH_MAX: usize = 200;

/// The length of an expression in bytes, so that its parts fit on the stack.
const LENGTH_MAX: usize = 8192;

pub(super) fn parse(expression: &str) -> Result<Expression, Failure> {
    if expression.len() > LENGTH_MAX {
        return Err((LENGTH_MAX, "it is too long".to_owned()));
    }
    let mut parser = Parser { chars: expression.chars().collect(), at: 0, depth: 0 };
    let parsed = parser.or()?;
    parser.spaces();
    if parser.at < parser.chars.len() {
        return parser.fail("nothing more is expected here");
    }
    Ok(parsed)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || "_-.\u{b7}".contains(c)
}

impl Parser {
    fn fail<T>(&self, what: &str) -> Result<T, Failure> {
        Err((self.at, what.to_owned()))
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn spaces(&mut self) {
        while self.ahead(0).is_some_and(|c| " \t\n\r".contains(c)) {
            self.at += 1;
        }
    }

    /// Takes a sign after white space.
    fn takes(&mut self, sign: &str) -> bool {
        self.spaces();
        let fits = sign.chars().enumerate().all(|(by, c)| self.ahead(by) == Some(c));
        self.at += if fits { sign.chars().count() } else { 0 };
        fits
    }

    fn expects(&mut self, sign: &str) -> Result<(), Failure> {
        if self.takes(sign) { Ok(()) } else { self.fail(&format!("`{sign}` is expected")) }
    }

    /// Takes an operator that is a word.
    fn word(&mut self, word: &str) -> bool {
        let begin = self.at;
        let fits = self.takes(word);
        if !fits {
            self.at = begin;
        }
        fits
    }

    fn name(&mut self) -> Option<String> {
        if !self.ahead(0).is_some_and(is_name_start) {
            return None;
        }
        let begin = self.at;
        while self.ahead(0).is_some_and(is_name_char) {
            self.at += 1;
        }
        Some(self.chars[begin..self.at].iter().collect())
    }

    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        next: fn(&mut Self) -> Result<Expression, Failure>,
    ) -> Result<Expression, Failure> {
        let mut left = next(self)?;
        'more: loop {
            for (sign, operator) in operators {
                let is_word = sign.starts_with(|c: char| c.is_alphabetic());
                let found = if is_word { self.word(sign) } else { self.takes(sign) };
                if found {
                    left = Expression::Binary(*operator, Box::new(left), Box::new(next(self)?));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn or(&mut self) -> Result<Expression, Failure> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail("the expression is nested too deeply");
        }
        let parsed = self.chain(&[("or", Operator::Or)], Self::and);
        self.depth -= 1;
        parsed
    }

    fn and(&mut self) -> Result<Expression, Failure> {
        self.chain(&[("and", Operator::And)], Self::equality)
    }

    fn equality(&mut self) -> Result<Expression, Failure> {
        self.chain(&[("=", Operator::Equal), ("!=", Operator::Different)], Self::relation)
    }

    fn relation(&mut self) -> Result<Expression, Failure> {
        let operators = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        self.chain(&operators, Self::sum)
    }

    fn sum(&mut self) -> Result<Expression, Failure> {
        self.chain(&[("+", Operator::Plus), ("-", Operator::Minus)], Self::product)
    }

    fn product(&mut self) -> Result<Expression, Failure> {
        self.chain(&[("*", Operator::Times), ("div", Operator::Divided), ("mod", Operator::Modulo)], Self::unary)
    }

    fn unary(&mut self) -> Result<Expression, Failure> {
        let mut is_negated = false;
        let mut has_sign = false;
        while self.takes("-") {
            is_negated = !is_negated;
            has_sign = true;
        }
        let inner = self.union()?;
        let inner = if has_sign && !is_negated { Expression::Negated(Box::new(inner)) } else { inner };
        Ok(if has_sign { Expression::Negated(Box::new(inner)) } else { inner })
    }

    fn union(&mut self) -> Result<Expression, Failure> {
        let mut left = self.path()?;
        while self.takes("|") {
            left = Expression::Union(Box::new(left), Box::new(self.path()?));
        }
        Ok(left)
    }

    fn path(&mut self) -> Result<Expression, Failure> {
        self.spaces();
        if self.is_filter() {
            let primary = self.primary()?;
            let predicates = self.predicates()?;
            let mut steps = Vec::new();
            if self.takes("//") {
                steps.push(anywhere());
                self.relative(&mut steps)?;
            } else if self.ahead(0) == Some('/') {
                self.relative(&mut steps)?;
            } else if predicates.is_empty() {
                return Ok(primary);
            }
            return Ok(Expression::Path(Path { start: Start::Filtered(Box::new(primary), predicates), steps }));
        }
        let mut steps = Vec::new();
        if self.ahead(0) != Some('/') {
            self.steps(&mut steps)?;
            return Ok(Expression::Path(Path { start: Start::Context, steps }));
        }
        loop {
            if self.takes("//") {
                steps.push(anywhere());
                self.relative(&mut steps)?;
            } else if self.takes("/") {
                self.spaces();
                if self.ahead(0).is_some_and(|c| is_name_start(c) || "@.*".contains(c)) {
                    self.relative(&mut steps)?;
                }
            } else {
                return Ok(Expression::Path(Path { start: Start::Document, steps }));
            }
        }
    }

    /// A relative path, which libxml2 lets begin with slashes: `///p` is `//p`. Source: `xmlXPathCompRelativeLocationPath`.
    fn relative(&mut self, steps: &mut Vec<Step>) -> Result<(), Failure> {
        if self.takes("//") {
            steps.push(anywhere());
        } else {
            self.takes("/");
        }
        self.steps(steps)
    }

    /// Returns whether a primary expression begins here, and not a step.
    fn is_filter(&self) -> bool {
        match self.ahead(0) {
            Some('(' | '"' | '\'' | '$') => true,
            Some('.') => self.ahead(1).is_some_and(|c| c.is_ascii_digit()),
            Some(c) if c.is_ascii_digit() => true,
            Some(c) if is_name_start(c) => {
                let mut by = 0;
                while self.ahead(by).is_some_and(|c| is_name_char(c) || c == ':') {
                    if self.ahead(by) == Some(':') && self.ahead(by + 1) == Some(':') {
                        return false;
                    }
                    by += 1;
                }
                let name: String = self.chars[self.at..self.at + by].iter().collect();
                while self.ahead(by).is_some_and(|c| " \t\n\r".contains(c)) {
                    by += 1;
                }
                let is_test = matches!(name.as_str(), "node" | "text" | "comment" | "processing-instruction");
                self.ahead(by) == Some('(') && !is_test
            }
            _ => false,
        }
    }

    fn primary(&mut self) -> Result<Expression, Failure> {
        match self.ahead(0) {
            Some('(') => {
                self.at += 1;
                let inner = self.or()?;
                self.expects(")")?;
                Ok(inner)
            }
            Some('"' | '\'') => Ok(Expression::Text(self.literal()?)),
            Some('$') => self.fail("variables do not exist here"),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            _ => {
                let mut name = self.name().unwrap_or_default();
                if self.ahead(0) == Some(':') {
                    self.at += 1;
                    name = format!("{name}:{}", self.name().unwrap_or_default());
                }
                self.expects("(")?;
                let mut arguments = Vec::new();
                if !self.takes(")") {
                    loop {
                        arguments.push(self.or()?);
                        if !self.takes(",") {
                            break;
                        }
                    }
                    self.expects(")")?;
                }
                Ok(Expression::Call(name, arguments))
            }
        }
    }

    fn literal(&mut self) -> Result<String, Failure> {
        let Some(quote @ ('"' | '\'')) = self.ahead(0) else { return self.fail("a text in quotes is expected") };
        let begin = self.at + 1;
        let Some(length) = self.chars[begin..].iter().position(|c| *c == quote) else {
            return self.fail("the text is not closed");
        };
        self.at = begin + length + 1;
        Ok(self.chars[begin..begin + length].iter().collect())
    }

    fn number(&mut self) -> Result<Expression, Failure> {
        let begin = self.at;
        let digits = |parser: &mut Self| {
            while parser.ahead(0).is_some_and(|c| c.is_ascii_digit()) {
                parser.at += 1;
            }
        };
        digits(self);
        if self.ahead(0) == Some('.') {
            self.at += 1;
            digits(self);
        }
        let text: String = self.chars[begin..self.at].iter().collect();
        match text.parse() {
            Ok(number) => Ok(Expression::Number(number)),
            Err(_) => self.fail("a number is expected"),
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), Failure> {
        loop {
            steps.push(self.step()?);
            if self.takes("//") {
                steps.push(anywhere());
            } else if !self.takes("/") {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Result<Step, Failure> {
        if self.takes("..") {
            return Ok(Step { axis: Axis::Parent, test: Test::Node, predicates: Vec::new() });
        }
        if self.takes(".") {
            return Ok(Step { axis: Axis::Itself, test: Test::Node, predicates: Vec::new() });
        }
        let mut axis = Axis::Child;
        if self.takes("@") {
            axis = Axis::Attribute;
        } else {
            let begin = self.at;
            if let Some(name) = self.name() {
                if self.takes("::") {
                    match axis_of(&name) {
                        Some(found) => axis = found,
                        None => return self.fail("there is no such axis"),
                    }
                } else {
                    self.at = begin;
                }
            }
        }
        self.spaces();
        let test = self.test()?;
        Ok(Step { axis, test, predicates: self.predicates()? })
    }

    fn test(&mut self) -> Result<Test, Failure> {
        if self.takes("*") {
            return Ok(Test::Any);
        }
        let Some(name) = self.name() else { return self.fail("a step is expected") };
        let after = self.at;
        if self.takes("(") {
            let test = match name.as_str() {
                "node" => Test::Node,
                "text" => Test::Text,
                "comment" => Test::Comment,
                "processing-instruction" => {
                    self.spaces();
                    if matches!(self.ahead(0), Some('"' | '\'')) {
                        self.literal()?;
                    }
                    Test::Instruction
                }
                _ => return self.fail("there is no such test of nodes"),
            };
            self.expects(")")?;
            return Ok(test);
        }
        self.at = after;
        if self.ahead(0) == Some(':') && self.ahead(1) != Some(':') {
            return self.fail("the prefix of a name is not declared");
        }
        Ok(Test::Name(name))
    }

    fn predicates(&mut self) -> Result<Vec<Expression>, Failure> {
        let mut predicates = Vec::new();
        while self.takes("[") {
            predicates.push(self.or()?);
            self.expects("]")?;
        }
        Ok(predicates)
    }
}

/// The step that `//` stands for.
fn anywhere() -> Step {
    Step { axis: Axis::DescendantOrSelf, test: Test::Node, predicates: Vec::new() }
}

fn axis_of(name: &str) -> Option<Axis> {
    Some(match name {
        "ancestor" => Axis::Ancestor,
        "ancestor-or-self" => Axis::AncestorOrSelf,
        "attribute" => Axis::Attribute,
        "child" => Axis::Child,
        "descendant" => Axis::Descendant,
        "descendant-or-self" => Axis::DescendantOrSelf,
        "following" => Axis::Following,
        "following-sibling" => Axis::FollowingSibling,
        "namespace" => Axis::Namespace,
        "parent" => Axis::Parent,
        "preceding" => Axis::Preceding,
        "preceding-sibling" => Axis::PrecedingSibling,
        "self" => Axis::Itself,
        _ => return None,
    })
}
