from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_command():
    def build():
        import click

        @click.command()
        @click.option("--name", default="world")
        @click.pass_obj
        def hello(ui, name):
            """Say hello."""
            click.echo(f"hello {name}, json={ui.json}")

        return hello

    return CommandSpec(summary="greets", build=build)
