"""What every other part stands on: pytree dataclasses, bit sets, packing, and what XLA needs to be fast."""
