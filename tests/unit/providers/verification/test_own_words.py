"""What each of several passages alone has of a statement."""

from providers.verification.own_words import OWN_CHARACTERS, own_words

TYPES = [
    "| `number` | `numeric` | `NaN` and `infinity` values are disallowed |",
    "| `boolean` | `boolean` | Only lowercase `true` and `false` spellings are accepted |",
    "Numbers are printed as the type does: 1.230e-5 becomes 0.00001230.",
]


def test_of_each_passage_the_words_are_named_that_the_others_lack() -> None:
    """A figure, a name in code and a word in another form count as words; what all passages share tells nothing."""
    statement = "A number has no `NaN`, a boolean is lowercase, and `1.230e-5` becomes 0.00001230."
    assert own_words(statement, TYPES, "en") == ["NaN", "boolean lowercase", "1.230e-5 0.00001230"]


def test_a_call_keeps_its_brackets_and_others_are_left_out() -> None:
    """A reader recognizes `json_each(X)`; a date in brackets is the date."""
    passages = ["json_each(X) walks the array.", "Added on 2020-01-22."]
    assert own_words("`json_each(X)` exists (2020-01-22).", passages, "en") == ["json_each(X)", "2020-01-22"]


def test_a_passage_without_words_of_its_own_is_named_by_its_beginning() -> None:
    """That of a paraphrase, and one whose words another passage has, too."""
    passages = ["Rows are locked until the end of the transaction.", "Sperren bleiben bis zum Ende."]
    told = own_words("Locks are held until the transaction ends.", passages, "en")
    assert told[1] == "Sperren bleiben bis zum Ende."
    assert own_words("Rows.", ["Rows stay where they are put by whoever wrote them.", "Rows."], "en") == [
        "Rows stay where they are put…",
        "Rows.",
    ]


def test_only_few_words_are_named() -> None:
    """They cost less than the label that they explain."""
    statement = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    told = own_words(statement, [statement, "lambda"], "en")
    assert len(told[0]) <= OWN_CHARACTERS
    assert told[0].startswith("alpha beta")
