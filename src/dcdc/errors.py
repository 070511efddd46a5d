"""Errors that a person can correct, in parts: entry points show them in one line of their words."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import Any

from dcdc.printable import counted

_NO_VALUE: Any = object()
_LONGEST_VALUE = 100


@dataclass(frozen=True)
class Words:
    """How an entry point calls a parameter, alone and with a value; None: it has no such one."""

    name: Callable[[str], str | None]
    given: Callable[[str, Any], str | None]


PLAIN = Words(name=lambda key: key, given=lambda key, value: f"{key} = {value!r}")


class InputError(ValueError):
    """Wrong use or bad input. Exit code 2.

    `problem` says what is wrong and where; `parameter` and `value` are what caused it, where it was
    one parameter. `remedy` is how to fix it, one way or several, with parameters in braces: "lower
    {n_clusters}", "use {on_bad=skip}". A way that an entry point does not have is left out there.
    """

    def __init__(
        self,
        problem: str,
        *,
        parameter: str | None = None,
        value: Any = _NO_VALUE,
        remedy: str | Sequence[str] = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.parameter = parameter
        self.remedy = (remedy,) if isinstance(remedy, str) else tuple(remedy)
        self._value = value

    @property
    def value(self) -> Any:
        return None if self._value is _NO_VALUE else self._value

    def __str__(self) -> str:
        return self.told(PLAIN)

    def told(self, words: Words) -> str:
        """One line, with the parameters as `words` calls them."""
        text = self.problem
        if self.parameter is not None and self._value is not _NO_VALUE:
            value = _shortened(self._value)
            text = (
                f"{words.given(self.parameter, value) or PLAIN.given(self.parameter, value)} {text}"
            )
        ways = [way for way in (fill(each, words) for each in self.remedy) if way is not None]
        return f"{text}: {_one_of(ways)}" if ways else text

    def within(self, section: str) -> "InputError":
        """The same, where the caller knows settings of the engine as those of `section`."""
        parts = self.parts()
        if _is_setting(self.parameter or ""):
            parts["parameter"] = f"{section}.{self.parameter}"
        parts["remedy"] = [_within(section, way) for way in self.remedy]
        return type(self)(**parts)

    def parts(self) -> dict[str, Any]:
        """What it is made of again."""
        given = {} if self._value is _NO_VALUE else {"value": self._value}
        return {
            "problem": self.problem,
            "parameter": self.parameter,
            "remedy": self.remedy,
            **given,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors are sent between processes."""
        return _rebuilt, (type(self), self.parts())


def no_meaning(parameter: str, value: Any, where: str) -> InputError:
    """Of what was asked for and is for something else."""
    return InputError(f"has no meaning for {where}", parameter=parameter, value=value)


def _shortened(value: Any) -> Any:
    """Of a text of thousands of letters its beginning is enough to know it by."""
    is_long = isinstance(value, str) and len(value) > _LONGEST_VALUE
    return f"{value[:_LONGEST_VALUE]}..." if is_long else value


def _rebuilt(kind: type[InputError], parts: dict[str, Any]) -> InputError:
    return kind(**parts)


def _is_setting(key: str) -> bool:
    return "." in key or key == "phases"


def _within(section: str, template: str) -> str:
    def prefixed(field: re.Match[str]) -> str:
        is_setting = _is_setting(field[1].partition("=")[0])
        return f"{{{section}.{field[1]}}}" if is_setting else field[0]

    return re.sub(r"(?<!\{)\{([^{}]+)\}", prefixed, template)


def _one_of(ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"


def fill(template: str, words: Words) -> str | None:
    """`template` with each parameter in braces as `words` calls it; None where it has none."""
    text = ""
    for literal, field, _, _ in Formatter().parse(template):
        text += literal
        if field is None:
            continue
        key, equals, value = field.partition("=")
        given = int(value) if value.isdecimal() else value
        word = words.given(key, given) if equals else words.name(key)
        if word is None:
            return None
        text += word
    return text


class Interrupted(Exception):  # noqa: N818 - nothing went wrong
    """A signal asked training to stop; its state is saved."""

    def __init__(self, signal: str, epoch: int, during: str | None = None) -> None:
        """`during`: what came before the first epoch, in words."""
        when = f"while {during}" if during else f"after {counted(epoch, 'epoch')}"
        super().__init__(f"stopped by {signal} {when}")
        self.signal = signal


class TrainingError(RuntimeError):
    """Training cannot go on (a loss that is not finite, say); what was saved stays. Exit code 1.

    `remedy` as that of InputError.
    """

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return self.told(PLAIN)

    def told(self, words: Words) -> str:
        way = fill(self.remedy, words) if self.remedy else None
        return self.problem if way is None else f"{self.problem}; {way}"

    def within(self, section: str) -> "TrainingError":
        """As that of InputError."""
        return type(self)(self.problem, remedy=_within(section, self.remedy))

    def parts(self) -> dict[str, Any]:
        return {"problem": self.problem, "remedy": self.remedy}


class PeerLostError(RuntimeError):
    """Another process of the same training is gone; what was saved stays. Exit code 1."""


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line; its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


_ALLOCATORS = (
    *("out of memory", "DefaultCPUAllocator", "not enough memory", "std::bad_alloc"),
    *("ALLOC_FAILED", "Storage size calculation overflowed", "multiplication overflow"),
)
"""What torch says on a CPU and on a GPU, where memory is asked for that is not there."""


def out_of_means(error: BaseException) -> InputError | None:
    """Of memory, or of depth; None for a fault of another kind."""
    if isinstance(error, RecursionError):
        return InputError("something that was read is nested too deep: give a flatter file")
    said = " ".join(str(error).split())
    is_allocator = isinstance(error, RuntimeError) and any(each in said for each in _ALLOCATORS)
    if not isinstance(error, MemoryError) and not is_allocator:
        return None
    wanted = re.search(r"allocate ([\d.,]+ ?(?:[KMGTP]i?B|bytes))", said)
    how_much = f" ({wanted[1]} more were asked for)" if wanted else ""
    where = "the GPU's memory" if "CUDA" in said or "CUBLAS" in said else "memory"
    return InputError(
        f"{where} does not suffice{how_much}; what was written before stays",
        remedy="lower {heads.batch_size}, {data.size} or {n_clusters}, or what was raised",
    )


@contextmanager
def in_words(words: Words) -> Iterator[None]:
    """Faults name parameters as this entry point has them."""
    try:
        yield
    except (InputError, TrainingError) as error:
        raise type(error)(error.told(words)) from None
