"""`bench use KIND [NAME]`: asks the registry as the rest of the core does. Only a test may reach into the core like this."""

from benchflow_core.contracts import CommandSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_command():
    def build():
        import click

        from benchflow_core.plugins import registry

        @click.command()
        @click.argument("kind")
        @click.argument("names", nargs=-1)
        @click.option("--explode", is_flag=True)
        @click.pass_obj
        def use(ui, kind, names, explode):
            """Load plugins."""
            if explode:
                raise ZeroDivisionError("as asked")
            if kind == "observers":
                loaded = registry().observers()
            else:
                loaded = [registry().get(kind, name) for name in names] or registry().all(kind)
            stamps = [{**one.stamp(), "summary": one.spec.summary} for one in loaded]
            ui.emit(stamps, lambda: [ui.out(f"using {one.kind}:{one.name} of {one.distribution}") for one in loaded])

        return use

    return CommandSpec(summary="loads", build=build)
