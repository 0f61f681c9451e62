"""Generates cases from seeds. Each case is (benchmark, function, input)."""

import base64
import io
import json
import random
import re
import string
from pathlib import Path

# Texts ---------------------------------------------------------------------------------------------------------------

WORDS = """the a an is are of in on it yes no n/a none total price order count color purple gold marigold red blue mug
shirt sofa shown as can't cannot gonna wanna 'tis it's they're won't don't dr. mr. e.g. i.e. u.s. inc. p.m. a.m. no. vs.
st. ave. 0 1 2 5 10 100 000002 1,234.50 $2.00 $0.00 0% 5/5 4.5 -3 +2 #5 2023 may 31 15:30 748m 1.7km 9:05 page review
customer Joust Bag Äpfel café naïve straße Ünïcode 北京 ½ ² ™ ® ﬁne İstanbul ΑΣ""".split()
MARKS = """. , ; : ! ? ... .. - -- — – ― ‒ ' '' " `` ` “ ” ‘ ’ « » „ ( ) [ ] { } < > / \\ & % $ # @ * _ ~ | = + ^ £ € °
≈ … • ✓ 🆗 ⟩ → × § ¿ ¡""".split() + [" ", "  ", "\t", "\n", "\n\n", "\u00a0", "\u2009", "\u200b", "\u00ad", "\u3000", ""]


def word(r):
    return r.choice(WORDS)


def text(r, most=12):
    """Returns words with punctuation between, before and after them."""
    out = []
    for _ in range(r.randint(0, most)):
        w = word(r)
        if r.random() < 0.3:
            w = r.choice(MARKS) + w
        if r.random() < 0.4:
            w += r.choice(MARKS)
        out.append(w + (r.choice(MARKS) if r.random() < 0.15 else " "))
    got = "".join(out)
    if r.random() < 0.8:
        got = got.strip(" ")
    return got


def soup(r, most=25):
    alphabet = r.choice([
        string.printable, "a.b'\"!? -0)( ", "0123456789.,- ", "'\"`“”‘’«» ab.", "—–―‒a b",
        "äöüßÄéıİſﬀ \u0307aσςΣ", "\u0085\u2028\x1c\x1d a.",
    ])
    return "".join(r.choice(alphabet) for _ in range(r.randint(0, most)))


def sentence(r):
    """Returns text in the style of a language model's answer."""
    value = word(r)
    return r.choice([
        "{}", "The answer is {}.", "{}.", "'{}'", '"{}"', "**{}**", "`{}`", "It is {}—as shown", "{} – see above",
        "The total is ${}.", "({})", "{}, and {}", "count: {}", "Count: '{}'", "Answer: {}\n\nExplanation: the {} is {}.",
        "There are {} reviews.", "“{}”", "‘{}’", "{} (about {}%)", "- {}\n- {}", "1. {}\n2. {}", "{}/{}", "{};{}",
        "I found {} results: {}, {}", "{}!", "{}?", "The {}'s {}", "{} - {}", "It's {}. That's {}.", "N/A", "n/a.",
    ]).replace("{}", "\0").replace("\0", value, 1).replace("\0", word(r))


def any_text(r):
    return r.choice([text, text, soup, sentence, sentence])(r)


def mutated(r, s):
    """Returns a right answer with a small change."""
    kind = r.randrange(14)
    if kind == 0:
        return s
    if kind == 1:
        return s.upper()
    if kind == 2:
        return f"'{s}'"
    if kind == 3:
        return f'"{s}"'
    if kind == 4:
        return s + r.choice(MARKS)
    if kind == 5:
        return r.choice(MARKS) + s
    if kind == 6:
        return f"{any_text(r)} {s} {any_text(r)}"
    if kind == 7:
        return any_text(r) + s + any_text(r)
    if kind == 8 and s:
        at = r.randrange(len(s))
        return s[:at] + r.choice(MARKS) + s[at:]
    if kind == 9 and s:
        at = r.randrange(len(s))
        return s[:at] + s[at + 1:]
    if kind == 10:
        return s.replace("-", r.choice("–—‐−")).replace("'", "’")
    if kind == 11:
        return f"The answer is {s}."
    if kind == 12:
        return f" {s}\n"
    return s.replace(" ", r.choice(["  ", "\u00a0", "\n", "-", ""]))


# URLs ----------------------------------------------------------------------------------------------------------------

HOSTS = [
    "shopping.test", "gitlab.test", "localhost:7770", "127.0.0.1:7770", "reddit.test", "shopping-admin.test",
    "SHOPPING.test", "u@shopping.test", "shopping.test:80", "[::1]:80", "[::1", "", "a.b.c", "shopping.test.",
    "xn--bcher-kva.test", "bücher.test", "ｓhopping.test", "_a.test", "-a.test", "a..b",
]
SEGMENTS = [
    "f", "books", "81", "81;x", "a b", "a%20b", "%C3%BC", "ü", "admin", "dashboard%2Ftodos", "..", ".", "", "x;y=1", "%zz",
    "catalogsearch", "result", "index.php", "filter", base64.urlsafe_b64encode(b"a=1&b=2").decode().rstrip("="),
    "A", "~user", "+", "'", "(1)", "a:b", "@", "%7E",
]
QUERIES = [
    "q=1", "q=a+b", "q=a%20b", "q=", "q", "a[]=1", "a[]=2", "a[]=1&a[]=2", "x=1&y=2", "y=2&x=1", "x=%C3%BC", "x=ü", "&", "a=b=c",
    "a;b=1", "q=1#f", "sort=asc", "x=%26", "price=0-100", "Q=1", "q=A", "q=%ff", "utf8=%E2%9C%93",
]


def url(r):
    scheme = r.choice(["http://"] * 12 + ["https://", "HTTP://", "//", "", "ftp://", "ssh://", "http:/", "mailto:", "about:blank"])
    host = r.choice(HOSTS[:6] if r.random() < 0.7 else HOSTS)
    path = "".join("/" + r.choice(SEGMENTS) for _ in range(r.randint(0, 4)))
    query = "?" + "&".join(r.choice(QUERIES) for _ in range(r.randint(1, 3))) if r.random() < 0.5 else ""
    fragment = "#" + r.choice(["a", "", "!x", "a/b"]) if r.random() < 0.15 else ""
    return scheme + host + path + r.choice(["", "", "/"]) + query + fragment + r.choice([""] * 8 + ["/", "//", " "])


def near(r, u):
    """Returns a URL that may be equivalent."""
    kind = r.randrange(9)
    if kind == 0:
        return u
    if kind == 1:
        return u + r.choice(["/", "?x=1", "&x=1", "#a", ";x", "7", "/a", " "])
    if kind == 2:
        return u.replace("localhost", "127.0.0.1")
    if kind == 3:
        return u.upper()
    if kind == 4:
        return u.rstrip("/")
    if kind == 5:
        return "http://other.test/?next=" + u
    if kind == 6 and "?" in u:
        head, query = u.split("?", 1)
        pairs = query.split("&")
        r.shuffle(pairs)
        return head + "?" + "&".join(pairs)
    if kind == 7:
        return re.sub(r"/[^/]*$", "", u)
    return url(r)


# WebArena, VisualWebArena --------------------------------------------------------------------------------------------


class Classic:
    def __init__(self, name, file):
        self.name = name
        raw = json.loads(Path(file).read_text())
        self.tasks = [task for task in raw if not self.needs_site(task["eval"])]

    @staticmethod
    def needs_site(eval_):
        """Returns whether the evaluation needs a browser or a server."""
        targets = eval_.get("program_html") or []
        return "page_image_query" in eval_["eval_types"] or any(
            "func:" in t["url"] and "reddit_get_post_url" not in t["url"] for t in targets)

    def tokens(self, r):
        return "tokens", {"text": any_text(r).lower()}

    def strings(self, r):
        kind = r.choice(["clean_answer", "exact_match", "must_include", "string_evaluator", "string_evaluator"])
        if kind == "clean_answer":
            return kind, {"answer": any_text(r)}
        ref = r.choice([word(r), word(r), any_text(r), r.choice("0123456789yn$")])
        answer = mutated(r, ref) if r.random() < 0.7 else any_text(r)
        if kind != "string_evaluator":
            extra = {"tokenize": r.random() < 0.5} if self.name == "webarena" and kind == "must_include" else {}
            if self.name != "webarena" and kind == "must_include" and r.random() < 0.3:
                kind = "must_exclude"
            return kind, {"ref": ref, "pred": answer, **extra}
        rules = {}
        for rule in r.sample(["exact_match", "must_include", "fuzzy_match"], r.randint(1, 2)):
            many = [ref] + [word(r) for _ in range(r.choice([0, 0, 0, 1, 2]))]
            rules[rule] = ref if rule == "exact_match" else many
        if self.name != "webarena":
            pick = r.randrange(6)
            if pick == 0:
                rules = {"one_of": [ref, word(r)]}
            elif pick == 1:
                rules["must_exclude"] = [word(r)]
            elif pick == 2:
                rules = {"required_values": [r.choice(["> 5", "<= 10 |OR| == 100", "== 2", "< 5", ">= 1,000"])]} | (
                    rules if r.random() < 0.2 else {})
                answer = r.choice(["5", "1,234", " 10 ", "$5", "5.0", "five", "", "1_0", "-5", "+5", "٣", "10."])
        if r.random() < 0.15:
            rules["fuzzy_match"] = "N/A"
            answer = r.choice(["N/A", "n/a", "'N/A'", "not possible", ""])
        references = rules.get("fuzzy_match", [])
        judge = {x: r.random() < 0.5 for x in (references if isinstance(references, list) else ["the note"])}
        return kind, {"reference_answers": rules, "answer": answer, "string_note": "the note", "judge": judge, "judge_default": False}

    def urls(self, r):
        reference = url(r)
        if r.random() < 0.25:
            reference += " |OR| " + url(r)
        one = r.choice(reference.split(" |OR| "))
        case = {"reference_url": reference, "url": near(r, one)}
        if r.random() < 0.5:
            case["url_note"] = "GOLD in PRED"
        if self.name == "webarena" and r.random() < 0.1:
            return "reddit_get_post_url", {"url": url(r)}
        return "url_evaluator", case

    def pages(self, r):
        where = {"http://shopping.test/a": any_text(r), "http://reddit.test/f/books/81/": any_text(r)}
        last = "http://reddit.test/f/books/81/title"
        case = {"url": last, "content": f"<p>{any_text(r)}</p>", "pages": where, "evaluate": {}, "program_html": []}
        for _ in range(r.randint(1, 3)):
            place = r.choice(["last", "last", *where, "func:reddit_get_post_url('__last_url__')"])
            locator, shown = "", case["content"] if place == "last" else where.get(place, where["http://reddit.test/f/books/81/"])
            if r.random() < 0.5:
                locator = r.choice(["document.querySelector('#a').value", "[...document.querySelectorAll('b')].map(x => x.y)"])
                if self.name != "webarena" and r.random() < 0.3:
                    locator = "lambda:() => document.title"
                shown = r.choice([any_text(r), any_text(r), any_text(r), r.randint(0, 9), 4.5, True, None, "", ["a", "it's"], {"a": 1}, "&amp; &lt;b&gt;"])
                if r.random() < 0.9:
                    case["evaluate"][locator.removeprefix("lambda:")] = shown
            text_ = str(shown)
            words = text_.split()
            ref = r.choice(words) if words and r.random() < 0.7 else any_text(r)
            if self.name == "webarena":
                rule = r.choice([{"exact_match": mutated(r, text_)}, {"must_include": [ref]}, {"must_include": [ref + " |OR| " + word(r), word(r)]}])
            else:
                rule = r.choice([
                    {"exact_match": mutated(r, text_)}, {"must_include": [ref]}, {"must_exclude": [ref]}, {"must_include": [ref + " |OR| " + word(r)]},
                    {"required_values": [r.choice(["< 70", ">= 4", "== 5"])]}])
            case["program_html"].append({"url": place, "locator": locator, "required_contents": rule})
        return "html_content_evaluator", case

    def whole(self, r):
        """Returns one of the benchmark's own tasks, with an answer and pages made from its expected values."""
        task = r.choice(self.tasks)
        eval_ = json.loads(re.sub(r"__(SHOPPING_ADMIN|SHOPPING|REDDIT|GITLAB|MAP|WIKIPEDIA|HOMEPAGE|CLASSIFIEDS)__",
                                  lambda m: f"http://{m[1].lower().replace('_', '-')}.test", json.dumps(task["eval"])))
        expected = []
        for rule, value in (eval_.get("reference_answers") or {}).items():
            expected += [value] if isinstance(value, str) else [v.split(" |OR| ")[0] for v in value]
        answer = r.choice([", ", " ", "\n"]).join(expected)
        if r.random() < 0.8:
            answer = mutated(r, answer)
        reference = (eval_.get("reference_url") or "http://reddit.test/f/books/81").split(" |OR| ")[0]
        case = {"eval": eval_, "answer": answer, "url": near(r, reference) if r.random() < 0.6 else reference, "evaluate": {}, "pages": {}, "helpers": {}}
        case["judge"] = {x: r.random() < 0.5 for x in expected} | {eval_.get("string_note") or "": r.random() < 0.5}
        shown = any_text(r)
        for target in eval_.get("program_html") or []:
            wanted = target["required_contents"]
            parts = []
            for rule, value in wanted.items():
                parts += [value] if isinstance(value, str) else [v.split(" |OR| ")[0] for v in value]
            found = " ".join(parts)
            found = mutated(r, found) if r.random() < 0.5 else found
            if "required_values" in wanted and r.random() < 0.7:
                found = r.choice(["5", "100", "12.5", "", "1,000"])
            locator = target.get("locator", "").strip()
            if locator.startswith("func:"):
                case["helpers"][locator[5:].split("(")[0]] = found
            elif locator.startswith(("document.", "[...document.")):
                case["evaluate"][locator] = found
            elif locator.startswith("lambda:"):
                case["evaluate"][locator.removeprefix("lambda:")] = found
            elif not locator:
                shown += " " + found
                if target["url"] != "last":
                    case["pages"][target["url"]] = found
        case["content"] = shown
        for target in eval_.get("program_html") or []:
            if target["url"] != "last":
                case["pages"].setdefault(target["url"], shown)
        case["every_page"] = shown
        case["judge_default"] = r.random() < 0.5
        return "task", case

    def numbers(self, r):
        value = r.choice([r.randint(-5, 200), round(r.uniform(-5, 200), 2), 5.00000001, 1e300])
        bound = r.choice(["5", " 5 ", "5.0", "1e2", "1_0", "", "x", "nan", "inf", str(value)])
        return "compare_inequality", {"value": value, "inequality": r.choice(["<", "<=", ">", ">=", "==", "=", "x <"]) + bound}

    def pictures(self, r):
        return "ssim", {"one": picture(r), "other": picture(r)}


def picture(r):
    from PIL import Image

    mode = r.choice(["L", "L", "RGB", "RGB", "RGBA", "LA", "P", "1", "I;16", "BMP-P", "BMP-L", "BMP-1", "BMP-RGB", "GIF", "BMP-P4"])
    width, height = r.choice([(8, 8), (16, 9), (7, 7), (20, 31), (40, 40), (5, 9)])
    seed = r.randrange(6)
    pixel = lambda x, y, c: (x * 7 * (c + 1) + y * 13 + seed * 40 + (x * y * seed) % 97) % 256
    kind = mode.removeprefix("BMP-")
    base = {"GIF": "P", "P4": "P"}.get(kind, kind)
    if base == "I;16":
        image = Image.new("I;16", (width, height))
        for x in range(width):
            for y in range(height):
                image.putpixel((x, y), pixel(x, y, 0) * r.choice([1, 256, 257]) % 65536)
    elif base in ("P", "1"):
        image = Image.new("RGB", (width, height))
        for x in range(width):
            for y in range(height):
                image.putpixel((x, y), tuple(pixel(x, y, c) for c in range(3)))
        image = image.convert("1") if base == "1" else image.quantize(r.choice([4, 16, 64]) if kind != "P4" else 16)
    else:
        image = Image.new(base, (width, height))
        bands = len(image.getbands())
        for x in range(width):
            for y in range(height):
                value = tuple(pixel(x, y, c) for c in range(bands))
                image.putpixel((x, y), value if bands > 1 else value[0])
    out = io.BytesIO()
    image.save(out, "BMP" if mode.startswith("BMP") else "GIF" if mode == "GIF" else "PNG")
    return out.getvalue().hex()
