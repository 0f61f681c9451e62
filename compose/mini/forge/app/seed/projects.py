"""Projects with their histories, members, labels, issues, forks and requests."""

import datetime as dt

from pagure.config import config
from pagure.lib import model

from seed import tracker
from seed.common import NOW, WORLD, Dice
from seed.history import History, Tree, next_change
from seed.people import key
from seed.words import LABELS, MODULES

# The projects of WebArena's well-known user; every third of the other projects belongs to a company.
BYTEBLAZE = ["tidegauge", "larkmap", "clockwork", "heronry", "ropewalk"]
SETTINGS = '{"issue_tracker": false, "pull_requests": false}'


def create(session, people, groups):
    others = 0
    for entry in WORLD["projects"]:
        project = dict(entry, dice=Dice("forge " + entry["name"]), people=people, modules=MODULES[entry["name"]].split())
        group = groups[entry["owner"]]
        others += entry["name"] not in BYTEBLAZE
        if entry["name"] in BYTEBLAZE:
            project["members"] = [("byteblaze", "owner"), (entry["maintainers"][0], "admin"), (entry["maintainers"][1], "commit"), (entry["maintainers"][2], "ticket")]
            project["namespace"] = "byteblaze"
        else:
            project["members"] = list(zip(entry["maintainers"], ["owner", "admin", "commit"]))
            project["namespace"] = group["name"] if others % 3 == 0 else entry["maintainers"][0]
            if others % 2 == 0:
                project["members"].append(("byteblaze", ["commit", "ticket", "admin"][others // 2 % 3]))
        project["path"] = f"{project['namespace']}/{project['name']}"
        project["group"] = group
        _create_one(session, project)


def _create_one(session, project):
    dice, people = project["dice"], project["people"]
    opening = dt.datetime(max(project["started"], 2020), 6, 1)
    project["start"] = start = dice.moment(opening, opening + dt.timedelta(days=220))
    row = model.Project(name=project["name"], namespace=project["namespace"], user_id=people[project["members"][0][0]]["id"],
                        description=project["description"][0].upper() + project["description"][1:] + ".", hook_token=key("hook", project["path"])[:40],
                        read_only=False, date_created=start, date_modified=NOW)
    major, minor, _ = (int(part) for part in project["version"].split("."))
    following = [f"{major}.{minor + 1}", f"{major + 1}.0"]
    row.milestones = {following[0]: {"date": "2023-07-15", "active": True}, following[1]: {"date": "2023-12-01", "active": True}}
    row.milestones_keys = following
    row.priorities = {"": "", "1": "High", "2": "Normal", "3": "Low"}
    row.default_priority = "Normal"
    row.close_status = ["Fixed", "Invalid", "Duplicate"]
    _add(session, row)
    project["row"], project["milestones"] = row, following
    for name, access in project["members"][1:]:
        session.add(model.ProjectUser(project_id=row.id, user_id=people[name]["id"], access=access))
    outsiders = [name for name in people if name != "root" and name not in dict(project["members"])]
    helper = dice.pick(outsiders)
    session.add(model.ProjectUser(project_id=row.id, user_id=people[helper]["id"], access="collaborator", branches="docs/*"))
    session.add(model.ProjectGroup(project_id=row.id, group_id=project["group"]["id"], access="commit"))
    session.add_all(model.Star(project_id=row.id, user_id=people[name]["id"]) for name in dice.some(list(people)[1:], 2 + project["stars"] // 160))
    project["labels_rows"] = {}
    for label in project["labels"]:
        project["labels_rows"][label] = tag = model.TagColored(tag=label, tag_description=LABELS[label][0], tag_color=LABELS[label][1], project_id=row.id, date_created=start)
        session.add(tag)
    session.flush()
    project["visitors"] = dice.some([name for name in outsiders if name != "byteblaze"], 6) + (["byteblaze"] if "byteblaze" in outsiders else [])

    tickets = tracker.plan(project)
    history, requests = _write_history(project, [ticket for ticket in tickets if ticket["kind"] == "request"])
    marks = history.write(f"{config['GIT_FOLDER']}/{project['path']}.git")
    for mark, ref, person, when, _ in history.commits:
        if ref == "refs/heads/main":
            session.add(model.PagureLog(user_id=person["id"], project_id=row.id, log_type="committed", ref_id=marks[mark], date=when.date(), date_created=when))
    for request in requests:
        request["from"] = _fork(session, project, request, history) if request["forked"] else row.id
        request["hashes"] = [marks[mark] for mark in request["marks"]]
    tracker.create(session, project, tickets)


def _add(session, row):
    session.add(row)
    session.flush()
    session.add_all(model.ProjectLock(project_id=row.id, lock_type=kind) for kind in model.ProjectLock.lock_type.type.enums)
    session.add(model.PagureLog(user_id=row.user_id, project_id=row.id, log_type="created", ref_id=str(row.id), date=row.date_created.date(),
                                date_created=row.date_created))


def _releases(version):
    """Returns the versions before this one, and this one."""
    major, minor, patch = (int(part) for part in version.split("."))
    earlier = [f"{major}.{number}.0" for number in range(max(0, minor - 2), minor + 1)]
    return earlier + ([version] if patch else [])


def _write_history(project, requests):
    """Writes the commits on main, including releases, and the branches of the requests at their dates."""
    dice, people, history = project["dice"], project["people"], History()
    writers = [name for name, access in project["members"] if access != "ticket"]
    tree, count, releases = Tree(project, project["path"], project["modules"]), dice.number(22, 36), _releases(project["version"])
    # Commits become more frequent towards the end.
    times = sorted(project["start"] + (NOW - dt.timedelta(days=2) - project["start"]) * (1 - dice.real() ** 1.6) for _ in range(count))
    times = [time.replace(hour=dice.number(8, 20), microsecond=0) for time in times]
    released = {count * (index + 1) // len(releases) - 2: version for index, version in enumerate(releases)}
    owner = people[project["members"][0][0]]
    head = history.commit("refs/heads/main", owner, project["start"], f"Start {project['name']}", tree.files(), [])
    events = sorted([(time, "commit", index) for index, time in enumerate(times)] + [event for request in requests for event in (
        (request["created"], "open", request), (request["closed"], "merge", request)) if event[0]], key=lambda event: event[0])
    branches = {}
    for time, kind, what in events:
        if kind == "commit":
            author = people[dice.pick(writers)]
            message = next_change(tree, dice, released.get(what))
            head = history.commit("refs/heads/main", author, time, message, tree.files(), [head])
            if what in released:
                history.tag("v" + released[what], head, author, time, message)
        elif kind == "open":
            _open(history, project, what, tree, head, branches)
        elif what["status"] == "Merged":
            branch = branches[what["branch"]]
            what["change"](tree)
            head = history.commit("refs/heads/main", people[what["closer"]], time, f"Merge #{what['id']} `{what['title']}`", tree.files(), [head, branch])
    history.point("refs/heads/main", head)
    _next(history, people[dice.pick(writers)], dice, tree.copy(), head)
    for request in requests:
        # The project knows the branch of a request from a fork only by the number of the request.
        history.point(f"refs/pull/{request['id']}/head", branches[request["branch"]])
        if not request["forked"] and request["status"] == "Open":
            history.point("refs/heads/" + request["branch"], branches[request["branch"]])
    return history, requests


def _next(history, author, dice, tree, head):
    """Writes a branch of future changes for which no request exists yet."""
    for days in (2, 1):
        head = history.commit("refs/heads/next", author, NOW - dt.timedelta(days=days, minutes=dice.number(1, 300)), next_change(tree, dice, None), tree.files(), [head])


def _open(history, project, request, tree, head, branches):
    """Writes the request's commits on top of the main branch of that time."""
    author, time, request["marks"] = project["people"][request["author"]], request["created"], []
    draft = tree.copy()
    for part, message in enumerate(request["messages"]):
        request["change"](draft, part + 1)
        head = history.commit(f"refs/pull/{request['id']}/head", author, time - dt.timedelta(minutes=40 * (len(request["messages"]) - part)), message, draft.files(), [head])
        request["marks"].append(head)
    branches[request["branch"]] = head


def _fork(session, project, request, history):
    """Creates the author's fork of the project, with the branch of the request."""
    people, path = project["people"], f"forks/{request['author']}/{project['path']}"
    forked = project.setdefault("forks", {})
    if request["author"] not in forked:
        row = model.Project(name=project["name"], namespace=project["namespace"], user_id=people[request["author"]]["id"], is_fork=True, parent_id=project["row"].id,
                            description=project["row"].description, hook_token=key("hook", path)[:40], read_only=False, _settings=SETTINGS,
                            date_created=request["created"] - dt.timedelta(hours=3), date_modified=request["created"])
        _add(session, row)
        copy = history.fork()
        copy.point("refs/heads/" + request["branch"], request["marks"][-1])
        copy.write(f"{config['GIT_FOLDER']}/{path}.git", without="refs/pull/")
        forked[request["author"]] = row.id
    return forked[request["author"]]
