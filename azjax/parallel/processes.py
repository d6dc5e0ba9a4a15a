"""Operations that the processes of one run do together. With a single process they do nothing."""

import jax
import numpy as np
from jax.experimental import multihost_utils


def is_first() -> bool:
    """Whether this process is process 0, which writes the shared files."""
    return jax.process_index() == 0


def wait_for_all(point: str) -> None:
    """Returns when every process has reached this point of the program; `point` names it."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(point)


def largest_of_all(number: int) -> int:
    """The largest `number`, an int32, among the processes. Every process must call it."""
    if jax.process_count() == 1:
        return number
    return int(np.max(multihost_utils.process_allgather(np.int32(number))))
