"""Evidence under an id that stands for something else."""

from contracts.evidence import Evidence
from tests.fakes import states


def test_another_passage_under_a_known_id_is_found() -> None:
    """The same passage may come again; another one under its id clashes."""
    known = Evidence(id="ev-1", source_id="src-1", start=0, end=9, quote_hash="x")
    state = states.state(evidence={known.id: known})
    again = known.model_copy(update={"sub_query_id": "sq-2"})
    assert state.clashing_ids([again, known.model_copy(update={"id": "ev-2"})]) == set()
    for change in ({"source_id": "src-2"}, {"start": 1}, {"end": 8}):
        assert state.clashing_ids([known.model_copy(update=change)]) == {"ev-1"}
