"""Structs, enums and functions of regard.h are the same in C, in native/abi.py and in the compiled library."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard import native, special_tokens
from regard.native import abi

pytestmark = pytest.mark.skipif(native.library() is None, reason="no compiler here")
HEADER = (native.FOLDER / "regard.h").read_text()
FAST_FLAGS = ["-std=gnu11", "-O0", "-fPIC", "-shared", "-march=native", "-fvisibility=hidden"]


def declared_functions() -> dict[str, str]:
    """Each exported function's comment."""
    functions = re.findall(r"((?:/\*(?:(?!\*/).)*\*/\n)?)REGARD_API [\w ]+?[ *](regard_\w+)\(", HEADER, re.S)
    return {name: comment for comment, name in functions}


def header_struct_fields() -> Iterator[tuple[str, str]]:
    without_comments = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", without_comments, re.S):
        for declaration in filter(None, map(str.strip, body.split(";"))):
            for field in declaration.split(","):
                field_name = re.search(r"(\w+)(\[\d+\])?$", field.strip())
                assert field_name, declaration
                yield name, field_name[1]


def compile_constants(folder: Path, *, header: str = HEADER) -> ctypes.CDLL:
    """abi.c alone, from another header."""
    for path in (*native.FOLDER.glob("*.h"), native.FOLDER / "abi.c"):
        shutil.copy(path, folder)
    (folder / "regard.h").write_text(header)
    library = folder / "constants.so"
    subprocess.run(["cc", *FAST_FLAGS, str(folder / "abi.c"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def test_library_agrees_with_abi_module() -> None:
    library = native.library()
    assert library is not None
    abi.check(library)
    assert library.regard_abi_version() == abi.VERSION
    assert abi._compiled_constants(library) == abi.mirrored_constants()


def test_all_fields_and_enum_values_of_the_header_are_mirrored() -> None:
    fields = {f"offsetof({struct}, {field})" for struct, field in header_struct_fields()}
    enums = {
        name
        for body in re.findall(r"typedef enum \w+ \{(.*?)\}", HEADER, re.S)
        for name in re.findall(r"(REGARD_\w+) = ", body)
    }
    sizes = {f"sizeof({struct})" for struct, _ in header_struct_fields()}
    assert len(fields) > 20
    assert len(enums) > 20
    assert fields | enums | sizes == set(abi.mirrored_constants())


@pytest.mark.parametrize(
    ("original", "replacement", "message"),
    [
        ("#define REGARD_ABI_VERSION 1", "#define REGARD_ABI_VERSION 7", "has ABI version 7; native/abi.py has 1"),
        (
            "REGARD_ACTIVATION_SILU = 3",
            "REGARD_ACTIVATION_SILU = 9",
            "REGARD_ACTIVATION_SILU is 9 in C and 3 in Python",
        ),
        (
            "    int64_t beam_size;\n",
            "    int64_t group_count;\n    int64_t beam_size;\n",
            r"sizeof\(regard_search_request\) is 128 in C and 120 in Python",
        ),
        (
            "    double length_penalty;",
            "    int32_t *output_tokens_;\n    double length_penalty;",
            r"offsetof\(regard_search_request, length_penalty\) is 96 in C and 88 in Python",
        ),
    ],
)
def test_library_from_another_header_raises(tmp_path: Path, original: str, replacement: str, message: str) -> None:
    assert HEADER.count(original) == 1
    with pytest.raises(abi.AbiMismatchError, match=message):
        abi.check(compile_constants(tmp_path, header=HEADER.replace(original, replacement)))


def test_library_without_a_function_raises(tmp_path: Path) -> None:
    with pytest.raises(abi.AbiMismatchError, match=r"is not regard's: .*regard_int8_linear_new"):
        abi.check(compile_constants(tmp_path))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native, "FLAGS", FAST_FLAGS)
    return tmp_path / "regard"


def test_stale_cached_library_is_recompiled(empty_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    compiled_path, is_cached = native._compile()
    assert not is_cached
    assert native._compile() == (compiled_path, True)
    # The same name but for the hash of the content, which is right: what a faulty copy of the cache could leave behind.
    folder = tmp_path_factory.mktemp("stale")
    compile_constants(folder, header=HEADER.replace("ABI_VERSION 1", "ABI_VERSION 0"))
    content = (folder / "constants.so").read_bytes()
    stale = compiled_path.with_name(f"{compiled_path.stem.rsplit('-', 1)[0]}-{native._digest(content)}.so")
    compiled_path.unlink()
    stale.write_bytes(content)
    assert native._compile() == (stale, True)
    assert native._load().regard_abi_version() == abi.VERSION
    assert list(empty_cache.iterdir()) == [compiled_path]


def test_mismatch_after_compiling_raises(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours, not a machine without a compiler: nothing falls back silently."""
    monkeypatch.setattr(abi, "VERSION", 2)
    with pytest.raises(abi.AbiMismatchError, match=r"has ABI version 1; native/abi\.py has 2"):
        native._build.__wrapped__()


def test_structs_of_another_size_return_invalid_argument() -> None:
    library = native.library()
    assert library is not None
    model, error = ctypes.c_void_p(1), ctypes.create_string_buffer(100)
    description = abi.ModelDescription(struct_size=8)
    status = library.regard_model_new(ctypes.byref(description), ctypes.byref(model), error, len(error))
    assert status == abi.Status.INVALID_ARGUMENT
    assert model.value is None
    assert error.value == b"the description has another struct_size"
    assert library.regard_model_search(None, ctypes.byref(abi.SearchRequest())) == abi.Status.INVALID_ARGUMENT


def test_unknown_architecture_returns_invalid_argument() -> None:
    library = native.library()
    assert library is not None
    model, error = ctypes.c_void_p(), ctypes.create_string_buffer(100)
    description = abi.ModelDescription(struct_size=ctypes.sizeof(abi.ModelDescription), architecture=9)
    status = library.regard_model_new(ctypes.byref(description), ctypes.byref(model), error, len(error))
    assert (status, error.value) == (abi.Status.INVALID_ARGUMENT, b"there is no such architecture")


def test_free_accepts_null() -> None:
    library = native.library()
    assert library is not None
    library.regard_model_free(None)
    library.regard_int8_linear_free(None)


def test_special_tokens_agree_with_special_tokens_module() -> None:
    for token in abi.SpecialToken:
        assert getattr(special_tokens, token.name) == token


def test_exported_symbols_are_those_of_the_header(tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    path = native._compile()[0]
    completed = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in completed.stdout.splitlines() if line.split()[-2] == "T"}
    assert exported == set(declared_functions())


@pytest.mark.parametrize("name", declared_functions())
def test_every_function_is_documented(name: str) -> None:
    comment = " ".join(declared_functions()[name].split())
    assert comment.startswith("/* "), "a comment stands right before it"
    assert re.search("Threads may share|Thread-safe|No other thread", comment), "may threads call it at once?"
    states_owner = re.search("owns|frees|Frees|copied", comment)
    assert states_owner or "*" not in HEADER.split(f"{name}(")[1].split(")")[0], "who owns what it is given or gives?"
