"""Answers cases with a benchmark's own code, taken from its package on PyPI.

Reads JSON lines `{"id", "function", "input"}` on stdin, writes `{"id", "answer"}` or `{"id", "raises"}`.
Usage: oracle.py webarena|visualwebarena|verified
"""

import contextlib
import io
import json
import logging
import os
import signal
import sys
import tempfile
import types
import warnings
from pathlib import Path

# Processor time. A regular expression from an agent may run forever, in the benchmark as well.
SECONDS_PER_CASE = 5


class Stub(types.ModuleType):
    """Replaces a module that the evaluators import and no case needs: a browser, a model, a training framework."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *a, **k: None})


class StubFinder:
    NAMES = (
        "playwright", "openai", "tiktoken", "transformers", "evaluate", "gymnasium", "text_generation", "aiolimiter",
        "flask", "torch", "requests", "google", "vertexai", "matplotlib",
    )

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_own_part = name.split(".")[1:2] in (["browser_env"], ["llms"]) and "webarena" in name
        if name.split(".")[0] not in cls.NAMES and not is_own_part:
            return None
        import importlib.machinery

        return importlib.machinery.ModuleSpec(name, cls, is_package=True)

    @staticmethod
    def create_module(spec):
        return Stub(spec.name)

    @staticmethod
    def exec_module(module):
        pass


class Late(Exception):
    pass


def late(*_):
    raise Late("takes too long")


# WebArena and VisualWebArena -----------------------------------------------------------------------------------------


class Page:
    """The pages of a case, in place of a browser."""

    def __init__(self, case, url):
        self.case, self.url, self.context, self.is_last = case, url, self, True

    def new_page(self):
        return Page(self.case, self.url)

    def goto(self, url):
        self.url, self.is_last = url, False

    def close(self):
        pass

    def content(self):
        if self.is_last:
            return self.case["content"]
        return self.case["pages"].get(self.url, self.case.get("every_page"))

    def evaluate(self, script):
        for expression in (script, script.removeprefix("() => ")):
            if expression in self.case.get("evaluate", {}):
                return self.case["evaluate"][expression]
        raise RuntimeError("not listed")


def benchmark(name):
    sys.meta_path.insert(0, StubFinder)
    import beartype

    # The cases' pages are not Playwright's.
    beartype.beartype = lambda *a, **k: a[0] if a and callable(a[0]) else (lambda f: f)
    return __import__(f"{name}.evaluation_harness.evaluators", fromlist=["evaluators"])


def run_evaluators(evaluators, case, eval_, types_):
    def judge(pred, ref, intent):
        said = case.get("judge", {}).get(ref, case.get("judge_default"))
        if said is None:
            raise RuntimeError("no judge")
        return 1.0 if said else 0.0

    evaluators.llm_fuzzy_match = lambda pred, ref, intent: judge(pred, ref, intent)
    evaluators.llm_ua_match = lambda pred, ref, intent: judge(pred, ref, intent)
    for name, value in case.get("helpers", {}).items():
        setattr(evaluators, name, lambda *a, value=value, **k: value)
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump({"intent": "the intent", "eval": eval_}, file)
    try:
        page = Page(case, case.get("url", ""))
        trajectory = [{}, {"answer": case.get("answer", "")}]
        score = 1.0
        for kind in types_:
            evaluator = getattr(evaluators, KINDS[evaluators.__name__.split(".")[0]][kind])()
            score *= evaluator(trajectory, Path(file.name), page)
        return float(score)
    finally:
        os.unlink(file.name)


KINDS = {
    "webarena": {
        "string_match": "StringEvaluator", "url_match": "URLEvaluator", "program_html": "HTMLContentEvaluator",
    },
    "visualwebarena": {
        "string_match": "StringEvaluator", "url_match": "URLExactEvaluator",
        "program_html": "HTMLContentExactEvaluator",
    },
}


def tokenizer():
    from nltk.tokenize import word_tokenize

    return word_tokenize


def classic(name):
    evaluators = benchmark(name)
    evaluators.time = types.SimpleNamespace(sleep=lambda _: None)
    strings = evaluators.StringEvaluator
    word_tokenize = tokenizer()
    common = {
        "tokens": lambda i: word_tokenize(i["text"]),
        "clean_answer": lambda i: strings.clean_answer(i["answer"]),
        "exact_match": lambda i: strings.exact_match(i["ref"], i["pred"]),
        "string_evaluator": lambda i: run_evaluators(
            evaluators, i, {"reference_answers": i["reference_answers"], "string_note": i.get("string_note", "")},
            ["string_match"]),
        "url_evaluator": lambda i: run_evaluators(
            evaluators, i,
            {"reference_url": i["reference_url"]} | ({"url_note": i["url_note"]} if i.get("url_note") else {}),
            ["url_match"]),
        "html_content_evaluator": lambda i: run_evaluators(
            evaluators, i, {"program_html": i["program_html"]}, ["program_html"]),
        "task": lambda i: run_evaluators(evaluators, i, i["eval"], i["eval"]["eval_types"]),
    }
    if name == "webarena":
        common["must_include"] = lambda i: strings.must_include(i["ref"], i["pred"], i["tokenize"])
        helpers = __import__("webarena.evaluation_harness.helper_functions", fromlist=["x"])
        original = helpers.reddit_get_post_url
        common["reddit_get_post_url"] = lambda i: original(i["url"])
    else:
        common["must_include"] = lambda i: strings.must_include(i["ref"], i["pred"])
        common["must_exclude"] = lambda i: strings.must_exclude(i["ref"], i["pred"])
        common["compare_inequality"] = lambda i: evaluators.NumericEvaluator.compare_inequality(
            i["value"], i["inequality"])
        common["ssim"] = ssim
    return common


def ssim(i):
    from PIL import Image

    from visualwebarena.evaluation_harness import image_utils

    one, other = (Image.open(io.BytesIO(bytes.fromhex(i[key]))) for key in ("one", "other"))
    return float(image_utils.get_image_ssim(one, other))


# WebArena-Verified ---------------------------------------------------------------------------------------------------


def verified():
    from webarena_verified.core.evaluation.data_types import TYPE_REGISTRY, URL
    from webarena_verified.core.utils.url_utils import extract_base64_query, normalize_query
    from webarena_verified.api.webarena_verified import WebArenaVerified
    from webarena_verified.types.config import WebArenaVerifiedConfig

    logging.disable(logging.CRITICAL)

    def value(kind, raw, **options):
        return (URL if kind == "url" else TYPE_REGISTRY[kind])(raw, **options)

    def equal(i):
        # Follows the evaluators' comparison: an invalid expected value is an error, an invalid actual value is a
        # mismatch.
        expected = value(i["type"], json.loads(i["a"]))
        try:
            actual = value(i["type"], json.loads(i["b"]))
        except Exception:
            return False
        return bool(expected == actual)

    sites = ("gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia", "homepage")
    environments = {f"__{s.upper()}__": {"urls": [f"http://{s.replace('_', '-')}.test"]} for s in sites}
    environments["__SHOPPING_ADMIN__"]["urls"] = ["http://shopping-admin.test/admin"]
    whole = WebArenaVerified(config=WebArenaVerifiedConfig(environments=environments))

    def task(i):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "network.har"
            trace.write_text(i["har"])
            result = whole.evaluate_task(task_id=i["task_id"], agent_response=i["response"], network_trace=trace)
        return float(result.score)

    def own_task(i):
        """Returns the task that the case contains."""
        from webarena_verified.types.eval import TaskEvalContext
        from webarena_verified.types.task import WebArenaVerifiedTask
        from webarena_verified.types.tracing import NetworkTrace

        task = WebArenaVerifiedTask.model_validate(i["task"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.har"
            path.write_text(i["har"])
            try:
                trace = NetworkTrace.from_content(path)
            except Exception:
                return 0.0
        context = TaskEvalContext(
            task=task, agent_response_raw=i["response"], network_trace=trace, config=whole.config)
        return float(whole._evaluator.evaluate_task(context=context).score)

    return {
        "equal": equal,
        "url_equal": lambda i: bool(
            value("url", i["a"], **i["options"]) == value("url", i["b"], **i["options"])),
        "extract_base64_query": lambda i: list(extract_base64_query(i["path"])),
        "normalize_query": lambda i: {k: list(v) for k, v in normalize_query(i["query"]).items()},
        "verified_task": task,
        "verified_own_task": own_task,
    }


def main():
    warnings.simplefilter("ignore")
    if os.path.isdir("/dev/shm"):
        # Each case writes one or two files.
        tempfile.tempdir = "/dev/shm"
    name = sys.argv[1]
    functions = verified() if name == "verified" else classic(name)
    signal.signal(signal.SIGPROF, late)
    out = sys.stdout
    for line in sys.stdin:
        case = json.loads(line)
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                answer = {"answer": functions[case["function"]](case["input"])}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever the benchmark's code raises
            answer = {"raises": f"{type(error).__name__}: {error}"[:300]}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        out.write(json.dumps({"id": case["id"], **answer}) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
