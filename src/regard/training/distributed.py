"""One process or several: `torchrun --nproc-per-node 2 -m regard train ...`.

Every process makes the same plan of batches and takes its shard of each, so the global batches are those of one
process. Gradients are summed by DistributedDataParallel. Process 0 writes files, validates and prints.
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
class DistributedContext:
    """The rank of this process among all processes, and their collective operations."""

    rank: int = 0
    world_size: int = 1
    restarts: int = 0  # how often torchrun has restarted the processes

    @property
    def is_main_process(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def shard(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's examples of a batch; never empty, since every process must take part in every step."""
        mine = numbers[self.rank :: self.world_size]
        return mine if len(mine) else numbers[:1]

    def has_own_examples(self, numbers: NDArray[np.int64]) -> bool:
        """Whether this process's shard contributes to the loss, or only fills in for an empty one."""
        return self.rank < len(numbers)

    def wrap_ddp(self, module: nn.Module) -> nn.Module:
        """The module, its gradients summed over all processes after each backward pass."""
        if self.world_size == 1:
            return module
        return nn.parallel.DistributedDataParallel(module)

    def gradient_sync(self, module: nn.Module, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Within this context gradients are synchronized only for the last batch of a step."""
        if last or not isinstance(module, nn.parallel.DistributedDataParallel):
            return contextlib.nullcontext()
        return module.no_sync()

    def broadcast(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of process 0, in every process."""
        if self.world_size == 1:
            return values
        objects = [values]
        torch.distributed.broadcast_object_list(objects, src=0)
        return objects[0]

    def all_reduce_sum(self, *numbers: float) -> list[float]:
        """The sum of each number over all processes."""
        if self.world_size == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(sums)
        return sums.tolist()


def _init_process_group(rank: int, world_size: int, restarts: int) -> None:
    """Join the process group. After a restart the store still has the addresses of dead processes: use a new prefix."""
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true"  # by torchrun, not by rank 0
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, world_size, is_master=rank == 0 and not hosted)
    attempt = PrefixStore(f"regard/{restarts}", store)
    torch.distributed.init_process_group(backend, store=attempt, rank=rank, world_size=world_size)


def is_main_process() -> bool:
    """Whether this process has rank 0, before the process group exists."""
    return os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def distributed_context() -> Iterator[DistributedContext]:
    """The context of this process from torchrun's environment; a single process without it."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1 or "RANK" not in os.environ:
        yield DistributedContext()
        return
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    _init_process_group(int(os.environ["RANK"]), world_size, restarts)
    # Each process gets its share of the cores, unless the number of threads is set already.
    if "OMP_NUM_THREADS" not in os.environ or os.environ["OMP_NUM_THREADS"] == "1":
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", world_size))))
    try:
        yield DistributedContext(int(os.environ["RANK"]), world_size, restarts)
    finally:
        torch.distributed.destroy_process_group()
