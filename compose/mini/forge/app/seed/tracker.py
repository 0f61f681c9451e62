"""Issues and requests: planned first, because the history mentions them, and written last, because they mention the
history."""

import datetime as dt

from pagure.lib import model

from seed.common import NOW, WORLD, slug
from seed.languages import FUNCTIONS
from seed.people import key
from seed.words import CLOSING, COMMENTS, ISSUES, REJECTIONS, REVIEWS


def plan(project):
    """Plans the project's ten issues and two requests, numbered in the order of their dates."""
    dice, start = project["dice"], max(project["start"] + dt.timedelta(days=60), dt.datetime(2021, 9, 1))
    fitting = [entry for entry in ISSUES if entry[0] in project["labels"]]
    tickets = [_issue(project, start, *entry) for entry in dice.some(fitting, 10)]
    tickets += [_request(project, start, number) for number in range(2)]
    tickets.sort(key=lambda ticket: ticket["created"])
    for number, ticket in enumerate(tickets, 1):
        ticket["id"], ticket["uid"] = number, key(project["path"], number)
    return tickets


def _words(project):
    dice = project["dice"]
    town = dice.pick(WORLD["towns"])
    module = dice.pick(project["modules"])
    museums = [museum["name"] for each in WORLD["towns"] for museum in each["museums"]]
    return {"project": project["name"], "version": project["version"], "module": module, "Module": module.title(), "town": town["name"],
            "function": f"{dice.pick(FUNCTIONS[:-2])[0]}_{module}", "museum": dice.pick(museums), "landmark": dice.pick(town["landmarks"])["name"],
            "someone": dice.pick(project["members"])[0]}


def _issue(project, start, label, title, text):
    dice, words = project["dice"], _words(project)
    team = [name for name, _ in project["members"]]
    created = dice.moment(start, NOW - dt.timedelta(days=1))
    closed = dice.moment(created, NOW) if dice.chance(0.45) else None
    author = dice.pick(project["visitors"] if dice.chance(0.7) else team)
    comments = [(dice.moment(created, closed or NOW), dice.pick(team + project["visitors"]), dice.pick(COMMENTS).format(**words)) for _ in range(dice.number(0, 4))]
    return {"kind": "issue", "created": created, "closed": closed, "author": author, "title": title.format(**words), "text": text.format(**words), "label": label,
            "assignee": dice.pick(team) if dice.chance(0.6) else None, "priority": dice.number(1, 3), "comments": comments,
            "milestone": dice.pick(project["milestones"]) if dice.chance(0.4) else None, "closer": dice.pick(team),
            "close_status": dice.pick(["Fixed", "Fixed", "Fixed", "Invalid", "Duplicate"]) if closed else None}


def _request(project, start, number):
    """The first request of a project is closed; the second is more often open than not."""
    dice, words = project["dice"], _words(project)
    team = [name for name, access in project["members"] if access != "ticket"]
    status = ("Merged" if dice.chance(0.8) else "Closed") if number == 0 else dice.pick(["Open", "Open", "Open", "Merged", "Closed"])
    forked = dice.chance(0.55)
    author = dice.pick(project["visitors"] if forked else team)
    created = dice.moment(start, dt.datetime(2023, 3, 1)) if status != "Open" else dice.moment(dt.datetime(2023, 4, 20), NOW - dt.timedelta(days=2))
    closed = dice.moment(created + dt.timedelta(hours=9), created + dt.timedelta(days=40)) if status != "Open" else None
    module, town = words["module"], words["town"]
    kinds = [
        (f"Examples for the {module}", f"Three examples from {town}, with the numbers that come out.", f"examples-{module}",
         lambda tree, part=2: tree.extra.update({f"examples/{module}.md": f"# Examples\n\n1. {town}, January\n2. {town}, July\n" + ("3. A whole year\n" if part > 1 else "")}),
         [f"examples: two for the {module}", f"examples: a whole year in {town}"]),
        (f"Settings for {town}", f"What we use in {town} every day. Others may find it a good start.", f"settings-{slug(town)}",
         lambda tree, part=1: tree.extra.update({f"contrib/{slug(town)}.conf": f"# {town}\n[{module}]\nenabled = yes\ninterval = 60\n"}),
         [f"contrib: settings of {town}"]),
        (f"Say how to report problems of the {module}", "So that we do not have to ask for the same things every time.", f"reporting-{module}",
         lambda tree, part=1: tree.extra.update({"docs/reporting.md": f"# Reporting\n\nVersion, system, and what the {module} says at debug level.\n"}),
         ["docs: how to report a problem"]),
    ]
    verb = dice.pick(FUNCTIONS[-2:])[0]
    kinds += 3 * [(f"Add {verb} to the {module}", f"We need the {verb} of the {module} in {town}, and others may, too.\n\n- [x] works here\n- [ ] tests", f"{verb}-{module}",
                   lambda tree, part=1: verb in tree.functions.setdefault(module, []) or tree.functions[module].append(verb), [f"{module}: add {verb}_{module}"])]
    title, text, branch, change, messages = dice.pick(kinds)
    comments = [(dice.moment(created, closed or NOW), dice.pick(team), dice.pick(REVIEWS).format(**words)) for _ in range(dice.number(0, 3))]
    return {"kind": "request", "created": created, "closed": closed, "status": status, "forked": forked, "author": author, "title": title, "text": text,
            "branch": branch, "change": change, "messages": messages, "closer": dice.pick(team), "assignee": dice.pick(team) if dice.chance(0.4) else None,
            "comments": comments, "label": dice.pick(project["labels"])}


def create(session, project, tickets):
    for ticket in tickets:
        (_create_issue if ticket["kind"] == "issue" else _create_request)(session, project, ticket)


def _log(session, project, ticket, person, what, when):
    row = model.PagureLog(user_id=person["id"], project_id=project["row"].id, log_type=what, ref_id=str(ticket["id"]), date=when.date(), date_created=when)
    setattr(row, "issue_uid" if ticket["kind"] == "issue" else "pull_request_uid", ticket["uid"])
    session.add(row)


def _create_issue(session, project, issue):
    people = project["people"]
    session.add(model.Issue(
        id=issue["id"], uid=issue["uid"], project_id=project["row"].id, title=issue["title"], content=issue["text"], user_id=people[issue["author"]]["id"],
        assignee_id=issue["assignee"] and people[issue["assignee"]]["id"], status="Closed" if issue["closed"] else "Open", priority=issue["priority"],
        milestone=issue["milestone"], close_status=issue["close_status"], date_created=issue["created"], closed_at=issue["closed"],
        last_updated=issue["closed"] or max([when for when, _, _ in issue["comments"]], default=issue["created"]),
        closed_by_id=people[issue["closer"]]["id"] if issue["closed"] else None))
    session.flush()
    session.add(model.TagIssueColored(tag_id=project["labels_rows"][issue["label"]].id, issue_uid=issue["uid"], date_created=issue["created"]))
    _log(session, project, issue, people[issue["author"]], "created", issue["created"])
    comments = [(when, who, text, False) for when, who, text in issue["comments"]]
    if issue["closed"]:
        update = f"**Metadata Update from @{issue['closer']}**:\n- Issue close_status updated to: {issue['close_status']}\n- Issue status updated to: Closed (was: Open)"
        comments += [(issue["closed"], issue["closer"], CLOSING[issue["close_status"]], False), (issue["closed"], issue["closer"], update, True)]
        _log(session, project, issue, people[issue["closer"]], "closed", issue["closed"])
    for when, who, text, notification in sorted(comments, key=lambda comment: comment[0]):
        session.add(model.IssueComment(issue_uid=issue["uid"], comment=text, user_id=people[who]["id"], date_created=when, notification=notification))
        session.flush()
        if not notification:
            _log(session, project, issue, people[who], "commented", when)


def _create_request(session, project, request):
    people, status, dice = project["people"], request["status"], project["dice"]
    session.add(model.PullRequest(
        id=request["id"], uid=request["uid"], title=request["title"], initial_comment=request["text"], project_id=project["row"].id, branch="main",
        project_id_from=request["from"], branch_from=request["branch"], commit_start=request["hashes"][0], commit_stop=request["hashes"][-1],
        user_id=people[request["author"]]["id"], assignee_id=request["assignee"] and people[request["assignee"]]["id"], status=status, allow_rebase=True,
        closed_at=request["closed"], closed_by_id=people[request["closer"]]["id"] if request["closed"] else None, date_created=request["created"],
        updated_on=request["closed"] or request["created"], last_updated=request["closed"] or request["created"]))
    session.flush()
    session.add(model.TagPullRequest(tag_id=project["labels_rows"][request["label"]].id, request_uid=request["uid"], date_created=request["created"]))
    _log(session, project, request, people[request["author"]], "created", request["created"])
    comments = list(request["comments"])
    if status == "Closed":
        comments.append((request["closed"], request["closer"], dice.pick(REJECTIONS)))
    for when, who, text in sorted(comments, key=lambda comment: comment[0]):
        session.add(model.PullRequestComment(pull_request_uid=request["uid"], comment=text, user_id=people[who]["id"], date_created=when))
        session.flush()
        _log(session, project, request, people[who], "commented", when)
    if request["closed"]:
        _log(session, project, request, people[request["closer"]], status.lower(), request["closed"])
