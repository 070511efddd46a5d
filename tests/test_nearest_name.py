"""A hint for a mistyped name."""

from dcdc.nearest_name import nearest


def test_the_name_that_was_meant_is_asked_for_and_a_wild_one_is_not_guessed_at():
    known = ("resnet34", "resnet18", "small")
    assert nearest("resnet43", known) == "; did you mean 'resnet34'?"
    assert nearest("zzz", known) == ""
    assert nearest("small", ()) == ""
