"""Small functions in nine languages, generated from one description of what they do."""

import re

# Name of the function, what it does, its parameters (lists end in "[]"), and its statements.
FUNCTIONS = [
    ("mean", "the mean of all {noun} values", ["values[]"],
     [("let", "total", "0.0"), ("each", "value", "values", [("set", "total", "total + value")]), ("return", "total / len(values)")]),
    ("total", "the sum of all {noun} values", ["values[]"],
     [("let", "total", "0.0"), ("each", "value", "values", [("set", "total", "total + value")]), ("return", "total")]),
    ("clamp", "the {noun} value, kept between low and high", ["value", "low", "high"],
     [("if", "value < low", [("return", "low")]), ("if", "value > high", [("return", "high")]), ("return", "value")]),
    ("largest", "the largest {noun} value, never below zero", ["values[]"],
     [("let", "best", "0.0"), ("each", "value", "values", [("if", "value > best", [("set", "best", "value")])]), ("return", "best")]),
    ("smooth", "the new {noun} value, weighted against the previous one", ["previous", "value", "weight"],
     [("return", "previous * (1.0 - weight) + value * weight")]),
    ("count_above", "how many {noun} values exceed the limit", ["values[]", "limit"],
     [("let", "count_found", "0.0"), ("each", "value", "values", [("if", "value > limit", [("set", "count_found", "count_found + 1.0")])]),
      ("return", "count_found")]),
    ("scale", "the {noun} value in other units", ["value", "factor", "offset"], [("return", "value * factor + offset")]),
    ("rate", "the change of the {noun} per second", ["before", "after", "seconds"],
     [("if", "seconds <= 0.0", [("return", "0.0")]), ("return", "(after - before) / seconds")]),
    ("share", "the part of the {noun} values that exceeds the limit, from 0 to 1", ["values[]", "limit"],
     [("let", "above", "0.0"), ("each", "value", "values", [("if", "value > limit", [("set", "above", "above + 1.0")])]), ("return", "above / len(values)")]),
    ("excess", "by how much the {noun} values exceed the limit altogether", ["values[]", "limit"],
     [("let", "sum", "0.0"), ("each", "value", "values", [("if", "value > limit", [("set", "sum", "sum + value - limit")])]), ("return", "sum")]),
    ("middle", "the {noun} value half way between low and high", ["low", "high"], [("return", "low + (high - low) / 2.0")]),
    ("distance", "how far the {noun} value is from the target", ["value", "target"],
     [("if", "value < target", [("return", "target - value")]), ("return", "value - target")]),
]
GUARD = ("if", "len(values) == 0.0", [("return", "0.0")])


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def pascal(name):
    return "".join(part.title() for part in name.split("_"))


class Language:
    """Prints the statements; these few templates contain the differences between the languages."""

    def __init__(self, path, function, let="{name} = {value};", each="for ({name} of {list}) {{", condition="if ({value}) {{", end="}", comment="//",
                 length="{list}.length", parameter="{name}", several="{name}", variable="{name}", case=camel, indent="    ", stop=";", header="", footer="",
                 nested=0):
        self.path, self.header, self.footer, self.comment, self.case = path, header, footer, comment, case
        self._function, self._let, self._each, self._if, self._end = function, let, each, condition, end
        self._length, self._parameter, self._several, self._variable = length, parameter, several, variable
        self._indent, self._stop, self._nested = indent, stop, nested

    def _value(self, text):
        text = re.sub(r"\b(?!len\b)([a-z_]+)\b", lambda found: self._variable.format(name=found[0]), text)
        return re.sub(r"len\(([^)]*)\)", lambda found: self._length.format(list=found[1]), text)

    def _lines(self, statements, depth):
        pad = self._indent * depth
        for kind, *rest in statements:
            if kind == "return":
                yield f"{pad}return {self._value(rest[0])}{self._stop}"
            elif kind == "set":
                yield f"{pad}{self._value(rest[0])} = {self._value(rest[1])}{self._stop}"
            elif kind == "let":
                yield pad + self._let.format(name=self._value(rest[0]), value=self._value(rest[1]))
            else:
                head = self._each.format(name=self._value(rest[0]), list=self._value(rest[1])) if kind == "each" else self._if.format(value=self._value(rest[0]))
                yield from (pad + line for line in head.split("\n"))
                yield from self._lines(rest[-1], depth + 1)
                if self._end:
                    yield pad + self._end

    def function(self, name, about, parameters, statements):
        listed = ", ".join((self._several if one.endswith("[]") else self._parameter).format(name=one.removesuffix("[]")) for one in parameters)
        pad = self._indent * self._nested
        yield f"{pad}{self.comment} Returns {about}."
        yield pad + self._function.format(name=self.case(name), parameters=listed)
        yield from self._lines(statements, self._nested + 1)
        if self._end:
            yield pad + self._end

    def module(self, module, functions):
        blocks = [self.header.format(module=module, Module=pascal(module)).rstrip("\n")] if self.header else []
        blocks += ["\n".join(self.function(*function)) for function in functions]
        return "\n\n".join(blocks) + "\n" + self.footer


LANGUAGES = {
    "Rust": Language("src/{module}.rs", "pub fn {name}({parameters}) -> f64 {{", let="let mut {name} = {value};", each="for &{name} in {list} {{",
                     condition="if {value} {{", comment="///", length="{list}.len() as f64", parameter="{name}: f64", several="{name}: &[f64]", case=str,
                     header="//! The {module} part."),
    "Go": Language("{module}/{module}.go", "func {name}({parameters}) float64 {{", let="{name} := {value}", each="for _, {name} := range {list} {{",
                   condition="if {value} {{", length="float64(len({list}))", parameter="{name} float64", several="{name} []float64", case=pascal, indent="\t",
                   stop="", header="// Package {module} belongs to the service.\npackage {module}"),
    "Python": Language("{project}/{module}.py", "def {name}({parameters}):", let="{name} = {value}", each="for {name} in {list}:", condition="if {value}:", end="",
                       comment="#", length="len({list})", case=str, stop="", header='"""The {module} part."""'),
    "TypeScript": Language("src/{module}.ts", "export function {name}({parameters}): number {{", let="let {name} = {value};", each="for (const {name} of {list}) {{",
                           parameter="{name}: number", several="{name}: number[]", indent="  ", header="// The {module} part."),
    "JavaScript": Language("lib/{module}.js", "export function {name}({parameters}) {{", let="let {name} = {value};", each="for (const {name} of {list}) {{",
                           indent="  ", header="// The {module} part."),
    "Ruby": Language("lib/{project}/{module}.rb", "def self.{name}({parameters})", let="{name} = {value}", each="{list}.each do |{name}|", condition="if {value}",
                     end="end", comment="#", case=str, indent="  ", stop="", header="# The {module} part.\nmodule {Module}", footer="end\n", nested=1),
    "C": Language("src/{module}.c", "double {name}({parameters})\n{{", let="double {name} = {value};",
                  each="for (size_t i = 0; i < count; i++) {{\n    double {name} = {list}[i];", length="(double)count", parameter="double {name}",
                  several="const double *{name}, size_t count", case=str, header="/* The {module} part. */\n#include <stddef.h>"),
    "Java": Language("src/main/java/lm/{Module}.java", "public static double {name}({parameters}) {{", let="double {name} = {value};",
                     each="for (double {name} : {list}) {{", parameter="double {name}", several="double[] {name}",
                     header="package lm;\n\n/** The {module} part. */\npublic final class {Module} {{", footer="}\n", nested=1),
    "PHP": Language("src/{Module}.php", "function {name}({parameters}): float\n{{", let="{name} = {value};", each="foreach ({list} as {name}) {{",
                    length="count({list})", parameter="float ${name}", several="array ${name}", variable="${name}",
                    header="<?php\n// The {module} part.\nnamespace Courier\\{Module};"),
}
MANIFESTS = {
    "Rust": ("Cargo.toml", '[package]\nname = "{project}"\nversion = "{version}"\nedition = "2021"\nlicense = "{licence}"\n'),
    "Go": ("go.mod", "module forge.test/{path}\n\ngo 1.20\n"),
    "Python": ("pyproject.toml", '[project]\nname = "{project}"\nversion = "{version}"\nlicense = {{text = "{licence}"}}\nrequires-python = ">=3.9"\n'),
    "TypeScript": ("package.json", '{{\n  "name": "{project}",\n  "version": "{version}",\n  "license": "{licence}",\n  "type": "module"\n}}\n'),
    "JavaScript": ("package.json", '{{\n  "name": "{project}",\n  "version": "{version}",\n  "license": "{licence}",\n  "type": "module"\n}}\n'),
    "Ruby": ("{project}.gemspec", 'Gem::Specification.new do |spec|\n  spec.name = "{project}"\n  spec.version = "{version}"\n  spec.license = "{licence}"\nend\n'),
    "C": ("Makefile", "VERSION = {version}\nCFLAGS = -O2 -Wall\n\nall: $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\n\nbuild/%.o: src/%.c\n\tmkdir -p build && $(CC) $(CFLAGS) -c $< -o $@\n"),
    "Java": ("gradle.properties", "group=lm\nname={project}\nversion={version}\n"),
    "PHP": ("composer.json", '{{\n  "name": "larkmoor/{project}",\n  "version": "{version}",\n  "license": "{licence}"\n}}\n'),
}
