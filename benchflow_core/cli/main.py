"""The `bench` command, also installed as `benchflow`.

Exit codes: 0 done, 1 failed (for a job: coverage is short), 2 the command line is wrong, 70 a defect of ours, 130
interrupted, 141 the reader of our output went away.

A failure is one line on stderr, `error: …`; a traceback comes only with `-v`. Under `--json` stdout still gets exactly
one document: `{"error": {kind, code, message, remedy, retryable, details}}`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from benchflow_core import __version__
from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.lazy import Lazy, common_options
from benchflow_core.cli.ui import Ui, terminal_columns
from benchflow_core.errors import BenchflowError, Cancelled, UsageError
from benchflow_core.plugins import Policy, configure

__all__ = ["COMMANDS", "HIDDEN", "cli", "main"]

COMMANDS: Final[dict[str, Lazy]] = {
    "eval": ("benchflow_core.cli.eval:eval_group", "Run evaluations and look at their results."),
    "tasks": ("benchflow_core.cli.tasks:tasks", "Make, check, identify and convert tasks."),
    "agent": ("benchflow_core.cli.agent:agent", "List and inspect the installed agents."),
    "environment": ("benchflow-feature-world", "List, show and check environments and services."),
    "skills": ("benchflow-feature-standard", "See, install and evaluate skills."),
    "learner": ("benchflow-feature-standard", "See and steer what rollouts learned from each other."),
    "sandbox": ("benchflow_core.cli.sandbox:sandbox", "List sandboxes and boxes, clean up, open a shell."),
    "cleanup": ("benchflow_core.cli.sandbox:cleanup", "Remove what a dead run left behind."),
    "schema": ("benchflow_core.cli.schema:schema", "Print the JSON Schema of a job file or a result file."),
    "plugins": ("benchflow_core.cli.plugins:plugins", "List, inspect, diagnose and create plugins."),
    "completion": ("benchflow_core.cli.completion:completion", "Print the completion script of a shell."),
}
"""What `bench --help` lists, in this order. One line per command: where it is, and what it does."""

HIDDEN: Final[dict[str, Lazy]] = {
    "run": ("benchflow_core.cli.eval.create:create", "The same as eval create."),
    "job": ("benchflow_core.cli.eval.create:create", "The same as eval create."),
    "agents": ("benchflow_core.cli.agent:list_agents", "The same as agent list."),
    "metrics": ("benchflow-command-results", "The same as eval metrics."),
}
"""Older spellings: they work and are not listed."""

DEFECT: Final = 70
READER_GONE: Final = 141


class Root(PluginGroup):
    """`bench` itself: settles which plugins may load before anything can load one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        ui = ctx.ensure_object(Ui)
        ui.json = ui.json or bool(given.get("json"))
        _settle_plugins(ui, given)
        # Click would import shutil, and with it three compression libraries, to find this out.
        ctx.terminal_width = max(min(terminal_columns(sys.stdout) or 80, 100) - 2, 50)
        return super().parse_args(ctx, args)


def _settle_plugins(ui: Ui, given: Mapping[str, Any]) -> None:
    blocked = []
    for item in given.get("block") or ():
        if not item.startswith("no:") or not item[3:]:
            raise click.UsageError(f"-p takes no:NAME, where NAME is a plugin or a distribution, not {item!r}.")
        blocked.append(item[3:])

    def report(line: str, cause: BaseException | None) -> None:
        ui.warn(line)
        if cause is not None and ui.verbose:
            _print_traceback(cause)

    none, strict = bool(given.get("no_plugins")), bool(given.get("strict_plugins"))
    configure(Policy.read(none=none, blocked=blocked, strict=strict), report)


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ui = ctx.ensure_object(Ui)
        ui.emit({"version": __version__}, lambda: ui.out(f"{ctx.find_root().info_name} {__version__}"))
        ctx.exit()


cli = Root(
    "bench",
    prefix="",
    table=COMMANDS,
    hidden=HIDDEN,
    help="Run AI agents against benchmark tasks in sandboxes, and score them.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        *common_options(),
        click.Option(["--no-plugins"], is_flag=True, expose_value=False, help="Use nothing but the core itself."),
        click.Option(
            ["-p", "block"],
            multiple=True,
            metavar="no:NAME",
            expose_value=False,
            help="Block a plugin: kind:name, name or distribution. Repeatable.",
        ),
        click.Option(
            ["--strict-plugins"], is_flag=True, expose_value=False, help="Any problem with a plugin is an error."
        ),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        ),
    ],
)


def main(argv: list[str] | None = None) -> int:
    """Runs one command line and gives the exit code."""
    args = sys.argv[1:] if argv is None else argv
    prog = "benchflow" if sys.argv[0].endswith("benchflow") else "bench"
    _mend_streams()
    if instruction := os.environ.get(f"_{prog.upper()}_COMPLETE"):
        from benchflow_core.cli.completion import complete

        return complete(cli, prog, instruction)
    ui = Ui()
    try:
        code = _run(prog, args, ui)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return READER_GONE
    except OSError as error:
        _discard_output()
        ui.error(f"The output could not be written: {error.strerror}.")
        return 1


def _run(prog: str, args: list[str], ui: Ui) -> int:
    try:
        with cli.make_context(prog, list(args), obj=ui) as ctx:
            cli.invoke(ctx)
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except (KeyboardInterrupt, click.Abort):
        return _failed(ui, Cancelled("Interrupted."))
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    except click.UsageError as error:
        # The command line was not understood, so its own --json may not have been either.
        ui.json = ui.json or "--json" in args
        hint = f"Try '{error.ctx.command_path} --help'." if error.ctx else f"Try '{prog} --help'."
        return _failed(ui, UsageError(error.format_message(), remedy=hint))
    except click.ClickException as error:
        return _failed(ui, BenchflowError(error.format_message()), code=error.exit_code)
    except BenchflowError as error:
        return _failed(ui, error)
    except Exception as error:
        if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and _stdout_is_broken()):
            raise
        return _defect(ui, error)


def _failed(ui: Ui, error: BenchflowError, *, code: int | None = None) -> int:
    if ui.verbose and not isinstance(error, UsageError | Cancelled):
        _print_traceback(error)
    if ui.json and not ui.emitted:
        ui.document({"error": error.to_json()})
    ui.error(str(error))
    return error.exit_code if code is None else code


def _defect(ui: Ui, error: Exception) -> int:
    from benchflow_core.plugins.complaints import told

    if ui.verbose:
        _print_traceback(error)
    if ui.json and not ui.emitted:
        data = {"kind": "defect", "code": type(error).__name__, "message": str(error), "remedy": None}
        ui.document({"error": {**data, "retryable": False, "details": {}}})
    hint = "." if ui.verbose else ": run again with -v to see where."
    ui.error(f"{told(error)}. This is a defect{hint}")
    return DEFECT


def _print_traceback(error: BaseException) -> None:
    import traceback

    traceback.print_exception(error)


def _mend_streams() -> None:
    """A closed stdout or stderr, or an encoding that lacks a character, must not stop a command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _stdout_is_broken() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _discard_output() -> None:
    """Whatever is still buffered would fail again when the interpreter exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
