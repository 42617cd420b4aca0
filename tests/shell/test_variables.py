"""The shell's variables: what may set them, which of them are options, and what a statement leaves in them."""

from __future__ import annotations

import pytest

from sqlshell.config.settings import VARIABLES
from sqlshell.errors import StatementError, UsageError, Where
from sqlshell.origin import Trusted, service_text, trusted_text
from sqlshell.shell.scripts.variables import CONTROL, Variables, switch
from sqlshell.shell.session import Session
from sqlshell.text import any_of
from tests.shell.sessions import session as new_session


@pytest.fixture
def session() -> Session:
    return new_session()


def texts(variables: Variables) -> dict[str, str]:
    return {name: value.text for name, value in variables.items()}


@pytest.mark.parametrize("name", ["", "a b", "a-b", ":a", "a;b"])
def test_a_name_has_letters_digits_and_underscores(session: Session, name: str) -> None:
    variables = Variables(session)
    with pytest.raises(UsageError, match="variable name"):
        variables.set(Trusted(name), trusted_text(Trusted("1")))
    with pytest.raises(UsageError, match="variable name"):
        variables.receive({"fine": "1", name: "2"})
    assert not variables
    variables.set(Trusted("Ärger_2"), trusted_text(Trusted("1")))
    assert texts(variables) == {"Ärger_2": "1"}
    assert len(variables) == 1


@pytest.mark.parametrize("name", sorted(CONTROL))
def test_a_service_does_not_set_the_shells_own(session: Session, name: str) -> None:
    variables = Variables(session)
    with pytest.raises(UsageError, match=f"{name}.*nothing was set"):
        variables.receive({"before": "1", name: "off", "behind": None})
    assert not variables
    assert session.options.on_error == "stop"


def test_what_a_service_gives_is_foreign_and_null_unsets(session: Session) -> None:
    variables = Variables(session)
    variables.set(Trusted("b"), trusted_text(Trusted("kept")))
    variables.receive({"a": "x", "b": None, "c": None})
    assert texts(variables) == {"a": "x"}
    assert variables["a"].source == ":a"
    filled = variables.substitute(trusted_text(Trusted("select :a, :b")))
    assert (filled.text, filled.source) == ("select x, :b", ":a")
    assert Variables(session).substitute(trusted_text(Trusted("select :a"))).text == "select :a"


def test_options_are_chosen_by_their_variables(session: Session) -> None:
    variables, options = Variables(session), session.options
    for value, expected in {"off": "continue", "": "stop", "0": "continue", "on": "stop", "fal": "continue"}.items():
        variables.set(Trusted("ON_ERROR_STOP"), trusted_text(Trusted(value)))
        assert options.on_error == expected
    variables.unset(Trusted("ON_ERROR_STOP"))
    assert options.on_error == "continue"
    assert "ON_ERROR_STOP" not in variables
    variables.set(Trusted("ON_ERROR_STOP"), trusted_text(Trusted("on")))
    variables.unset(Trusted("other"))
    assert options.on_error == "stop"
    for value, quiet in {"": True, "off": False, "on": True}.items():
        variables.set(Trusted("QUIET"), trusted_text(Trusted(value)))
        assert options.quiet is quiet
    for value, echo in {"queries": True, "none": False, "all": True, "errors": False}.items():
        variables.set(Trusted("ECHO"), trusted_text(Trusted(value)))
        assert options.echo is echo
    for value in ("terse", "VERBOSE", "sqlstate", "default"):
        variables.set(Trusted("VERBOSITY"), trusted_text(Trusted(value)))
        assert options.verbosity == value.lower()
    for value, multiline in {"": False, "off": True, "on": False}.items():
        variables.set(Trusted("SINGLELINE"), trusted_text(Trusted(value)))
        assert options.multiline is multiline
    for value in ("ECHO", "VERBOSITY"):
        with pytest.raises(UsageError, match=f"{value}: invalid value 'x'") as raised:
            variables.set(Trusted(value), trusted_text(Trusted("x")))
        assert raised.value.hint == f"expected {any_of(list(VARIABLES[value][1]))}"


def test_an_option_that_is_unset_is_that_of_psql(session: Session) -> None:
    variables, options = Variables(session), session.options
    given = {"ON_ERROR_STOP": "on", "ECHO": "ALL", "QUIET": "on", "VERBOSITY": "terse", "SINGLELINE": "on"}
    assert given.keys() == VARIABLES.keys()
    for name, value in given.items():
        variables.set(Trusted(name), trusted_text(Trusted(value)))
    assert (options.on_error, options.echo, options.quiet) == ("stop", True, True)
    for name in given:
        variables.unset(Trusted(name))
    assert (options.on_error, options.echo, options.quiet) == ("continue", False, False)
    assert (options.verbosity, options.multiline) == ("default", True)
    with pytest.raises(UsageError, match="AUTOCOMMIT cannot be off"):
        variables.unset(Trusted("AUTOCOMMIT"))


def test_a_variable_of_psql_without_effect_is_warned_of_once(session: Session) -> None:
    variables = Variables(session)

    def warned(name: str, value: str) -> str:
        variables.set(Trusted(name), trusted_text(Trusted(value)))
        return variables.warning(name)

    assert warned("FETCH_COUNT", "0") == ""
    assert warned("FETCH_COUNT", "100").startswith("psql's FETCH_COUNT has no effect: results of any size")
    assert warned("FETCH_COUNT", "200") == ""
    assert warned("mine", "1") == ""
    session.interactive = True
    assert warned("SINGLELINE", "on") == ""
    session.interactive = False
    assert warned("SINGLELINE", "on") != ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ON_ERROR_STOP", "maybe", "invalid value 'maybe'"),
        ("QUIET", "o", "invalid value 'o'"),
        ("ECHO", "everything", "ECHO: invalid value"),
        ("VERBOSITY", "loud", "VERBOSITY: invalid value"),
        ("SINGLELINE", "perhaps", "invalid value 'perhaps'"),
    ],
)
def test_a_value_that_an_option_does_not_have_changes_nothing(
    session: Session, name: str, value: str, words: str
) -> None:
    variables = Variables(session)
    with pytest.raises(UsageError, match=words):
        variables.set(Trusted(name), trusted_text(Trusted(value)))
    with pytest.raises(UsageError, match=f"the value of {name}"):
        variables.set(Trusted(name), service_text("on", ":x"))
    assert not variables
    assert (session.options.on_error, session.options.quiet, session.options.echo) == ("stop", False, False)


def test_the_command_line_gives_names_and_values(session: Session) -> None:
    variables = Variables(session)
    for given in ("a=1=2", "b", "c=", "QUIET=on"):
        variables.set_from_argument(Trusted(given))
    assert texts(variables) == {"a": "1=2", "b": "", "c": "", "QUIET": "on"}
    assert not any(value.foreign for value in variables.values())
    assert session.options.quiet
    with pytest.raises(UsageError, match="'5' is not a valid variable name"):
        variables.set_from_argument(Trusted("5=a"))


def test_what_a_statement_leaves(session: Session) -> None:
    variables = Variables(session)
    session.state.last_statement_id, session.rows, session.elapsed = "id-1", 3, 1.5
    variables.record_outcome(None)
    first = {"LAST_STATEMENT_ID": "id-1", "ROW_COUNT": "3", "SQLSTATE": "00000", "ERROR": "false", "ELAPSED": "1.500"}
    assert texts(variables) == first
    assert [name for name, value in variables.items() if value.foreign] == ["LAST_STATEMENT_ID"]
    session.rows = session.elapsed = None
    variables.record_outcome(None)
    assert texts(variables) == first | {"ROW_COUNT": "0", "ELAPSED": "0.000"}


@pytest.mark.parametrize(
    ("where", "state", "foreign", "statement_id"),
    [
        (Where("42601", "id-2"), "42601", False, "id-2"),
        (Where(), "XX000", False, "id-1"),
        (Where("42601x"), "42601x", True, "id-1"),
        (Where("'; x"), "'; x", True, "id-1"),
    ],
)
def test_what_a_failure_leaves(session: Session, where: Where, state: str, foreign: bool, statement_id: str) -> None:
    variables = Variables(session)
    session.state.last_statement_id, session.rows = "id-1", 3
    assert (variables["LAST_ERROR_MESSAGE"].text, variables["LAST_ERROR_SQLSTATE"].text) == ("", "00000")
    variables.record_outcome(StatementError("first line\nsecond", where=where))
    left = texts(variables)
    assert (left["SQLSTATE"], bool(variables["SQLSTATE"].foreign)) == (state, foreign)
    assert (left["LAST_STATEMENT_ID"], left["ROW_COUNT"], left["ERROR"]) == (statement_id, "0", "true")
    assert left["LAST_ERROR_MESSAGE"] == "first line"
    assert variables["LAST_ERROR_MESSAGE"].foreign
    variables.record_outcome(None)
    assert texts(variables)["LAST_ERROR_MESSAGE"] == "first line"
    variables.record_outcome(StatementError(""))
    assert texts(variables)["LAST_ERROR_MESSAGE"] == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((word, True) for word in ("on", "ON", " true ", "t", "tr", "1", "yes", "y", "ye")),
        *((word, False) for word in ("off", "of", "false", "f", "0", "no", "n")),
        *((word, None) for word in ("", "o", "2", "onn", "maybe", "10")),
    ],
)
def test_switches(text: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="WORD: invalid value"):
            switch(text, "WORD")
    else:
        assert switch(text, "WORD") is expected
