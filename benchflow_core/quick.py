"""`dataclass` as in the standard library, made in a third of the time.

The standard one compiles six methods for every class when its module is imported, and that was two fifths of what a
command spent before it did anything. Here the methods that a class can share are closures, and `__init__`, which it
cannot share, is compiled when the first object is made: most classes that a command imports never see one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from dataclasses import dataclass as _standard

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, **others):
        """Type checkers see the standard library's, which makes what is asked for beyond this."""

        def decorate(cls: type) -> type:
            hints = [hint for one in cls.__mro__ for hint in getattr(one, "__annotations__", {}).values()]
            if others or any("InitVar" in str(hint) for hint in hints):
                return _standard(cls, frozen=frozen, slots=slots, kw_only=kw_only, **others)
            return _make(cls, frozen, slots, kw_only)

        return decorate if cls is None else decorate(cls)


__all__ = ["dataclass"]


def _make(cls: type, frozen: bool, slots: bool, kw_only: bool) -> Any:
    from dataclasses import dataclass, fields

    own = set(cls.__dict__)
    # The standard library refuses to put a class beneath a frozen one that is not frozen in its own eyes.
    beneath = frozen and any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__)
    made: Any = dataclass(cls, init=False, repr=False, eq=False, frozen=beneath, slots=slots, kw_only=kw_only)
    parameters = made.__dataclass_params__
    parameters.init, parameters.repr, parameters.eq, parameters.frozen = True, True, True, frozen
    every = fields(made)
    names = {field.name for field in every}
    compared = tuple(field.name for field in every if field.compare)
    hashed = tuple(field.name for field in every if (field.compare if field.hash is None else field.hash))
    shown = tuple(field.name for field in every if field.repr)

    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _values(self, compared) == _values(other, compared)

    def __hash__(self: Any) -> int:
        return hash(_values(self, hashed))

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is made or name in names:
            _refuse("assign to", name)
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            _refuse("delete", name)
        super(made, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, field.name) for field in every]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for field, value in zip(every, state, strict=True):
            object.__setattr__(self, field.name, value)

    methods: list[Any] = [__repr__, __eq__]
    if frozen:
        methods += [__hash__, __setattr__, __delattr__]
        methods += [__getstate__, __setstate__] if slots else []
    elif "__hash__" not in own or cls.__dict__["__hash__"] is None:
        made.__hash__ = None
    for method in methods:
        if method.__name__ not in own:
            method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
            setattr(made, method.__name__, method)
    if "__init__" not in own:
        made.__init__ = _Unwritten(made, frozen)
    return made


def _values(instance: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple([getattr(instance, name) for name in names])


def _refuse(what: str, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {what} field {name!r}")


class _Factory:
    """The default of an argument whose value a factory makes, as signatures show it."""

    def __repr__(self) -> str:
        return "<factory>"


class _Unwritten:
    """Stands where `__init__` will be, and puts it there when it is looked at."""

    def __init__(self, cls: Any, frozen: bool) -> None:
        self._cls = cls
        self._frozen = frozen

    def __get__(self, instance: Any, owner: type) -> Any:
        written = _written(self._cls, self._frozen)
        self._cls.__init__ = written
        return written.__get__(instance, owner)


def _written(cls: Any, frozen: bool) -> Any:
    """`__init__` of a dataclass, compiled from its fields."""
    from dataclasses import MISSING, fields

    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _Factory()}
    plain = ["self"]
    by_name: list[str] = []
    body: list[str] = []
    for number, field in enumerate(fields(cls)):
        name, default, factory = field.name, f"_default{number}", f"_factory{number}"
        known |= {default: field.default, factory: field.default_factory}
        value = name
        if field.default_factory is not MISSING:
            value = f"{factory}() if {name} is _unset else {name}" if field.init else f"{factory}()"
            default = "_unset"
        elif not field.init:
            if field.default is MISSING:
                continue
            value = default
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if field.init:
            optional = field.default is not MISSING or field.default_factory is not MISSING
            (by_name if field.kw_only else plain).append(f"{name}={default}" if optional else name)
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join([*plain, "*", *by_name] if by_name else plain)
    exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), known)
    written = known["__init__"]
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    written.__module__ = cls.__module__
    written.__annotations__ = {**{field.name: field.type for field in fields(cls) if field.init}, "return": None}
    return written
