"""What the processes of one run do together; where there is only one, nothing."""

import jax
import numpy as np
from jax.experimental import multihost_utils


def is_first() -> bool:
    """Whether this process writes what all share: the only one, or process 0."""
    return jax.process_index() == 0


def wait_for_all(what: str) -> None:
    """Returns when every process of the run has come to this point, named `what`."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)


def largest_of_all(number: int) -> int:
    """The largest `number`, an int32, that a process gives; all must ask."""
    if jax.process_count() == 1:
        return number
    return int(np.max(multihost_utils.process_allgather(np.int32(number))))
