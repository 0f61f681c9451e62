"""Generates cases for WebArena-Verified from seeds: values of every type, whole tasks, recorded traffic, odd JSON."""

import base64
import copy
import json
import random
import re
from pathlib import Path
from urllib.parse import quote, urlencode

from cases import MARKS, any_text, mutated, near, text, url, word

TYPES = [
    "currency", "date", "duration", "distance", "coordinates", "url", "boolean", "string", "string_list", "number",
    "integer", "month", "null", "json", "markdown", "base64", "location-name",
]
MONTHS = "January February March April May June July August September October November December".split()


def amount(r):
    n = r.choice([r.randint(0, 9), r.randint(0, 99999), r.uniform(0, 2000)])
    return f"{n:,.2f}" if isinstance(n, float) or r.random() < 0.5 else str(n)


def day(r):
    year, month, date = r.choice([2022, 2023, 2024, 99, 23]), r.randint(1, 12), r.randint(1, 31)
    name = r.choice([MONTHS[month - 1], MONTHS[month - 1][:3], MONTHS[month - 1].upper()])
    return r.choice([
        f"{name} {date}, {year}", f"{month}/{date}/{year}", f"{year}-{month:02}-{date:02}", f"{date} {name} {year}", f"{name} {year}",
        f"{name} {date}", f"{date}.{month}.{year}", f"{name} {date},{year}", f"{year}", f"{month}/{date}", f"{name}", f"{date}th of {name} {year}",
        f"{name} {date}, {year} 10:30 PM", f"{year}{month:02}{date:02}", f"Monday, {name} {date}, {year}", "Monday", f"tuesday {year}",
        f"{month}-{date}-{year}", f"{year}/{month}/{date}T10:00:00Z", f"{name} {date}st {year} at 5pm", f"{date}-{name}-{year}", "today", f"{name}-{year}",
    ])


def raw(r, kind):
    """Returns a value as a task or an agent may write it."""
    pick = r.random()
    if pick < 0.06:
        return odd(r)
    if pick < 0.12:
        return any_text(r)
    if kind == "currency":
        return r.choice([f"${amount(r)}", amount(r), f"USD {amount(r)}", f"{amount(r)} USD", f"-${amount(r)}", round(r.uniform(0, 999), 2), r.randint(0, 999),
                         f"{amount(r)}€", f"${amount(r)} - ${amount(r)}", f"about ${amount(r)}", "free", f"{r.randint(1, 9)}.{r.randint(100, 999)},{r.randint(10, 99)}", f"{amount(r)}%",
                         f"${amount(r)}/each", f"total: {amount(r)}", f"'{amount(r)}'", f"**${amount(r)}**", f"$ {amount(r)}", f"+{amount(r)}", "1e3", f"{amount(r)}$"])
    if kind == "date":
        return day(r)
    if kind == "duration":
        h, m, s = r.randint(0, 30), r.randint(0, 75), r.randint(0, 75)
        return r.choice([f"{h}h {m}m", f"{h}:{m:02}", f"{h}:{m:02}:{s:02}", f"{m} min", f"{m} minutes", f"{m} min.", f"about {m} minutes", f"{h} hours, {m} minutes", f"{h}.5 hours", f"{m}m{s}s",
                         f"{h}:{m:02} hours", m, f"{m}", f"{m} mins {s} secs", f"{h} hr", f"{h} days", f"1 week {h}h", f"-{m}m", f"{h}h{m}", f"{m}'", f"{m} minutes and {s} seconds", f"{m}ms", f"1,{m} min", f"{h}d 3h"])
    if kind == "distance":
        n = r.choice([r.randint(0, 2000), round(r.uniform(0, 20), r.randint(0, 3))])
        unit = r.choice(["m", "km", "mi", "miles", "meters", "metres", "ft", "k", "kilometers", "yd", "in", "cm", "KM", "kms", "mile", "feet", "Meter", "nmi", "furlongs", "degrees", "%", "pi m", "kg", "s", "light years", "km/h", "mm"])
        return r.choice([f"{n}{unit}", f"{n} {unit}", f'"{n}{unit}"', f"'{n}{unit}'", f"{n} {unit}.", f"about {n} {unit}", f"{n:,} {unit}", n, str(n), f"{n}{unit} + 3 m", f"({n} {unit})", f"{n} {unit} (approx)",
                         f"{n} {unit}, {n} m", f"`{n} {unit}`", f"**{n} {unit}**", f"~{n}{unit}", f"-{n} {unit}", f"{n}*{n} {unit}", f"{n} {unit} to {n} {unit}", f"{n} {unit}'", f"5' 3\"", f"{n}e2{unit}", f"2 pi {unit}", f"{n}\u00a0{unit}"])
    if kind == "coordinates":
        lat, lon = round(r.uniform(-95, 95), r.randint(0, 9)), round(r.uniform(-190, 190), r.randint(0, 9))
        return r.choice([f"{lat}, {lon}", [lat, lon], {"latitude": lat, "longitude": lon}, {"lat": lat, "lon": lon}, {"lat": str(lat), "lng": str(lon)}, f"{lat} {lon}", f"({lat}, {lon})",
                         f"{abs(lat)}° N, {abs(lon)}° W", [str(lat), str(lon)], f"{lat},{lon}", f"{lat};{lon}", f"40° 26' 46\" N, 79° 58' 56\" W", f"lat: {lat}, lon: {lon}", [lat], [lat, lon, 1], f"{lat}/{lon}", f"{lat}N {lon}E"])
    if kind == "url":
        return url(r)
    if kind == "boolean":
        return r.choice([True, False, 1, 0, "yes", "no", "Yes.", "true", "TRUE", "y", "on", "off", "1", "0", 2, 0.0, "t", " f "])
    if kind == "string_list":
        return r.choice([", ".join(word(r) for _ in range(r.randint(0, 4))), ",".join(str(r.randint(1, 99)) for _ in range(3)), r.randint(1, 99), ",,", [word(r)]])
    if kind in ("number", "integer"):
        n = r.randint(0, 3000)
        return r.choice([n, str(n), f"{n:,}", n / 7, f"{n}.0", "two hundred and fifty one", "three point one four", f"{n} items", "a dozen", f"-{n}", "1e3", "12 thousand", "one million two", f"{n}%", "five", f"{n}.", f"+{n}", "0x10", "1_000", "٣", "½", "²"])
    if kind == "month":
        return r.choice([r.choice(MONTHS), r.choice(MONTHS)[:3], r.choice(MONTHS).lower(), r.randint(0, 13), str(r.randint(0, 13)), f"0{r.randint(1, 9)}", day(r), 5.0, 5.5, True, f"{r.choice(MONTHS)} 2022", "Sept"])
    if kind == "null":
        return r.choice([None, "", "N/A", "n / a", "none", "null", "na", "nan", 0, False, [], {}, "nothing", "None."])
    if kind == "json":
        value = r.choice([{"b": 1, "a": [1.5, "x"]}, [2, 1], "x", 1, True, None, {"a": "ü\u2028"}, 1e22, 121.48886955472557, {"a": {"c": 1, "b": 2}}])
        s = json.dumps(value, indent=r.choice([None, 1]), ensure_ascii=r.random() < 0.5)
        return r.choice([s, s, s, s + "}", "[NaN]", "{\"a\": Infinity}", "[1e999]", "[-0.0, 1E5, 1.0]", "[123456789012345678901234567890]", "{\"a\":1,\"a\":2}", "'a'", "\"\\ud800\"", "[[[[[1]]]]]", "[01]", "[1.]", "\ufeff[]"])
    if kind == "markdown":
        return "\n".join(r.choice(["# Title", "* item", "+ item ", "  - item", "**bold**", "[a\nb](http://x )", "", "", "text  ", "\tcode", "1. one", "[ a  b ]( u )", "* * *"]) for _ in range(r.randint(1, 6)))
    if kind == "base64":
        s = any_text(r).encode()
        got = base64.b64encode(s).decode()
        return r.choice([got, got.rstrip("="), got + "=", any_text(r), "^" + word(r) + ".*$"])
    if kind == "location-name":
        return r.choice(["Carnegie Mellon University", "Carnegie Mellon Univ", "Starbucks on Craig Street", "Apple Store Shadyside", "Shadyside Apple Store", "Pittsburgh Intl. Airport", "Café Ünïcode", word(r), ""])
    return r.choice([any_text(r), any_text(r), word(r), "^" + re.escape(word(r)) + "$", r.randint(0, 99), 4.5, True, None, "http://shopping.test/a b", "SUCCESS 🆗", "⠿⡀⟩🆕🅰"])


def odd(r):
    return r.choice([None, "", 0, 1, -1, 1.5, True, False, [], {}, [1], ["a", "b"], [[1], [2]], {"a": 1}, "null", "[]", "\u0000", "😀", "⡀", "ﷺ", 1e300, 10**20, 10**25, 2**63, float("nan"), float("inf"), -float("inf"), "\ud800", "a\udfffb", 0.1 + 0.2, 121.48886955472557, 5e-324])


def respelt(r, kind, value):
    """Returns the same value written differently, or a slightly different value."""
    if isinstance(value, str):
        return mutated(r, value)
    if isinstance(value, bool) or value is None:
        return r.choice([value, str(value), not value])
    if isinstance(value, (int, float)):
        return r.choice([value, str(value), f"{value:,}", f"${value}", value + r.choice([0, 0.1, 1, -1, 0.05, 1e-9]), repr(float(value)), f"{value} "])
    if isinstance(value, list):
        return r.choice([value, value[::-1], [respelt(r, kind, v) for v in value], json.dumps(value)])
    if isinstance(value, dict):
        return r.choice([value, {k: respelt(r, kind, v) for k, v in value.items()}, json.dumps(value)])
    return value


def equal(r):
    kind = r.choice(TYPES)
    a = raw(r, kind)
    if r.random() < 0.1:
        a = [a, raw(r, kind)]
    b = respelt(r, kind, a) if r.random() < 0.65 else raw(r, kind)
    # The values are text, because not every reader accepts all of JSON.
    return "equal", {"type": kind, "a": json.dumps(a), "b": json.dumps(b)}


def urls(r):
    pick = r.random()
    if pick < 0.1:
        return "extract_base64_query", {"path": "/" + "/".join(r.choice(["a", "b", base64.urlsafe_b64encode(text(r, 2).encode()).decode(), base64.urlsafe_b64encode(b"x=1&y=" + word(r).encode()).decode().rstrip("="), "dXNlcj1hZG1pbg", ""]) for _ in range(r.randint(1, 4)))}
    if pick < 0.2:
        return "normalize_query", {"query": "&".join(r.choice(["a=1", "a=2", "b=", "c", "a=%2520", "d=ü", "=x", "a=b=c", "x+y=z+1", "%ff=%ff", "a;b"]) for _ in range(r.randint(0, 4)))}
    one = url(r)
    options = {"decode_base64_query": r.random() < 0.3, "ignored_query_parameters": r.choice([[], ["q"], ["x", "y"]]), "ignored_query_parameters_patterns": r.choice([[], ["^a"], ["["]])}
    return "url_equal", {"a": one, "b": near(r, one), "options": options}


class Tasks:
    SITES = {"__SHOPPING_ADMIN__": "http://shopping-admin.test/admin"} | {f"__{s}__": f"http://{s.lower()}.test" for s in ("GITLAB", "MAP", "REDDIT", "SHOPPING", "WIKIPEDIA", "HOMEPAGE")}

    def __init__(self, file):
        self.tasks = json.loads(Path(file).read_text())

    def rendered(self, template):
        for name, address in self.SITES.items():
            template = template.replace(name, address)
        return template

    def whole(self, r):
        task = r.choice(self.tasks)
        return "verified_task", {"task_id": task["task_id"], "response": self.response(r, task), "har": self.har(r, task)}

    def response(self, r, task):
        expected = copy.deepcopy(next(e for e in task["eval"] if e["evaluator"] == "AgentResponseEvaluator")["expected"])
        first = lambda v: v[0] if isinstance(v, list) and v else v
        data = expected.get("retrieved_data")
        if isinstance(data, list):
            data = [first(item) for item in data]
            data = [{k: first(v) for k, v in item.items()} if isinstance(item, dict) else item for item in data]
        answer = {"task_type": expected.get("task_type", "").upper(), "status": expected.get("status", ""), "retrieved_data": data, "error_details": None}
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            pick = r.randrange(12)
            if pick <= 4 and isinstance(answer.get("retrieved_data"), list) and answer["retrieved_data"]:
                items = list(answer["retrieved_data"])
                at = r.randrange(len(items))
                items[at] = respelt(r, "string", items[at])
                answer["retrieved_data"] = items
            elif pick == 5 and isinstance(answer.get("retrieved_data"), list):
                answer["retrieved_data"] = r.choice([answer["retrieved_data"][::-1], answer["retrieved_data"] + [odd(r)], answer["retrieved_data"][1:], odd(r)])
            elif pick == 6:
                answer["status"] = r.choice([str(answer.get("status")).lower(), "SUCCESS 🆗", "", None, 1, "success.", "NOT_FOUND_ERROR", "^.*$", " SUCCESS "])
            elif pick == 7:
                answer["performed_operation"] = answer.pop("task_type", "MUTATE")
            elif pick == 8:
                answer["error_details"] = odd(r)
            elif pick == 9 and len(answer) > 1:
                answer.pop(r.choice(list(answer)))
            elif pick == 10:
                answer[word(r)] = odd(r)
            elif pick == 11:
                answer["retrieved_data"] = raw(r, r.choice(TYPES))
        written = json.dumps(answer, ensure_ascii=r.random() < 0.5, indent=r.choice([None, 2]))
        return self.marred(r, written)

    @staticmethod
    def marred(r, written):
        """Returns odd JSON, or JSON wrapped as models do."""
        pick = r.random()
        if pick < 0.6:
            return written
        if pick < 0.7:
            return r.choice(["```json\n{}\n```", "```\n{}```", "Here it is:\n```json\n{}\n```\nDone.", " {} ", "{}\n", "Answer: {}", "{} done"]).replace("{}", written)
        deep = lambda n: "[" * n + "]" * n
        return r.choice([
            re.sub(r"null", "NaN", written, count=1), re.sub(r"\d+", "1e999", written, count=1), re.sub(r"null", "-Infinity", written),
            re.sub(r"null", deep(r.choice([5, 100, 130, 300, 2000])), written, count=1), re.sub(r'"([a-z])', r'"\\ud83d\1', written, count=1),
            re.sub(r"(\w)\"", r'\1\\ude00"', written, count=1), written.replace("null", "12345678901234567890123", 1), written[:-1], written + written,
            "\ufeff" + written, written.replace('"', "'"), "null", "[]", "{}", '"x"', "5", "NaN", "", written.replace("{", '{"status": "x", ', 1),
            written.replace("}", ', "status": "SUCCESS"}', 1), written.replace("null", "1" * r.choice([30, 400, 5000]), 1), "[" + written + "]",
            written.replace(": ", ":\t"), written.replace('"retrieved_data": ', '"retrieved_data": [[]], "x": '),
        ])

    def har(self, r, task):
        entries = [self.entry("GET", self.rendered(task["start_urls"][0]))]
        for event in (e for e in task["eval"] if e["evaluator"] == "NetworkEventEvaluator"):
            expected = event["expected"]
            where = expected["url"]
            where = self.rendered(where[0] if isinstance(where, list) else where)
            if where.startswith("^"):
                where = where.strip("^$").replace("\\d+", "7").replace(".*", "x").replace("\\", "")
            query = expected.get("query_params") or {}
            pairs = [(k, v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])]
            pairs = [(k, re.sub(r"^\^\(?([^|)$]*).*$", r"\1", str(v)) if str(v).startswith("^") else v) for k, v in pairs]
            if pairs:
                where += ("&" if "?" in where else "?") + urlencode(pairs)
            if r.random() < 0.25:
                where = near(r, where)
            entry = self.entry(expected.get("http_method", "GET"), where, expected.get("response_status", 200))
            for name, value in (expected.get("headers") or {}).items():
                entry["request"]["headers"].append({"name": name, "value": self.rendered(value if isinstance(value, str) else str(value))})
            data = {k: v[0] if isinstance(v, list) else v for k, v in (expected.get("post_data") or {}).items()}
            if data:
                entry["request"]["postData"] = self.body(r, data)
            cookies = expected.get("response_cookies") or {}
            entry["response"]["cookies"] = [{"name": k, "value": quote(str(v).strip("^$").replace(".*", ""))} for k, v in cookies.items()]
            content = expected.get("response_content")
            if content:
                entry["response"]["content"] = {"mimeType": "application/json", "text": json.dumps(self.nested(content))}
            entries.append(entry)
        if r.random() < 0.3:
            entries.append(self.entry("GET", r.choice([url(r), "http://shopping.test/style.css"])))
        if r.random() < 0.25:
            self.spoil(r, entries)
        har = {"log": {"entries": entries}}
        if r.random() < 0.02:
            har = r.choice([{"log": {}}, {}, {"log": {"entries": []}}, [], {"log": {"entries": None}}, {"log": {"entries": [1]}}, {"log": {"entries": {}}}])
        written = json.dumps(har, ensure_ascii=r.random() < 0.7)
        return r.choice([written] * 30 + [written[:-1], written.replace("200", "NaN", 1), written.replace('"text"', '"x": 1e999, "text"', 1), written.replace("http://", "http://\\ud800", 1), written.replace('"log"', '"x": "\\udc00", "log"', 1)])

    @staticmethod
    def nested(fields):
        """Returns fields whose names are paths as an object."""
        out = {}
        for name, value in fields.items():
            value = value[0] if isinstance(value, list) and value else value
            if not name.startswith("$."):
                out[name] = value
                continue
            here, parts = out, [p for p in re.split(r"[.\[\]']+", name[2:]) if p]
            for part in parts[:-1]:
                here = here.setdefault(part, {}) if isinstance(here, dict) else {}
            if isinstance(here, dict):
                here[parts[-1] if parts else "x"] = value
        return out

    def body(self, r, data):
        plain = {}
        for name, value in data.items():
            if name.startswith("$.^") or name.startswith("^"):
                name = name.removeprefix("$.").strip("^$").replace("\\d+", "7").replace("\\", "").replace(".*", "x")
            value = self.rendered(value) if isinstance(value, str) else value
            if isinstance(value, str) and value.startswith("^"):
                value = value.strip("^$").replace(".*", "x").replace("\\", "")
            plain[name] = value
        plain = self.nested(plain)
        for name in list(plain):
            if r.random() < 0.15:
                plain[name] = respelt(r, "string", plain[name])
        pick = r.random()
        if pick < 0.05:
            return r.choice([{"mimeType": "application/json", "text": ""}, {}, {"mimeType": "application/x-www-form-urlencoded", "text": "\u2800=⡀&🆗=1"}, {"mimeType": "text/plain", "text": "x"}, {"text": "a=1"}, None,
                             {"mimeType": None, "text": "x"}, {"mimeType": "application/json", "text": "[NaN]"}, {"mimeType": "application/json", "text": "{\"a\": NaN}"}])
        if pick < 0.45 or any(isinstance(v, (dict, list)) for v in plain.values()):
            return {"mimeType": "application/json; charset=utf-8", "text": json.dumps(plain)}
        if pick < 0.9:
            pairs = list(plain.items())
            if r.random() < 0.1:
                pairs += [r.choice(pairs)]
            return {"mimeType": "application/x-www-form-urlencoded", "text": urlencode([(k, "" if v is None else v) for k, v in pairs])}
        parts = "".join(f"--b\r\nContent-Disposition: form-data; name=\"{k}\"\r\n\r\n{v}\r\n" for k, v in plain.items())
        return {"mimeType": "multipart/form-data; boundary=b", "text": parts + "--b--\r\n"}

    @staticmethod
    def entry(method, where, status=200):
        headers = [{"name": "Accept", "value": "text/html,*/*"}, {"name": "Host", "value": "x"}]
        return {"request": {"method": method, "url": where, "headers": headers}, "response": {"status": status, "cookies": [], "content": {}}}

    @staticmethod
    def spoil(r, entries):
        """Removes or rewrites fields that exporters omit or write differently."""
        entry = r.choice(entries)
        request, response = entry["request"], entry["response"]
        pick = r.randrange(20)
        if pick == 0:
            entry.pop("response")
        elif pick == 1:
            response["status"] = r.choice([str(response["status"]), float(response["status"]), None, "abc", True, -1, "200.0", " 200", 200.5])
        elif pick == 2:
            response["cookies"] = r.choice([None, {}, [{"value": "x"}], [{"name": "a"}], [{"name": "a", "value": None}], "x"])
        elif pick == 3:
            request.pop("headers")
        elif pick == 4:
            request["headers"] = r.choice([None, [{"name": "Accept"}], [{"value": "x"}], [], [{"name": "ACCEPT", "value": None}], {}])
        elif pick == 5:
            request.pop("method")
        elif pick == 6:
            request.pop("url")
        elif pick == 7:
            request["url"] = r.choice([None, 5, "", "http://[::1", "http://bücher.test/", "chrome://x", "data:text/html,x", "/a", "http://a b/"])
        elif pick == 8:
            entry.pop("request")
        elif pick == 9:
            entries.insert(r.randrange(len(entries) + 1), r.choice([{}, {"request": None, "response": None}, {"response": {"status": 200}}]))
        elif pick == 10:
            response["content"] = r.choice([None, {"mimeType": "application/json", "text": "[1]"}, {"text": None}, "x", {"mimeType": "application/json"}, []])
        elif pick == 11:
            request["postData"] = r.choice([None, {}, {"mimeType": "application/json", "text": "{}"}, {"text": ""}, "x", {"mimeType": "application/json", "text": 5}])
        elif pick == 12:
            request["headers"].append({"name": "Sec-Fetch-User", "value": "?1"})
        elif pick == 13:
            request["headers"].append({"name": "Referer", "value": r.choice(["http://[::1", "", "x", "http://bücher.test", "about:blank"])})
        elif pick == 14:
            request["method"] = r.choice(["get", "POST", "", None, 5])
        elif pick == 15:
            entry["response"] = None
        elif pick == 16:
            entries.append(copy.deepcopy(entry))
        elif pick == 17:
            entries.reverse()
        else:
            entry["time"] = r.choice([None, 1e300, "x"])
