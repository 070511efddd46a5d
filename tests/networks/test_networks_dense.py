import torch

from dcdc.networks.dense import Dense


def test_it_is_a_linear_layer():
    torch.manual_seed(0)
    dense = Dense(1024, 256)
    plain = torch.nn.Linear(1024, 256)
    plain.load_state_dict(dense.state_dict())
    x = torch.randn(3, 1024)
    for mode in (True, False):
        dense.train(mode)
        torch.testing.assert_close(dense(x), plain(x))


def test_in_evaluation_a_row_has_one_answer():
    torch.manual_seed(0)
    dense, x = Dense(1024, 256).eval(), torch.randn(40, 1024)
    together = dense(x)
    for n in (1, 2, 7, 15, 16, 17):
        assert torch.equal(dense(x[:n]), together[:n])


def test_no_row_is_no_row():
    assert Dense(4, 2).eval()(torch.empty(0, 4)).shape == (0, 2)
