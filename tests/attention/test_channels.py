"""Attention in images, against values computed by hand."""

import math

import pytest
import torch

from regard.attention import CBAM, ECA, ChannelAttention, SpatialAttention, SqueezeExcitation


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# Two channels of 2 x 2: means 1 and 3, maxima 4 and 3.
IMAGE = torch.tensor([[[[0.0, 0.0], [0.0, 4.0]], [[3.0, 3.0], [3.0, 3.0]]]])


@torch.no_grad()
def test_squeeze_and_excitation_equals_a_hand_calculation() -> None:
    se = SqueezeExcitation(2, reduction=2)
    se.down.weight.copy_(torch.tensor([[1.0, -0.5]]))  # 1 - 1.5 + 1 = 0.5
    se.down.bias.fill_(1.0)
    se.up.weight.copy_(torch.tensor([[2.0], [-4.0]]))
    se.up.bias.copy_(torch.tensor([0.0, 1.0]))
    gates = [sigmoid(1.0), sigmoid(-1.0)]
    assert se.weights(IMAGE)[0].tolist() == pytest.approx(gates)
    assert se(IMAGE)[0, 0, 1, 1].item() == pytest.approx(4 * gates[0])
    assert se(IMAGE)[0, 1].flatten().tolist() == pytest.approx([3 * gates[1]] * 4)


@torch.no_grad()
def test_cbam_equals_a_hand_calculation() -> None:
    cbam = CBAM(2, reduction=2, size=3)
    cbam.channel.down.weight.copy_(torch.tensor([[1.0, -1.0]]))  # mean: relu(-2) = 0, max: relu(1) = 1
    cbam.channel.up.weight.copy_(torch.tensor([[1.0], [2.0]]))
    channel = [sigmoid(1.0), sigmoid(2.0)]
    assert cbam.channel.weights(IMAGE)[0].tolist() == pytest.approx(channel)
    x = IMAGE * torch.tensor(channel)[None, :, None, None]
    # A filter that adds the mean map at the middle and the max map one position to the right.
    kernel = torch.zeros(1, 2, 3, 3)
    kernel[0, 0, 1, 1] = 1.0
    kernel[0, 1, 1, 2] = 0.5
    cbam.spatial.conv.weight.copy_(kernel)
    mean, largest = x.mean(1)[0], x.amax(1)[0]
    positions = [
        [sigmoid(mean[0, 0].item() + 0.5 * largest[0, 1].item()), sigmoid(mean[0, 1].item())],
        [sigmoid(mean[1, 0].item() + 0.5 * largest[1, 1].item()), sigmoid(mean[1, 1].item())],
    ]
    torch.testing.assert_close(cbam.spatial.weights(x)[0], torch.tensor(positions))
    torch.testing.assert_close(cbam(IMAGE), x * torch.tensor(positions))


@torch.no_grad()
def test_eca_equals_a_hand_calculation() -> None:
    eca = ECA(2, size=3)
    eca.conv.weight.copy_(torch.tensor([[[1.0, 0.5, -1.0]]]))  # left neighbor, itself, right neighbor
    gates = [sigmoid(0.5 * 1 - 3), sigmoid(1 + 0.5 * 3)]
    assert eca.weights(IMAGE)[0].tolist() == pytest.approx(gates)
    assert eca(IMAGE)[0, 1, 0, 0].item() == pytest.approx(3 * gates[1])


def test_eca_default_filter_size_follows_the_paper() -> None:
    sizes = {channels: ECA(channels).conv.kernel_size[0] for channels in (8, 64, 128, 256, 512)}
    assert sizes == {8: 3, 64: 3, 128: 5, 256: 5, 512: 5}


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 4), (2, 32, 7, 1)])
def test_shapes_and_gradients(shape: tuple[int, ...]) -> None:
    for module in (
        SqueezeExcitation(shape[1]),
        CBAM(shape[1]),
        ECA(shape[1]),
        ChannelAttention(shape[1]),
        SpatialAttention(),
    ):
        x = torch.randn(shape, requires_grad=True)
        y = module(x)
        assert y.shape == x.shape
        y.sum().backward()
        assert x.grad is not None
        assert all(p.grad is not None for p in module.parameters())


def test_gradcheck() -> None:
    x = torch.randn(1, 4, 3, 3, dtype=torch.float64, requires_grad=True)
    for module in (SqueezeExcitation(4, reduction=2), CBAM(4, reduction=2, size=3), ECA(4)):
        assert torch.autograd.gradcheck(module.double(), (x,))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: SqueezeExcitation(0), "channels: 0"),
        (lambda: SqueezeExcitation(8, reduction=0), "reduction: 0"),
        (lambda: CBAM(8, size=4), "size: 4"),
        (lambda: ECA(8, size=2), "size: 2"),
        (lambda: ECA(8)(torch.zeros(1, 3, 4, 4)), "x: 3 channels"),
        (lambda: CBAM(8)(torch.zeros(8, 4, 4)), "x: expected an image batch"),
    ],
)
def test_invalid_input_raises_one_sentence(build, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build()
