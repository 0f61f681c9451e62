"""Tests of the document checks: `python3 -m unittest discover -s scripts/docs`, which scripts/check-docs.sh runs."""

import tempfile
import unittest
from pathlib import Path

import check
import commands
import generate
import markdown


class Commands(unittest.TestCase):
    def found(self, text):
        return [arguments for _, arguments in commands.commands(text)]

    def test_commands_are_found_wherever_they_begin(self):
        self.assertEqual(self.found("A=1 B=2 arenad up mini && sudo arenad down   # arenad x"), [["up", "mini"], ["down"]])
        self.assertEqual(self.found('eval "$(arenad env --for webarena)"'), [["env", "--for", "webarena"]])
        self.assertEqual(self.found("trap 'arenad down --yes' EXIT"), [["down", "--yes"]])
        self.assertEqual(self.found("arenad eval --from a \\\n    --profile strict | head"), [["eval", "--from", "a", "--profile", "strict"]])
        self.assertEqual(self.found("srun target/debug/arenad"), [])
        self.assertEqual(self.found("cat arenad.log; echo arenad up"), [])
        self.assertEqual(self.found("arenad locate s 'sql: SELECT a | b'"), [["locate", "s", "sql: SELECT a | b"]])

    def test_lines_are_counted(self):
        self.assertEqual([line for line, _ in commands.commands("x\narenad a \\\n b\narenad c\n")], [1, 3])


class Pages(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.md")
            path.write_text(text, encoding="utf-8")
            return markdown.read(path)

    def test_anchors_are_those_of_github(self):
        page = self.read("# A `b`: c, d\n\n## Same\n\n## Same\n\n```text\n# no heading\n```\n")
        self.assertEqual(page.anchors, {"a-b-c-d", "same", "same-1"})

    def test_links_in_code_are_none(self):
        page = self.read("[a](b.md#c) and `[d](e.md)`\n[f\ng](h.md)\n\n```text\n[i](j.md)\n```\n")
        self.assertEqual(page.links, [(1, "b.md#c"), (2, "h.md")])

    def test_blocks_have_a_mark_and_a_line(self):
        page = self.read("<!-- test: run -->\n```sh\narenad up\n```\n\n- a\n\n  ```json\n  {}\n  ```\n")
        self.assertEqual([(block.language, block.text, block.line, block.mark) for block in page.blocks],
                         [("sh", "arenad up\n", 3, "test: run"), ("json", "{}\n", 9, "")])


class Lists(unittest.TestCase):
    def test_kinds_of_events_are_found_in_both_sources(self):
        model = 'match self {\n    Self::Pruned => "pruned",\n    Self::TrashStuck => "trash.stuck",\n}'
        self.assertEqual(check.event_kinds(model, 'pub const GONE: &str = "arenad.gone";'), {"pruned", "trash.stuck", "arenad.gone"})


class Generated(unittest.TestCase):
    def test_commands_of_groups_are_found_and_options_are_not(self):
        text = ("Does things\n\nUsage: x [OPTIONS] <COMMAND>\n\nSites:\n  up       Bring up\n  down, d  Take down\n\n"
                "Commands:\n  help  Print\n\nOptions:\n  -h, --help  Print help\n")
        self.assertEqual(generate.children(text), ["up", "down"])

    def test_keys_options_and_places_are_in_the_page(self):
        schema = {
            "properties": {"sites": {"type": "object", "additionalProperties": {"$ref": "#/$defs/RawSite"}}},
            "$defs": {"RawSite": {"description": "A | site.", "required": ["way"], "properties": {
                "way": {"description": "How.", "oneOf": [{"const": "a", "description": "One."}, {"const": "b"}]},
                "entry": {"type": "object", "properties": {"port": {"type": "integer"}}}}}},
        }
        page = generate.schema_page("File", "Intro.", schema)
        self.assertIn("| `way` (required) | `a`, `b` | How. `a`: One. |", page)
        self.assertIn("## Site\n\nA | site.\n\nStands under `sites.*`.", page)
        self.assertIn("## Entry", page)
        self.assertIn("| `port` | whole number |  |", page)


if __name__ == "__main__":
    unittest.main()
