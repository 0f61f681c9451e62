"""Scores WebCanvas, TurkingBench and Mind2Web in Python, as the published code of each does.

That code is on no package index, so its scoring is written anew here, with the libraries that it uses
(requirements.txt): the same steps in the same order, and each page, table or reply parsed as often as there. Files
stand for the browser, the server or the model that the published code asks. Where the published code is slower than its
result requires, and that may be disputed, the faster way is taken; the comments say where.

The request comes as JSON on standard input, the answer goes to standard output:
{"benchmark": ..., "rounds": ..., ...} gives {"seconds": the fastest round, "scores": {name: score}}.
"""

import collections
import json
import re
import string
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse


# --- WebCanvas: `evaluate/step_score.py` and `evaluate/evaluate_utils.py` ---

CLIMBING = ["span", "h1", "h2", "h3", "h4", "h5", "h6", "div", "li", "ul", "p"]


def url_exact_match(url, reference, key):
    try:
        found = parse_qs(urlparse(url).query)[key][0] if key else url
    except Exception:
        return 0
    return 1 if unquote(found) == reference else 0


def url_include_match(url, reference, key):
    try:
        parsed = urlparse(url)
        if key:
            found = parse_qs(parsed.query)[key][0]
        else:
            found = parsed.netloc + parsed.path
            if parsed.fragment:
                found += "#" + parsed.fragment
    except Exception:
        if key:
            return 0
        found = url
    return 1 if reference in unquote(found) else 0


def get_netloc(url):
    netloc = urlparse(url).netloc
    try:
        if netloc.startswith("www"):
            return re.findall(r".*?\.(.*?)\..*?", netloc)[0]
        return re.findall(r"(.*?)\..*?", netloc)[0]
    except IndexError:
        return ""


def is_same_or_above(found, reference):
    if found is reference:
        return 1
    if reference.name in CLIMBING if hasattr(reference, "name") else reference.tag in CLIMBING:
        node = reference
        for _ in range(3):
            node = node.parent if hasattr(node, "parent") else node.getparent()
            if node is None:
                return 0
            if node is found:
                return 1
    return 0


def path_exact_match(found, reference, method, html, found_netloc, reference_netloc):
    if found_netloc != reference_netloc:
        return 0
    if method == "selector":
        try:
            soup = BeautifulSoup(html, "html.parser")
            found_element = soup.select_one(found)
            reference_element = soup.select_one(reference)
            if found_element is None or reference_element is None:
                return 0
            return is_same_or_above(found_element, reference_element)
        except Exception:
            return 0
    if method == "xpath":
        page = fromstring(html)
        return is_same_or_above(page.xpath(found)[0], page.xpath(reference)[0])
    return 0


def text_match(found, reference, is_exact):
    found, reference = found.lower(), reference.lower()
    return 1 if (found == reference if is_exact else reference in found) else 0


def semantic_match(found, rule, judge):
    """The judge's number comes from a file. Three replies without a number count as 0."""
    number = judge.get((rule, found))
    return 0 if number is None else round(max(0, min(1, number)), 2)


def read_nodes(evaluation):
    nodes = []
    for entry in evaluation:
        function, content = entry["match_function_name"], entry["content"]
        node = {"match_function": function, "reference_answer": content["reference_answer"], "score": 0}
        if "url" in function:
            node["key"] = content["key"]
        elif "element_path" in function:
            node["method"], node["netloc"] = entry["method"], content["netloc"]
        elif "element_value" in function:
            node["netloc"] = content["netloc"]
            if "path" in content:
                node["path"] = content["path"]
        elif "final_answer" not in function and "cache_data" not in function:
            continue
        nodes.append(node)
    return nodes


def step_evaluate(nodes, step, judge):
    url, html, selector = step["url"], step["html"], step["selector"]
    value, text = step["element_value"], step["text_content"]
    total = 0
    for node in nodes:
        if node["score"] != 1:
            function, reference, score = node["match_function"], node["reference_answer"], 0
            if function == "url_exactly_match":
                score = url_exact_match(url, reference, node["key"])
            elif function == "url_included_match":
                score = url_include_match(url, reference, node["key"])
            elif function == "url_semantic_match":
                try:
                    found = unquote(parse_qs(urlparse(url).query)[node["key"]][0] if node["key"] else url)
                    score = semantic_match(found, reference, judge)
                except Exception:
                    score = 0
            elif function == "element_path_exactly_match":
                netloc = get_netloc(url)
                score = path_exact_match(selector, reference, node["method"], html, netloc, node["netloc"])
            elif function.startswith("element_value_") and selector is not None and value is not None:
                netloc = get_netloc(url)
                is_there = netloc == node["netloc"]
                if is_there and "path" in node:
                    is_there = path_exact_match(selector, node["path"], "selector", html, netloc, node["netloc"]) == 1
                if not is_there:
                    score = 0
                elif function == "element_value_exactly_match":
                    score = 1 if value == reference else 0
                elif function == "element_value_included_match":
                    score = 1 if reference in value else 0
                elif function == "element_value_semantic_match" and value != "":
                    score = semantic_match(value, reference, judge)
            elif function in ("cache_data_exact_match", "final_answer_exact_match") and text:
                score = text_match(text, reference, True)
            elif function in ("cache_data_included_match", "final_answer_included_match") and text:
                score = text_match(text, reference, False)
            node["score"] = max(node["score"], score)
        total += node["score"]
    return total


def webcanvas(asked):
    scores = {}
    tasks = {}
    for file in asked["tasks"]:
        for task in json.loads(Path(file).read_text()):
            tasks[f"{Path(file).stem}/{task['index']}"] = task["evaluation"]
    judge = {(rule, found): number for rule, found, number in json.loads(Path(asked["judge"]).read_text())}
    for name, file in asked["runs"].items():
        nodes = read_nodes(tasks[name])
        total = 0
        for step in json.loads(Path(file).read_text())["steps"]:
            try:
                total = step_evaluate(nodes, step, judge)
            except Exception:
                total = sum(node["score"] for node in nodes)
            if all(node["score"] >= 1 for node in nodes):
                break
        scores[name] = total / len(nodes)
    return scores


# --- TurkingBench: `src/evaluation_class.py` and `src/utils/cleaning.py` ---

EXCLUDED = ["csrfmiddlewaretoken", "worker_ip", "ee", "submit"]


def try_numeric(text):
    try:
        number = float(text)
        return str(int(number)) if number == int(number) else str(number)
    except (ValueError, OverflowError):
        return text


def clean_values(values):
    return [try_numeric("" if value is None else str(value)) for value in values]


def normalize_answer(text):
    exclude = set(string.punctuation)
    bare = "".join(c for c in text.lower() if c not in exclude)
    return " ".join(bare.split())


def exact_match(output, label):
    return normalize_answer(try_numeric(output)) == normalize_answer(try_numeric(label))


def rouge(scorer, output, label):
    if output == label:
        return 1.0
    return scorer.score(prediction=output, target=label)["rougeL"].fmeasure


def calculate_metrics(scorer, labels, kind, output):
    if labels in ([], [""]):
        return 1.0 if output in ("", "[]", "['']") else 0.0
    if kind in ("text", "textarea", "hidden"):
        output = try_numeric(output.replace("&amp;", "&"))
        labels = [try_numeric(label.replace("&amp;", "&")) for label in labels if label != ""]
        return float(max([rouge(scorer, output, label) for label in labels]))
    if kind in ("radio", "select"):
        votes = collections.Counter(labels)
        majority = max(votes, key=votes.get)
        return 1.0 if exact_match(output, str(majority)) else 0.0
    if kind == "checkbox":
        return float(max([1.0 if exact_match(output, str(label)) else 0.0 for label in labels]))
    if kind == "range":
        try:
            labels = [float(label) for label in labels]
            number = float(output)
            distance = np.mean(np.abs(np.array(labels) - number))
            denominator = np.max([np.max(np.abs(labels)), np.abs(number)])
            return float(1.0 - (distance / denominator if denominator > 0 else distance))
        except ValueError:
            return float(np.mean([1.0 if exact_match(output, str(label)) else 0.0 for label in labels]))
    raise Exception(f"to be implemented for type `{kind}`")


def score_outputs(scorer, fields, answers):
    by_kind = collections.defaultdict(list)
    score, count = 0.0, 0
    for field in fields:
        name, kind = field["name"], field["type"]
        if name in EXCLUDED or kind == "submit" or not field["displayed"]:
            continue
        labels = answers[name]
        values = clean_values(field["values"])
        if kind == "checkbox":
            output = "|".join(sorted(values))
            labels = ["|".join(sorted(label.split("|"))) if isinstance(label, str) else label for label in labels]
        else:
            output = values[0] if values else ""
        if kind in ("text", "textarea", "hidden"):
            labels = ["" if str(label) in ("nan", "{}", "'{}'") else clean_values([label])[0] for label in labels]
            labels = list(set(labels))
            if all(label == "" for label in labels):
                continue
        own = calculate_metrics(scorer, labels, kind, output)
        by_kind[kind].append(own)
        # A range always adds 1 to the score of the instance; its own score is only reported.
        score += 1.0 if kind == "range" else own
        count += 1
    return (score / count if count > 0 else 0.0), by_kind


class GoldLabels:
    """`retrieve_gold_labels`, with the table and its distinct rows read once for each task."""

    def __init__(self, file):
        self.table = pd.read_csv(file)
        self.inputs = [column for column in self.table.columns if not column.startswith("Answer.")]
        self.distinct = self.table[self.inputs].drop_duplicates()

    def of(self, instance, fields):
        assert instance <= len(self.distinct)
        row = self.distinct.iloc[instance]
        subset = self.table[self.table[self.inputs].eq(row).all(axis=1)]
        assert len(subset) > 0
        answers = {}
        for field in fields:
            labels = subset.get(f"Answer.{field['name']}", np.array([])).tolist()
            if field["type"] in ("checkbox", "radio"):
                labels = ["" if pd.isna(label) else label for label in labels]
            answers[field["name"]] = labels
        return answers

    def page(self, instance, template):
        """`populate_html_template` with the input of an instance."""
        for name, value in self.distinct.iloc[instance].items():
            template = template.replace("${" + name + "}", str(value))
        return template

    def fields_of_page(self, page, given):
        """The fields that have answers, as the page declares them, with the values of an answer. The published code finds
        them with a browser, which takes longer than to parse the page once.
        """
        first = {}
        for element in BeautifulSoup(page, "html.parser").find_all(attrs={"name": True}):
            first.setdefault(element["name"], element)
        values = {field["name"]: field["values"] for field in given}
        fields = []
        for column in self.table.columns:
            name = column.removeprefix("Answer.")
            element = first.get(name)
            if name == column or element is None or element.name not in ("input", "textarea", "select"):
                continue
            kind = element.get("type", "text") if element.name == "input" else element.name
            fields.append({"name": name, "type": kind, "values": values[name], "displayed": kind != "hidden"})
        return fields


def turkingbench(asked):
    scores = {}
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    gold, templates = {}, {}
    for line in Path(asked["answers"]).read_text().splitlines():
        answer = json.loads(line)
        task, instance, fields = answer["task"], answer["instance"], answer["fields"]
        if task not in gold:
            gold[task] = GoldLabels(Path(asked["tasks"]) / task / "batch.csv")
            templates[task] = (Path(asked["tasks"]) / task / "template.html").read_text()
        if asked["of_page"]:
            fields = gold[task].fields_of_page(gold[task].page(instance, templates[task]), fields)
        score, by_kind = score_outputs(scorer, fields, gold[task].of(instance, fields))
        name = f"{task}/{instance}"
        scores[name] = score
        for kind, own in by_kind.items():
            for at, one in enumerate(own):
                scores[f"{name} {kind} {at}"] = None if one != one else one
    return scores


# --- Mind2Web: `src/action_prediction/metric.py` and `dataloader.py` ---


def calculate_f1(prediction, label):
    prediction, label = set(prediction.strip().split()), set(label.strip().split())
    if len(prediction) == 0 and len(label) == 0:
        return 1
    if len(prediction) == 0 or len(label) == 0:
        return 0
    common = len(prediction & label)
    if common == 0:
        return 0
    precision, recall = common / len(prediction), common / len(label)
    return 2 * precision * recall / (precision + recall)


def postprocess_action(text):
    text = text.strip()
    choice = text[0]
    action = re.search(r"Action: (CLICK|SELECT|TYPE)", text)
    action = action.group(1) if action is not None else ""
    value = re.search(r"Value: (.*)$", text, re.MULTILINE)
    value = value.group(1) if value is not None else ""
    return choice, action.strip() + " " + value.strip()


def target_text(operation):
    value = "" if operation["op"] == "CLICK" else f"Value: {operation['value']}"
    return f"B.\nAction: {operation['op']}\n{value}"


def macro_scores(per_step, websites):
    element, f1, step = (collections.defaultdict(list) for _ in range(3))
    for task, own in per_step:
        element[task].append(own[0])
        f1[task].append(own[1])
        step[task].append(own[2])
    error_ratio, per_website = collections.defaultdict(int), collections.defaultdict(list)
    for task, own in step.items():
        per_website[websites[task]].append(np.mean(own))
        wrong = len([one for one in own if one == 0])
        error_ratio[str(wrong) if wrong <= 3 else ">3"] += 1
    out = {
        "marco_element_acc": np.mean([np.mean(own) for own in element.values()]),
        "marco_action_f1": np.mean([np.mean(own) for own in f1.values()]),
        "marco_step_acc": np.mean([np.mean(own) for own in step.values()]),
    }
    out.update({f"error_ratio {wrong}": count / len(step) for wrong, count in error_ratio.items()})
    out.update({f"acc_per_website {website}": np.mean(own) for website, own in per_website.items()})
    return out


def mind2web(asked):
    """The published code computes the macro measures anew in each step that has a right candidate, so that its time
    grows with the square of the number of steps. `macro` asks for that with "each step"; with "once" they are computed
    after the last such step only, with the same result.
    """
    top_k, is_each_step = 50, asked["macro"] == "each step"
    samples, websites = [], {}
    for file in asked["tasks"]:
        for task in json.loads(Path(file).read_text()):
            for action in task["actions"]:
                samples.append((task["annotation_id"], task["website"], action))
    replies = dict(json.loads(Path(asked["outputs"]).read_text()))
    caps = {
        f"recall@{k}": np.mean(
            [1 if any(c["rank"] < k for c in action["pos_candidates"]) else 0 for _, _, action in samples]
        )
        for k in (5, 10, 20, 50)
    }
    caps["acc"] = np.mean(
        [1 if any(c["rank"] == 0 for c in action["pos_candidates"]) else 0 for _, _, action in samples]
    )
    per_step, scores, macro, counted = [], {}, {}, 0
    for task, website, action in samples:
        name = f"{task}_{action['action_uid']}"
        websites[task] = website
        right = [c["backend_node_id"] for c in action["pos_candidates"] if c["rank"] < top_k]
        if len(right) == 0:
            per_step.append((task, (0, 0, 0)))
            scores[name] = [0, 0, 0]
            continue
        _, target = postprocess_action(target_text(action["operation"]))
        wrong = [c["backend_node_id"] for c in action["neg_candidates"] if c["rank"] < top_k]
        candidates = right + wrong
        final = None
        # The model's replies are those that were recorded, and so are the groups of candidates.
        rounds = iter(replies[name])
        while len(candidates) > 1:
            group, (_, _, choices), reply = next(rounds)
            candidates = candidates[len(group) :]
            choice, predicted = postprocess_action(reply)
            if choice[0] != "A":
                try:
                    element = choices[ord(choice[0]) - ord("B")][0]
                    candidates.append(element)
                    final = (element, predicted)
                except IndexError:
                    pass
        own = (0, 0, 0)
        if len(candidates) > 0 and final is not None:
            element = 1 if final[0] in right else 0
            f1 = calculate_f1(final[1], target)
            own = (element, f1, 1 if element == 1 and f1 == 1 else 0)
        per_step.append((task, own))
        scores[name] = list(own)
        counted = len(per_step)
        if is_each_step:
            macro = macro_scores(per_step, websites)
    if not is_each_step:
        macro = macro_scores(per_step[:counted], websites)
    names = enumerate(("element_acc", "action_f1", "step_acc"))
    micro = {name: np.mean([own[at] for _, own in per_step]) for at, name in names}
    scores.update({name: float(value) for name, value in {**caps, **micro, **macro}.items()})
    return scores


def main():
    asked = json.load(sys.stdin)
    score = {"webcanvas": webcanvas, "turkingbench": turkingbench, "mind2web": mind2web}[asked["benchmark"]]
    best, scores = None, {}
    for _ in range(asked["rounds"]):
        begun = time.perf_counter()
        scores = score(asked)
        took = time.perf_counter() - begun
        best = took if best is None else min(best, took)
    json.dump({"seconds": best, "scores": scores}, sys.stdout)


if __name__ == "__main__":
    import numpy as np
    import pandas as pd
    from bs4 import BeautifulSoup
    from lxml.html import fromstring
    from rouge_score import rouge_scorer

    main()
