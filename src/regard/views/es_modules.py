"""ES modules as one script, for pages that are a single file.

Modules use a subset of the language that needs no JavaScript tool to bundle: `import { a, b } from "./x.js";` on one
line, and `export` before a function, a constant or a class. Anything else that begins with import or export is refused,
as are missing modules, names that a module does not export, and cycles.
"""

import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable

IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "(\.[\w./]*\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """imports: the names imported from each path. body: the source without its imports and without `export`."""

    imports: dict[str, list[str]]
    exports: list[str]
    body: str


def parse_module(source: str, name: str) -> Module:
    """Raises ValueError if it uses a form of import or export that is not supported."""
    imports: dict[str, list[str]] = {}
    for names, path in IMPORT.findall(source):
        imports.setdefault(path, []).extend(names.split(", "))
    exports = [export for _, export in EXPORT.findall(source)]
    body = EXPORT.sub(r"\1", IMPORT.sub("", source)).strip()
    if other := OTHER.search(body):
        raise ValueError(f"{name}: {other[0].strip()!r} is not a form of import or export that can be bundled.")
    return Module(imports, exports, body)


def bundle_modules(folder: Traversable, entry: str) -> str:
    """One script with the entry and all that it imports from the same folder, each module in a scope of its own.

    The script is for `<script type="module">`, and defines no globals.
    """
    exports: dict[str, list[str]] = {}
    scopes: list[str] = []

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other: {' -> '.join((*importers[importers.index(name) :], name))}.")
        if name in exports:
            return
        try:
            source = (folder / name).read_text("utf-8")
        except FileNotFoundError:
            raise ValueError(f"{importers[-1] if importers else 'entry'}: there is no module {name}.") from None
        module = parse_module(source, name)
        lines = []
        for path, names in module.imports.items():
            imported = path.removeprefix("./")
            add(imported, (*importers, name))
            if missing := sorted(set(names) - set(exports[imported])):
                raise ValueError(f"{name}: {imported} does not export {', '.join(missing)}.")
            lines.append(f"const {{ {', '.join(names)} }} = {_variable(imported)};")
        lines.append(module.body)
        if module.exports:
            lines.append(f"return {{ {', '.join(module.exports)} }};")
        exports[name] = module.exports
        scopes.append(f"const {_variable(name)} = (() => {{\n" + "\n".join(lines) + "\n})();\n")

    add(entry, ())
    script = "".join(scopes)
    if re.search(r"</script|<!--", script, re.IGNORECASE):
        raise ValueError("a module has </script or <!--, which would end or hide the element that holds it.")
    return script


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))
