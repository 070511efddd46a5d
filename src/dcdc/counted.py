"""A number with its noun, as people say it."""


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 image`, `1,200 images`; `several` where an s is not enough."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"
