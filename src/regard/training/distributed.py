"""One process or several: `torchrun --nproc-per-node 2 -m regard train ...`.

Every process makes the same plan of batches and takes its share of each, so the global batches are those of one
process. Gradients are summed by DistributedDataParallel. Process 0 writes, judges and talks.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore


@dataclass(frozen=True)
class Distribution:
    """This process among all."""

    rank: int = 0
    world: int = 1
    restarts: int = 0  # how often torchrun has had to start anew

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def share(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's examples of a batch; never none, since every process must take part in every step."""
        mine = numbers[self.rank :: self.world]
        return mine if len(mine) else numbers[:1]

    def counts(self, numbers: NDArray[np.int64]) -> bool:
        """Whether this process's share counts, or only keeps it in step."""
        return self.rank < len(numbers)

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module, its gradients summed over all processes after each backward pass."""
        if self.world == 1:
            return module
        return nn.parallel.DistributedDataParallel(module)

    def waiting(self, module: nn.Module, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Gradients are exchanged only after the last batch of a step."""
        if last or not isinstance(module, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return module.no_sync()

    def agree(self, values: dict[str, Any]) -> dict[str, Any]:
        """What process 0 says, in every process."""
        if self.world == 1:
            return values
        box = [values]
        torch.distributed.broadcast_object_list(box, src=0)
        return box[0]

    def total(self, *numbers: float) -> list[float]:
        """Sums over all processes."""
        if self.world == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(sums)
        return sums.tolist()


def _join(rank: int, world: int, restarts: int) -> None:
    """Meet the other processes. After a restart the meeting place still has the dead ones' addresses: a new prefix."""
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"  # by torchrun, which lives on
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, world, is_master=rank == 0 and not hosted)
    attempt = PrefixStore(f"regard/{restarts}", store)
    torch.distributed.init_process_group(backend, store=attempt, rank=rank, world_size=world)


def leads() -> bool:
    """Whether this process is the one that talks."""
    return os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def distribution() -> Iterator[Distribution]:
    """This process's place, from torchrun's environment; alone without it."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1 or "RANK" not in os.environ:
        yield Distribution()
        return
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    _join(int(os.environ["RANK"]), world, restarts)
    # Each process gets its share of the cores, unless somebody has already said otherwise.
    if "OMP_NUM_THREADS" not in os.environ or os.environ["OMP_NUM_THREADS"] == "1":
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", world))))
    try:
        yield Distribution(int(os.environ["RANK"]), world, restarts)
    finally:
        torch.distributed.destroy_process_group()
