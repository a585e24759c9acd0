"""Bundled modules run as the browser runs them as files; the modules of the pages keep to what can be bundled."""

import posixpath
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from regard.views.es_modules import bundle_modules, parse_module
from tests.browser import checked_page, needs_chromium
from tests.views.modules import DECLARATION, MODULES, declared_names

MAX_LINES = 400
MAX_COLUMNS = 120
FUNCTION = re.compile(r"^(?:async )?function\*? (\w+)(\(.*?^\}$)", re.MULTILINE | re.DOTALL)


def write_modules(folder: Path, **modules: str) -> Path:
    for name, source in modules.items():
        (folder / f"{name}.js").write_text(source)
    return folder


@needs_chromium
def test_a_bundle_runs_each_module_once_in_its_own_scope(browser: Browser, tmp_path: Path) -> None:
    write_modules(
        tmp_path,
        count="""export const log = [];
let calls = 1;
const hidden = 1;
export function add() {
  calls += 1;
  return calls;
}
log.push("count");
""",
        left="""import { add, log } from "./count.js";

const hidden = 2;
export const two = add();
log.push(hidden);
""",
        right="""import { add } from "./count.js";
export class Right {
  three() {
    return add();
  }
}
export async function later() {}
""",
        main="""import { log } from "./count.js";
import { two } from "./left.js";
import { Right } from "./right.js";
document.title = JSON.stringify([...log, two, new Right().three(), typeof hidden]);
""",
    )
    page = f'<!doctype html><title></title><script type="module">{bundle_modules(tmp_path, "main.js")}</script>'
    (tmp_path / "x.html").write_text(page)
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as opened:
        assert opened.title() == '["count",2,2,3,"undefined"]'


@pytest.mark.parametrize(
    ("modules", "why"),
    [
        ({"main": 'import { a } from "./a.js";'}, "main.js: there is no module a.js."),
        ({"other": ""}, "entry: there is no module main.js."),
        (
            {"main": 'import { a, b, c } from "./a.js";', "a": "export const b = 1;\nconst c = 1;"},
            "main.js: a.js does not export a, c.",
        ),
        (
            {
                "main": 'import { a } from "./a.js";',
                "a": 'import { b } from "./b.js";\nexport const a = 1;',
                "b": 'import { a } from "./a.js";\nexport const b = 1;',
            },
            "modules import each other: a.js -> b.js -> a.js.",
        ),
        (
            {"main": 'import { main } from "./main.js";\nexport const main = 1;'},
            "import each other: main.js -> main.js.",
        ),
        ({"main": 'const end = "</script>";'}, "a module has </script"),
        ({"main": 'const comment = "<!--";'}, "<!--"),
    ],
)
def test_what_cannot_be_bundled_is_refused(tmp_path: Path, modules: dict[str, str], why: str) -> None:
    write_modules(tmp_path, **modules)
    with pytest.raises(ValueError, match=re.escape(why)):
        bundle_modules(tmp_path, "main.js")


@pytest.mark.parametrize(
    "source",
    [
        'import a from "./a.js";',
        'import * as a from "./a.js";',
        'import { a as b } from "./a.js";',
        'import {a} from "./a.js";',
        'import "./a.js";',
        'import { a } from "https://example.org/a.js";',
        'const a = 1;\n  import("./a.js");',
        "export default function a() {}",
        "export { a };",
        "export let a = 1;",
        'export * from "./a.js";',
        "export const { a } = {};",
    ],
)
def test_other_forms_of_import_and_export_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match="is not a form of import or export that can be bundled"):
        parse_module(source, "main.js")


def test_pages_have_modules() -> None:
    assert {"views/page/saved_page.js", "serving/page/translate.js", "serving/page/live.js"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_short(name: str) -> None:
    lines = MODULES[name].splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_COLUMNS


@pytest.mark.parametrize("name", MODULES)
def test_modules_import_what_they_use_and_what_exists(name: str) -> None:
    module = parse_module(MODULES[name], name)
    for path, names in module.imports.items():
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        assert imported in MODULES, f"{name} imports {path}, which is not there"
        assert set(names) <= set(parse_module(MODULES[imported], imported).exports)
    imports = [each for names in module.imports.values() for each in names]
    assert all(re.search(rf"\b{each}\b", module.body) for each in imports), "imported, but not used"
    exported = {each for other in MODULES.values() for each in parse_module(other, "").exports}
    called = set(re.findall(r"(?<![.\w])(\w+)\(", module.body)) | set(re.findall(r"\bnew (\w+)", module.body))
    methods = set(re.findall(r"^  (?:async )?(\w+)\(.*\) \{$", module.body, re.MULTILINE))
    local = set(re.findall(r"\bconst (\w+) = ", module.body))
    missing = (called & exported) - set(imports) - set(declared_names(name)) - methods - local
    assert not missing, "used, but not imported"


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_valid(name: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node here")
    (tmp_path / "module.mjs").write_text(MODULES[name])
    checked = subprocess.run([node, "--check", tmp_path / "module.mjs"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_every_export_is_imported_somewhere() -> None:
    exports = Counter(each for name, source in MODULES.items() for each in parse_module(source, name).exports)
    imports = {
        each
        for name, source in MODULES.items()
        for names in parse_module(source, name).imports.values()
        for each in names
    }
    assert set(exports) <= imports
    assert max(exports.values()) == 1, "two modules export the same name"


def test_no_function_exists_twice() -> None:
    """Between the pages, or within one: neither by name nor by its code under another name."""
    bodies: dict[str, list[str]] = {}
    functions: dict[str, list[str]] = {}
    for name, source in MODULES.items():
        body = parse_module(source, name).body
        for function, code in FUNCTION.findall(body):
            functions.setdefault(function, []).append(name)
            bodies.setdefault(" ".join(code.split()), []).append(f"{name}: {function}")
    classes = [
        each for source in MODULES.values() for each in re.findall(r"^(?:export )?class (\w+)", source, re.MULTILINE)
    ]
    assert sum(map(len, functions.values())) > 50, "functions are found"
    assert not {each: where for each, where in functions.items() if len(where) > 1}
    assert not [where for where in bodies.values() if len(where) > 1]
    assert len(classes) == len(set(classes))


def test_a_declaration_is_recognized() -> None:
    source = (
        "function a() {}\nasync function b() {}\nclass C {}\nconst d = 1;\nlet e;\n  const inner = 1;\nfunction* g() {}"
    )
    assert DECLARATION.findall(source) == ["a", "b", "C", "d", "e", "g"]
