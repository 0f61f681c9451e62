"""The accepted differences: a name, the reason, and a predicate for the cases.

A class covers input that no model answers and no page shows in the benchmarks' tasks; any other difference is a bug to
fix.
"""


def last_after_a_visit(case, theirs, ours):
    """Returns whether a target reads `last` or `__last_url__` after a target that visits a page."""
    if case["benchmark"] != "webarena" or case["function"] not in ("html_content_evaluator", "task"):
        return False
    targets = (case["input"].get("eval") or case["input"]).get("program_html") or []
    has_visited = False
    for target in targets:
        if has_visited and (target["url"] == "last" or "__last_url__" in target["url"]):
            return True
        has_visited |= target["url"] != "last"
    return False


def is_nan_expected(case, theirs, ours):
    return case["function"] == "equal" and "NaN" in case["input"]["a"]


def has_odd_host(case, theirs, ours):
    """Returns whether Python's host codec refuses a host that is not ASCII or has empty labels."""
    return case["benchmark"] == "verified" and "'idna' codec" in theirs.get("raises", "")


def is_number_to_a_judge(case, theirs, ours):
    rules = list(case["input"].get("reference_answers") or {})
    return case["function"] == "string_evaluator" and "fuzzy_match" in rules[rules.index("required_values") + 1 :] if (
        "required_values" in rules) else False


CLASSES = [
    (
        "NaN in a task",
        "Python takes its one NaN for equal to itself; no task expects NaN.",
        is_nan_expected,
    ),
    (
        "host that IDNA refuses",
        "such a host is kept as it is, and no site has one; the benchmark's code raises. No browser goes to one.",
        has_odd_host,
    ),
    (
        "number to a judge",
        "behind required_values the benchmark's code has a number, which beartype refuses in fuzzy_match; it is switched off here. "
        "No task has both rules.",
        is_number_to_a_judge,
    ),
    (
        "last after a visit",
        "arenad follows web-arena-x/webarena f62e0b9, which stays on the page of a target; libwebarena 0.0.5 closes it. No task of "
        "WebArena tells the two apart.",
        last_after_a_visit,
    ),
]
