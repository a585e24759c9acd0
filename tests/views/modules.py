"""The modules of the pages, for tests."""

import re
from pathlib import Path

from playwright.sync_api import Page

import regard
from regard.views.es_modules import parse_module

PACKAGE = Path(regard.__file__).parent
MODULES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
    for folder in ("views/page", "serving/page")
    for path in sorted((PACKAGE / folder).glob("*.js"))
}
DECLARATION = re.compile(r"^(?:async )?(?:function\*?|class|const|let|var) (\w+)", re.MULTILINE)


def declared_names(name: str) -> list[str]:
    """The names that a module defines at its top level."""
    return DECLARATION.findall(parse_module(MODULES[name], name).body)


def defined_globals(page: Page) -> set[str]:
    """The names of all modules, and those of `window`, that are defined globally. Elements are: by their ids."""
    names = {each for name in MODULES for each in declared_names(name)}
    names |= set(page.evaluate("Object.getOwnPropertyNames(window)"))
    defined = page.evaluate(
        """names => names.filter((name) => {
            const value = (0, eval)(`typeof ${name} === "undefined" ? undefined : ${name}`);
            return value !== undefined && !(value instanceof Element);
        })""",
        sorted(name for name in names if name.isidentifier()),
    )
    return set(defined)
