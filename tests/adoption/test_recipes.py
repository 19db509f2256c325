"""The action and the recipes for CI: their own schemas take them, and their scripts run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^```yaml\n# ([\w-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent
PROOFS = re.search(r"^```python\n(# scratch_proofs.py\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[
    1
]


def validate(path, schema):
    """Hold the file against a schema that check-jsonschema ships."""
    command = [BIN / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_every_recipe_meets_its_schema(tmp_path, number):
    """Of GitHub's workflows and of GitLab's files."""
    kind, text = RECIPES[number]
    path = tmp_path / "recipe.yml"
    path.write_text(text)
    validate(path, kind)


def test_there_are_recipes_for_both():
    """Two each: as a whole, and in parts."""
    kinds = [kind for kind, _ in RECIPES]
    assert kinds == ["github-workflows"] * 2 + ["gitlab-ci"] * 2


def test_the_action_meets_its_schema():
    """That of GitHub's actions."""
    validate(ROOT / "action.yml", "github-actions")


@pytest.fixture(scope="module")
def action():
    """Give the action as data."""
    return YAML(typ="safe").load((ROOT / "action.yml").read_text())


def test_no_input_is_part_of_a_script(action):
    """It would be executed: inputs reach scripts as variables of the environment alone."""
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)


def test_verdicts_are_kept_when_the_check_fails(action):
    """Under one key, restored before and saved after, whatever the exit status."""
    steps = [one for one in action["runs"]["steps"] if "actions/cache" in one.get("uses", "")]
    restore, save = steps
    assert action["runs"]["steps"][-1] is save
    assert save["if"].startswith("always()")
    assert {**restore["with"], "restore-keys": ""} == {**save["with"], "restore-keys": ""}


def test_a_folder_of_two_lines_is_no_second_output(check):
    """What a runner reads as outputs is what the action says."""
    _, told, _ = check(targets="csrc/scratch_proofs.py", reports="one\nstatus=0")
    assert told["status"] == "1"
    assert told["json"] == "onestatus=0/report.json"


def test_the_page_names_every_input_and_output(action):
    """With its default."""
    for name in (*action["inputs"], *action["outputs"]):
        assert re.search(rf"`{name}`", PAGE), name


@pytest.fixture
def project(tmp_path):
    """Give a foreign project with the files of the page."""
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "scratch_proofs.py").write_text(PROOFS)
    return tmp_path


@pytest.fixture
def check(action, project, tmp_path):
    """Return a function that runs the action's last step with inputs; gives process and outputs."""
    (step,) = (one for one in action["runs"]["steps"] if one.get("id") == "check")

    def check(**inputs):
        runner = tmp_path / "runner temp"
        runner.mkdir(exist_ok=True)
        files = {name: runner / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {name: inputs.get(name.lower(), "") for name in ("TARGETS", "OPTIONS", "BASELINE")}
        given |= {name: inputs.get(name.lower(), "") for name in ("SHARD", "REPORTS")}
        environment = {
            **os.environ,
            **{name: str(file) for name, file in files.items()},
            **given,
            "CACHE": inputs.get("cache", "true"),
            "RUNNER_TEMP": str(runner),
            "BIN": str(BIN),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # noqa: S607
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        told = dict(one.split("=", 1) for one in files["GITHUB_OUTPUT"].read_text().splitlines())
        return done, told, files["GITHUB_STEP_SUMMARY"].read_text()

    return check


def test_the_action_annotates_and_reports(check):
    """A surprise fails the step, after all reports are written."""
    done, told, summary = check(targets="csrc/scratch_proofs.py")
    assert done.returncode == 1
    assert "::error file=csrc/scratch_proofs.py,line=20," in done.stdout
    assert told["status"] == "1"
    assert all(Path(told[name]).is_file() for name in ("json", "junit", "sarif"))
    assert "scratch.batch" in summary


def test_the_action_takes_several_of_everything(check, project):
    """Targets and options line by line; a file whose name has blanks."""
    (project / "my proofs.py").write_text(PROOFS.replace('"scratch.', '"other.'))
    done, told, _ = check(
        targets="csrc/scratch_proofs.py\n\nmy proofs.py\n*.bound\n",
        options="--timeout=10\n--seed=3\n",
        reports="my reports",
        shard="1/1",
        cache="false",
    )
    assert (done.returncode, told["status"]) == (0, "0")
    assert "2 obligations: 2 proved" in done.stdout
    assert (project / told["json"]).parent.name == "my reports"


@pytest.mark.parametrize("hostile", ["$(touch ran)", "`touch ran`", "; touch ran", "--help"])
def test_what_an_input_holds_is_never_executed(check, project, hostile):
    """It is an unknown name, and that is told."""
    for name in ("targets", "shard", "baseline"):
        done, told, _ = check(**{name: hostile})
        assert (done.returncode, told["status"]) == (2, "2")
    assert not list(project.rglob("ran"))


def test_a_baseline_makes_the_action_pass(check, project):
    """As the page says."""
    _, told, _ = check(targets="csrc/scratch_proofs.py")
    command = [BIN / "routeproof", "baseline", told["json"]]
    command += ["--reason", "known", "--expires", "2099-12-31"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    done, told, _ = check(
        targets="csrc/scratch_proofs.py", baseline="routeproof-baseline.json", cache="false"
    )
    assert (done.returncode, told["status"]) == (0, "0")


def scripts(text):
    """Yield the script of each job of a recipe, with how often it runs."""
    for job in YAML(typ="safe").load(text).values():
        yield "\n".join(job["script"]), job.get("parallel", 1)


@pytest.mark.parametrize("number", [2, 3])
def test_the_scripts_for_gitlab_run(project, number):
    """Job after job; but for the installation, which is here already."""
    (project / "bin").mkdir()
    (project / "bin" / "pip").write_text("#!/bin/sh\n")
    (project / "bin" / "pip").chmod(0o755)
    environment = {**os.environ, "PATH": f"{project / 'bin'}:{BIN}:{os.environ['PATH']}"}

    def run(script, **more):
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],  # noqa: S607
            cwd=project,
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    run("routeproof check csrc/scratch_proofs.py --output report.json || true")
    accept = "routeproof baseline report.json --reason known --expires 2099-12-31"
    assert run(accept).returncode == 0
    for script, times in scripts(RECIPES[number][1]):
        for index in range(1, times + 1):
            done = run(script, CI_NODE_INDEX=str(index), CI_NODE_TOTAL=str(times))
            assert done.returncode == 0, done.stderr
    assert "skipped" in (project / "report.xml").read_text()
