//! Evaluates the trees of expressions.

use super::functions;
use super::parse::{Axis, Expression, Operator, Path, Start, Step, Test};
use super::value::{Item, Value};
use crate::tree::{NodeId, NodeKind, Tree};

/// The node that an expression is evaluated at, and its position among its peers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) item: Item,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Evaluator<'a> {
    pub(super) tree: &'a Tree,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree }
    }

    pub(super) fn evaluate(&self, expression: &Expression, node: NodeId) -> Result<Value, String> {
        self.value(expression, Context { item: Item::Node(node), position: 1, size: 1 })
    }

    pub(super) fn value(&self, expression: &Expression, context: Context) -> Result<Value, String> {
        Ok(match expression {
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Negated(inner) => Value::Number(-self.value(inner, context)?.number(self.tree)),
            Expression::Union(left, right) => {
                let (Value::Nodes(mut left), Value::Nodes(right)) =
                    (self.value(left, context)?, self.value(right, context)?)
                else {
                    return Err("both sides of `|` have to be nodes".to_owned());
                };
                left.extend(right);
                Value::Nodes(ordered(left))
            }
            Expression::Path(path) => self.path(path, context)?,
            Expression::Call(name, arguments) => {
                let values =
                    arguments.iter().map(|argument| self.value(argument, context)).collect::<Result<_, _>>()?;
                functions::call(self.tree, name, values, context)?
            }
            Expression::Binary(Operator::Or, left, right) => {
                Value::Boolean(self.value(left, context)?.boolean() || self.value(right, context)?.boolean())
            }
            Expression::Binary(Operator::And, left, right) => {
                Value::Boolean(self.value(left, context)?.boolean() && self.value(right, context)?.boolean())
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.value(left, context)?, self.value(right, context)?);
                self.binary(*operator, &left, &right)
            }
        })
    }

    fn binary(&self, operator: Operator, left: &Value, right: &Value) -> Value {
        let numbers = || (left.number(self.tree), right.number(self.tree));
        Value::Number(match operator {
            Operator::Plus => numbers().0 + numbers().1,
            Operator::Minus => numbers().0 - numbers().1,
            Operator::Times => numbers().0 * numbers().1,
            Operator::Divided => numbers().0 / numbers().1,
            Operator::Modulo => numbers().0 % numbers().1,
            _ => return Value::Boolean(self.compares(operator, left, right)),
        })
    }

    /// A comparison with nodes holds if it holds for one of them.
    fn compares(&self, operator: Operator, left: &Value, right: &Value) -> bool {
        if let (Value::Nodes(nodes), false) = (left, matches!(right, Value::Boolean(_))) {
            return nodes.iter().any(|node| self.compares(operator, &Value::Text(node.text(self.tree)), right));
        }
        if let (Value::Nodes(nodes), false) = (right, matches!(left, Value::Boolean(_))) {
            return nodes.iter().any(|node| self.compares(operator, left, &Value::Text(node.text(self.tree))));
        }
        let is_equality = matches!(operator, Operator::Equal | Operator::Different);
        if is_equality {
            let is_equal = match (left, right) {
                (Value::Boolean(_), _) | (_, Value::Boolean(_)) => left.boolean() == right.boolean(),
                (Value::Number(_), _) | (_, Value::Number(_)) => left.number(self.tree) == right.number(self.tree),
                _ => left.text(self.tree) == right.text(self.tree),
            };
            return is_equal == (operator == Operator::Equal);
        }
        let as_number = |value: &Value| match value {
            Value::Nodes(_) => f64::from(u8::from(value.boolean())),
            other => other.number(self.tree),
        };
        let (left, right) = (as_number(left), as_number(right));
        match operator {
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::Greater => left > right,
            _ => left >= right,
        }
    }

    fn path(&self, path: &Path, context: Context) -> Result<Value, String> {
        let mut items = match &path.start {
            Start::Context => vec![context.item],
            Start::Document => vec![Item::Node(Tree::DOCUMENT)],
            Start::Filtered(primary, predicates) => {
                let value = self.value(primary, context)?;
                let Value::Nodes(items) = value else {
                    if predicates.is_empty() && path.steps.is_empty() {
                        return Ok(value);
                    }
                    return Err("a path has to begin with nodes".to_owned());
                };
                self.filtered(items, predicates)?
            }
        };
        for step in &path.steps {
            let mut next = Vec::new();
            for item in items {
                next.extend(self.step(item, step)?);
            }
            items = ordered(next);
        }
        Ok(Value::Nodes(items))
    }

    fn filtered(&self, mut items: Vec<Item>, predicates: &[Expression]) -> Result<Vec<Item>, String> {
        for predicate in predicates {
            let size = items.len();
            let mut kept = Vec::new();
            for (at, item) in items.into_iter().enumerate() {
                let context = Context { item, position: at + 1, size };
                let fits = match self.value(predicate, context)? {
                    #[expect(clippy::cast_precision_loss, reason = "positions are small")]
                    Value::Number(number) => number == context.position as f64,
                    other => other.boolean(),
                };
                if fits {
                    kept.push(item);
                }
            }
            items = kept;
        }
        Ok(items)
    }

    /// The nodes of a step, in the order of its axis, so that positions count from the context node.
    fn step(&self, item: Item, step: &Step) -> Result<Vec<Item>, String> {
        let mut nodes = self.axis(item, step.axis);
        nodes.retain(|node| self.passes(*node, step));
        self.filtered(nodes, &step.predicates)
    }

    fn axis(&self, item: Item, axis: Axis) -> Vec<Item> {
        let tree = self.tree;
        let nodes = |ids: Vec<NodeId>| ids.into_iter().map(Item::Node).collect::<Vec<_>>();
        let node = match item {
            Item::Node(node) => node,
            Item::Attribute(element, _) => {
                return match axis {
                    Axis::Itself => vec![item],
                    Axis::Parent => vec![Item::Node(element)],
                    Axis::Ancestor | Axis::AncestorOrSelf => {
                        let own = (axis == Axis::AncestorOrSelf).then_some(item);
                        let above = std::iter::once(element).chain(tree.ancestors(element)).map(Item::Node);
                        own.into_iter().chain(above).collect()
                    }
                    _ => Vec::new(),
                };
            }
        };
        let (before, after) = tree.siblings(node);
        match axis {
            Axis::Itself => vec![item],
            Axis::Child => nodes(tree.children(node).to_vec()),
            Axis::Parent => nodes(tree.parent(node).into_iter().collect()),
            Axis::Ancestor => nodes(tree.ancestors(node).collect()),
            Axis::AncestorOrSelf => nodes(std::iter::once(node).chain(tree.ancestors(node)).collect()),
            Axis::Descendant => nodes(tree.descendants(node).collect()),
            Axis::DescendantOrSelf => nodes(std::iter::once(node).chain(tree.descendants(node)).collect()),
            Axis::FollowingSibling => nodes(after.to_vec()),
            Axis::PrecedingSibling => nodes(before.iter().rev().copied().collect()),
            Axis::Attribute => (0..tree.attributes(node).len()).map(|at| Item::Attribute(node, at)).collect(),
            Axis::Namespace => Vec::new(),
            Axis::Following | Axis::Preceding => {
                let mut out = Vec::new();
                for place in std::iter::once(node).chain(tree.ancestors(node)) {
                    let (before, after) = tree.siblings(place);
                    let siblings = if axis == Axis::Following { after } else { before };
                    for sibling in siblings {
                        out.push(*sibling);
                        out.extend(tree.descendants(*sibling));
                    }
                }
                out.sort_unstable();
                if axis == Axis::Preceding {
                    out.reverse();
                }
                nodes(out)
            }
        }
    }

    fn passes(&self, item: Item, step: &Step) -> bool {
        match item {
            Item::Attribute(..) => match &step.test {
                Test::Any | Test::Node => true,
                Test::Name(name) => step.axis == Axis::Attribute && item.name(self.tree) == name,
                _ => false,
            },
            Item::Node(node) => match (&step.test, self.tree.kind(node)) {
                (Test::Node, _)
                | (Test::Any, NodeKind::Element { .. })
                | (Test::Text, NodeKind::Text(_) | NodeKind::CData(_))
                | (Test::Comment, NodeKind::Comment(_))
                | (Test::Instruction, NodeKind::Other) => true,
                (Test::Name(wanted), NodeKind::Element { name, .. }) => name == wanted,
                _ => false,
            },
        }
    }
}

/// Returns nodes in document order, each once. The parser numbers nodes in that order.
fn ordered(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_unstable_by_key(|item| match item {
        Item::Node(node) => (*node, 0),
        Item::Attribute(element, at) => (*element, at + 1),
    });
    items.dedup();
    items
}
