"""What a run resolves to when its request names models: where text goes, and what is reserved for a call."""

from pathlib import Path

from activities.preparation import resolve
from contracts.request import EngineChoice, Models, ResearchRequest
from contracts.resolved import CorpusSnapshot, ModelPrice, ResolvedResearch
from contracts.vocabulary import Tier
from workers.resolution_inputs import configuration_of
from workers.settings.loading import FILE_NAME, load_settings

TWO = """
[models]
default = "usual"
base_url = "http://127.0.0.1:1001"
[models.endpoints.usual-too]
base_url = "http://127.0.0.1:1002"
reasoning_tokens = 5_000
[models.endpoints.thinking]
base_url = "http://thinker.example"
reasoning_tokens = 100_000
[models.endpoints.paid]
base_url = "https://paid.example"
[models.prices.dear]
input = 300
output = 1500
[models.prices.cheap]
input = 1
output = 2
"""
EVERY_TIER = Models(simple="thinking:m", analytical="thinking:m", complex="thinking:m")


def resolved(
    folder: Path, models: Models | None = None, text: str = TWO, engine: EngineChoice = EngineChoice.AUTO
) -> ResolvedResearch:
    """As a worker with this configuration resolves a request for these models."""
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    settings = load_settings(environment={}, user_folder=folder)
    request = ResearchRequest(query="x", corpus="manual", engine=engine, models=models or Models())
    corpus = CorpusSnapshot(name="manual", files=1)
    return resolve("r-1", request, configuration_of(settings), corpus, search_attributes=False)


def test_text_goes_where_the_named_models_are_and_where_others_may_take_over(tmp_path: Path) -> None:
    """The endpoint of a model that the request names is told first, then those that stand by for it (S0-101)."""
    made = resolved(tmp_path, EVERY_TIER)
    assert made.egress == "passages go to thinker.example, 127.0.0.1:1001 (this machine)"
    assert made.model_host == "thinker.example, 127.0.0.1:1001"
    assert resolved(tmp_path).egress == "passages go to 127.0.0.1:1001 (this machine)"


def test_an_endpoint_that_lacks_its_key_gets_nothing(tmp_path: Path) -> None:
    """The public API is not named as a place where text goes while it cannot be asked."""
    text = '[models]\ndefault = ["big", "own:m"]\n[models.endpoints.own]\nbase_url = "http://own.example"'
    assert resolved(tmp_path, Models(simple="other"), text).model_host == "own.example"


def test_the_reserve_is_for_the_dearest_model_that_may_answer(tmp_path: Path) -> None:
    """A first model without a price, or a cheap one, keeps no dear one that takes over from what is reserved."""
    dear = ModelPrice(input=300 * 1.25, output=1_500)
    for first in ("free", "usual-too:free", "cheap"):
        text = TWO.replace('"usual"', f'["{first}", "paid:dear"]')
        assert resolved(tmp_path, text=text).model_prices == dict.fromkeys((tier.value for tier in Tier), dear)
    assert resolved(tmp_path).model_prices == {}
    assert resolved(tmp_path, Models(complex="paid:dear")).model_prices == {"complex": dear}
    assert resolved(tmp_path, Models(complex="default:dear")).model_prices == {"complex": dear}
