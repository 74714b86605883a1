"""Networks that are tuned as a whole have the size that held-out rows ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from opgrow import Callback, HeMLGOPClassifier, HeMLGOPRegressor
from opgrow.estimators.fit.sizes import size_that_pays
from opgrow.estimators.fit.trials import Trial
from opgrow.growth.events import EpochFinished, StopGrowth
from opgrow.operators import OperatorSet
from opgrow.training.scores import Score

#: Growth in tenths of a second.
SHORT: dict[str, Any] = {
    "epochs": (2,),
    "learning_rates": (0.01,),
    "operators": [OperatorSet("multiplication", "sum", "tanh")],
    "random_state": 0,
}


def trials(*, stopped: float | None = None, enough: float = 0.0) -> Any:
    """What grows networks whose sizes are their losses, and a list of those that are grown."""
    grown: list[float] = []

    def grow(loss: Any) -> Trial:
        grown.append(loss)
        growth = SimpleNamespace(
            score=Score(loss, 0.0),
            stopped="no more time" if loss == stopped else None,
            enough=lambda score: score.value <= enough,
        )
        return Trial(growth, None)  # type: ignore[arg-type]

    return grow, grown


@pytest.mark.parametrize(
    ("losses", "n_grown", "place"),
    [
        ([0.5], 1, 0),
        ([0.5, 0.4, 0.3], 3, 2),
        ([0.5, 0.4, 0.395, 0.1], 3, 1),  # hardly better: nothing larger is tried
        ([0.5, 0.6, 0.1], 2, 0),
        ([0.5, np.nan, 0.1], 2, 0),
    ],
)
def test_sizes_are_doubled_while_that_pays(losses: Any, n_grown: int, place: int) -> None:
    grow, grown = trials()
    found, trial = size_that_pays(losses, grow)
    assert (found, len(grown)) == (place, n_grown)
    assert trial.score.value == losses[place]


@pytest.mark.parametrize("options", [{"stopped": 0.4}, {"enough": 0.4}], ids=str)
def test_nothing_larger_is_tried_once_growth_is_over(options: dict[str, float]) -> None:
    grow, grown = trials(**options)
    assert size_that_pays([0.5, 0.4, 0.1], grow)[0] == 1  # type: ignore[list-item]
    assert grown == [0.5, 0.4]


def widths_of(model: Any) -> dict[int, list[int]]:
    """The neurons of each layer that has stayed, by member."""
    stayed = [step for step in model.history_ if step.kind == "layer" and step.accepted]
    return {n: [s.n_neurons for s in stayed if s.member == n] for n in {s.member for s in stayed}}


def test_members_have_the_size_that_the_first_of_them_has_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (900, 2))
    waves, noise = np.sin(1.3 * x[:, 0]) * np.cos(1.3 * x[:, 1]) > 0, rng.normal(size=900) > 0
    of_waves, of_noise = (widths_of(HeMLGOPClassifier(**SHORT).fit(x, y)) for y in (waves, noise))
    assert of_waves[2] == of_waves[3] == of_waves[5]
    assert of_waves[2] in ([20] * 3, [40] * 3, [80] * 3)
    assert of_noise[2] == of_noise[3] == of_noise[5] == [10] * 3


def test_regressors_grow_block_by_block_where_that_is_as_good() -> None:
    rng = np.random.default_rng(0)
    model = HeMLGOPRegressor(**SHORT).fit(rng.normal(size=(900, 2)), rng.normal(size=900))
    blocks = [step for step in model.history_ if step.kind == "block"]
    for member in range(1, 6):  # a block that was refused ends the growth of its layer
        assert any(step.member == member and not step.accepted for step in blocks)


def test_the_history_is_that_of_what_stays() -> None:
    model = HeMLGOPClassifier(**SHORT).fit(*make_classification(400, 6, n_informative=4, random_state=0))
    assert model.network_.members is not None
    for member, layers in widths_of(model).items():
        blocks = [s.n_neurons for s in model.history_ if s.member == member and s.kind == "block"]
        if member in (2, 3, 5):
            assert blocks == layers
            assert len(model.network_.members[member - 1]) == 3


def test_threads_and_an_interruption_change_nothing(tmp_path: Any) -> None:
    class Interrupt(Callback):
        def on_epoch_end(self, event: EpochFinished) -> None:
            self.seen = getattr(self, "seen", 0) + 1
            if self.seen == 150:
                raise KeyboardInterrupt

    x, y = make_classification(400, 6, n_informative=4, random_state=0)
    alone = HeMLGOPClassifier(**SHORT, n_jobs=1).fit(x, y)
    together = HeMLGOPClassifier(**SHORT, n_jobs=3).fit(x, y)
    assert together.network_.digest() == alone.network_.digest()
    with pytest.raises(KeyboardInterrupt):
        HeMLGOPClassifier(**SHORT, n_jobs=1, checkpoint_dir=tmp_path, callbacks=[Interrupt()]).fit(x, y)
    assert list(tmp_path.glob("network02size*"))
    resumed = HeMLGOPClassifier(**SHORT, n_jobs=1, checkpoint_dir=tmp_path).fit(x, y)
    assert resumed.network_.digest() == alone.network_.digest()


def test_a_stopped_trial_still_is_a_network() -> None:
    class Enough(Callback):
        def on_epoch_end(self, event: EpochFinished) -> None:
            if event.member == 2:
                raise StopGrowth("enough")

    x, y = make_classification(300, 5, random_state=0)
    model = HeMLGOPClassifier(**SHORT, n_jobs=1, callbacks=[Enough()]).fit(x, y)
    assert {step.member for step in model.history_} <= {1, 2}
    assert model.history_[-1].stopped == "enough"
    assert model.score(x, y) > 0.6


def test_without_rows_to_judge_by_the_smallest_size_is_taken() -> None:
    x, y = make_classification(400, 6, n_informative=4, random_state=0)
    model = HeMLGOPClassifier(**SHORT, validation_fraction=0.0).fit(x, y)
    assert widths_of(model)[2] == [10] * 3
