"""The HTML report in a real browser: it draws what the journal says, zooms, follows the theme, and asks for nothing."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from rig.cli.report import report
from rig.report.write import read_report, write_report
from rig.written import duration
from tests.analysis.generate import Shape, info_of, records_of, write_journal
from tests.analysis.tape import Tape
from tests.report.browser import Page, browser

pytestmark = pytest.mark.processes


@pytest.fixture
async def page(tmp_path: Path) -> AsyncGenerator[Page]:
    async with browser(tmp_path / "profile") as found:
        yield found


def written(folder: Path) -> Path:
    write_report(folder, read_report(folder))
    return (folder / "report.html").resolve()


async def state(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await page.value("JSON.stringify(window.rigReport)"))
    return found


async def test_the_charts_hold_what_the_journal_says(page: Page, lossy_run: Path) -> None:
    path = written(lossy_run)
    await page.open(path.as_uri())
    analysis = read_report(lossy_run).analysis
    total = analysis.requests.total
    found = await state(page)
    counts, drawn = found["counts"], found["drawn"]
    assert counts["fates"] == {
        "completed": total.completed, "error": total.error, "lost": total.lost, "void": 0, "unfinished": 0,
    }  # fmt: skip
    assert total.lost > 0
    assert counts["requests"] == drawn["latency"] == total.started == 1500
    assert counts["faults"] == len(analysis.faults) == 6
    affected = [recovery for recovery in analysis.recoveries if recovery.affected]
    assert counts["recoveries"] == drawn["serve"] == drawn["kinds"] == len(affected)
    assert counts["nodes"] == 3
    instances = read_report(lossy_run).series.lanes.instances.values()
    assert counts["instances"] == len(instances) > 2
    assert drawn["instances"] == sum(len(instance.track.spans) for instance in instances)
    assert min(drawn[name] for name in ("outcomes", "throughput", "requests", "cpu")) > 10
    text = await page.value("document.body.innerText")
    assert "EMBEDDED CLUSTER (exo-0.3.70, pace 10): not a measurement of exo" in text
    assert "THIS RUN DID NOT FINISH" in text
    assert all(lost.id in text for lost in analysis.requests.listed)
    assert page.problems == []
    assert page.requested == [path.as_uri()]


async def test_a_drag_zooms_every_chart_and_a_double_click_shows_all(page: Page, real_run: Path) -> None:
    await page.open(written(real_run).as_uri())
    before = await state(page)
    box: dict[str, float] = json.loads(
        await page.value(
            "JSON.stringify((({left, top, width, height}) => ({left, top, width, height}))"
            "(document.querySelector('#chart-latency canvas').getBoundingClientRect()))"
        )
    )
    middle = box["top"] + box["height"] / 2
    left, right = box["left"] + box["width"] * 0.4, box["left"] + box["width"] * 0.6
    await page.mouse("mouseMoved", left, middle)
    await page.mouse("mousePressed", left, middle, clicks=1)
    await page.mouse("mouseMoved", (left + right) / 2, middle, clicks=1)
    await page.mouse("mouseReleased", right, middle, clicks=1)
    zoomed = await state(page)
    span, whole = (one["view"]["to"] - one["view"]["from"] for one in (zoomed, before))
    inner = (box["width"] - 110 - 16) / box["width"]
    assert span == pytest.approx(whole * 0.2 / inner, rel=0.05)
    for chart in ("latency", "outcomes", "serve"):
        assert zoomed["drawn"][chart] < before["drawn"][chart]
    inside = [
        request
        for request in read_report(real_run).series.requests.points()
        if zoomed["view"]["from"] <= round(request.due_t, 3) <= zoomed["view"]["to"]
    ]
    assert zoomed["drawn"]["latency"] == len(inside)
    for clicks in (1, 2):
        await page.mouse("mousePressed", left, middle, clicks=clicks)
        await page.mouse("mouseReleased", left, middle, clicks=clicks)
    assert (await state(page))["view"] == before["view"]


async def test_pointing_at_a_request_says_which_it_is(page: Page, real_run: Path) -> None:
    await page.open(written(real_run).as_uri())
    lost = read_report(real_run).analysis.requests.listed[0]
    await page.value(f"rigReport.zoom({lost.started_t - 0.2}, {lost.started_t + 0.2})")
    said: set[str] = set()
    box: dict[str, float] = json.loads(
        await page.value("JSON.stringify(document.querySelector('#chart-latency canvas').getBoundingClientRect())")
    )
    middle = box["left"] + 110 + (box["width"] - 126) / 2
    for step in range(14, int(box["height"]) - 22, 6):
        await page.mouse("mouseMoved", middle, box["top"] + step)
        said.add(str(await page.value("document.getElementById('hover').textContent")))
    assert any(f"{lost.id}: lost ({lost.how}), {lost.model} through {lost.entry}" in text for text in said)


async def test_durations_are_written_as_in_the_tables(page: Page, sound_run: Path) -> None:
    await page.open(written(sound_run).as_uri())
    for value in (0.0, 0.0004, 0.00996, 0.238, 0.9996, 3.14, 99.96, 118.0, 250.0, 3599.6, 10_800.0):
        assert await page.value(f"rigReport.seconds({value})") == duration(value)


async def test_a_link_to_a_time_zooms_there_and_one_to_a_word_opens_the_glossary(page: Page, real_run: Path) -> None:
    await page.open(written(real_run).as_uri())
    link = "document.querySelector('#summary .why a[href^=\"#t=\"]')"
    low, high = map(float, (await page.value(f"{link}.getAttribute('href')")).removeprefix("#t=").split(","))
    await page.value(f"{link}.click()")
    await page.until(f"Math.abs(rigReport.view.from - {low}) < 0.1 && Math.abs(rigReport.view.to - {high}) < 0.1")
    assert await page.value("document.querySelector('#glossary details').open") is False
    await page.value("document.querySelector('#summary .why a.term').click()")
    await page.until("document.querySelector('#glossary details').open")
    assert page.problems == []


async def test_nothing_but_tables_is_wider_than_a_phone(page: Page, lossy_run: Path) -> None:
    await page.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=True)
    await page.open(written(lossy_run).as_uri())
    assert await page.value("document.documentElement.scrollWidth") == 420
    assert await page.value("[...document.querySelectorAll('.wide')].some((one) => one.scrollWidth > one.clientWidth)")


async def test_it_follows_the_theme_and_prints_on_white(page: Page, sound_run: Path, tmp_path: Path) -> None:
    await page.open(written(sound_run).as_uri())
    corner = (
        "(() => {const c = document.querySelector('#chart-latency canvas');"
        "return getComputedStyle(document.body).backgroundColor})()"
    )
    completed = "getComputedStyle(document.documentElement).getPropertyValue('--completed').trim()"
    seen: dict[str, tuple[str, str]] = {}
    pictures: dict[str, bytes] = {}
    for theme in ("light", "dark"):
        await page.theme(theme)
        seen[theme] = (await page.value(corner), await page.value(completed))
        pictures[theme] = await page.picture(tmp_path / f"{theme}.png")
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["dark"][0] == "rgb(20, 23, 27)"
    assert seen["light"][1] != seen["dark"][1]
    assert pictures["light"] != pictures["dark"]
    await page.value("window.dispatchEvent(new Event('beforeprint'))")
    assert await page.value(corner) == "rgb(255, 255, 255)"
    assert await page.value(completed) == seen["light"][1]
    await page.value("window.dispatchEvent(new Event('afterprint'))")
    assert await page.value(corner) == "rgb(20, 23, 27)"


async def test_a_journal_without_a_record_still_opens(page: Page, results: Path) -> None:
    folder = write_journal(results / "empty", info_of(Shape(), run="empty"), [])
    await page.open(written(folder).as_uri())
    assert (await state(page))["counts"]["requests"] == 0
    assert "THIS RUN DID NOT FINISH" in await page.value("document.body.innerText")
    assert page.problems == []


async def test_text_of_others_is_only_text(page: Page, results: Path) -> None:
    evil = '</script><script>document.title = "taken"</script><img src=x onerror="document.title=1">'
    tape = Tape(run=evil)
    tape.lost(1, 2, "empty", model="lab/tiny-a", entry=evil)
    tape.end(3)
    folder = write_journal(results / "evil", tape.info, tape.records())
    await page.open(written(folder).as_uri())
    assert "taken" not in await page.value("document.title.replace(/[^]*</, '')")
    assert await page.value("document.querySelectorAll('img, script:not([type])').length") == 1
    assert evil in await page.value("document.querySelector('h1').textContent")
    assert page.problems == []


def test_one_file_of_a_size_that_can_be_sent(results: Path) -> None:
    shape = Shape(seed=2, duration_s=2700, faults=17, requests=4000)
    text = written(write_journal(results / "long", info_of(shape, run="long"), records_of(shape))).read_text()
    assert len(text) < 150 * 4000
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)


def test_where_it_is_printed(sound_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = read_report(sound_run).verdict
    assert report(run="sound", html=True) == verdict.exit_code
    assert capsys.readouterr().out == f"{(sound_run / 'report.html').resolve()}  ({verdict.word})\n"


def test_open_starts_the_browser(
    sound_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a real browser command: one that writes down what it was asked to open."""
    asked = tmp_path / "asked"
    command = tmp_path / "some-browser"
    command.write_text(f'#!/bin/sh\nprintf %s "$1" > {asked}\n')
    command.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{command} %s")
    import webbrowser  # noqa: PLC0415 (reads the environment when it first registers browsers)

    monkeypatch.setattr(webbrowser, "_tryorder", None)
    report(run="sound", open_it=True)
    assert asked.read_text() == (sound_run / "report.html").resolve().as_uri()
    assert "report.html" in capsys.readouterr().out
