"""The line that says what the shell waits for: what it says at each width, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import io
import re

import pyte
import pytest

from sqlshell.output.text.cells import cells, printable
from sqlshell.shell.interactive.look import progress_line
from sqlshell.shell.interactive.look.progress_line import ProgressLine, Remaining
from sqlshell.shell.interactive.terminal import shows_links, shows_progress, with_file_link
from sqlshell.shell.running.statement import Running
from sqlshell.shell.scripts.position import ScriptPlace
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import split
from sqlshell.text import elapsed_time, short_number

CONTROL = re.compile(r"\x1b\[[JK]|\x1b\]9;4;[0-9;]*\x1b\\|\r|\x1b\[\?25[lh]")


class Stream(io.StringIO):
    """A terminal's stream in memory."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.drawn = asyncio.Event()

    def write(self, text: str) -> int:
        self.drawn.set()
        return super().write(text)


def drawn(
    running: Running, *, columns: int = 80, script: ScriptPlace | None = None, reports: bool = False, end: bool = True
) -> str:
    """Everything that is written for a wait that is long enough to be shown."""

    async def work() -> str:
        stream = Stream()
        line = ProgressLine(stream, lambda: columns, reports=reports)
        line.script = script
        line.show(running)
        await stream.drawn.wait()
        if end:
            line.close()
        return stream.getvalue()

    return asyncio.run(work())


def shown(running: Running, *, columns: int = 80, script: ScriptPlace | None = None) -> str:
    return CONTROL.sub("", drawn(running, columns=columns, script=script))


def fetching() -> Running:
    running = Running(share=0.4)
    running.begin_fetching(4_000_000)
    running.fetching -= 10
    running.received(1_000_000, 50_000_000)
    return running


@pytest.mark.slow("waits until progress is shown")
def test_it_says_what_is_known() -> None:
    assert re.fullmatch(r"⠙ \d\.\d s elapsed  \^C stops", shown(Running()))
    with_share = shown(Running(share=0.25, hint="^C cancels"))
    assert "█████░░░░░░░░░░░░░░░   25%" in with_share
    assert with_share.endswith("^C cancels")
    assert "waiting for a slot" in shown(Running(message="waiting for a slot"))
    retry = shown(Running(message="queued", notice="connection refused: retrying in 1 s"))
    assert "retrying" in retry
    assert "queued" not in retry


def test_rows_that_arrive() -> None:
    text = shown(fetching(), columns=120)
    assert "25%" in text
    assert "1,000,000 rows" in text
    assert re.search(r"[\d.]+k rows/s  \d\.\d MB/s", text), text


def after_changes(left: Remaining, running: Running, now: float) -> str:
    """The text after the share has changed often enough for an estimate."""
    share = running.share or 0.0
    for running.share in (share / 3, share / 2, share):
        text = left.text(running, now)
    return text


def test_the_time_that_is_left() -> None:
    left, running = Remaining(), Running(share=0.5, began=1000.0)
    assert after_changes(left, running, 1001.0) == ""
    running.share = 0.55
    # Half of an hour at once is not known to go on like that.
    assert Remaining().text(running, 1030.0) == ""
    running.share = 0.6
    assert left.text(running, 1030.0) == "about 20 s left"
    # It counts down until the share changes, and a change counts for half.
    assert left.text(running, 1036.0) == "about 15 s left"
    running.share = 0.8
    assert left.text(running, 1040.0) == "about 10 s left"
    assert left.text(running, 1046.0) == "about 4 s left "
    # An estimate that is over is not shown.
    assert left.text(running, 1060.0) == ""
    running.share = 0.9
    assert left.text(running, 1061.0) == "about 7 s left"
    running.share = 1.0
    assert left.text(running, 1062.0) == ""
    # The rows of its result are another wait.
    running.begin_fetching(1_000_000)
    for rows in (10_000, 40_000, 50_000):
        running.received(rows, 1)
        running.fetching = 2000.0
        text = left.text(running, 2060.0)
    assert text == "about 9 min left"
    assert left.text(Running(began=0.0), 5000.0) == ""
    assert after_changes(Remaining(), Running(began=0.0, share=0.1), 7200.0) == "about 18 h left"


def test_the_time_that_is_left_never_grows() -> None:
    left, running = Remaining(), Running(share=0.5, began=1000.0)
    assert after_changes(left, running, 1010.0) == "about 10 s left"
    assert left.text(running, 1014.0) == "about 6 s left "
    running.share = 0.6
    # By this share, 7.6 s.
    assert left.text(running, 1014.5) == "about 6 s left "
    assert left.text(running, 1021.0) == "about 2 s left "
    running.share = 0.61
    # An estimate that has more than doubled was wrong.
    assert left.text(running, 1021.5) == ""
    running.share = 0.9
    assert left.text(running, 1024.0) == "about 3 s left"
    assert left.text(running, 1030.0) == ""


@pytest.mark.parametrize("script", [None, ScriptPlace("x.sql", number=2, counted=4)])
def test_the_time_that_is_left_is_shown_of_a_statement_and_not_of_a_script(script: ScriptPlace | None) -> None:
    async def work() -> str:
        stream, running = Stream(), Running(share=0.1)
        running.began -= 1000
        line = ProgressLine(stream, lambda: 120)
        line.script = script
        line.show(running)
        await stream.drawn.wait()
        for running.share in (0.2, 0.4, 0.5):
            line.refresh()
        text = stream.getvalue()
        line.close()
        return CONTROL.sub("", text.rpartition("\r")[0].rpartition("\r")[2])

    text = asyncio.run(work())
    assert "50%" in text
    assert ("  about 21 min left  " in text) is (script is None), text


def test_a_share_goes_back_only_for_something_else() -> None:
    running = Running()
    shares = []
    for share, message in ((0.2, ""), (0.1, ""), (0.3, ""), (0.1, "restarted"), (1.0, ""), (0.1, ""), (None, "")):
        running.progressed(share, message)
        shares.append(running.share)
    assert shares == [0.2, 0.2, 0.3, 0.1, 1.0, 0.1, None]


def test_what_is_running_is_never_complete() -> None:
    assert "99%" in shown(Running(share=1.0))
    assert "99%" in shown(Running(share=0.999))
    assert " 29%" in shown(Running(share=0.29))


def test_labels_only_where_there_is_room() -> None:
    running = Running(share=0.5, hint="^C cancels")
    running.began -= 600
    wide, narrow = (shown(running, columns=columns) for columns in (100, 58))
    assert re.fullmatch(r"⠙ █{16}░{16}   50%  10 min \d\d s elapsed  \^C cancels", wide)
    assert re.fullmatch(r"⠙ █{10}░{10}   50%  10 min \d\d s  \^C cancels", narrow)


def test_it_never_fills_the_width() -> None:
    """Nothing wraps into the next line, with the ^C that a terminal may echo."""
    widths, messages = (5, 8, 12, 20, 33, 40, 60, 79, 80, 120, 200), ("", "a" * 300, "日本語" * 40)

    async def work() -> None:
        stream = Stream()
        columns = [80]
        line = ProgressLine(stream, lambda: columns[0])
        line.show(Running())
        await stream.drawn.wait()
        for columns[0] in widths:
            for message in messages:
                for running in (Running(share=0.5, message=message), fetching(), Running(notice=message)):
                    for line.script in (None, ScriptPlace("long name of a script.sql", number=12, counted=40)):
                        stream.seek(0)
                        stream.truncate()
                        line.show(running)
                        line.refresh()
                        text = CONTROL.sub("", stream.getvalue())
                        assert text
                        assert cells(text) <= columns[0] - 4
        line.close()

    asyncio.run(work())


def test_nothing_is_left() -> None:
    screen = pyte.Screen(80, 4)
    pyte.Stream(screen).feed("before\r\n" + drawn(fetching(), reports=True) + "after")
    assert [line.rstrip() for line in screen.display] == ["before", "after", "", ""]


def test_nothing_is_left_if_the_terminal_becomes_narrower() -> None:
    """A terminal that wraps the line again, and one that cuts it off."""

    async def work(screen: pyte.Screen, row: int) -> list[str]:
        stream, columns = Stream(), [80]
        line = ProgressLine(stream, lambda: columns[0])
        line.show(fetching())
        await stream.drawn.wait()
        parser = pyte.Stream(screen)
        parser.feed("before\r\n" + stream.getvalue())
        stream.seek(0)
        stream.truncate()
        screen.cursor_position(row)
        columns[0] = 30
        line.refresh()
        parser.feed(stream.getvalue())
        seen = [text.rstrip() for text in screen.display]
        line.close()
        return seen

    for screen in (pyte.Screen(30, 5), pyte.Screen(80, 5)):
        before, drawn_line, *rest = asyncio.run(work(screen, 2))
        assert before == "before"
        assert len(drawn_line) <= 30
        assert rest == ["", "", ""]


def test_text_of_a_service_cannot_control_the_terminal() -> None:
    text = drawn(Running(message="a\x1b[2J\x1b]2;title\x07b\r\nc", notice=""))
    assert "\x1b" not in CONTROL.sub("", text)
    assert "\n" not in text
    assert "\x07" not in text


@pytest.mark.slow("waits until progress is shown")
def test_the_bar_stays_where_it_is_when_a_statement_is_canceled() -> None:
    running = Running(share=0.5, hint="^C cancels")
    before = shown(running)
    running.hint, running.notice = "^C again stops waiting", "canceling"
    after = shown(running)
    assert before.partition("%")[0].endswith("50")
    assert after.partition("%")[0] == before.partition("%")[0]
    assert after.endswith("canceling  ^C again stops waiting")


@pytest.mark.slow("waits until progress is shown")
def test_the_cursor_is_hidden_while_the_line_is_shown() -> None:
    text = drawn(Running())
    assert text.startswith("\x1b[?25l")
    assert (text.count("\x1b[?25l"), text.count("\x1b[?25h")) == (1, 1)


def test_a_long_message_is_shortened() -> None:
    assert f"{'x' * 60} " in f"{shown(Running(message='x' * 60), columns=120)} "
    assert f"{'x' * 59}… " in f"{shown(Running(message='x' * 61), columns=120)} "


@pytest.mark.slow("waits until progress is shown")
def test_the_terminals_own_progress_is_removed_at_the_end() -> None:
    assert "\x1b]9;4;1;50\x1b\\" in drawn(Running(share=0.5), reports=True)
    assert "\x1b]9;4;3\x1b\\" in drawn(Running(), reports=True)
    assert drawn(Running(), reports=True).endswith("\r\x1b[J\x1b[?25h\x1b]9;4;0\x1b\\")
    assert "\x1b]" not in drawn(Running(share=0.5))


def test_a_terminal_without_unicode() -> None:
    class Plain(Stream):
        encoding = "iso8859-1"

    async def work() -> str:
        stream = Plain()
        line = ProgressLine(stream, lambda: 80)
        line.show(Running(share=0.5, message="ä" * 100))
        await stream.drawn.wait()
        line.close()
        return stream.getvalue()

    text = asyncio.run(work())
    assert "[##########..........]" in text
    text.encode("iso8859-1")


def test_a_notice_only_while_something_is_waited_for() -> None:
    async def work() -> None:
        line = ProgressLine(Stream(), lambda: 80)
        assert not line.notice("retrying")
        running = Running()
        line.show(running)
        assert line.notice("retrying")
        assert running.notice == "retrying"
        line.close()
        assert not line.notice("retrying")

    asyncio.run(work())


def test_output_of_a_script_has_the_screen_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        begun: list[tuple[ProgressLine, Stream]] = []
        for script in (ScriptPlace("load.sql"), None):
            stream = Stream()
            line = ProgressLine(stream, lambda: 80)
            line.script = script
            line.show(Running())
            begun.append((line, stream))
        for _, stream in begun:
            await stream.drawn.wait()
        monkeypatch.setattr(progress_line, "FIRST_SECONDS", 3600)
        for line, stream in begun:
            line.clear()
            stream.drawn.clear()
        (_, of_script), (_, other) = begun
        for _ in range(3):
            await other.drawn.wait()
            other.drawn.clear()
        assert not of_script.drawn.is_set()
        for line, _ in begun:
            line.close()

    asyncio.run(work())


def run_up_to(place: ScriptPlace, text: str, number: int) -> ScriptPlace:
    for item in [item for item in split(text) if isinstance(item, Statement)][:number]:
        place.at(item)
    return place


def test_the_place_in_a_script() -> None:
    text = "select 1;\nselect 2;\n\\echo x\nselect 3;\nselect 4"
    place = ScriptPlace("load.sql", len(text))
    place.arrived(text)
    place = run_up_to(place, text, 3)
    assert (place.label, place.share) == ("load.sql: statement 3 of 4", 0.5)
    assert shown(Running(), script=place).startswith("⠙ load.sql: statement 3 of 4  ██████████░")
    assert ScriptPlace.of([text], "").count == 4


def test_the_statement_of_a_script_has_its_own_time_and_share() -> None:
    text = "select 1;\nselect 2;\nselect 3;\nselect 4"
    place = ScriptPlace("load.sql", len(text))
    place.arrived(text)
    place = run_up_to(place, text, 2)
    place.began -= 100
    line = shown(Running(share=0.5), columns=110, script=place)
    assert re.search(r"statement 2 of 4  █{7}░{13}   37%  1 min 40 s elapsed  \(0\.\d s 50%\)", line), line
    assert re.search(r"25%  1 min 40 s elapsed  \(0\.\d s\)", shown(Running(), columns=100, script=place))


def test_the_place_in_a_script_whose_end_has_not_arrived() -> None:
    text = "select 1;\n" * 10
    place = ScriptPlace("big.sql", len(text) * 2)
    place.arrived(text)
    place = run_up_to(place, text, 10)
    assert (place.label, place.share) == ("big.sql: statement 10", 0.45)
    endless = run_up_to(ScriptPlace("stdin"), text, 2)
    assert (endless.label, endless.share) == ("stdin: statement 2", None)


def test_one_statement_is_not_counted() -> None:
    place = run_up_to(ScriptPlace.of(["select 1"], ""), "select 1", 1)
    assert "statement" not in shown(Running(), script=place)


@pytest.mark.parametrize(
    ("environ", "progress", "links"),
    [
        ({}, False, False),
        ({"TERM_PROGRAM": "ghostty"}, True, True),
        ({"TERM_PROGRAM": "WezTerm"}, True, True),
        ({"TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/x"}, False, False),
        ({"TERM_PROGRAM": "ghostty", "TERM": "screen-256color"}, False, False),
        ({"WT_SESSION": "1"}, True, True),
        ({"ConEmuANSI": "ON"}, True, False),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_FEATURES": "T3LrMSc7UUw9Ts3BFGsSyHNoSxF"}, False, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_FEATURES": "T3LrMSc7UUw9Ts3BFGsSyHNoSxFP"}, True, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_FEATURES": "T3LrPoMSc7"}, False, True),
        ({"VTE_VERSION": "7402"}, False, True),
        ({"VTE_VERSION": "4900"}, False, False),
        ({"TERM": "xterm-kitty"}, False, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False, False),
    ],
)
def test_what_terminals_can_do(environ: dict[str, str], progress: bool, links: bool) -> None:
    assert (shows_progress(environ), shows_links(environ)) == (progress, links)


def test_the_name_of_a_file_is_a_link() -> None:
    found = with_file_link("wrote /tmp/a b.svg", "/tmp/a b.svg")
    assert found == "wrote \x1b]8;;file:///tmp/a%20b.svg\x1b\\/tmp/a b.svg\x1b]8;;\x1b\\"
    hostile = "/tmp/\x1b]2;x\x07\x1b\\.svg"
    inside = with_file_link(printable(f"wrote {hostile}"), hostile)
    assert inside.count("\x1b") == 4
    assert "\x07" not in inside


def test_numbers_for_people() -> None:
    assert [elapsed_time(0.04), elapsed_time(9.96), elapsed_time(61)] == ["0.0 s", "10.0 s", "1 min 01 s"]
    numbers = [7, 999, 1234, 45_678, 4.5e6, 1.2e10]
    assert [short_number(number) for number in numbers] == ["7", "999", "1.23k", "45.7k", "4.50M", "12.0G"]
