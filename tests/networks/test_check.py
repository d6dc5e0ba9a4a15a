"""What a network returns is checked before anything is computed."""

import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import Mlp, NetworkOutput, check_network, make_network
from azjax.training import Config

GAME = make("tictactoe")


@dataclasses.dataclass(frozen=True)
class Constant:
    """A network without Flax: it says the same of every position."""

    actions: int = 9
    dtype: str = "float32"
    auxiliary: int | None = None
    adds: str = ""
    error: str = ""

    def init(self, key, game):
        del key, game
        return {"params": {"scale": jnp.ones(())}}

    def apply(self, variables, observations, train):
        if self.error:
            raise RuntimeError(self.error)
        batch = len(observations)
        scale = variables["params"]["scale"]
        auxiliary = {} if self.auxiliary is None else {"draw": jnp.zeros((self.auxiliary, 2))}
        output = NetworkOutput(scale * jnp.zeros((batch, self.actions)), scale * jnp.zeros(batch), auxiliary)
        return output, variables | ({self.adds: jnp.zeros(3)} if self.adds and train else {})


class NoOutput(Constant):
    def apply(self, variables, observations, train):
        return jnp.zeros((len(observations), 9))


class NoParams(Constant):
    def init(self, key, game):
        return {"weights": jnp.zeros(3)}


class HalfPrecise(Constant):
    def init(self, key, game):
        return {"params": {"scale": jnp.ones((), jnp.float16)}}


def test_an_object_that_fulfils_the_contract_is_a_network():
    assert make_network(Constant(auxiliary=3), GAME, width=0, depth=0) == Constant(auxiliary=3)
    assert Config(network=Constant()).make_network(GAME) == Constant()


class NoValue(Constant):
    def apply(self, variables, observations, train):
        output, variables = super().apply(variables, observations, train)
        object.__setattr__(output, "value", None)  # types may be checked where it is made
        return output, variables


class ValueTwice(Constant):
    def apply(self, variables, observations, train):
        output, variables = super().apply(variables, observations, train)
        output.auxiliary["value"] = output.value
        return output, variables


class NoDict(Constant):
    def apply(self, variables, observations, train):
        output, variables = super().apply(variables, observations, train)
        object.__setattr__(output, "auxiliary", None)
        return output, variables


class NoDraw(Constant):
    def apply(self, variables, observations, train):
        output, variables = super().apply(variables, observations, train)
        output.auxiliary["draw"] = None
        return output, variables


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (NoValue(), r"value of a batch of 3, returned NoneType; it must be float32 \(3,\)"),
        (ValueTwice(), "the auxiliary output 'value' has the name of another input or output"),
        (NoDict(), r"apply, auxiliary, returned NoneType; it must be a dict of arrays"),
        (NoDraw(), r"draw of a batch of 3, returned NoneType; it must be a leading axis of 3"),
        (Constant(actions=7), r"prior_logits of a batch of 3, returned float32 \(3, 7\); it must be float32 \(3, 9\)"),
        (Constant(auxiliary=2), r"draw of a batch of 3, returned float32 \(2, 2\); it must be a leading axis of 3"),
        (Constant(adds="more"), r"the variables, returned dict\(more, params\); it must be those of init"),
        (Constant(error="no\nway"), r"apply raises for observations float32 \(3, 3, 3, 2\): RuntimeError: no way"),
        (NoOutput(), r"apply returned float32 \(3, 9\); it must be a NetworkOutput and the variables"),
        (HalfPrecise(), r"init, the parameter scale, returned float16 \(\); it must be float32"),
        (NoParams(), r'init returned dict\(weights\); it must be a dict with "params"'),
    ],
)
def test_what_is_wrong_is_named_with_what_was_got_and_what_is_wanted(network, message):
    with pytest.raises(InputError, match=message):
        check_network(network, GAME)


def test_an_object_that_is_no_network_is_refused():
    # Elsewhere, since the tests check the types of all arguments.
    program = "from azjax.training import Config; Config(network=3)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "InputError: network must be a name or an object with init and apply, got 3" in done.stderr


def test_a_network_that_cannot_be_hashed_is_refused():
    class Unhashable(Constant):
        __hash__ = None

    with pytest.raises(InputError, match="a network must be hashable, as a frozen dataclass is: unhashable type"):
        Config(network=Unhashable())


def test_an_nnx_network_takes_the_shapes_of_the_game():
    assert Config(network=Mlp(16, 1)).make_network(GAME) == Mlp(16, 1).for_game(GAME)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (make_network("mlp", GAME, width=16, depth=1), r"params/hidden_0/bias must have the shape \(8,\), got \(16,\)"),
        (make_network("mlp", GAME, width=8, depth=2), r"params/hidden_1/bias must have the shape nothing, got \(8,\)"),
        (make_network("mlp", make("connect2"), width=8, depth=1), r"params/hidden_0/kernel must have the shape"),
    ],
)
def test_variables_of_another_network_are_refused(other, message):
    network = make_network("mlp", GAME, width=8, depth=1)
    observations = jnp.zeros((2, *GAME.observation_shape))
    variables = jax.eval_shape(lambda: other.init(jax.random.key(0), make("connect2") if "kernel" in message else GAME))
    with pytest.raises(InputError, match=message):
        jax.eval_shape(lambda variables: network.apply(variables, observations, False), variables)
    with pytest.raises(InputError, match='variables must be a dict with "params", as init makes it, got a dict of'):
        network.apply(network.init(jax.random.key(0), GAME)["params"], observations, False)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize("width", ["8", 8.0, 0])
def test_a_width_is_a_whole_number(width):
    with pytest.raises(InputError, match=f"network width must be a whole number of at least 1, got {width!r}"):
        make_network("mlp", GAME, width=width, depth=1)
