"""Arithmetic with Python's grammar for expressions, restricted to numbers, operators and a few functions."""

import ast
import math
import operator

LONGEST, LARGEST_POWER = 200, 1000
BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
          ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow}
UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS = {"sqrt": math.sqrt, "abs": abs, "round": round, "floor": math.floor, "ceil": math.ceil, "min": min, "max": max,
             "sum": lambda *values: sum(values), "avg": lambda *values: sum(values) / len(values)}
NAMES = {"pi": math.pi, "e": math.e}


class NotArithmetic(Exception):
    """The entered text cannot be calculated; the message gives the reason."""


def calculate(text):
    """Returns the value of an expression as text."""
    if len(text) > LONGEST:
        raise NotArithmetic(f"The expression is longer than {LONGEST} characters.")
    plain = text.replace("×", "*").replace("÷", "/").replace("−", "-").replace("^", "**").strip()
    try:
        return shown(evaluate(ast.parse(plain, mode="eval").body))
    except ZeroDivisionError:
        raise NotArithmetic("Division by zero.") from None
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError):
        raise NotArithmetic("That is not an expression that can be calculated.") from None


def shown(value):
    if isinstance(value, complex) or not math.isfinite(value):
        raise NotArithmetic("The result is not a number.")
    # Rounding to twelve digits hides that 0.1 + 0.2 is not quite 0.3; whole numbers stay exact.
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def evaluate(node):
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Name) and node.id in NAMES:
        return NAMES[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](evaluate(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        left, right = evaluate(node.left), evaluate(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > LARGEST_POWER or abs(left) > 10**12):
            raise NotArithmetic("The power is too large.")
        return BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
        return FUNCTIONS[node.func.id](*[evaluate(argument) for argument in node.args])
    raise NotArithmetic(f"Only numbers, + - * / // % ^, brackets, {', '.join(NAMES)} and {', '.join(FUNCTIONS)} are understood.")
