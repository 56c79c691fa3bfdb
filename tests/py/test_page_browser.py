"""The page of a plan in Chromium: it asks for nothing, and hover, zoom, search, keys work."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from models import gpt
from PIL import Image

pytest.importorskip("stablehlo_alpa._core")
pytest.importorskip("selenium")

from browser import Browser, browser, programs
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_page import many_operators

import stablehlo_alpa as sa
from stablehlo_alpa.view.page import PageContent
from stablehlo_alpa.view.page.document import page_html

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="needs chromium and chromedriver"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def contents() -> tuple[PageContent, PageContent]:
    case = gpt.make(layers=2, dropout=0.0)
    method = sa.PipeshardParallel(
        num_micro_batches=4,
        schedule="1f1b",
        layers=sa.AutoLayers(num_layers=2),
        stages=sa.UniformStages(2, (4,)),
    )
    pipeline = sa.parallelize(case.step, method=method).plan(*case.args)
    single = sa.parallelize(case.step, method=sa.ShardParallel(mesh_shape=(2, 4))).plan(*case.args)
    return pipeline.content(measured=pipeline.timeline()), single.content()


@pytest.fixture(scope="module")
def written(contents: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "pipeline.html"
    path.write_text(page_html([contents[0]]), encoding="utf-8")
    return path


@pytest.fixture
def fresh(chromium: Browser, written: Path) -> Browser:
    """The page of the pipeline, just opened."""
    chromium.command("Emulation.clearDeviceMetricsOverride")
    chromium.open(written)
    return chromium


@pytest.fixture
def page(chromium: Browser, written: Path) -> Browser:
    """The same, as the test before has left it, but for what is searched."""
    if chromium.run("return location.href") != written.resolve().as_uri():
        chromium.open(written)
    chromium.run(_CLEAR)
    return chromium


_CLEAR = """
document.querySelectorAll("[type=search]").forEach((box) => {
  box.value = "";
  box.dispatchEvent(new Event("input"));
});
"""


FIGURES = (
    "cluster",
    "layers",
    "seconds",
    "time-line",
    "time-line-measured",
    "peaks",
    "held",
    "communication",
)


def plot_of(name: str) -> str:
    """A script's expression for a plot of bokeh."""
    return f"Bokeh.documents.flatMap((one) => one.roots()).find((one) => one.name === '{name}')"


def test_all_is_drawn_without_errors_or_requests(fresh: Browser, written: Path) -> None:
    for name in FIGURES:
        fresh.show(name)
    assert fresh.errors() == []
    assert fresh.requests() == [written.resolve().as_uri()]


def test_a_plan_of_one_mesh_and_two_plans_are_drawn(
    chromium: Browser, contents: Any, tmp_path: Path
) -> None:
    path = tmp_path / "two.html"
    path.write_text(page_html(contents), encoding="utf-8")
    assert path.stat().st_size < 3e6
    chromium.open(path)
    for name in ("b-cluster", "b-time-line", "b-held", "time-line"):
        chromium.show(name)
    assert chromium.errors() == []
    rows = chromium.run(
        "return document.querySelectorAll('[data-table=different-tensors] tbody tr').length"
    )
    assert rows > 0


def hover(page: Browser, element: Any, x: float, y: float) -> None:
    """Points at a place of an element, given as parts of its width and height."""
    width, height = element.size["width"], element.size["height"]
    moves = ActionChains(page.driver, duration=20)
    moves.move_to_element_with_offset(element, int(width * (x - 0.5)), int(height * (y - 0.5)))
    moves.move_by_offset(1, 1).perform()


def test_runs_say_what_they_are_when_pointed_at(page: Browser) -> None:
    element = page.show("time-line")
    # Where the first block of the upper row lies, whatever is around the axes.
    frame = page.wait(
        f"const plot = {plot_of('time-line')}; const box = Bokeh.index.get_by_id"
        "? Bokeh.index.get_by_id(plot.id)?.frame?.bbox : Object.values(Bokeh.index)"
        ".find((one) => one.model === plot)?.frame?.bbox;"
        "return box ? [box.left, box.top, box.width, box.height] : null"
    )
    left, top, width, height = frame
    x = (left + 0.02 * width) / element.size["width"]
    y = (top + 0.27 * height) / element.size["height"]
    for step in range(12):
        hover(page, element, x + 0.03 * step, y)
        said = " ".join(page.texts(".bk-Tooltip"))
        if "micro-batch" in said:
            break
    assert "phase" in said
    assert "stage" in said


def test_tensors_show_how_they_are_cut(page: Browser) -> None:
    row = page.driver.find_element(By.CSS_SELECTOR, "[data-table=tensors] tbody tr")
    page.run("arguments[0].scrollIntoView({block: 'center'})", row)
    hover(page, row, 0.2, 0.5)
    tip = page.driver.find_element(By.ID, "tip")
    assert tip.is_displayed()
    for word in ("tensor:", "shape:", "sharding:", "per device:", "devices:"):
        assert word in tip.text
    parts = page.run("return document.querySelectorAll('#tip svg rect').length")
    assert parts >= 1
    page.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_split_tensors_are_drawn_in_their_parts(page: Browser, contents: Any) -> None:
    tensor = next(one for one in contents[0].tensors if any(one.axes))
    box = page.driver.find_element(By.CSS_SELECTOR, "[data-search=tensors]")
    box.send_keys(tensor.path)
    page.run("document.querySelector('[data-table=tensors] tbody tr').focus()")
    sizes = dict(contents[0].stages[tensor.stage].axes)
    expected = 1
    for own in tensor.axes:
        for axis in own:
            expected *= sizes[axis]
    assert page.run("return document.querySelectorAll('#tip svg rect').length") == expected


def rows_of(page: Browser, table: str) -> int:
    script = "return document.querySelector(arguments[0]).textContent"
    return int(page.run(script, f"[data-count={table}]").split()[0])


def test_search_filters_operators(page: Browser, contents: Any) -> None:
    page.driver.find_element(By.TAG_NAME, "body").send_keys("/")
    focused = page.driver.switch_to.active_element
    assert focused.get_attribute("data-search") == "operators"
    assert rows_of(page, "operators") == len(contents[0].operators)
    focused.send_keys("DOT_general up")
    found = [
        one
        for one in contents[0].operators
        if all(
            any(word in text.lower() for text in (one.name, one.op, one.strategy, one.collectives))
            for word in ("dot_general", "up")
        )
    ]
    assert rows_of(page, "operators") == len(found) > 0
    focused.send_keys("nothing of the kind")
    assert rows_of(page, "operators") == 0


def test_tables_are_sorted_by_their_heads(page: Browser) -> None:
    button = page.driver.find_element(
        By.XPATH, "//*[@data-table='operators']//button[text()='memory']"
    )
    page.run("arguments[0].scrollIntoView({block: 'center'}); arguments[0].click()", button)
    column = "[...document.querySelectorAll('[data-table=operators] tbody tr')].map((row) => {0})"
    cells = page.run("return " + column.replace("{0}", "row.lastChild.textContent"))
    units = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3}
    sizes = [float(cell.split()[0]) * 1024 ** units[cell.split()[1]] for cell in cells]
    assert sizes == sorted(sizes, reverse=True)
    head = button.find_element(By.XPATH, "..")
    assert head.get_attribute("aria-sort") == "descending"


def test_keys_zoom_the_time_line(page: Browser) -> None:
    element = page.show("time-line")
    script = f"const range = {plot_of('time-line')}.x_range; return [range.start, range.end]"
    start, end = page.run(script)
    element.send_keys("+")
    assert page.run(script) == pytest.approx([end / 4, 3 * end / 4])
    element.send_keys(Keys.ARROW_LEFT)
    assert page.run(script)[0] == pytest.approx(end / 8)
    element.send_keys("0")
    assert page.run(script) == pytest.approx([start, end])


def test_memory_of_every_mesh_can_be_chosen(page: Browser) -> None:
    page.show("held")
    held = f"{plot_of('held')}.renderers.find((one) => one.data_source.name === 'samples')"
    source = f"return [...{held}.data_source.get_column('k1')].join()"
    before = page.run(source)
    assert before
    page.run(
        "const box = document.querySelector('[data-choices=held]'); box.value = '1';"
        "box.dispatchEvent(new Event('change'))"
    )
    assert page.run(source) != before
    assert page.errors() == []


def colours(page: Browser) -> tuple[str, str]:
    """Of the paper, and of the text of a plot."""
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    ink = page.run(
        f"const ink = {plot_of('cluster')}.below[0].major_label_text_color;return ink.value ?? ink"
    )
    return paper, ink


def test_light_and_dark(fresh: Browser) -> None:
    fresh.show("cluster")
    assert colours(fresh) == ("rgb(255, 255, 255)", "#1a1a1a")
    button = fresh.driver.find_element(By.ID, "theme")
    fresh.run("scrollTo(0, 0)")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert colours(fresh) == ("rgb(22, 22, 22)", "#ececec")
    button.click()
    assert colours(fresh)[0] == "rgb(255, 255, 255)"


def test_what_the_reader_prefers_is_dark_from_the_start(fresh: Browser, written: Path) -> None:
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    fresh.command("Emulation.setEmulatedMedia", features=dark)
    try:
        fresh.open(written)
        fresh.show("cluster")
        assert colours(fresh) == ("rgb(22, 22, 22)", "#ececec")
    finally:
        fresh.command("Emulation.setEmulatedMedia", features=[])


def test_the_page_is_read_by_keyboard(fresh: Browser) -> None:
    body = fresh.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert fresh.driver.switch_to.active_element.text == "to the plan"
    fresh.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert fresh.driver.switch_to.active_element.get_attribute("id") == "main"
    named = fresh.run(
        "return [...document.querySelectorAll('.plot')].every((one) => one.tabIndex === 0 "
        "&& one.getAttribute('role') === 'img' && one.getAttribute('aria-label').length > 20)"
    )
    assert named


def test_a_telephone_shows_it_without_moving_sideways(fresh: Browser, written: Path) -> None:
    fresh.command(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=740,
        deviceScaleFactor=2,
        mobile=True,
    )
    fresh.open(written)
    for name in FIGURES:
        fresh.show(name)
    assert fresh.run("return document.documentElement.scrollWidth") <= 360


def test_ten_thousand_operators_do_not_hang(
    chromium: Browser, contents: Any, tmp_path: Path
) -> None:
    path = tmp_path / "many.html"
    path.write_text(page_html([many_operators(contents[1], 10_000)]), encoding="utf-8")
    chromium.open(path)
    assert chromium.errors() == []
    assert (
        chromium.run("return document.querySelectorAll('[data-table=operators] tr').length") < 200
    )


DOCS = Path(__file__).resolve().parents[2] / "docs"
FIRST_SCREEN = "page"
PICTURES = (FIRST_SCREEN, "seconds", "time-line", "held")


def test_the_pictures_of_the_documentation(fresh: Browser, tmp_path: Path) -> None:
    """Figures as docs/pictures.md shows them; `make docs-pictures` writes them there."""
    shown = re.findall(r"\]\(images/(.*?)\.png\)", (DOCS / "pictures.md").read_text())
    assert sorted(shown) == sorted(PICTURES)
    folder = Path(os.environ.get("ALPA_PICTURES", tmp_path))
    folder.mkdir(exist_ok=True)
    fresh.show("cluster")
    fresh.run("scrollTo(0, 0)")
    for name in PICTURES:
        if name == FIRST_SCREEN:
            png = fresh.driver.get_screenshot_as_png()
        else:
            png = fresh.show(name).screenshot_as_png
        # Few colours are in a plot: a palette makes the file a third as large.
        image = Image.open(io.BytesIO(png)).convert("RGB")
        image.quantize(64, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
        kept = DOCS / "images" / f"{name}.png"
        assert len(image.getcolors(1 << 24) or ()) > 20, name
        for path in (folder / f"{name}.png", kept):
            assert 1_000 < path.stat().st_size < 200_000, path
        assert Image.open(kept).width == image.width, "run `make docs-pictures`"
