"""Calls the code of harnesses, taken from their packages on PyPI, and prints what it did as one line of JSON.

The classes that reset sites need few of their packages' dependencies. The `__init__` of these packages imports all of
them, among them training frameworks, so it is skipped; the modules themselves are those of the packages.

Usage: client.py browsergym|visualwebarena|agentlab|form | env-ctrl URL COMMAND... | handler SITE
"""

import json
import logging
import sys
import sysconfig
import time
import types
from pathlib import Path

PACKAGES = Path(sysconfig.get_paths()["purelib"])


def without_init(*names):
    """Registers packages without running their `__init__`."""
    for name in names:
        package = types.ModuleType(name)
        package.__path__ = [str(PACKAGES / name.replace(".", "/"))]
        sys.modules[name] = package


def instance(benchmark):
    without_init(
        "browsergym.webarena", "browsergym.visualwebarena", "webarena.browser_env", "visualwebarena.browser_env"
    )
    if benchmark == "browsergym":
        from browsergym.webarena.instance import WebArenaInstance

        return WebArenaInstance()
    from browsergym.visualwebarena.instance import VisualWebArenaInstance

    return VisualWebArenaInstance()


def full_reset(benchmark):
    made, log = instance(benchmark), []
    handler = logging.Handler()
    handler.emit = lambda record: log.append(record.getMessage())
    logger = logging.getLogger("browsergym.webarena.instance")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    began = time.monotonic()
    try:
        made.full_reset(skip_if_not_set=False)
        raised = None
    except Exception as error:
        raised = str(error)
    return {"raised": raised, "seconds": time.monotonic() - began, "log": log, "urls": made.urls}


def agentlab():
    """Returns the variables as AgentLab joins them for each of its workers, after it has parsed them."""
    without_init("browsergym.webarena", "webarena.browser_env")
    from agentlab.experiments.multi_server import WebArenaInstanceVars

    return WebArenaInstanceVars.from_env_vars().make_env_vars()


def form():
    """The request with which BrowserGym resets VisualWebArena's classifieds, from `browsergym/visualwebarena/task.py`."""
    import requests

    made = instance("visualwebarena")
    response = requests.post(
        f'{made.urls["classifieds"]}/index.php?page=reset',
        data={"token": made.classifieds_reset_token},
    )
    return {"status": response.status_code, "body": response.text}


def env_ctrl(url, *commands):
    from webarena_verified.environments.env_ctrl_client import HttpClient

    client, answers = HttpClient(url), []
    for command in commands:
        name, _, wait = command.partition("+")
        arguments = {"wait": True} if wait else {}
        answers.append(getattr(client, name)(**arguments))
    return answers


def handler(site):
    """Uses a site through the handler that arenad's own client has for webarena-verified."""
    import inspect

    from arenad.webarena_verified import ArenadSiteHandler
    from webarena_verified.environments.site_handler import SiteInstanceHandler
    from webarena_verified.types.environment import SiteInstanceCommandResult

    # The protocol cannot be checked at run time, so its methods are compared one by one.
    for name, wanted in inspect.getmembers(SiteInstanceHandler, inspect.isfunction):
        if not name.startswith("_"):
            own = inspect.signature(getattr(ArenadSiteHandler, name))
            assert list(own.parameters) == list(inspect.signature(wanted).parameters), name
    made, log = ArenadSiteHandler(site, timeout=60), {}
    made.verify()
    made.init(url=made.url + "/")
    written = made.exec_cmd(["/bin/sh", "-c", "cat >>/srv/state/notes; echo out; echo err >&2"], "by-hand\n")
    assert isinstance(written, SiteInstanceCommandResult)
    log["written"] = written.model_dump()
    log["notes"] = made.exec_cmd(["cat", "/srv/state/notes"]).stdout
    made.reset()
    log["after reset"] = made.exec_cmd(["cat", "/srv/state/notes"], check=True).stdout
    made.stop()
    log["url"] = made.start()
    made.verify()
    log["raised"] = []
    for call in (
        lambda: made.exec_cmd(["/bin/sh", "-c", "echo no >&2; exit 3"], check=True),
        lambda: made.init(url="http://elsewhere.example:1"),
        lambda: made.login(None),
        lambda: ArenadSiteHandler("nothing").reset(),
    ):
        try:
            call()
            log["raised"].append(None)
        except RuntimeError as error:
            log["raised"].append(str(error))
    return log


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "env-ctrl":
        # The package's own `__init__` imports all evaluators.
        without_init("webarena_verified", "webarena_verified.types", "webarena_verified.environments")
        result = env_ctrl(*arguments)
    elif what == "handler":
        without_init("webarena_verified", "webarena_verified.types", "webarena_verified.environments")
        result = handler(*arguments)
    elif what == "agentlab":
        result = agentlab()
    elif what == "form":
        result = form()
    else:
        result = full_reset(what)
    print(json.dumps(result))
