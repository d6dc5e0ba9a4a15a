"""What docs/what_holds_learning_back.md says is what the committed files say."""

import numpy as np
from studies import page, prose, result_of


def test_the_worth_of_training_is_what_the_committed_file_says():
    found, text = result_of("scaling")["exponents"], prose("what_holds_learning_back")
    training, play, worth = (
        [found[name]["mean"], *found[name]["interval"]]
        for name in (
            "exponent of training",
            "exponent of evaluations at play",
            "doublings at play worth a doubling of training",
        )
    )
    for told in (
        "the power of -{:.2f} (95% interval over the seeds: {:.2f} to {:.2f})".format(*training),
        "the power of -{:.2f} ({:.2f} to {:.2f})".format(*play),
        "worth {:.2f} doublings at play ({:.2f} to {:.2f})".format(*worth),
    ):
        assert told in text


def test_what_networks_learn_of_the_truth_and_of_self_play_is_what_the_committed_files_say():
    rows = {(row["network"], row["optimizer"]): row["mistakes"] for row in result_of("networks")["rows"]}
    found, text = result_of("santorini_3x3"), prose("what_holds_learning_back")
    assert f"{rows['mlp', 'adam']:.2%}" in page("what_holds_learning_back")
    assert rows["equivariant_mlp 512", "adam"] < 0.7 * rows["mlp", "adam"]
    assert rows["mlp", "muon"] > rows["mlp", "adam"]
    share, last = found["all_positions"]["share"], found["rows"][-1]
    assert rows["equivariant_mlp 1024", "muon"] < 0.0405  # of the preset before
    minutes, wins, signs = round(last["seconds"] / 60), last["wins_kept"], last["signs_right"]
    assert f"After {minutes} minutes" in text
    assert f"the network alone makes {share:.2%} mistakes" in text
    told = f"With 128 simulations it keeps {wins:.1%} of the wins of the sample and has {signs:.1%} of the signs right."
    assert told in text


def test_how_right_targets_are_is_what_the_committed_file_says():
    found, text = result_of("targets"), prose("what_holds_learning_back")
    (row,) = [row for row in found["rows"] if (row["num_simulations"], row["considered"]) == (16, 16)]

    def share(name):
        return f"{row[name]:.1%}"

    assert f"On {found['settings']['positions']:,} positions" in text
    policy, network = share("mistakes, policy"), share("mistakes, network")
    assert f"makes {policy} mistakes where its network makes {network}" in text
    mean, own = share("wrong signs, mean of the simulations"), share("wrong signs, network")
    assert f"the wrong sign on {mean} of the positions, more than the {own} of the network" in text
    assert f"is wrong on {share('wrong signs, value')}." in text
    assert all(f"{other['mistakes, policy']:.1%}" in page("what_holds_learning_back") for other in found["rows"])


def test_what_value_targets_are_worth_is_what_the_committed_file_says():
    found, text = result_of("value_targets"), prose("what_holds_learning_back")
    settings, rows = found["settings"], {row["target"]: row for row in found["rows"]}
    told = (
        f"played {settings['games']} games of self-play from each of {settings['positions']:,} positions of plies 0 to"
    )
    assert f"{told} {settings['last_ply']}," in text
    network, targets = rows.pop("the network itself")["systematic"], [row["systematic"] for row in rows.values()]
    assert network > max(targets)
    assert f"any of its targets, {network:.3f}, and no target is nearer than {min(targets):.3f}:" in text
    half, mixed = rows["half results, half values"], rows["lambda-returns, 0.9"]
    assert abs(half["systematic"] - mixed["systematic"]) < half["standard_error"]
    assert half["systematic"] < min(rows["results; values as they are"]["systematic"], rows["values"]["systematic"])

    def varies(name):
        return rows[name]["of_one_game"] - rows[name]["systematic"]

    assert 0.4 < varies("results; values as they are") / varies("results") < 0.6
    assert varies("lambda-returns, 0.9") < 0.1 * varies("results")


def test_what_holds_learning_back_is_what_the_committed_file_says():
    found, text = result_of("holding_back"), prose("what_holds_learning_back")
    rows = {row["name"]: row for row in found["rows"]}

    def alone(name, kind="mistakes"):
        return f"{rows[name]['network'][kind]:.1%}"

    def positions(name):
        return f"{rows[name]['positions']:,}"

    puct, eight, base = "PUCT, {} simulations", "8 simulations", "base"
    often, start = "learned from 16 times", "from the start alone"
    shares = [f"{found['base']['time'][part]:.0%}" for part in ("network", "optimizer steps", "tree and rules")]
    by_ply = {whose: found[whose]["by_ply"] for whose in ("base", "agent")}
    errors = [np.mean(by_ply[whose]["value_error"][:plies]) for whose in by_ply for plies in (None, 10)]
    entropies = [np.mean(by_ply[whose]["policy_entropy"]) for whose in by_ply]
    sets = result_of("connect_four")["sets"]
    gain = 100 * (rows["float32"]["network"]["mistakes"] - rows["base"]["network"]["mistakes"])
    for told in (
        "self-play takes {}, optimizer steps {}, and the tree and the rules together {}.".format(*shares),
        f"makes {positions('float32')} positions in two minutes with float32, and {positions('base')} with bfloat16, "
        f"which the processor's matrix units support; this is worth {gain:.1f} points",
        f"{positions(eight)} positions and end at {alone(eight)} mistakes, with 16 at {alone(base)}, with 32 at "
        f"{alone('32 simulations')}",
        f"PUCT ends at {alone(puct.format(16))} with 16, and at {alone(puct.format(64))} with 64, which make only "
        f"{positions(puct.format(64))} positions",
        f"Two layers of 512 units ({alone('mlp 2 x 512')}) and four of 256 ({alone('mlp 4 x 256')}) do as well as four "
        f"of 512 ({alone(base)}); four of 1,024 end at {alone('mlp 4 x 1024')}, because they get "
        f"only {positions('mlp 4 x 1024')} positions",
        f"gets {positions('resnet 4 x 32')} and seems to have learned nothing ({alone('resnet 4 x 32')}; random moves "
        f"make {result_of('connect_four')['rivals'][0]['all']:.1%})",
        f"once is too little ({alone('learned from once')})",
        f"new positions ({alone(often)}, and {alone(often, 'narrow')} of the narrow positions, where the base has "
        f"{alone(base, 'narrow')})",
        f"makes {alone(start)} mistakes, and {alone(start, 'narrow')} on the narrow positions",
        f"instead of 20 it makes {alone('0 to 30 random plies')}",
        f"less: {alone('targets not proven')} without",
        "proved, {} with".format(alone("games' results alone")),
        f"the base mixes in a quarter of the search's value), {alone('no noise in self-play')} without noise",
        f"mean error of {errors[0]:.2f} over all plies; the largest possible error is 2. The error is largest at the "
        f"start: {errors[1]:.2f} over",
        f"the mean error is {errors[2]:.2f}, and again largest over the first ten plies, with {errors[3]:.2f}",
        f"{entropies[0]:.2f} nats after two minutes and {entropies[1]:.2f} after the hour",
        f"publishes {sets['AlphaZero.jl']['begin, medium']:.1%} and {sets['AlphaZero.jl']['begin, hard']:.1%} mistakes",
        f"makes {sets['network + 400']['begin, medium']:.1%} and {sets['network + 400']['begin, hard']:.1%} on",
        f"{sets['network']['end, easy']:.1%} there without it, {sets['network + 400']['end, easy']:.1%} with it",
        f"opening, {result_of('connect_four')['rows'][-1]['narrow']:.1%} of them with search",
    ):
        assert told in text, told
    for whose in by_ply:  # least at the start, where the value is wrong most
        entropy = by_ply[whose]["policy_entropy"]
        assert np.mean(entropy[:10]) == min(np.mean(entropy[begin : begin + 10]) for begin in range(0, 40, 10))
