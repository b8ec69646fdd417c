"""Muon in single precision.

PyTorch's own computes in bfloat16, which a CPU without that type emulates: for the tiny policy more than three times
slower, and a third of a training step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch  # noqa: TID253 - itself imported only where something is trained

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_TINY = 1e-7


class Muon(torch.optim.Optimizer):
    """Momentum whose every update is made orthogonal, for matrices only.

    Source: Jordan et al., Muon (2024); the same update as `torch.optim.Muon` with its defaults and no weight decay.

    Raises:
        ValueError: a parameter that is no matrix.
    """

    def __init__(self, params: Iterable[torch.nn.Parameter], *, lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})
        for group in self.param_groups:
            if any(parameter.ndim != 2 for parameter in group["params"]):
                raise ValueError("Muon trains matrices; leave other parameters to another optimizer")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update of every parameter with a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
                update = orthogonal(parameter.grad.lerp(state["momentum"], group["momentum"]))
                rows, columns = parameter.shape
                parameter.add_(update, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)
        return loss


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Roughly U V^T of the singular value decomposition of `matrix`: its singular values come between 0.5 and 1.5.

    By Newton-Schulz iteration with the quintic of the source, on the shorter side.
    """
    a, b, c = _COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.T if tall else matrix
    found = found / found.norm().clamp(min=_TINY)
    for _ in range(_ITERATIONS):
        gram = found @ found.T
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if tall else found
