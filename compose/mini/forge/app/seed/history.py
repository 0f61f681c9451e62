"""The git history of a project: its changes with their times, and their import into git."""

import copy
import subprocess

from seed.common import EPOCH
from seed.languages import FUNCTIONS, GUARD, LANGUAGES, MANIFESTS

# The last two appear only in requests, so that no commit anticipates a request.
USUAL = FUNCTIONS[:-2]


class Tree:
    """The contents of a commit, as facts from which the files follow."""

    def __init__(self, project, path, modules):
        self.project, self.path, self.language = project, path, LANGUAGES[project["language"]]
        self.waiting, self.functions, self.version = list(modules), {}, "0.0.1"
        self.guarded, self.sections, self.changes, self.extra, self.jobs = set(), [], [], {}, ["build"]

    def copy(self):
        """Returns a copy for a branch, whose changes do not affect this tree."""
        other = copy.copy(self)
        other.__dict__.update(copy.deepcopy({name: value for name, value in vars(self).items() if name not in ("project", "language")}))
        return other

    def files(self):
        facts = {"project": self.project["name"], "path": self.path, "version": self.version, "licence": self.project["licence"]}
        name, text = MANIFESTS[self.project["language"]]
        files = {name.format(**facts): text.format(**facts), "README.md": self._readme(), ".gitignore": "build/\n*.log\n",
                 "LICENSE": f"{facts['project']} is free software under the {facts['licence']} licence.\n\n"
                            f"Copyright (c) {self.project['started']} {self.project['owner']}\n",
                 ".forge-ci.yml": "".join(f"{job}:\n  script: make {job}\n" for job in self.jobs)}
        if self.changes:
            files["CHANGELOG.md"] = "# Changes\n" + "".join(f"\n## {version}\n\n" + "".join(f"- {line}\n" for line in lines) for version, lines in reversed(self.changes))
        for module, verbs in self.functions.items():
            path = self.language.path.format(project=facts["project"].replace("-", "_"), module=module, Module=module.title())
            files[path] = self.language.module(module, [self._function(verb, module) for verb in verbs])
        return files | self.extra

    def _function(self, verb, module):
        _, about, parameters, statements = next(entry for entry in FUNCTIONS if entry[0] == verb)
        return f"{verb}_{module}", about.format(noun=module), parameters, ([GUARD] if (verb, module) in self.guarded else []) + statements

    def _readme(self):
        project = self.project
        text = f"# {project['name']}\n\n**{project['name']}** {project['description']}. It is written in {project['language']} and maintained by {project['owner']}.\n"
        for title, body in self.sections:
            text += f"\n## {title}\n\n{body}\n"
        return text + f"\n## Licence\n\n{project['licence']}\n"


def next_change(tree, dice, release):
    """Changes the tree as a developer would, and returns the commit message."""
    project = tree.project["name"]
    if release:
        lines = [f"The {module} knows {', '.join(verbs)}" for module, verbs in list(tree.functions.items())[-2:]] or ["First release"]
        tree.version = release
        tree.changes.append((release, lines))
        return f"Release {release}"
    if tree.waiting and (len(tree.functions) < 2 or dice.chance(0.25)):
        module = tree.waiting.pop(0)
        tree.functions[module] = [dice.pick(USUAL)[0]]
        return f"Add the {module} module\n\nIt can {tree.functions[module][0].replace('_', ' ')} for now, the rest follows."
    module = dice.pick(list(tree.functions))
    missing = [entry[0] for entry in USUAL if entry[0] not in tree.functions[module]]
    unguarded = [(verb, name) for name, verbs in tree.functions.items() for verb in verbs if verb in ("mean", "share") and (verb, name) not in tree.guarded]
    fate = dice.number(1, 10)
    if unguarded and fate <= 3:
        verb, module = dice.pick(unguarded)
        tree.guarded.add((verb, module))
        return f"{module}: survive empty lists\n\n{verb}_{module} divided by zero."
    if missing and fate <= 7:
        verb = dice.pick(missing)
        tree.functions[module].append(verb)
        return f"{module}: add {verb}_{module}"
    if fate == 8 and len(tree.jobs) < 5:
        job = ["test", "lint", "docs", "package"][len(tree.jobs) - 1]
        tree.jobs.append(job)
        return f"CI: run {job} as well"
    titles = [title for title, _ in tree.sections]
    open_titles = [title for title in ("Installing", "Using it", "Configuration", "Contributing", f"The {module}") if title not in titles]
    if open_titles:
        title = open_titles[0]
        body = {"Installing": f"Clone the repository and run `make`. Packages of {project} are on the download server of {tree.project['owner']}.",
                "Using it": f"Start `{project}` without arguments to see what it can do.",
                "Configuration": f"Settings are read from `/etc/{project}.conf`; `{project} --check` says what is wrong with them.",
                "Contributing": "Open an issue first, then fork the project and send a pull request."}.get(
                    title, f"The {module} is described in `docs/{module}.md`.")
        tree.sections.append((title, body))
        if title.startswith("The "):
            tree.extra[f"docs/{module}.md"] = f"# The {module}\n\nFunctions: {', '.join(tree.functions[module])}.\n"
        return f"README: {title.lower()}"
    tree.extra[f"docs/{module}.md"] = f"# The {module}\n\nFunctions: {', '.join(sorted(tree.functions[module]))}.\n\nLast looked over for version {tree.version}.\n"
    return f"docs: bring the {module} up to date"


class History:
    """Commits on branches, collected as a stream for git fast-import."""

    def __init__(self):
        self.stream, self.marks, self.commits = [], 0, []

    def fork(self):
        return copy.deepcopy(self)

    def commit(self, ref, person, when, message, files, parents):
        """Appends a commit and returns its mark; `write` maps marks to hashes."""
        self.marks += 1
        who = f"{person['fullname']} <{person['email']}> {int((when - EPOCH).total_seconds())} +0000"
        lines = [f"commit {ref}", f"mark :{self.marks}", f"author {who}", f"committer {who}", _data(message + "\n")]
        lines += [f"{word} :{mark}" for word, mark in zip(["from"] + ["merge"] * len(parents), parents)]
        lines.append("deleteall")
        lines += [f"M 100644 inline {path}\n{_data(text)}" for path, text in sorted(files.items())]
        # Without the reset, a commit without a parent on an existing branch would follow the branch's head.
        self.stream += ([] if parents else [f"reset {ref}", ""]) + lines + [""]
        self.commits.append((self.marks, ref, person, when, message))
        return self.marks

    def point(self, ref, mark):
        self.stream += [f"reset {ref}", f"from :{mark}", ""]

    def tag(self, name, mark, person, when, message):
        who = f"{person['fullname']} <{person['email']}> {int((when - EPOCH).total_seconds())} +0000"
        self.stream += [f"tag {name}", f"from :{mark}", f"tagger {who}", _data(message + "\n")]

    def write(self, path, without=None):
        """Creates the bare repository without the references that begin with `without`; returns the hash of each mark."""
        git = ["git", "--git-dir", path]
        subprocess.run(["git", "init", "--quiet", "--bare", path], check=True)
        subprocess.run(git + ["fast-import", "--quiet", "--export-marks=/tmp/marks"], input="\n".join(self.stream).encode(), check=True)
        with open("/tmp/marks", encoding="ascii") as lines:
            marks = dict(line[1:].split() for line in lines)
        if without:
            listed = subprocess.run(git + ["for-each-ref", "--format=delete %(refname)", without], check=True, capture_output=True)
            subprocess.run(git + ["update-ref", "--stdin"], input=listed.stdout, check=True)
        # A single pack, and all references in one file: few files to copy, and the same ones in every build.
        subprocess.run(git + ["repack", "-adq", "--no-write-bitmap-index"], check=True)
        subprocess.run(git + ["pack-refs", "--all"], check=True)
        subprocess.run(git + ["update-server-info"], check=True)
        open(f"{path}/git-daemon-export-ok", "w").close()
        return {int(mark): commit for mark, commit in marks.items()}


def _data(text):
    return f"data {len(text.encode())}\n{text}"
