from dcdc.counted import counted
from dcdc.errors import Interrupted


def test_one_is_singular_and_thousands_have_their_comma():
    assert [counted(n, "image") for n in (0, 1, 2, 1200)] == [
        *("0 images", "1 image", "2 images", "1,200 images")
    ]
    assert counted(1, "class", "classes") == "1 class"
    assert counted(3, "class", "classes") == "3 classes"


def test_whoever_stops_after_one_epoch_is_told_so():
    assert str(Interrupted("SIGINT", 1)) == "stopped by SIGINT after 1 epoch"
