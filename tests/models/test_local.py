import numpy as np
import pytest
import torch

from agent_world.errors import BadInputError
from agent_world.models import decoding
from agent_world.models.decoding import Decoder, among
from agent_world.models.grammar import Guide
from agent_world.models.local import CONTEXT_FULL, LocalPolicy
from agent_world.models.renderer import transcript
from agent_world.models.tiny import save
from agent_world.rollouts.model import Observation
from tests.models import little


def policy(model=None, **options):
    options = {"max_step": 24} | options
    return LocalPolicy(model or little.model(), little.renderer(), name="tiny", version="0", **options)


def play(policy, episodes=5, turns=4, *, together=True):
    """Turns of several episodes whose every step is answered by one of three observations."""
    histories = {f"e{n}": [] for n in range(episodes)}
    for number in range(turns):
        batch = [little.turn(tuple(h), episode=e, seed=int(e[1:])) for e, h in histories.items()]
        steps = policy.act(batch) if together else [policy.act([turn])[0] for turn in batch]
        for (episode, history), step in zip(histories.items(), steps, strict=True):
            history.append((step, (little.HITS, little.BOOK, little.REFUSED)[(number + int(episode[1:])) % 3]))
    return histories


def test_recorded_logprobs_are_those_of_the_training_forward():
    model = little.model()
    for history in play(policy(model)).values():
        ids, written, _, allowed = transcript(little.renderer(), little.script(), history, choices=True)
        places = [place for place, by_policy in enumerate(written) if by_policy]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, [place - 1 for place in places]]
        scores = torch.log_softmax(among(logits, allowed), -1)
        trained = [scores[row, ids[place]].item() for row, place in enumerate(places)]
        assert any(choice is not None and not choice.all() for choice in allowed)
        recorded = [logprob for step, _ in history for logprob in step.tokens.logprobs]
        assert recorded == pytest.approx(trained, abs=1e-5)


def test_what_the_grammar_forces_is_written_without_asking_the_model(monkeypatch):
    reads = []
    whole = Decoder._read_part
    monkeypatch.setattr(Decoder, "_read_part", lambda self, feeds: reads.append(len(feeds)) or whole(self, feeds))
    skipping = play(policy())
    few = len(reads)
    monkeypatch.setattr(Guide, "only", lambda self: None)
    asking = play(policy())
    assert few < len(reads) - few
    for one, other in zip(skipping.values(), asking.values(), strict=True):
        assert [step.tokens.ids for step, _ in one] == [step.tokens.ids for step, _ in other]
        for (left, _), (right, _) in zip(one, other, strict=True):
            assert left.tokens.logprobs == pytest.approx(right.tokens.logprobs, abs=1e-5)


def test_an_episode_does_not_depend_on_its_neighbours():
    together, alone = play(policy()), play(policy(), together=False)
    assert [[s.tokens.ids for s, _ in h] for h in together.values()] == [
        [s.tokens.ids for s, _ in h] for h in alone.values()
    ]


def test_an_episode_whose_step_was_broken_off_goes_on_as_if_it_had_not_been(monkeypatch):
    undisturbed = play(policy())
    whole, calls = Decoder.write, []

    def broken_once(self, *arguments, **options):
        written = whole(self, *arguments, **options)
        calls.append(0)
        if len(calls) == 2:
            raise MemoryError
        return written

    monkeypatch.setattr(Decoder, "write", broken_once)
    broken = policy()
    act = broken.act

    def insistent(turns):
        try:
            return act(turns)
        except MemoryError:
            return act(turns)

    broken.act = insistent
    for one, other in zip(undisturbed.values(), play(broken).values(), strict=True):
        assert [step.tokens.ids for step, _ in one] == [step.tokens.ids for step, _ in other]


def test_samples_differ_by_seed_and_greedy_steps_do_not():
    turns = [little.turn(episode=f"e{n}", seed=n) for n in range(6)]
    assert len({step.tokens.ids for step in policy().act(turns)}) == 6
    assert len({step.tokens.ids for step in policy(temperature=0).act(turns)}) == 1


def test_samples_follow_the_distribution_of_the_model():
    model = little.model()
    prompt = little.script().prompt
    with torch.no_grad():
        expected = torch.softmax(model(torch.tensor([prompt])).logits[0, -1] / 0.2, -1)
    decoder = Decoder(model, stops=frozenset(), pad=0, context=512, temperature=0.2)
    draws = np.random.default_rng(0).random((2000, 1))
    names = [str(n) for n in range(2000)]
    written = decoder.write(names, [prompt] * 2000, draws, at_most=1)
    counts = torch.bincount(torch.tensor([w.ids[0] for w in written]), minlength=len(expected)) / 2000
    assert (counts - expected).abs().sum() < 2.5 * (expected * (1 - expected) / 2000).sqrt().sum()


@pytest.mark.parametrize("width", [1, 3, 1000])
def test_it_does_not_matter_how_many_ids_are_read_at_once(monkeypatch, width):
    usual = play(policy())
    monkeypatch.setattr(decoding, "_WIDTH", width)
    for one, other in zip(usual.values(), play(policy()).values(), strict=True):
        assert [step.tokens.ids for step, _ in one] == [step.tokens.ids for step, _ in other]


def test_no_draw_reaches_what_is_not_allowed():
    """Not even the largest number below 1, which single precision rounds to 1."""
    model, script = little.model(), little.script()
    draws = np.full((1, 1), np.nextafter(1.0, 0.0))
    ((ids, _),) = Decoder(model, stops=frozenset(), pad=0, context=512).write(
        ["e"], [script.prompt], draws, at_most=1, guides=[script.guide()]
    )
    assert script.guide().allowed()[ids[0]]


def test_a_policy_that_forgot_an_episode_reads_it_again_from_its_history():
    kept, forgetful = policy(), policy()
    history = play(kept, episodes=1, turns=2)["e0"]
    assert play(forgetful, episodes=1, turns=2)["e0"] == history
    forgetful.forget(["e0"])
    turn = little.turn(tuple(history), episode="e0", seed=0)
    assert kept.act([turn])[0].tokens.ids == forgetful.act([turn])[0].tokens.ids


def test_a_full_context_makes_malformed_steps_and_spares_the_neighbours():
    small = policy(max_context=150)
    long = Observation(status="ok", value={"numbers": list(range(10, 60))})
    first = small.act([little.turn(episode="a"), little.turn(episode="b")])
    full, fits = small.act(
        [little.turn(((first[0], long),), episode="a"), little.turn(((first[1], little.REFUSED),), episode="b")]
    )
    assert (full.kind, full.text) == ("malformed", CONTEXT_FULL)
    assert full.tokens.ids == ()
    assert len(fits.tokens.ids) > 0


def test_a_full_context_stays_full_although_something_short_comes_next():
    """The policy would go on without having read what did not fit."""
    small, kept = policy(max_context=150), policy()
    long = Observation(status="ok", value={"numbers": list(range(10, 60))})
    history = [(small.act([little.turn()])[0], long)]
    for _ in range(3):
        [step] = small.act([little.turn(tuple(history))])
        assert (step.kind, step.text) == ("malformed", CONTEXT_FULL)
        history.append((step, little.REFUSED))
    small.forget(["e"])
    assert small.act([little.turn(tuple(history))])[0].text == CONTEXT_FULL
    small.forget(["e"])
    assert small.act([little.turn()])[0].tokens.ids == kept.act([little.turn()])[0].tokens.ids


def test_the_mean_surprise_of_what_was_written_is_the_entropy_of_the_policy():
    model, surprise, entropy = little.model(), [], []
    for history in play(policy(model), episodes=60, turns=2).values():
        ids, written, _, allowed = transcript(little.renderer(), little.script(), history, choices=True)
        places = [place for place, by_policy in enumerate(written) if by_policy]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, [place - 1 for place in places]]
        entropy += torch.distributions.Categorical(logits=among(logits, allowed)).entropy().tolist()
        surprise += [-logprob for step, _ in history for logprob in step.tokens.logprobs]
    assert len(entropy) == len(surprise) > 500
    error = np.std(np.subtract(surprise, entropy)) / len(entropy) ** 0.5
    assert np.mean(surprise) == pytest.approx(np.mean(entropy), abs=3 * error)
    assert error < 0.1 * np.mean(entropy)


@pytest.mark.parametrize(
    ("limits", "longest"),
    [
        ({"max_step": None}, little.renderer().longest_step),
        ({"max_step": None, "max_context": 160}, 40),
        ({"max_step": 70, "max_context": 160}, 70),
    ],
)
def test_a_step_is_as_long_as_is_said_or_suits_the_renderer_and_the_context(monkeypatch, limits, longest):
    asked = []
    whole = Decoder.write
    monkeypatch.setattr(Decoder, "write", lambda self, *a, **o: asked.append(o["at_most"]) or whole(self, *a, **o))
    policy(**limits).act([little.turn()])
    assert asked == [longest]


def test_a_saved_policy_loads_and_acts_alike(tmp_path):
    model = little.model()
    save(tmp_path, model, little.tokenizer())
    loaded = LocalPolicy.load(tmp_path, version="0", temperature=0, max_step=24)
    before = policy(model, temperature=0).act([little.turn()])[0].tokens.ids
    assert loaded.act([little.turn()])[0].tokens.ids == before
    tight = LocalPolicy.load(tmp_path, version="0", temperature=0, max_step=24, max_context=30)
    assert tight.act([little.turn()])[0].text == CONTEXT_FULL


def test_a_directory_without_a_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(BadInputError, match="not a model directory") as caught:
        LocalPolicy.load(tmp_path, version="0")
    assert "\n" not in str(caught.value)
