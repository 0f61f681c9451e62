"""Records what WebArena's own code makes of pages, with the browser's answers from which it made it.

Usage: record.py WEBARENA CHROMIUM OUT PAGE...

WEBARENA is a checkout of https://github.com/web-arena-x/webarena, CHROMIUM a browser, and each PAGE an HTML file, or
`NAME=ADDRESS` for a page of a site. The packages are `playwright`, `numpy`, `pillow`, `gymnasium` and `beartype`. OUT gets a
JSON file for each page, compressed for those of sites, with a list of what was recorded: `kind` of tree; `viewport`, whether only the viewport was observed; `seen`, the answer to
`Accessibility.getFullAXTree` or, as far as it is read, to `DOMSnapshot.captureSnapshot`; `bounds` of DOM nodes by backend
id, null for a node without bounds; and `text`, what WebArena's processor returned.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

VIEWPORT = {"width": 1280, "height": 720}
FIELDS = ("parentIndex", "nodeName", "nodeValue", "backendNodeId", "attributes")
AX_FIELDS = ("nodeId", "parentId", "childIds", "backendDOMNodeId")


def processors(webarena: Path) -> Any:
    """Returns WebArena's module, without the rest of its package, which needs its services."""
    package = types.ModuleType("browser_env")
    package.__path__ = [str(webarena / "browser_env")]
    sys.modules["browser_env"] = package
    spec = importlib.util.spec_from_file_location("browser_env.processors", webarena / "browser_env/processors.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def read_part(node: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of a node that is read."""
    part = {field: node[field] for field in AX_FIELDS if field in node}
    for field in ("role", "name"):
        if field in node:
            part[field] = {key: value for key, value in node[field].items() if key == "value"}
    if "properties" in node:
        part["properties"] = node["properties"]
    return part


class Recorder:
    """A session of the protocol that keeps the answers."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.nodes: Any = None
        self.snapshot: Any = None
        self.bounds: dict[str, Any] = {}

    def send(self, method: str, params: dict[str, Any]) -> Any:
        answer = self.session.send(method, params)
        if method == "Accessibility.getFullAXTree":
            # The processor changes the nodes.
            self.nodes = json.loads(json.dumps([read_part(node) for node in answer["nodes"]]))
        elif method == "DOMSnapshot.captureSnapshot":
            nodes = {field: answer["documents"][0]["nodes"][field] for field in FIELDS}
            self.snapshot = {"documents": [{"nodes": nodes}], "strings": answer["strings"]}
        return answer


def record(module: Any, browser: Any, address: str, kind: str, is_viewport_only: bool) -> dict[str, Any]:
    original = module.TextObervationProcessor.get_bounding_client_rect
    context = browser.new_context(viewport=VIEWPORT, device_scale_factor=1)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Accessibility.enable")
    if not address.startswith("http"):
        page_file = Path(address)
        # An address that is the same on every machine.
        address = f"http://pages.test/{page_file.name}"
        context.route(address, lambda route: route.fulfill(body=page_file.read_text(), content_type="text/html"))
    page.goto(address, wait_until="networkidle")
    recorder = Recorder(session)

    def bounds(client: Any, node: str) -> Any:
        answer = original(client.session, node)
        value = answer.get("result", {}).get("value")
        recorder.bounds[str(node)] = value and [value["x"], value["y"], value["width"], value["height"]]
        return answer

    module.TextObervationProcessor.get_bounding_client_rect = staticmethod(bounds)
    try:
        text = module.TextObervationProcessor(kind, is_viewport_only, VIEWPORT).process(page, recorder)
    finally:
        module.TextObervationProcessor.get_bounding_client_rect = staticmethod(original)
        context.close()
    seen = recorder.nodes if kind == "accessibility_tree" else recorder.snapshot
    return {"kind": kind, "viewport": is_viewport_only, "seen": seen, "bounds": recorder.bounds, "text": text}


def main() -> None:
    from playwright.sync_api import sync_playwright

    webarena, chromium, out, *pages = sys.argv[1:]
    module = processors(Path(webarena))
    with sync_playwright() as playwright:
        for page in pages:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            name, _, address = page.partition("=")
            ways = [(kind, only) for kind in ("accessibility_tree", "html") for only in (False, True)]
            recorded = [record(module, browser, address or page, kind, only) for kind, only in ways]
            text = json.dumps(recorded, separators=(",", ":"), ensure_ascii=False) + "\n"
            if address:
                (Path(out) / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            else:
                (Path(out) / f"{Path(page).stem}.json").write_text(text)
            browser.close()


if __name__ == "__main__":
    main()
