"""Tests of the check itself: what it must find, and what it must leave alone."""

import unittest

import patterns
import prose


def found(text, kind="comment"):
    return [hit.pattern for hit in patterns.hits(prose.Text(1, text, kind))]


class Patterns(unittest.TestCase):
    def test_what_we_fell_into_is_found(self):
        for text, pattern in [
            ("What nothing has reached stands by again.", "headless"),
            ("It ends. Who comes later waits.", "headless"),
            ("Whose rules of quoting hold", "headless"),
            ("The text of whoever asks", "whoever"),
            ("there is a socket that nobody listens on", "nobody"),
            ("`x` is no kind of locator", "is-no"),
            ("`x` is no usable name", "is-no"),
            ("None of them are let to pass", "let"),
            ("connections of the past", "of-the-past"),
            ("killed for want of memory", "for-want-of"),
        ]:
            self.assertEqual(found(text), [pattern], text)
        self.assertEqual(found("The site.", "doc"), ["short-doc"])
        self.assertEqual(found("Where.", "doc"), ["short-doc"])
        self.assertEqual(found("nobody said where the browser is", "string"), ["nobody"])

    def test_right_sentences_are_left_alone(self):
        for text in [
            "What does it cost?",
            "It says what is wrong, and the log shows\nwhat happened before.",
            "Returns the caller who asked first.",
            "There is no socket. There are no standbys.",
            "It is no longer needed, and is no larger than the other.",
            "The process runs as the user nobody.",
            "the account `nobody`, and `What is this`",
            "Let the client wait. It lets requests pass. Visitors are let in.",
            "in the past",
        ]:
            self.assertEqual(found(text), [], text)
        self.assertEqual(found("Seconds, since the daemon's start.", "doc"), [])
        self.assertEqual(found("Requests per second.", "doc"), [])
        self.assertEqual(found("No answer.", "docstring"), [])
        self.assertEqual(found("What to do", "string"), [])


class Prose(unittest.TestCase):
    def test_rust_is_read_without_its_code(self):
        source = (
            "/// One.\n/// Two.\nfn a<'x>(b: &'x str) -> char { 'n' } // trailing words here\n// Alone\n"
            'const A: &str = "three words here \\\n    and more";\nconst B: &str = r#"a "raw" text"#;\nconst C: char = \'"\';\n// last\n'
        )
        texts = [(text.line, text.kind, text.text) for text in prose.rust(source)]
        self.assertEqual(texts, [
            (1, "doc", "One.\nTwo."), (3, "comment", "trailing words here\nAlone"), (5, "string", "three words here \nand more"),
            (7, "string", 'a "raw" text'), (9, "comment", "last"),
        ])

    def test_documents_are_read_by_paragraphs(self):
        source = "# What is it\n\nOne\ntwo\n- item\n  more\n\n| What it does |\n| --- |\n| cell |\n\n```sh\nWhat x\n```\n"
        texts = [(text.line, text.text) for text in prose.markdown(source)]
        self.assertEqual(texts, [(3, "One\ntwo"), (5, "item\nmore"), (10, "cell")])

    def test_comments_of_scripts_and_yaml(self):
        self.assertEqual([(text.line, text.text) for text in prose.hashed("#!/bin/sh\n# a\n# b\nx  # c\ny#d\n")], [(2, "a\nb"), (4, "c")])

    def test_python_has_docstrings_comments_and_literals(self):
        source = '"""The module."""\n# a comment\nx = "three words here"\n'
        kinds = [(text.line, text.kind) for text in prose.python(source, with_strings=True)]
        self.assertEqual(kinds, [(1, "docstring"), (2, "comment"), (3, "string")])
        self.assertEqual(len(prose.python(source, with_strings=False)), 2)


if __name__ == "__main__":
    unittest.main()
