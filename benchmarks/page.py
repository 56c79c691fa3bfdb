"""The page of a plan in headless Chromium: how large it is, how soon it opens, how it moves."""

import report

report.prepare_devices(8)

import dataclasses
import tempfile
from pathlib import Path

from browser import Browser, browser

import stablehlo_alpa
from stablehlo_alpa import zoo
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.view.page import OperatorContent, PageContent
from stablehlo_alpa.view.page.document import page_html

# Milliseconds between frames of a page of which something moves once per frame.
_FRAMES = """
const done = arguments[arguments.length - 1];
const plot = document.getElementById("figure-time-line");
const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const times = [];
let last = performance.now();
const step = (count) => {
  requestAnimationFrame(() => {
    const now = performance.now();
    times.push(now - last);
    last = now;
    if (count === 0) { done(times); return; }
    %s
    step(count - 1);
  });
};
%s
"""
_MOVED = _FRAMES % ('press(count % 2 ? "ArrowRight" : "ArrowLeft");', 'press("+");\nstep(40);')
_SCROLLED = _FRAMES % ("scrollBy(0, count % 20 < 10 ? 40 : -40);", "step(60);")


def gpt_plan(is_quick: bool) -> Plan:
    """GPT-39B, 48 layers in 16 stages, 64 micro-batches; a tiny one in two where that is enough."""
    size, batch, count, layers = ("tiny", 64, 32, 2) if is_quick else ("39B", 1024, 64, 16)
    case = zoo.gpt(size, batch=batch, remat=True)
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=count,
        schedule="1f1b",
        layers=stablehlo_alpa.AutoLayers(num_layers=layers, remat=False),
        stages=stablehlo_alpa.UniformStages(layers, (4,)),
    )
    cluster = "cpu:2x4" if is_quick else "p4d.24xlarge:8"
    return stablehlo_alpa.parallelize(case.step, method=method, cluster=cluster).plan(*case.args)


def with_operators(page: PageContent, count: int) -> PageContent:
    """So many operators, no two of which are alike."""
    one = OperatorContent(0, "", "dot_general", "RR,RR->RR", "", 1, 1e-6, 8.0)
    made = [
        dataclasses.replace(one, name=f"m{i % 97}/x{i * 7919}", op=f"{i}") for i in range(count)
    ]
    return dataclasses.replace(page, operators=tuple(made))


def rows_of(name: str, page: PageContent, chromium: Browser, folder: Path) -> list[report.Row]:
    """Bytes and seconds of a page, the longest frames of its time line."""
    path = folder / "page.html"
    path.write_text(page_html([page]), encoding="utf-8")
    opened_s = min(chromium.open(path) for _ in range(3))
    chromium.driver.set_script_timeout(120)
    chromium.show("time-line")
    moved, scrolled = (
        sorted(chromium.driver.execute_async_script(one)[2:]) for one in (_MOVED, _SCROLLED)
    )
    runs = sum(run.end_s > run.start_s for run in page.runs)
    return [
        report.measured(f"{name}: runs on the time line", float(runs), ""),
        report.limited(f"{name}: page", path.stat().st_size / 1e6, "MB", bar=3.0),
        report.limited(f"{name}: opens", opened_s, "s", bar=2.0),
        report.measured(f"{name}: time line moved, median frame", moved[len(moved) // 2], "ms"),
        report.limited(f"{name}: time line moved, longest frame", moved[-1], "ms", bar=100.0),
        report.limited(f"{name}: page scrolled, longest frame", scrolled[-1], "ms", bar=100.0),
    ]


def measure(is_quick: bool) -> list[report.Row]:
    """Pages of a pipeline, and of ten thousand operators."""
    page = gpt_plan(is_quick).content()
    rows = []
    with browser() as chromium, tempfile.TemporaryDirectory() as folder:
        rows += rows_of(page.model, page, chromium, Path(folder))
        many = with_operators(page, 10_000)
        rows += rows_of("with 10,000 operators", many, chromium, Path(folder))
    return rows


if __name__ == "__main__":
    report.main(__doc__ or "", measure)
