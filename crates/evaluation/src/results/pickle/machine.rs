//! The machine that runs a pickle's program on sizes and depths.
//!
//! Source: `pickletools.py`, and `serde_pickle`, whose behaviour the machine models.

use std::collections::HashMap;

use super::{DEPTH_MAX, EXPANDED_MAX, KEPT_MAX, NUMBER_MAX, PickleError};

/// Size of a value apart from its content, in bytes; and size of a list that is taken off the stack at a mark.
const VALUE_BYTES: u64 = 40;
const MARKED_BYTES: u64 = 128 * VALUE_BYTES;

/// Checks that a pickle can be read within the limits.
pub(super) fn measure(bytes: &[u8]) -> Result<(), PickleError> {
    let mut machine = PickleMachine::new(bytes);
    let root = machine.run()?;
    machine.check_expanded(root)
}

/// The type of a value, as far as operations require one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PickleKind {
    List,
    Dict,
    Set,
    Tuple,
    Text,
    Global,
    /// The result of a function, which satisfies every requirement.
    Any,
    Other,
}

/// A value that has been built.
#[derive(Debug)]
struct PickleNode {
    kind: PickleKind,
    /// Size of the value itself, in bytes.
    own: u64,
    /// Size of the value with its whole content, except the targets of references, in bytes.
    inline: u64,
    depth: u32,
    children: Vec<usize>,
}

/// A value on the stack: built there, or a reference to a memoized value.
#[derive(Debug, Clone, Copy)]
struct Slot {
    node: usize,
    is_reference: bool,
}

/// The single node that stands for all values without content.
const SCALAR: usize = 0;

struct PickleMachine<'a> {
    rest: &'a [u8],
    nodes: Vec<PickleNode>,
    stack: Vec<Slot>,
    /// The stacks below each mark.
    below: Vec<Vec<Slot>>,
    memo: HashMap<u32, usize>,
    kept: u64,
}

impl<'a> PickleMachine<'a> {
    fn new(rest: &'a [u8]) -> Self {
        let scalar = PickleNode {
            kind: PickleKind::Other,
            own: VALUE_BYTES,
            inline: VALUE_BYTES,
            depth: 1,
            children: Vec::new(),
        };
        Self { rest, nodes: vec![scalar], stack: Vec::new(), below: Vec::new(), memo: HashMap::new(), kept: 0 }
    }

    /// Runs the program to its end and returns its result.
    fn run(&mut self) -> Result<usize, PickleError> {
        loop {
            let [operation] = self.fixed()?;
            match operation {
                b'.' => {
                    return match self.rest {
                        [] => Ok(self.pop()?.node),
                        _ => Err(PickleError::Malformed("something follows its end")),
                    };
                }
                // PROTO, FRAME.
                0x80 => drop(self.fixed::<1>()?),
                0x95 => drop(self.fixed::<8>()?),
                _ => self.step(operation)?,
            }
        }
    }

    fn step(&mut self, operation: u8) -> Result<(), PickleError> {
        match operation {
            b'(' => self.mark(),
            b'0' if self.stack.is_empty() => self.pop_mark().map(drop),
            b'0' => self.pop().map(drop),
            b'1' => self.pop_mark().map(drop),
            // PUT, BINPUT, LONG_BINPUT, MEMOIZE; GET, BINGET, LONG_BINGET.
            b'p' => self.memo_line().and_then(|id| self.memoize(id)),
            b'q' => self.fixed::<1>().and_then(|[id]| self.memoize(id.into())),
            b'r' => self.fixed().and_then(|id| self.memoize(u32::from_le_bytes(id))),
            0x94 => self.memoize(u32::try_from(self.memo.len()).map_err(|_| PickleError::Large)?),
            b'g' => self.memo_line().and_then(|id| self.get(id)),
            b'h' => self.fixed::<1>().and_then(|[id]| self.get(id.into())),
            b'j' => self.fixed().and_then(|id| self.get(u32::from_le_bytes(id))),
            // NONE, NEWTRUE, NEWFALSE, INT, LONG, FLOAT, and the binary numbers.
            b'N' | 0x88 | 0x89 => self.push_scalar(),
            b'I' | b'L' | b'F' => {
                let line = self.line()?;
                if line.len() > NUMBER_MAX { Err(PickleError::Number) } else { self.push_scalar() }
            }
            b'K' => self.scalar::<1>(),
            b'M' => self.scalar::<2>(),
            b'J' => self.scalar::<4>(),
            b'G' => self.scalar::<8>(),
            0x8a | 0x8b => {
                let length = if operation == 0x8a { self.length::<1>()? } else { self.length::<4>()? };
                self.take(length)?;
                if length > NUMBER_MAX { Err(PickleError::Number) } else { self.push_scalar() }
            }
            // Text and bytes, by the form of their length.
            b'S' | b'V' => self.line().map(<[u8]>::len).and_then(|length| self.push_text(length)),
            b'C' | b'U' | 0x8c => self.counted::<1>(),
            b'B' | b'T' | b'X' => self.counted::<4>(),
            0x8d | 0x8e | 0x96 => self.counted::<8>(),
            // TUPLE, LIST, DICT, FROZENSET, and the operations that create empty containers.
            b')' | b']' | b'}' | 0x8f => self.push_new(empty(operation), VALUE_BYTES, &[]).map(drop),
            0x85..=0x87 => {
                let count = usize::from(operation - 0x84);
                let at = self.stack.len().checked_sub(count).ok_or(UNDERFLOW)?;
                let items = self.stack.split_off(at);
                self.push_new(PickleKind::Tuple, VALUE_BYTES, &items).map(drop)
            }
            b't' | b'l' | b'd' | 0x91 => {
                let items = self.pop_mark()?;
                let kind = match operation {
                    b't' => PickleKind::Tuple,
                    b'l' => PickleKind::List,
                    b'd' => PickleKind::Dict,
                    _ => PickleKind::Other,
                };
                self.push_new(kind, MARKED_BYTES, &items).map(drop)
            }
            // APPEND, APPENDS, SETITEM, SETITEMS, ADDITEMS.
            b'a' => self.pop().and_then(|item| self.extend(PickleKind::List, &[item])),
            b'e' => self.pop_mark().and_then(|items| self.extend(PickleKind::List, &items)),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.extend(PickleKind::Dict, &[key, value])
            }
            b'u' => self.pop_mark().and_then(|items| self.extend(PickleKind::Dict, &items)),
            0x90 => self.pop_mark().and_then(|items| self.extend(PickleKind::Set, &items)),
            _ => self.object(operation),
        }
    }

    /// Runs an operation on classes and functions, none of which is executed.
    fn object(&mut self, operation: u8) -> Result<(), PickleError> {
        match operation {
            // GLOBAL, STACK_GLOBAL.
            b'c' => {
                self.line()?;
                self.line()?;
                self.push_new(PickleKind::Global, VALUE_BYTES, &[]).map(drop)
            }
            0x93 => {
                for _ in 0..2 {
                    let name = self.pop()?;
                    self.insist(name, PickleKind::Text)?;
                    self.copy(name)?;
                }
                self.push_new(PickleKind::Global, VALUE_BYTES, &[]).map(drop)
            }
            // REDUCE: the arguments are copied and may become the result.
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                self.insist(arguments, PickleKind::Tuple)?;
                self.insist(function, PickleKind::Global)?;
                self.copy(arguments)?;
                for child in self.nodes[arguments.node].children.clone() {
                    self.copy(Slot { node: child, is_reference: false })?;
                }
                self.push_new(PickleKind::Any, VALUE_BYTES, &[Slot { is_reference: false, ..arguments }]).map(drop)
            }
            // INST, OBJ, NEWOBJ, NEWOBJ_EX: an empty dictionary stands for the object.
            b'i' | b'o' => {
                if operation == b'i' {
                    self.line()?;
                    self.line()?;
                }
                self.pop_mark()?;
                if operation == b'o' {
                    self.pop()?;
                }
                self.push_new(PickleKind::Dict, VALUE_BYTES, &[]).map(drop)
            }
            0x81 | 0x92 => {
                for _ in 0..if operation == 0x81 { 2 } else { 3 } {
                    self.pop()?;
                }
                self.push_new(PickleKind::Dict, VALUE_BYTES, &[]).map(drop)
            }
            // BUILD: the state replaces the object.
            b'b' => {
                let state = self.pop()?;
                self.pop()?;
                self.stack.push(state);
                Ok(())
            }
            // DUP is refused as well: no pickler writes it, and it copies values without a memo entry.
            _ => Err(PickleError::Malformed("it has an operation that no data needs")),
        }
    }

    /// Counts bytes that a reader keeps or copies.
    fn keep(&mut self, bytes: u64) -> Result<(), PickleError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > KEPT_MAX { Err(PickleError::Large) } else { Ok(()) }
    }

    fn copy(&mut self, slot: Slot) -> Result<(), PickleError> {
        self.keep(self.nodes[slot.node].inline)
    }

    fn insist(&self, slot: Slot, kind: PickleKind) -> Result<(), PickleError> {
        let found = self.nodes[slot.node].kind;
        if found == kind || found == PickleKind::Any {
            Ok(())
        } else {
            Err(PickleError::Malformed("it takes a value for another"))
        }
    }

    fn push_scalar(&mut self) -> Result<(), PickleError> {
        self.keep(VALUE_BYTES)?;
        self.stack.push(Slot { node: SCALAR, is_reference: false });
        Ok(())
    }

    fn scalar<const N: usize>(&mut self) -> Result<(), PickleError> {
        self.fixed::<N>()?;
        self.push_scalar()
    }

    fn counted<const N: usize>(&mut self) -> Result<(), PickleError> {
        let length = self.length::<N>()?;
        self.take(length)?;
        self.push_text(length)
    }

    fn push_text(&mut self, length: usize) -> Result<(), PickleError> {
        self.push_new(PickleKind::Text, VALUE_BYTES + length as u64, &[]).map(drop)
    }

    fn push_new(&mut self, kind: PickleKind, own: u64, items: &[Slot]) -> Result<usize, PickleError> {
        self.keep(own)?;
        let node = self.nodes.len();
        self.nodes.push(PickleNode { kind, own, inline: own, depth: 1, children: Vec::new() });
        self.stack.push(Slot { node, is_reference: false });
        self.add(node, items)?;
        Ok(node)
    }

    /// Adds items to the list, dictionary or set on top of the stack.
    fn extend(&mut self, kind: PickleKind, items: &[Slot]) -> Result<(), PickleError> {
        let top = *self.stack.last().ok_or(UNDERFLOW)?;
        self.insist(top, kind)?;
        self.keep(VALUE_BYTES.saturating_mul(items.len() as u64))?;
        self.add(top.node, items)
    }

    fn add(&mut self, node: usize, items: &[Slot]) -> Result<(), PickleError> {
        let (mut inline, mut depth) = (self.nodes[node].inline, self.nodes[node].depth);
        for item in items {
            let child = &self.nodes[item.node];
            inline = inline.saturating_add(if item.is_reference { VALUE_BYTES } else { child.inline });
            depth = depth.max(child.depth + 1);
        }
        if depth > DEPTH_MAX {
            return Err(PickleError::Deep);
        }
        let found = &mut self.nodes[node];
        (found.inline, found.depth) = (inline, depth);
        found.children.extend(items.iter().map(|item| item.node));
        Ok(())
    }

    fn pop(&mut self) -> Result<Slot, PickleError> {
        self.stack.pop().ok_or(UNDERFLOW)
    }

    fn mark(&mut self) -> Result<(), PickleError> {
        if self.below.len() >= DEPTH_MAX as usize {
            return Err(PickleError::Deep);
        }
        self.below.push(std::mem::take(&mut self.stack));
        Ok(())
    }

    fn pop_mark(&mut self) -> Result<Vec<Slot>, PickleError> {
        let below = self.below.pop().ok_or(UNDERFLOW)?;
        Ok(std::mem::replace(&mut self.stack, below))
    }

    fn memoize(&mut self, id: u32) -> Result<(), PickleError> {
        let slot = self.pop()?;
        self.keep(VALUE_BYTES)?;
        if slot.is_reference {
            self.copy(slot)?;
        }
        self.memo.insert(id, slot.node);
        self.stack.push(Slot { is_reference: true, ..slot });
        Ok(())
    }

    fn get(&mut self, id: u32) -> Result<(), PickleError> {
        let node = *self.memo.get(&id).ok_or(PickleError::Malformed("it refers to what was not kept"))?;
        self.keep(VALUE_BYTES)?;
        self.stack.push(Slot { node, is_reference: true });
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], PickleError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(PickleError::Malformed("it is cut off"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(PickleError::Malformed("it is cut off"))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a length of `N` bytes, the least significant byte first.
    fn length<const N: usize>(&mut self) -> Result<usize, PickleError> {
        let bytes = self.fixed::<N>()?;
        let length = bytes.iter().rev().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
        usize::try_from(length).map_err(|_| PickleError::Malformed("it is cut off"))
    }

    fn line(&mut self) -> Result<&'a [u8], PickleError> {
        let end = memchr::memchr(b'\n', self.rest).ok_or(PickleError::Malformed("it is cut off"))?;
        Ok(&self.take(end + 1)?[..end])
    }

    fn memo_line(&mut self) -> Result<u32, PickleError> {
        let line = std::str::from_utf8(self.line()?).ok().and_then(|line| line.trim_end_matches('\r').parse().ok());
        line.ok_or(PickleError::Malformed("it numbers what it keeps by something else than numbers"))
    }

    /// Checks that the data at the program's end is within the limits with each reference replaced by its target.
    fn check_expanded(&self, root: usize) -> Result<(), PickleError> {
        /// Progress of the visit of a node.
        #[derive(Clone, Copy)]
        enum VisitState {
            Not,
            Begun,
            Done { bytes: u64, depth: u32 },
        }
        let mut seen = vec![VisitState::Not; self.nodes.len()];
        let mut path = vec![(root, 0, self.nodes[root].own, 0)];
        seen[root] = VisitState::Begun;
        while let Some((node, next, bytes, deepest)) = path.last_mut() {
            match self.nodes[*node].children.get(*next) {
                Some(child) => match seen[*child] {
                    VisitState::Done { bytes: more, depth } => {
                        (*next, *bytes, *deepest) = (*next + 1, bytes.saturating_add(more), depth.max(*deepest));
                        if *bytes > EXPANDED_MAX {
                            return Err(PickleError::Large);
                        }
                    }
                    VisitState::Begun => return Err(PickleError::Recursive),
                    VisitState::Not => {
                        seen[*child] = VisitState::Begun;
                        path.push((*child, 0, self.nodes[*child].own, 0));
                    }
                },
                None => {
                    let (bytes, depth) = (*bytes, *deepest + 1);
                    if depth > DEPTH_MAX {
                        return Err(PickleError::Deep);
                    }
                    seen[*node] = VisitState::Done { bytes, depth };
                    path.pop();
                }
            }
        }
        Ok(())
    }
}

const UNDERFLOW: PickleError = PickleError::Malformed("it takes what was not put there");

/// Returns the kind of container that an operation creates empty.
fn empty(operation: u8) -> PickleKind {
    match operation {
        b']' => PickleKind::List,
        b'}' => PickleKind::Dict,
        b')' => PickleKind::Tuple,
        _ => PickleKind::Set,
    }
}
