"""From what a task asks for to what a vendor sells, within what one box may have."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchflow_boxkit.options import Options
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Resources
from benchflow_core.errors import CapabilityMissing, ConfigurationError

__all__ = ["BoxSize", "Catalogue", "Quantity", "size_options"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """How a vendor sells one of the resources of a box."""

    wanted: str
    """The field of `Resources`: `memory_mb`."""
    option: str
    """Option for a box whose task asks for none; with `max_` before it, the option for the limit."""
    unit: str
    default: int | None
    """`None`: the vendor decides, and there is no option."""
    most: int
    least: float = 1
    step: float = 0
    """Sold in multiples of this; 0 where any amount is sold."""
    scale: int = 1
    """How many of the task's units are one of the vendor's."""

    @property
    def terms(self) -> str:
        steps = f"{self.unit} in steps of {self.step:g}" if self.step else self.unit
        return f"{steps}, at least {self.least:g}"


@dataclass(frozen=True, slots=True)
class BoxSize:
    """The size of one box in the vendor's own units."""

    cpus: float
    memory: int
    disk: int | None
    """`None`: what the vendor gives by itself."""
    gpus: int
    gpu_types: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def suffix(self) -> str:
        """The end of the name of an image that a vendor keeps for boxes of this size."""
        disk = f"d{self.disk}" if self.disk else ""
        gpu = f"g{self.gpus}{'-'.join(self.gpu_types).lower()}" if self.gpus else ""
        return f"c{self.cpus:g}m{self.memory}{disk}{gpu}"


def size_options(quantities: Sequence[Quantity]) -> dict[str, str]:
    """Describe the options by which a user changes sizes and limits."""
    own = {q.option: f"{q.unit} of a box whose task asks for none ({q.default})" for q in quantities if q.default}
    return own | {f"max_{q.option}": f"most {q.unit} that one box may have ({q.most})" for q in quantities}


class Catalogue:
    """The sizes that a vendor sells to one account."""

    def __init__(self, vendor: str, quantities: Sequence[Quantity], given: Options, *, gpus: bool = False) -> None:
        self._vendor, self._gpus = vendor, gpus
        self._sold = {q.wanted: (q, *self._limited(q, given)) for q in quantities}

    def _limited(self, quantity: Quantity, given: Options) -> tuple[int | None, int]:
        option, least = quantity.option, math.ceil(quantity.least)
        if quantity.default is None:
            return None, given.number(f"max_{option}", quantity.most, least=least)
        found = given.limited(option, quantity.default, f"max_{option}", quantity.most, least=least)
        for value in found:
            if quantity.step and value % quantity.step:
                raise ConfigurationError(
                    f"{self._vendor} sells {quantity.terms}; {value} is not among them.", remedy=f"Use {value + 1}."
                )
        return found

    def fit(self, wanted: Resources) -> BoxSize:
        for kind, asked in (("tpu", wanted.tpu), ("gpu", wanted.gpus and not self._gpus)):
            if asked:
                remedy = f"Use a sandbox with the capability {kind}."
                raise CapabilityMissing(f"{self._vendor} has no {kind.upper()}s.", remedy=remedy)
        notices: list[str] = []
        cpus, memory, disk = (self._amount(name, wanted, notices) for name in ("cpus", "memory_mb", "storage_mb"))
        assert cpus is not None and memory is not None
        whole = None if disk is None else int(disk)
        return BoxSize(cpus, int(memory), whole, wanted.gpus, tuple(wanted.gpu_types), tuple(notices))

    def _amount(self, name: str, wanted: Resources, notices: list[str]) -> float | None:
        asked: float | None = getattr(wanted, name)
        if name not in self._sold:
            if asked is not None:
                said = f"{self._vendor}'s boxes have no limit of their own for it; it is not applied."
                notices.append(f"{name} = {asked:g}: {said}")
            return None
        quantity, default, most = self._sold[name]
        if asked is None:
            return default
        exact = asked / quantity.scale
        sold = max(quantity.least, math.ceil(exact / quantity.step) * quantity.step if quantity.step else exact)
        if sold > most:
            notices.append(
                f"{name} = {asked:g}: {self._vendor} gives one box at most {most} {quantity.unit}; it gets {most}. "
                f"Where your account has a higher limit, say so with --sandbox-option max_{quantity.option}=N."
            )
            return most
        if sold != exact:
            notices.append(f"{name} = {asked:g}: {self._vendor} sells {quantity.terms}; the box gets {sold:g}.")
        return sold
