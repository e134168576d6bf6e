"""The frame of the command line: the typer application, and what becomes of errors.

A command is one function in its own file; it gets its name in `commands`. Only this module turns errors into exit
codes: 0 done, 1 error, 2 usage, and the `exit_code` of an `AnabranchError`.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from reconciler import starting
from reconciler.cli import environments
from reconciler.cli.commands import Commands
from reconciler.cli.common import NoTerminal, log_to, print_log, print_problems
from reconciler.cli.formats import write_as_json
from reconciler.cli.helping import Grouped, readable, settings
from reconciler.cli.log import VERBOSE, begin_logging
from reconciler.cli.look.version import version as print_version
from reconciler.cli.optional_values import with_general_first, with_values
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.base.installed import lacking
from reconciler.model.base.text import kept_in_lines, shown
from reconciler.state.journals import strangers

DEBUG_VARIABLE = "ANABRANCH_DEBUG"


app = typer.Typer(
    name="anabranch",
    help="Kafka clusters kept in step by declared topologies.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=settings(),
    cls=Grouped,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
    verbose: Annotated[
        str | None,
        typer.Option(
            VERBOSE,
            metavar="[=ROOMS]",
            envvar=starting.VERBOSE,
            show_envvar=False,
            help="Print debug lines on stderr: of all rooms, or of some (--verbose=replicator,state).",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            environments.OPTION,
            metavar="NAME",
            envvar=environments.VARIABLE,
            show_envvar=False,
            help="Add what FILE.NAME.yaml declares, and take the values of FILE.NAME.values.yaml.",
        ),
    ] = None,
) -> None:
    """Kafka clusters kept in step by declared topologies."""
    begin_logging(verbose)
    environments.choose(environment)


def command_line() -> Any:
    """Return the command line, whose commands are made when they are taken."""
    made: Any = readable(get_command(app))
    made.commands = Commands()
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, by default the process's own; return the exit code."""
    _open_standard_streams()
    log_to(None)
    write_as_json()
    strangers.listen(lambda problem: print_problems((problem,), severity="warning"))
    typed = sys.argv[1:] if arguments is None else arguments
    general, rest = with_general_first(typed)
    told = [*general, *with_values(rest)]
    try:
        command_line().main(told, prog_name="anabranch", standalone_mode=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except NoTerminal as error:
        print_problems([error.beside(typed)])
        code = error.exit_code
    except AnabranchError as error:
        print_problems(error.problems)
        print_log(error.log)
        code = error.exit_code
    except ModuleNotFoundError as error:
        code = _print_lacking(error)
    except Exception as error:
        code = _cannot_print(error) or _print_unexpected(error)
    else:
        code = 0
    return _flush(code)


def _open_standard_streams() -> None:
    """Open what the process was started without (`>&-`): its number would go to a connection, and be written to."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest number that is free: lower ones were opened before.
            opened = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(opened, mode, encoding="utf-8", closefd=opened != number))  # noqa: SIM115


def _print_lacking(error: ModuleNotFoundError) -> int:
    """Print which extra a missing module belongs to; return the exit code."""
    found = lacking(error)
    if found is None:
        return _print_unexpected(error)
    print_problems(found.problems)
    return found.exit_code


def _print_unexpected(error: Exception) -> int:
    """Print an unexpected error in one line, with the traceback only where the variable demands it; return 1."""
    if os.environ.get(DEBUG_VARIABLE) == "1":
        sys.stderr.write(kept_in_lines("".join(traceback.format_exception(error))))
        return 1
    name = type(error).__name__
    sys.stderr.write(
        f"unexpected {name}: {shown(str(error))}\n    → set {DEBUG_VARIABLE}=1 for the traceback and report it\n"
    )
    return 1


def _cannot_print(error: Exception) -> int:
    """Report that stdout takes no more, as on a full disk, and close it; return 0 where the error is another one."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
        return 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print_problems([Problem("AB180", "", f"cannot be printed: {error.strerror}", "make room, and run it again")])
    return 1


def _flush(code: int) -> int:
    """Flush stdout; a reader that has gone away (`| head`) is no error worth words."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 1
    except OSError as error:
        return code or _cannot_print(error) or _print_unexpected(error)
    return code


if __name__ == "__main__":
    sys.exit(main())
