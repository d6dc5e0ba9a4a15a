"""Exported networks compute what azjax computes, in other programs."""

import dataclasses
import hashlib
import json
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import export as jax_export

from azjax.core import files
from azjax.core.errors import FileError, InputError
from azjax.export import export_agent
from azjax.export.onnx_graph import to_onnx
from azjax.export.onnx_primitives import PRIMITIVES
from azjax.export.positions import open_batch
from azjax.games.game import random_legal_action
from azjax.games.protocols import next_game
from azjax.games.registry import make
from azjax.networks import NetworkOutput, NnxNetwork, make_network
from azjax.packaged import Agent, load_agent
from azjax.search import SearchHyper

SMALL = {"width": 8, "depth": 2}


def positions(game, count):
    """Observations of random play, the first of them of the start."""
    games = 8

    def play(states, key):
        keys = jax.random.split(key, games)
        actions = jax.vmap(lambda state, key: random_legal_action(game, key, state))(states, keys)
        following = jax.vmap(lambda key, state: next_game(game, key, state))(keys, jax.vmap(game.step)(states, actions))
        return following, jax.vmap(game.observe)(states)

    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))
    keys = jax.random.split(jax.random.key(1), -(-count // games))
    _, observations = jax.jit(lambda states: jax.lax.scan(play, states, keys))(states)
    return np.asarray(observations).reshape(-1, *game.observation_shape)[:count]


def agent_of(network, game):
    """An agent with batch statistics that are not those of a fresh network."""
    variables = network.init(jax.random.key(2), game)
    moved = jax.tree.map(lambda leaf: leaf + 0.1 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), variables)
    return Agent(game, network, moved, SearchHyper())


def outputs(agent, observations):
    output, _ = jax.jit(lambda given: agent.network.apply(agent.variables, given, train=False))(observations)
    return {"prior_logits": output.prior_logits, "value": output.value, **output.auxiliary}


def in_onnxruntime(path, observations):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"observations": observations}), strict=True))


@dataclasses.dataclass(frozen=True)
class Aside:
    """A network from outside: two pure functions, pooling, attention, normalization and auxiliary outputs."""

    def init(self, key, game):
        keys, (rows, columns, planes) = jax.random.split(key, 4), game.observation_shape
        shapes = {"conv": (3, 3, planes, 6), "query": (6, 6), "moves": (6, game.num_actions), "more": (6, 3)}
        del rows, columns
        params = {
            name: jax.random.normal(key, shape) / 3 for key, (name, shape) in zip(keys, shapes.items(), strict=True)
        }
        return {"params": params}

    def apply(self, variables, observations, train):
        params, size = variables["params"], len(observations)
        planes = jax.lax.conv_general_dilated(
            observations, params["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        planes = jax.nn.gelu(planes) + nnx.avg_pool(planes, (3, 3), (1, 1), "SAME")
        planes = nnx.max_pool(planes, (2, 2), (1, 1), "VALID")
        squares = planes.reshape(size, -1, planes.shape[-1])
        weights = jax.nn.softmax(jnp.einsum("bif,fg,bjg->bij", squares, params["query"], squares) / 6)
        mixed = (weights @ squares)[:, ::-1].mean(axis=1)
        centered = mixed - mixed.mean(axis=-1, keepdims=True)
        normed = centered * jax.lax.rsqrt(jnp.square(centered).mean(axis=-1, keepdims=True) + 1e-5)
        more = jnp.pad(normed, ((0, 0), (0, 1)))[:, :-1] @ params["more"]
        best = jnp.argmax(more, axis=-1)
        value = jnp.clip(jnp.tanh(more[:, 0]), -1, 1)
        return NetworkOutput(
            normed @ params["moves"], value, {"more": jax.nn.log_softmax(more), "best": best}
        ), variables


@dataclasses.dataclass(frozen=True)
class DrawMlp(NnxNetwork):
    """The network of the documentation, which needs `len(observations)`."""

    def module(self, rngs):
        return DrawMlpModule(self, rngs)


class DrawMlpModule(nnx.Module):
    def __init__(self, config, rngs):
        self.hidden = nnx.List([nnx.Linear(math.prod(config.observation_shape), 8, rngs=rngs)])
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.moves, self.result = nnx.Linear(8, config.num_actions, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, observations, train):
        features = observations.reshape(len(observations), -1)
        for layer in self.hidden:
            features = nnx.silu(self.norm(layer(features)))
        value, draw = self.result(features).T
        return NetworkOutput(self.moves(features), jnp.tanh(value), {"draw": draw})


def exported_networks():
    tictactoe, four, brandub = make("tictactoe"), make("connect_four"), make("brandub")
    santorini = make("santorini", size=5, workers=2)
    return {
        "mlp": lambda: agent_of(make_network("mlp", tictactoe, **SMALL), tictactoe),
        "se_resnet": lambda: agent_of(make_network("se_resnet", four, **SMALL), four),
        "resnet": lambda: agent_of(make_network("resnet", brandub, **SMALL), brandub),
        "board": lambda: agent_of(make_network("board", four, width=8, depth=3), four),
        "board with pieces": lambda: agent_of(make_network("board", santorini, width=8, depth=1), santorini),
        "equivariant_mlp": lambda: agent_of(make_network("equivariant_mlp", brandub, width=16, depth=1), brandub),
        "equivariant_mlp with pieces": lambda: agent_of(
            make_network("equivariant_mlp", santorini, width=16, depth=1, activation="squared_relu"), santorini
        ),
        "aside": lambda: agent_of(Aside(), four),
        "draw_mlp": lambda: agent_of(DrawMlp().for_game(tictactoe), tictactoe),
        "connect_four": lambda: load_agent("connect_four"),
    }


def check_against_azjax(name, count, folder):
    pytest.importorskip("onnx")
    agent = exported_networks()[name]()
    observations = positions(agent.game, count)
    assert len(np.unique(observations, axis=0)) > count / 4
    expected = outputs(agent, observations)
    export_agent(agent, "onnx", folder / "agent.onnx")
    found = in_onnxruntime(folder / "agent.onnx", observations)
    assert found.keys() == expected.keys()
    for output, array in expected.items():
        assert found[output].dtype == array.dtype
        np.testing.assert_allclose(found[output], array, atol=1e-5, rtol=1e-5)
    for output, array in in_onnxruntime(folder / "agent.onnx", observations[:1]).items():
        np.testing.assert_allclose(array, expected[output][:1], atol=1e-5, rtol=1e-5)


@pytest.mark.slow_except("board with pieces", "draw_mlp")
@pytest.mark.parametrize("name", exported_networks())
def test_onnxruntime_computes_what_azjax_does(name, tmp_path):
    check_against_azjax(name, 32, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", exported_networks())
def test_onnxruntime_computes_what_azjax_does_on_1_000_positions(name, tmp_path):
    check_against_azjax(name, 1000, tmp_path)


@pytest.mark.slow_except("mlp", "draw_mlp")
@pytest.mark.parametrize("name", ["mlp", "se_resnet", "draw_mlp"])
def test_safetensors_hold_the_same_bits(name, tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    agent = exported_networks()[name]()
    export_agent(agent, "safetensors", tmp_path / "agent.safetensors")
    arrays = numpy.load_file(tmp_path / "agent.safetensors")
    leaves = jax.tree_util.tree_leaves_with_path(agent.variables)
    assert len(arrays) == len(leaves)
    for path, leaf in leaves:
        array = arrays[jax.tree_util.keystr(path, simple=True, separator="/")]
        assert (array.dtype, array.shape, array.tobytes()) == (leaf.dtype, leaf.shape, np.asarray(leaf).tobytes())


@pytest.mark.parametrize("name", ["mlp", "se_resnet", "draw_mlp"])
def test_stablehlo_read_again_gives_the_same_results_for_any_batch(name, tmp_path):
    pytest.importorskip("flatbuffers")
    agent = exported_networks()[name]()
    export_agent(agent, "stablehlo", tmp_path / "agent.stablehlo")
    read = jax_export.deserialize(bytearray((tmp_path / "agent.stablehlo").read_bytes()))
    assert read.platforms == ("cpu", "cuda", "tpu")
    observations = positions(agent.game, 32)
    for given in (observations, observations[:5]):
        found = read.call(given)
        for output, array in outputs(agent, given).items():
            np.testing.assert_allclose(found[output], array, atol=1e-6)


def test_a_network_of_bfloat16_is_exported_in_float32(tmp_path):
    """The rounding to bfloat16 is the only difference: the same variables in float32 give the exported numbers."""
    pytest.importorskip("onnx")
    game = make("connect_four")
    agent = agent_of(make_network("mlp", game, precision="bfloat16", **SMALL), game)
    beside = export_agent(agent, "onnx", tmp_path / "agent.onnx")
    observations = positions(game, 32)
    found = in_onnxruntime(tmp_path / "agent.onnx", observations)["prior_logits"]
    in_float32 = dataclasses.replace(agent, network=make_network("mlp", game, **SMALL))
    np.testing.assert_allclose(found, outputs(in_float32, observations)["prior_logits"], atol=1e-5)
    assert np.abs(found - outputs(agent, observations)["prior_logits"]).max() > 1e-4
    told = json.loads(beside.read_text())
    assert (told["computes_in"], told["azjax_computes_in"]) == ("float32", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Halves(Aside):
    """A network from outside that takes rows of its parameters, without a field `precision`, in bfloat16."""

    def apply(self, variables, observations, train):
        output, _ = Aside.apply(self, variables, observations, train)
        rows = variables["params"]["more"][output.auxiliary["best"]].astype(jnp.bfloat16)
        return dataclasses.replace(output, auxiliary={"rows": rows}), variables


def test_a_network_that_indexes_its_parameters_is_exported_with_float32_outputs(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("flatbuffers")
    game = make("connect_four")
    agent = agent_of(Halves(), game)
    observations = positions(game, 16)
    wanted = outputs(agent, observations)["rows"]
    for format in ("onnx", "stablehlo"):
        told = json.loads(export_agent(agent, format, tmp_path / f"agent.{format}").read_text())
        assert {output["name"]: output["dtype"] for output in told["outputs"]}["rows"] == "float32"
        assert "computes_in" not in told
    found = in_onnxruntime(tmp_path / "agent.onnx", observations)["rows"]
    np.testing.assert_allclose(found, np.asarray(wanted, np.float32), rtol=0.01)
    exported = jax.export.deserialize(bytearray((tmp_path / "agent.stablehlo").read_bytes()))
    np.testing.assert_array_equal(exported.call(observations)["rows"], np.asarray(wanted, np.float32))


def test_the_description_tells_game_input_outputs_actions_and_symmetries(tmp_path):
    pytest.importorskip("safetensors")
    agent = exported_networks()["draw_mlp"]()
    beside = export_agent(agent, "safetensors", tmp_path / "agent.safetensors", name="mine")
    assert beside == tmp_path / "agent.json"
    told = json.loads(beside.read_text())
    assert (told["player"], told["game"]["name"], told["game"]["options"]) == ("mine", "tictactoe", {})
    assert told["input"]["shape"] == ["batch", 3, 3, 2]
    assert "from the view of the player to move" in told["input"]["about"]
    assert [(output["name"], output["shape"]) for output in told["outputs"]] == [
        ("draw", ["batch"]),
        ("prior_logits", ["batch", 9]),
        ("value", ["batch"]),
    ]
    assert told["actions"]["count"] == 9
    assert told["actions"]["at_the_start"]["0"] == "a3"
    assert told["symmetries"]["count"] == 8
    assert told["symmetries"]["permutation"][0] == list(range(9))
    assert all(sorted(row) == list(range(9)) for row in told["symmetries"]["permutation"])
    entry = told["files"]["agent.safetensors"]
    assert entry["sha256"] == hashlib.sha256((tmp_path / "agent.safetensors").read_bytes()).hexdigest()


def test_another_format_of_the_same_agent_is_added_to_the_description(tmp_path):
    pytest.importorskip("flatbuffers")
    pytest.importorskip("safetensors")
    agent = exported_networks()["mlp"]()
    export_agent(agent, "safetensors", tmp_path / "agent.safetensors")
    export_agent(agent, "stablehlo", tmp_path / "agent.stablehlo")
    assert list(json.loads((tmp_path / "agent.json").read_text())["files"]) == ["agent.safetensors", "agent.stablehlo"]
    with pytest.raises(InputError, match=r"agent\.stablehlo exists already; name another file with --output"):
        export_agent(agent, "stablehlo", tmp_path / "agent.stablehlo")
    with pytest.raises(InputError, match=r"agent\.json exists already and describes something else"):
        export_agent(exported_networks()["draw_mlp"](), "stablehlo", tmp_path / "agent.other")
    trained_on = dataclasses.replace(agent, variables=jax.tree.map(lambda leaf: leaf + 1, agent.variables))
    with pytest.raises(InputError, match=r"agent\.json exists already and describes something else"):
        export_agent(trained_on, "stablehlo", tmp_path / "agent.later")


def test_rounding_halves_away_from_zero_and_reducing_nothing_are_refused():
    pytest.importorskip("onnx")
    for function, message in (
        (lambda given: jax.lax.round(given, jax.lax.RoundingMethod.AWAY_FROM_ZERO), "it rounds halves away from zero"),
        (lambda given: given[:, 3:].sum(axis=1), "it computes with an array without entries"),
    ):
        with pytest.raises(InputError, match=message):
            to_onnx(lambda given, function=function: {"out": function(given)}, "given", open_batch((3,)), PRIMITIVES)


def test_entries_are_taken(tmp_path):
    onnx = pytest.importorskip("onnx")

    def taken(given):
        table = np.array([[1, 0], [2, 2]])
        best, kinds = jnp.argmax(given, axis=2), np.arange(12, dtype=np.float32).reshape(4, 3)
        return {
            "rows": given[:, np.array([2, 0])],
            "last": jnp.take(given, np.array([3, 1, 1]), axis=2),
            "clipped": jnp.take(given, np.array([9, 1]), axis=2, mode="clip"),
            "table": given[:, table],
            "cut": given[:, np.array([1])],
            "tiled": jnp.tile(given, (1, 2, 3)),
            "beyond": jnp.take(given, np.array([0, 3, 1]), axis=1),
            "embedded": jnp.take(kinds, best, axis=0),
            "embedded beyond": jnp.take(kinds, best + 2, axis=0),
            "columns": jnp.take(kinds, best, axis=1, mode="clip"),
            "column beyond": jnp.take(kinds, best[:, 0] + 1, axis=1),
            "whole numbers beyond": jnp.take(np.arange(3, dtype=np.int32), best, axis=0),
            "filled": given.at[:, np.array([0, 9])].get(mode="fill", fill_value=0.5),
            "parameters": jnp.asarray(kinds)[best],
            "logsumexp": jax.nn.logsumexp(given, axis=2),
            "edge": jax.vmap(lambda one: jnp.pad(one, ((1, 0), (0, 2)), mode="edge"))(given),
            "stacked": jnp.stack([given, -given], axis=2),
            "remainder": given % 0.25,
            "whole remainder": (best - 2) % 3 + (best - 2) // 3,
            "rounded": jnp.round(given * 2),
            "all and any": jnp.all(given > -1, axis=2) | jnp.any(given > 1, axis=2),
        }

    model = to_onnx(taken, "observations", open_batch((3, 4)), PRIMITIVES)
    onnx.save(model, tmp_path / "model.onnx")
    given = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)
    found = in_onnxruntime(tmp_path / "model.onnx", given)
    for name, array in taken(jnp.asarray(given)).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6 * (name == "logsumexp"))


def test_a_product_with_a_vector_keeps_the_axes_of_the_rest(tmp_path):
    onnx = pytest.importorskip("onnx")
    matrix, vector = np.float32([[1, 2, 3, 4], [0, 1, 0, 1]]), np.float32([1, -1, 2, 0.5])

    def products(given):
        return {
            "vector": given @ vector,
            "vector and bias": given @ vector + np.float32([[10, 20, 30]]),
            "matrix": given[:, 0] @ matrix.T,
            "vector of each": given[:, 0] @ vector,
        }

    model = to_onnx(products, "observations", open_batch((3, 4)), PRIMITIVES)
    onnx.save(model, tmp_path / "model.onnx")
    given = np.arange(5 * 3 * 4, dtype=np.float32).reshape(5, 3, 4)
    found = in_onnxruntime(tmp_path / "model.onnx", given)
    for name, array in products(given).items():
        np.testing.assert_array_equal(found[name], array)  # whole numbers and halves: no rounding


def test_entries_of_several_axes_are_refused():
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="it gathers from several axes"):
        to_onnx(
            lambda given: {"out": jnp.take_along_axis(given, jnp.argmax(given, axis=1, keepdims=True), axis=1)},
            "given",
            open_batch((3,)),
            PRIMITIVES,
        )


def test_an_unknown_primitive_is_named():
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match="it uses sort, which azjax does not convert"):
        to_onnx(lambda given: {"out": jnp.sort(given, axis=-1)}, "given", open_batch((3,)), PRIMITIVES)


def test_an_own_network_that_cannot_be_traced_is_told_in_one_line(tmp_path):
    pytest.importorskip("flatbuffers")

    @dataclasses.dataclass(frozen=True)
    class OnTheHost(Aside):
        def apply(self, variables, observations, train):
            return Aside.apply(self, variables, jnp.asarray(np.asarray(observations)), train)

    game = make("connect_four")
    for name in ("onnx", "stablehlo"):
        with pytest.raises(InputError, match=f"the network cannot be written as {name}: .*") as error:
            export_agent(agent_of(OnTheHost(), game), name, tmp_path / "agent")
        assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(InputError, match=r"safetensors is not installed: pip install 'azjax\[export\]'"):
        export_agent(exported_networks()["mlp"](), "safetensors", tmp_path / "agent.safetensors")


def test_nothing_is_left_on_a_full_disk(tmp_path, monkeypatch):
    pytest.importorskip("flatbuffers")
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) == 2:  # the description, after the file
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FileError, match=r"agent\.json could not be written: No space left on device"):
        export_agent(exported_networks()["mlp"](), "stablehlo", tmp_path / "agent.stablehlo")
    assert list(tmp_path.iterdir()) == []


def test_unknown_formats_and_a_file_of_json_are_refused(tmp_path):
    agent = exported_networks()["mlp"]()
    with pytest.raises(InputError, match="unknown format 'tflite'; available: safetensors, onnx, stablehlo"):
        export_agent(agent, "tflite", tmp_path / "agent")
    with pytest.raises(InputError, match="the description is the JSON file"):
        export_agent(agent, "onnx", tmp_path / "agent.json")


def test_a_scalar_keeps_its_shape(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")

    class Scaled:
        """The logits and the value of nothing, times a scalar."""

        def init(self, key, game):
            return {"params": {"scale": jnp.float32(3)}}

        def apply(self, variables, observations, train):
            zeros = variables["params"]["scale"] * jnp.zeros(len(observations))
            return NetworkOutput(zeros[:, None] * jnp.zeros((1, 4)), zeros, {}), variables

    game = make("connect2")
    network = Scaled()
    agent = Agent(game, network, network.init(None, game), SearchHyper())
    export_agent(agent, "safetensors", tmp_path / "agent.safetensors")
    assert numpy.load_file(tmp_path / "agent.safetensors")["params/scale"].shape == ()
