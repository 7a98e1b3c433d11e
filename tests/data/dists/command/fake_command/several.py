import click

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl


@click.command()
@click.pass_obj
def greet(ui):
    """Greet."""
    ui.out("greetings")


not_a_command = 3


@hookimpl
def benchflow_command():
    places = {"plugins.greet": "fake_command.several:greet", "plugins.odd": "fake_command.several:not_a_command"}
    return CommandSpec(summary="several", commands={**places, "tasks.greet": "fake_command.several:greet"})
