"""The command line: one function per command, `routeproof check` first.

Exit statuses: 0 as expected, 1 a surprise, 2 bad usage or input, 3 something stayed unknown,
70 an internal error, 130 interrupted, 141 output closed, 143 terminated. Heavy libraries load only
in the command that needs them.
"""

from __future__ import annotations

import io
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from routeproof import __version__
from routeproof.spec.errors import RouteproofError

from .process import prepare

if TYPE_CHECKING:
    from .checking import Delivery

__all__ = ["main"]

C = TypeVar("C", bound=Callable[..., Any])

_EXAMPLES = """
\b
Examples:
  routeproof check                          all obligations, the main job
  routeproof check 'ort.gqa.reach.*'        those that match
  routeproof explain ort.gqa.reach.unfused.case-a.newest
  routeproof reach ort.gqa unfused          when can the route run
  routeproof check my_kernel.py             obligations of your own

\b
Exit status: 0 every verdict as expected; 1 a surprise; 2 bad usage or input;
3 something stayed unknown; 70 internal error; 130 interrupted; 141 output closed;
143 terminated.
Shell completion: eval "$(_ROUTEPROOF_COMPLETE=bash_source routeproof)" (or zsh_source).
"""


def main() -> None:
    """Run the command line and exit with the documented status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a mark that a locale lacks is not worth a crash
    prepare()
    for ending in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(ending, _terminated)
    try:
        sys.exit(commands.main(standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("routeproof: interrupted", err=True)
        sys.exit(130)
    except _OutputClosedError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except RouteproofError as error:
        click.echo(f"routeproof: {error}", err=True)
        sys.exit(70 if error.code.startswith("RP9") else 2)
    except OSError as error:
        click.echo(
            f"routeproof: {error.filename or ''}: {error.strerror}".replace(" :", ""), err=True
        )
        sys.exit(2)
    except Exception:  # noqa: BLE001 - the last line of defence
        click.echo(f"routeproof: internal error\n{traceback.format_exc()}", err=True)
        sys.exit(70)


class _OutputClosedError(Exception):
    """Nobody reads on; under another name than the one that click takes for a plain failure."""


class _Commands(click.Group):
    """The commands, done when all they have written is out."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401 - click's own
        """Read the arguments; `--help` is answered here."""
        with _closed_output_known():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with _closed_output_known():
            return super().invoke(ctx)


@contextmanager
def _closed_output_known() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError as error:
        raise _OutputClosedError from error


def _terminated(number: int, _: object) -> NoReturn:
    """End as on any error, so that no worker is left behind."""
    sys.exit(128 + number)


@click.group(
    cls=_Commands, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "--version", prog_name="routeproof")
def commands() -> None:
    """Prove that a kernel's route ladder and scratch-memory formulas keep their promises.

    Over every input the declared envelope admits; where a promise fails, a small executed
    counterexample shows it.
    """


class _Seconds(click.FloatRange):
    """A time limit that the solvers can count down, in milliseconds of 32 bits."""

    def __init__(self) -> None:
        super().__init__(min=0.01, max=4_000_000)

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse NaN, which no bound excludes."""
        seconds = float(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


def _split(targets: tuple[str, ...]) -> tuple[list[str], list[Path]]:
    """Ids and globs, and the files of the user's own."""
    files = [Path(one) for one in targets if one.endswith(".py")]
    return [one for one in targets if not one.endswith(".py")], files


_PATH = click.Path(path_type=Path)
_DELIVERY = (
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "junit", "sarif", "github", "markdown"]),
        default="text",
        show_default=True,
        help="What goes to standard output.",
    ),
    click.option(
        "--output",
        "outputs",
        multiple=True,
        metavar="[FORMAT=]FILE",
        help="Also write a report; repeatable. FORMAT defaults to the file's ending.",
    ),
    click.option("--baseline", type=_PATH, help="Surprises that are accepted for a while."),
)


def _delivery(command: C) -> C:
    """The options that say where the results of a run go."""
    for option in reversed(_DELIVERY):
        command = option(command)
    return command


def _deliver_to(
    form: str, outputs: tuple[str, ...], baseline: Path | None, read: Sequence[Path] = ()
) -> Delivery:
    from .baseline import read_baseline
    from .checking import Delivery, destinations

    found = destinations(outputs, [*read, *([baseline] if baseline else [])])
    return Delivery(form, found, read_baseline(baseline) if baseline else {})


_CACHE_DIR = click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of verdicts [default: ROUTEPROOF_CACHE_DIR, or the platform's].",
)


@commands.command()
@click.argument("targets", nargs=-1, metavar="[ID | GLOB | FILE.py]...")
@click.option(
    "--engine",
    type=click.Choice(["auto", "smt", "sampling"]),
    default="auto",
    help="auto: all; smt: solver only; sampling: look for faults, prove nothing.",
)
@click.option("--second-solver", is_flag=True, help="Ask cvc5 about each proof too.")
@click.option(
    "--timeout",
    type=_Seconds(),
    default=60.0,
    show_default=True,
    help="Seconds per solver query; an obligation may take 5 more.",
)
@click.option(
    "--rlimit",
    type=click.IntRange(min=1, max=2**32 - 1),
    default=30_000_000,
    show_default=True,
    help="Solver resource units per query, the first limit to bind.",
)
@click.option(
    "--memory",
    type=click.IntRange(min=64, max=2**20),
    default=1024,
    show_default=True,
    help="Solver memory per process (MiB).",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of solver and sampling.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes [default: cores].")
@click.option(
    "--max-seconds", type=_Seconds(), help="Seconds for the run; what is left then is unknown."
)
@click.option("--no-cache", is_flag=True, help="Decide all anew and keep nothing.")
@click.option("--cache-verify", is_flag=True, help="Decide all anew and compare with what is kept.")
@_CACHE_DIR
@click.option("--shard", metavar="I/N", help="Decide part I of N only; merge puts them together.")
@_delivery
def check(
    targets: tuple[str, ...],
    shard: str | None,
    form: str,
    outputs: tuple[str, ...],
    baseline: Path | None,
    jobs: int | None,
    engine: str,
    second_solver: bool,
    timeout: float,
    rlimit: int,
    memory: int,
    seed: int,
    max_seconds: float | None,
    no_cache: bool,
    cache_verify: bool,
    cache_dir: Path | None,
) -> int:
    """Decide obligations and compare each verdict with the expected one.

    \b
    routeproof check
    routeproof check 'ort.gqa.layout.*' --timeout 5
    routeproof check --format json --output text=report.txt
    routeproof check --shard 1/4 --output part1.json
    """  # noqa: D301 - click reads the control character
    from .caching.place import cache_place
    from .checking import run_check
    from .running import Request
    from .sharding import parse_shard
    from .solver import Limits, Options

    if no_cache and (cache_verify or cache_dir):
        raise click.UsageError("--no-cache leaves nothing for another option of the cache")
    part = None if shard is None else parse_shard(shard)
    delivery = _deliver_to(form, outputs, baseline)
    patterns, files = _split(targets)
    request = Request(
        patterns,
        files,
        Options(Limits(rlimit, timeout, memory), seed, engine, second_solver),  # type: ignore[arg-type]
        jobs or os.cpu_count() or 1,
        cache=None if no_cache else cache_dir or cache_place(),
        mode="verify" if cache_verify else "use",
        seconds=max_seconds,
    )
    return run_check(request, delivery, part)


@commands.command()
@click.argument("reports", nargs=-1, required=True, type=_PATH, metavar="REPORT.json...")
@_delivery
def merge(
    reports: tuple[Path, ...], form: str, outputs: tuple[str, ...], baseline: Path | None
) -> int:
    """Put the reports of check --shard together, as one run would have written them.

    \b
    routeproof merge part*.json --output junit=report.xml
    """  # noqa: D301 - click reads the control character
    from .checking import run_merge

    return run_merge(reports, _deliver_to(form, outputs, baseline, reports))


@commands.command("baseline")
@click.argument("report", type=_PATH, metavar="REPORT.json")
@click.option("--reason", required=True, help="Why the surprises are accepted.")
@click.option("--expires", required=True, metavar="YYYY-MM-DD", help="The last day of it.")
@click.option(
    "--file",
    type=_PATH,
    default=Path("routeproof-baseline.json"),
    show_default=True,
    help="Baseline to make or to extend.",
)
def baseline_command(report: Path, reason: str, expires: str, file: Path) -> None:
    """Accept the surprises of a report for a while: check --baseline FILE then passes.

    \b
    routeproof check --output report.json
    routeproof baseline report.json --reason "known, see issue 12" --expires 2027-03-31
    """  # noqa: D301 - click reads the control character
    from .baseline import run_baseline

    click.echo(run_baseline(report, reason, expires, file))


@commands.group()
def cache() -> None:
    """Look at the verdicts that check keeps, or remove some.

    \b
    routeproof cache info
    routeproof cache list 'ort.gqa.reach.*'
    routeproof cache prune --older-than 30
    """  # noqa: D301 - click reads the control character


_FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")


@cache.command("info")
@_CACHE_DIR
@_FORM
def cache_info(cache_dir: Path | None, form: str) -> None:
    """Say where the cache is, and how much it holds."""
    from .caching.command import info

    info(cache_dir, form)


@cache.command("list")
@click.argument("patterns", nargs=-1, metavar="[ID | GLOB]...")
@_CACHE_DIR
@_FORM
def cache_list(patterns: tuple[str, ...], cache_dir: Path | None, form: str) -> None:
    """List what is kept: verdict, obligation, days since it was used, file."""
    from .caching.command import list_entries

    list_entries(patterns, cache_dir, form)


@cache.command("prune")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0, max=36_500),
    default=30.0,
    show_default=True,
    help="Days without use after which an entry goes.",
)
@click.option("--all", "everything", is_flag=True, help="Remove every entry.")
@_CACHE_DIR
def cache_prune(days: float, everything: bool, cache_dir: Path | None) -> None:
    """Remove entries that are damaged or were not used for long."""
    from .caching.command import prune

    prune(cache_dir, 0.0 if everything else days)


@commands.command()
@_FORM
def doctor(form: str) -> int:
    """Say which parts work here: solvers, optional parts, cache, terminal, GPU."""
    from .doctor import run_doctor

    return run_doctor(form)


@commands.command("list")
@click.argument("targets", nargs=-1, metavar="[ID | GLOB | FILE.py]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def list_command(targets: tuple[str, ...], form: str) -> None:
    """List obligations with their expected verdicts, without deciding any."""
    from .registry import load_obligations, select_obligations

    patterns, files = _split(targets)
    chosen = select_obligations(load_obligations(files), patterns)
    if form == "json":
        from .report import SCHEMA_VERSION, dump

        rows = [
            {
                "id": one.id,
                "title": one.title,
                "source": str(one.source),
                "expected": str(one.expected),
                "location": one.location,
            }
            for one in chosen
        ]
        click.echo(dump({"schema_version": SCHEMA_VERSION, "obligations": rows}), nl=False)
        return
    width = max((len(one.id) for one in chosen), default=0)
    for one in chosen:
        click.echo(f"{one.expected:9} {one.id:{width}}  {one.title}")


@commands.command("eval")
@click.argument("name")
def eval_command(name: str) -> None:
    """Apply a modelled function to JSON lines: {"in": {...}} in, its outputs out.

    \b
    echo '{"in": {"batch_size": 1, ...}}' | routeproof eval ort.gqa.classifier
    """  # noqa: D301 - click reads the control character
    from .evaluator import Evaluator, write_row
    from .registry import load_function
    from .values import parse_json

    evaluate = Evaluator(load_function(name))
    if sys.stdin is None:
        raise click.UsageError("standard input is closed")
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line.strip():
            where = f"standard input, line {number}"
            click.echo(write_row(evaluate(parse_json(line, where), where)))


@commands.command()
@click.argument("ladder")
@click.argument("outcome")
@click.option("--revision", help="Revision of the ladder [default: all].")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--timeout", type=_Seconds(), default=60.0, show_default=True)
def reach(ladder: str, outcome: str, revision: str | None, form: str, timeout: float) -> int:
    """Show when a route can run, as a proved decision table over partition-time facts.

    \b
    routeproof reach ort.gqa unfused
    routeproof reach ort.gqa no_route --revision older
    """  # noqa: D301 - click reads the control character
    from .reaching import run_reach
    from .solver import Limits, Options

    return run_reach(ladder, outcome, revision, form, Options(Limits(seconds=timeout)))


_QUESTION = (
    click.option("--preset", help="Published model whose geometry the node has."),
    click.option("--node", multiple=True, metavar="FACT=VALUE,...", help="Facts of the node."),
    click.option("--device", metavar="NAME|sm=X.Y,sms=N", help="Published device, or its facts."),
    click.option("--kernel-options", multiple=True, metavar="KERNEL=on|off,..."),
    click.option("--batch", metavar="LOW..HIGH", help="Rows [default: 1]."),
    click.option("--query", metavar="LOW..HIGH", help="Query length (tokens)."),
    click.option("--total", metavar="LOW..HIGH", help="Total length, past included (tokens)."),
    click.option("--past-capacity", metavar="TOKENS", help="Of the past tensors [upper total]."),
    click.option("--allow-query-above-total", is_flag=True, help="Lift query <= total."),
    click.option("--enforced", metavar="AXIS,...", help="Ranges that the runtime enforces."),
    click.option("--alias", help="Past/present pairs that share: both, none, one, any [default]."),
)


def _question(command: C) -> C:
    """The options that say of which node, device and envelope a bound is asked."""
    for option in reversed(_QUESTION):
        command = option(command)
    return command


@commands.command()
@click.argument(
    "spec", required=False, type=click.Path(path_type=Path), metavar="[SPEC.toml|SPEC.json]"
)
@_question
@click.option("--ladder", help="Revision of the ladder, newest or older [default: newest].")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE.svg|png",
    help="Also draw bytes by query length and the split counts.",
)
@click.option(
    "--matrix", metavar="DEVICE,...", help="Every published model on these devices, as a table."
)
@click.option(
    "--emit",
    type=click.Choice(["cpp", "rust", "python"]),
    help="Write a modelled function as source text with its tests instead.",
)
@click.option(
    "--vectors",
    type=click.Choice(["json", "cpp", "rust"]),
    help="Write boundary-value test vectors of a modelled function instead.",
)
@click.option(
    "--function",
    "name",
    default="ort.gqa.flash_accumulators",
    show_default=True,
    help="What --emit and --vectors write.",
)
@click.option(
    "--base",
    type=click.Path(path_type=Path),
    metavar="FILE.jsonl",
    help="Rows that --vectors starts from [default: recorded ones].",
)
def bound(
    spec: Path | None,
    form: str,
    plot: Path | None,
    matrix: str | None,
    emit: str | None,
    vectors: str | None,
    name: str,
    base: Path | None,
    **options: Any,  # noqa: ANN401 - as click gives them
) -> int:
    """The exact maximum of every route over an envelope, with a state that attains it.

    \b
    routeproof bound --preset qwen2.5-1.5b --device sm=12.0,sms=82 \\
      --kernel-options cudnn=off --query 1..1024 --total 1..1152
    routeproof bound node.toml --ladder older --format json
    routeproof bound --matrix 'L4,RTX 4090' --kernel-options cudnn=off
    routeproof bound --emit cpp > flash_accumulators.hpp
    routeproof bound --vectors json --function ort.gqa.flash
    """  # noqa: D301 - click reads the control character
    from .bounding import command
    from .bounding.spec import document

    modes = {"--matrix": matrix, "--emit": emit, "--vectors": vectors, "--plot": plot}
    given = [mode for mode, value in modes.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
    if emit or vectors:
        asked = spec is not None or any(
            value not in (None, (), False) for value in options.values()
        )
        if asked:
            raise click.UsageError(f"{given[0]} writes a function: give no SPEC and no facts")
        if emit:
            return command.run_emit(name, emit)
        return command.run_vectors(name, str(vectors), base)
    asked_of = document(spec, options)
    if matrix:
        return command.run_matrix(matrix, asked_of, form)
    return command.run_bound(asked_of, form, plot)


@commands.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="SPEC.toml|SPEC.json",
    help="Node, device and envelope for revisions of the ladder.",
)
@_question
@click.option(
    "--obligations",
    "patterns",
    multiple=True,
    metavar="ID|GLOB",
    help="Compare these obligations only; repeatable.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes [default: cores].")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def diff_command(
    first: str,
    second: str,
    form: str,
    jobs: int | None,
    patterns: tuple[str, ...],
    **options: Any,  # noqa: ANN401
) -> int:
    """What differs between A and B: verdicts of obligations, and bounds with their states.

    Each is a revision of the ladder (newest, older), a SPEC as bound reads it, a JSON report of
    check, or a JSON answer of bound.

    \b
    routeproof diff older newest --preset qwen2.5-1.5b --device sm=12.0,sms=82 \\
      --kernel-options cudnn=off --query 1..1024 --total 1..1152
    routeproof diff before.toml after.toml --format json
    routeproof diff report-before.json report-after.json --obligations 'ort.gqa.bound.*'

    Exit status, the larger where two apply: 0 nothing differs, 1 something does, 2 bad usage or
    input, 3 a verdict is unknown or a maximum is only bounded, so that not all is told.
    """  # noqa: D301 - click reads the control character
    from .diffing.command import run_diff

    return run_diff((first, second), options, patterns, jobs or os.cpu_count() or 1, form)


@commands.command()
@click.argument("targets", nargs=-1, metavar="ID | ERROR-CODE [FILE.py]...")
@click.option("--smtlib", is_flag=True, help="Print the query as SMT-LIB 2 text instead.")
@click.option("--latex", is_flag=True, help="Print the formulas as LaTeX instead.")
def explain(targets: tuple[str, ...], smtlib: bool, latex: bool) -> int:
    """Tell the whole story of an obligation, or what an error code means.

    \b
    routeproof explain ort.gqa.reach.unfused.flash-without-head-size-limit.newest
    routeproof explain RP201
    """  # noqa: D301 - click reads the control character
    from .explaining import run_explain

    if smtlib and latex:
        raise click.UsageError("--smtlib and --latex exclude each other")
    subjects, files = _split(targets)
    if len(subjects) != 1:
        raise click.UsageError(f"explain takes one id or error code, got {len(subjects)}")
    return run_explain(subjects[0], files, "smtlib" if smtlib else "latex" if latex else "text")


@commands.command()
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE.json] [FILE.py]..."
)
@click.option(
    "--kernels",
    type=click.Choice(["numpy", "cupy", "none"]),
    default="numpy",
    show_default=True,
    help="Where reference kernels run what a state stands for.",
)
@click.option(
    "--random", "count", type=click.IntRange(1, 1_000_000), help="Run so many drawn launches."
)
@click.option("--seed", type=click.IntRange(0), help="Of the drawn launches; 0 unless given.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes [default: cores].")
@_FORM
def replay(
    paths: tuple[Path, ...],
    kernels: str,
    count: int | None,
    seed: int | None,
    jobs: int | None,
    form: str,
) -> int:
    """Execute counterexamples again, and run kernels in the memory that recipes plan for them.

    \b
    routeproof replay report.json
    routeproof replay counterexample.json my_kernel.py
    routeproof replay --kernels numpy --random 2000 --seed 1

    The file is a counterexample, a whole JSON report, or a launch that a fault named. Bytes
    planned, allocated and touched are shown region by region. Exit status 0 if every state still
    breaks its obligation and no kernel finds a fault, 1 if not, 2 for bad input or without a GPU.
    """  # noqa: D301 - click reads the control character
    from .launching import run_random
    from .replaying import run_replay

    if count is None:
        if not paths:
            raise click.UsageError("replay takes a FILE.json, or --random N")
        if given := [name for name, one in (("--seed", seed), ("--jobs", jobs)) if one is not None]:
            raise click.UsageError(f"{given[0]} belongs to --random")
        if form != "text":
            raise click.UsageError("--format json belongs to --random")
        return run_replay(paths[0], paths[1:], kernels)
    if paths:
        raise click.UsageError("--random draws its launches: it takes no file")
    if kernels == "none":
        raise click.UsageError("--random runs kernels: --kernels is numpy or cupy")
    return run_random(count, seed or 0, kernels, jobs or os.cpu_count() or 1, form)


@commands.command("certify")
@click.argument("path", type=click.Path(path_type=Path), metavar="REPORT.json")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE.py]...")
@click.option(
    "--timeout",
    type=_Seconds(),
    default=10.0,
    show_default=True,
    help="Seconds per question to the solver, where there is no derivation.",
)
def certify_command(path: Path, files: tuple[Path, ...], timeout: float) -> int:
    """Check the evidence of a JSON report again, without the engines that found it.

    \b
    routeproof check --output report.json
    routeproof certify report.json

    Derivations are followed step by step, enumerations and recorded rows repeated, other proofs
    and tables asked again in another encoding, counterexamples executed. Exit status 0 if all are
    confirmed, 1 if one is refused, 3 if one is left to the solver's word.
    """  # noqa: D301 - click reads the control character
    from .certifying import run_certify

    return run_certify(path, files, timeout)
