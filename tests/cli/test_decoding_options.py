"""Decoding options on the command line are those of the schema, and only those given count as set."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from regard.cli.decoding_options import add_decoding_command, decoding_parameters, options_from
from regard.cli.verbs import option_groups
from regard.errors import RegardError
from regard.inference.options import GROUPS, Options, options_in


def parse(*arguments: str, groups: tuple[str, ...] = GROUPS) -> Options:
    """The options that a command receives."""
    found: list[Options] = []

    def command(text: str, *, options: Any) -> None:
        found.append(options)

    app = typer.Typer()
    add_decoding_command(app, "command", command, lambda: groups)
    done = CliRunner().invoke(app, ["x", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return found[0]


def test_every_option_of_a_group_is_an_option_of_the_command() -> None:
    for group in GROUPS:
        flags = {flag for each in decoding_parameters([group]) for flag in each.opts}
        assert flags == {"--" + name.replace("_", "-") for name in options_in([group])}


def test_no_option_is_set_by_default() -> None:
    assert parse().model_fields_set == set()
    assert parse() == Options()


def test_a_given_option_is_set_even_if_it_equals_the_default() -> None:
    options = parse("--beam", "5", "--scores", "--top-p", "0.5", "--seed", "7")
    assert options.model_fields_set == {"beam", "scores", "top_p", "seed"}
    assert (options.beam, options.scores, options.top_p, options.seed) == (5, True, 0.5, 7)


def test_phrases_may_be_repeated_and_a_glossary_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("dog\tHund\ncat\tKatze\n")
    arguments = ["--forbidden", "a b", "--forbidden", "c", "--required", "d"]
    options = parse(*arguments, "--glossary", str(tmp_path / "terms.tsv"))
    assert options.forbidden == ("a b", "c")
    assert options.required == ("d",)
    assert options.glossary == {"dog": "Hund", "cat": "Katze"}
    with pytest.raises(RegardError, match=r"--glossary: .* must be a \.tsv"):
        options_from({"glossary": tmp_path / "terms.txt"})


def test_invalid_values_raise_the_error_of_the_schema() -> None:
    with pytest.raises(RegardError, match="beam: 0 is not possible; it must be at least 1"):
        parse("--beam", "0")


def test_the_help_shows_descriptions_and_defaults() -> None:
    by_flag = {each.opts[0]: each.help for each in decoding_parameters(GROUPS)}
    assert by_flag["--beam"] == f"{Options.model_fields['beam'].description} [default: 5]"
    assert by_flag["--top-k"] == Options.model_fields["top_k"].description


def test_a_verb_has_the_options_of_its_tasks() -> None:
    assert option_groups("tag") == frozenset()
    assert option_groups("classify") == {"nbest", "scores"}
    assert "glossary" in option_groups("translate")
    assert option_groups("predict") >= option_groups("generate") | option_groups("classify")
