"""Configurations as JSON, and back."""

import dataclasses
import json
from typing import Any

from azjax.core.errors import InputError
from azjax.core.field_types import check_field_types
from azjax.core.source import loaded_class, source_name
from azjax.networks import Network
from azjax.networks.network import OF_GAME
from azjax.training.config import Config
from azjax.training.hyper import Hyper


def config_to_json(config: Config) -> dict[str, Any]:
    """The fields of a configuration, of types that JSON has.

    A network that is an object is saved as its class and its fields, so a frozen dataclass can be made again. What
    belongs to its game is not saved.
    """
    network = config.network if isinstance(config.network, str) else _network_to_json(config.network)
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    fields |= {"network": network, "hyper": dataclasses.asdict(config.hyper)}
    as_saved: dict[str, Any] = json.loads(json.dumps(fields))
    return as_saved


def config_from_json(saved: dict[str, Any]) -> Config:
    """The inverse of `config_to_json`; fields that were added later have their defaults.

    Raises:
      InputError: a value of another type or out of range, or a network whose class is not loaded.
      TypeError: an unknown field.
    """
    fields: dict[str, Any] = {name: _as_tuples(value) for name, value in saved.items()}
    if not isinstance(fields.get("network", ""), str):
        fields["network"] = _network_from_json(fields["network"])
    # Before they are made, since their constructors may be checked by other means.
    check_field_types(Config, fields)
    check_field_types(Hyper, fields["hyper"])
    return Config(**{**fields, "hyper": Hyper(**fields["hyper"])})


def _network_to_json(network: Network) -> dict[str, Any]:
    kind = type(network)
    fields = None
    if dataclasses.is_dataclass(network):
        kept = [field for field in dataclasses.fields(network) if field.init and field.metadata != OF_GAME]
        fields = {field.name: getattr(network, field.name) for field in kept}
        try:
            json.dumps(fields)
        except TypeError:
            fields = None
    return {"source": source_name(network), "class": kind.__qualname__, "fields": fields}


def _network_from_json(saved: Any) -> Network:
    wanted = {"source": str, "class": str, "fields": dict | None}
    if not isinstance(saved, dict) or any(not isinstance(saved.get(key, ""), kind) for key, kind in wanted.items()):
        raise InputError(f"network must be a name, or have a source, a class and fields, got {saved!r}")
    if missing := wanted.keys() - saved.keys():
        raise InputError(f"network: {', '.join(sorted(missing))} missing")
    name, source = saved["class"], saved["source"]
    if saved["fields"] is None:
        raise InputError(
            f"the network {name} of {source} cannot be made again from a file; only a frozen dataclass of numbers and "
            "texts can, or a network with a name (`azjax.networks.register`)"
        )
    made = loaded_class(source, name)
    # A file that a stranger made may name any class or function of a module that is loaded: none but networks are made.
    if not (isinstance(made, type) and dataclasses.is_dataclass(made) and issubclass(made, Network)):
        raise InputError(f"{source} has no network {name}")
    network: Network = made(**{key: _as_tuples(value) for key, value in saved["fields"].items()})
    return network


def _as_tuples(value: Any) -> Any:
    """The value with tuples in place of all lists, as fields have them."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
