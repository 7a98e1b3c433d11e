"""`quick.dataclass` beside the standard library's: everything one can see of a class and its objects is the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, InitVar, field
from typing import Any, ClassVar

import pytest

from benchflow_core import quick

OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "order": True},
]


def record(decorator: Any, options: dict[str, bool]) -> Any:
    @decorator(**options)
    class Record:
        """A record."""

        name: str
        size: int = 3
        tags: dict[str, int] = field(default_factory=dict, compare=False)
        secret: str = field(default="s", repr=False, kw_only=True)
        made: list[int] = field(init=False, default_factory=list, hash=False)
        total: ClassVar[int] = 7

        def __post_init__(self) -> None:
            self.made.append(self.size)

    @decorator(**options)
    class More(Record):
        """With a field more, and a repr of its own."""

        more: float = 0.5

        def __repr__(self) -> str:
            return f"more {self.more}"

    return Record, More


def outcome(see: Any, cls: Any) -> Any:
    try:
        return see(cls)
    except (TypeError, AttributeError) as error:
        return type(error), str(error).replace("super(type, obj): ", "")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_looks_and_behaves_like_the_standard_one(options: dict[str, bool]) -> None:
    ours, theirs = record(quick.dataclass, options), record(dataclasses.dataclass, options)
    for mine, standard in zip(ours, theirs, strict=True):
        assert str(inspect.signature(mine)) == str(inspect.signature(standard))
        assert mine.__match_args__ == standard.__match_args__
        assert [f.name for f in dataclasses.fields(mine)] == [f.name for f in dataclasses.fields(standard)]
        assert (mine.__doc__, hasattr(mine, "__dict__")) == (standard.__doc__, hasattr(standard, "__dict__"))
        assert str(mine.__dataclass_params__) == str(standard.__dataclass_params__)
        for see in (
            lambda cls: cls(name="a"),
            lambda cls: cls("a"),
            lambda cls: cls(),
            lambda cls: cls(name="a", sizes=4),
            lambda cls: cls(name="a", size=4, secret="t").secret,
            lambda cls: cls(name="a", tags={"x": 1}) == cls(name="a"),
            lambda cls: cls(name="a") == cls(name="a", size=4),
            lambda cls: cls(name="a") == "a",
            lambda cls: isinstance(hash(cls(name="a")), int),
            lambda cls: hash(cls(name="a", tags={"x": 1})) == hash(cls(name="a")),
            lambda cls: dataclasses.asdict(dataclasses.replace(cls(name="a"), size=9)),
            lambda cls: copy.deepcopy(cls(name="a", tags={"x": 1})).tags,
            lambda cls: setattr(cls(name="a"), "size", 1),
            lambda cls: delattr(cls(name="a"), "size"),
            lambda cls: cls(name="a") < cls(name="b"),
            lambda cls: (cls(name="a").made, cls.total),
        ):
            assert str(outcome(see, mine)) == str(outcome(see, standard))


@quick.dataclass(frozen=True, slots=True)
class Sent:
    """At the top of a module, so that it can be pickled."""

    name: str
    sizes: tuple[int, ...] = ()


@quick.dataclass(frozen=True)
class Beneath(Sent):
    """A frozen class beneath a frozen one."""

    more: int = 1


def test_objects_travel_and_stay_frozen() -> None:
    with pytest.raises(FrozenInstanceError):  # here the standard library trips over its own class
        Sent("a").unknown = 1  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(Sent("a", (1, 2)))) == Sent("a", (1, 2))
    assert repr(Beneath("a")) == "Beneath(name='a', sizes=(), more=1)"
    with pytest.raises(FrozenInstanceError):
        Beneath("a").more = 2  # type: ignore[misc]

    @dataclasses.dataclass(frozen=True)
    class Third(Sent):
        """A third party's own, made by the standard library."""

        more: int = 2

    assert Third("a", more=3) == Third("a", more=3) != Third("a")


def test_a_class_may_ask_for_what_only_the_standard_one_gives() -> None:
    @quick.dataclass
    class Older:
        name: str
        title: InitVar[str | None] = None

        def __post_init__(self, title: str | None) -> None:
            self.name = title or self.name

    @quick.dataclass
    class Newer(Older):
        size: int = 1

    assert Newer("a", "b").name == "b"


def test_nothing_is_compiled_before_the_first_object() -> None:
    program = """
import builtins, dataclasses
from benchflow_core.quick import dataclass
compiled = []
run = builtins.exec
builtins.exec = lambda *a, **k: (compiled.append(a[0]), run(*a, **k))
@dataclass(frozen=True, slots=True)
class Record:
    "A record."
    name: str
    size: int = 3
assert not compiled, compiled
Record("a"), Record("b")
assert len(compiled) == 1, compiled
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
