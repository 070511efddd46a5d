"""What a person watches while a run trains."""

import pytest

from dcdc.cli.progress import ProgressObserver


@pytest.mark.parametrize(
    ("phases", "told"),
    [
        ((), ["epoch 1/6", "epoch 4/6", "epoch 5/6", "epoch 6/6"]),
        ((("heads", 6),), ["epoch 1/6", "epoch 4/6", "epoch 5/6", "epoch 6/6"]),
        (
            (("contrast", 4), ("heads", 2)),
            ["contrast epoch 1/4", "contrast epoch 4/4", "heads epoch 1/2", "heads epoch 2/2"],
        ),
    ],
)
def test_epochs_are_counted_in_their_phase_as_they_were_asked_for(phases, told):
    observer = ProgressObserver(None, quiet=True)
    observer.phases = phases
    observer.on_start(epoch=0, epochs=6, steps_left=60)
    assert [observer.place(epoch) for epoch in (1, 4, 5, 6)] == told


def test_fit_says_how_far_each_phase_is(dcdc, tiny_file, tiny_flags):
    _, _, err = dcdc(
        *("fit", tiny_file, *tiny_flags, "--no-report", "--epochs", "2"),
        *("--set", "phases=contrast,heads", "--set", "contrast.epochs=1"),
        *("--set", "contrast.batch_size=16"),
    )
    lines = [line.partition(" loss")[0] for line in err.splitlines() if " loss " in line]
    assert lines == ["contrast epoch 1/1", "heads epoch 1/2", "heads epoch 2/2"]
