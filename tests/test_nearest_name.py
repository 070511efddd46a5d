"""A hint for a mistyped name."""

from dcdc.nearest_name import nearest, unknown


def test_the_name_that_was_meant_is_asked_for_and_a_wild_one_is_not_guessed_at():
    known = ("resnet34", "resnet18", "small")
    assert nearest("resnet43", known) == "; did you mean 'resnet34'?"
    assert nearest("zzz", known) == ""
    assert nearest("small", ()) == ""


def test_an_unknown_name_is_a_sentence_before_the_list():
    known = ("digits", "cifar10")
    assert unknown("preset", "nope", known) == "unknown preset 'nope'. There are: digits, cifar10"
    assert unknown("preset", "digit", iter(known)) == (
        "unknown preset 'digit'; did you mean 'digits'? There are: digits, cifar10"
    )
