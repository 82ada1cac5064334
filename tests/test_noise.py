import torch

from polytta.roles.noise import Noise, keys

KEYS = keys([(0, 0), (0, 1), (7, 0)], 2, torch.device("cpu"))


def draw(view: int, step: int, count: int) -> torch.Tensor:
    return Noise(KEYS[view], torch.tensor(step)).uniform(count)


def test_numbers_are_uniform_and_unrelated() -> None:
    sources = torch.cat([draw(0, 0, 50_000), draw(1, 0, 50_000), draw(0, 1, 50_000)])
    assert bool(((sources >= 0) & (sources < 1)).all())
    shares = torch.stack([torch.histc(row, 20, 0, 1) / row.numel() for row in sources])
    assert float((shares - 0.05).abs().max()) < 0.006
    off_diagonal = torch.corrcoef(sources) - torch.eye(len(sources))
    assert float(off_diagonal.abs().max()) < 0.02
    neighbours = torch.corrcoef(torch.stack([sources[0][:-1], sources[0][1:]]))[0, 1]
    assert abs(float(neighbours)) < 0.02


def test_each_call_goes_on_and_a_new_object_starts_over() -> None:
    noise = Noise(KEYS[0], torch.tensor(3))
    both = torch.cat([noise.uniform(4), noise.uniform(6)], dim=1)
    assert torch.equal(both, draw(0, 3, 10))


def test_a_key_depends_on_its_own_particle_alone() -> None:
    alone = keys([(7, 0)], 2, torch.device("cpu"))
    assert torch.equal(Noise(alone[1], torch.tensor(5)).uniform(8)[0], draw(1, 5, 8)[2])
