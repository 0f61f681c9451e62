"""Records what VisualWebArena's own code makes of pages as `image_som`, with the rows from which it made it.

Usage: record_marks.py VISUALWEBARENA CHROMIUM OUT PAGE...

VISUALWEBARENA is a checkout of https://github.com/web-arena-x/visualwebarena, CHROMIUM a browser, and each PAGE an HTML
file. The packages are `playwright` and, in the versions of the checkout's requirements, `numpy`, `pillow`, `pandas`,
`matplotlib`, `gymnasium`, `beartype` and `requests`. OUT gets a JSON file for each page, with a list of what was recorded
at several places of the page: `scrolled`, the distance from the page's left and upper edges; `csv`, the rows that its
script returned; `text` and `centers` (x, y, width, height), what its processor returned; and `drawn`, the rectangles and
numbers that it drew.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

VIEWPORT = {"width": 1280, "height": 720}
PLACES = (0, 300, 10_000)


def processors(checkout: Path) -> Any:
    """Returns VisualWebArena's module, without the rest of its package, which needs its services."""
    package = types.ModuleType("browser_env")
    package.__path__ = [str(checkout / "browser_env")]
    sys.modules["browser_env"] = package
    spec = importlib.util.spec_from_file_location("browser_env.processors", checkout / "browser_env/processors.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def record(module: Any, page: Any, top: int) -> dict[str, Any]:
    page.evaluate(f"window.scrollTo(0, {top})")
    drawn: list[dict[str, Any]] = []
    csv: list[str] = []
    draw = module.ImageDraw.ImageDraw
    rectangle, text = draw.rectangle, draw.text

    class Processor(module.ImageObservationProcessor):  # type: ignore[misc]
        def get_page_bboxes(self, page: Any) -> Any:
            csv.append(super().get_page_bboxes(page))
            return csv[-1]

    def on_rectangle(self: Any, xy: Any, fill: Any = None, outline: Any = None, width: int = 1) -> None:
        drawn.append({"edges": [float(edge) for edge in xy], "fill": fill, "outline": outline, "width": width})
        rectangle(self, xy, fill, outline, width)

    def on_text(self: Any, xy: Any, label: str, **more: Any) -> None:
        drawn.append({"at": [float(place) for place in xy], "text": label})
        text(self, xy, label, **more)

    draw.rectangle, draw.text = on_rectangle, on_text
    try:
        processor = Processor("image_som", VIEWPORT)
        _, content = processor.process(page)
    finally:
        draw.rectangle, draw.text = rectangle, text
    centers = {mark: [float(part) for part in center] for mark, center in processor.som_id_info.items()}
    scrolled = page.evaluate("[window.pageXOffset, window.pageYOffset]")
    return {"scrolled": scrolled, "csv": csv[-1], "text": content, "centers": centers, "drawn": drawn}


def main() -> None:
    from playwright.sync_api import sync_playwright

    checkout, chromium, out, *pages = (Path(argument).resolve() for argument in sys.argv[1:])
    module = processors(checkout)
    # The processor's font is a path below the checkout.
    os.chdir(checkout)
    with sync_playwright() as playwright:
        for file in pages:
            browser = playwright.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
            page = browser.new_context(viewport=VIEWPORT, device_scale_factor=1).new_page()
            # An address that is the same on every machine.
            url = f"http://pages.test/{file.name}"
            body = file.read_text()
            page.route(url, lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
            page.goto(url)
            recorded = [record(module, page, top) for top in PLACES]
            (out / f"{file.stem}.json").write_text(json.dumps(recorded, separators=(",", ":"), ensure_ascii=False) + "\n")
            browser.close()


if __name__ == "__main__":
    main()
