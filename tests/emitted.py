"""Emitted code built and run: what the tests of several folders do with it."""

import importlib.util
import shutil
import subprocess
import sys

import pytest

LANGUAGES = ("cpp", "rust", "python")

_COMPILERS = {
    "cpp": ("g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"),
    "rust": ("rustc", "--edition", "2021", "-D", "warnings", "--test"),
}


def built(language, text, folder, *flags):
    """Compile a program, any warning being an error, and return its path."""
    compiler, *always = _COMPILERS[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    file, program = folder / ("text.cpp" if language == "cpp" else "text.rs"), folder / language
    file.write_text(text)
    command = [compiler, *always, *flags, str(file), "-o", str(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run_test(language, text, folder, name):
    """Run the test in the text of a function: its exit status, and what it says."""
    if language == "python":
        (folder / "text.py").write_text(text)
        command = [sys.executable, "-m", "unittest", "text"]
    else:
        macro = [f"-D{name.replace('.', '_').upper()}_TEST"] if language == "cpp" else []
        command = [str(built(language, text, folder, *macro))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def imported(text, folder):
    """Import emitted Python under a name of its own."""
    file = folder / "imported.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"emitted_{abs(hash(text))}", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
