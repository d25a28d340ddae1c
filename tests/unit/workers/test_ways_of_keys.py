"""Keys and addresses in the configuration: no key goes in clear to another machine, or to another one's endpoint."""

from pathlib import Path

import pytest

from workers.settings.loading import FILE_NAME, Flags, Settings, SettingsError, load_settings

KEY = "planted-key"
CLEAR = "http://192.0.2.1:8080"


def loaded(folder: Path, flags: Flags | None = None, **environment: str) -> Settings:
    """The settings of these variables, and of the user's file in the folder if there is one."""
    return load_settings(flags, environment=environment, user_folder=folder)


@pytest.mark.parametrize(
    ("flags", "environment", "place"),
    [
        (None, {"ANTHROPIC_BASE_URL": CLEAR, "RESEARCH_MODEL": "m"}, "ANTHROPIC_BASE_URL"),
        (Flags(model="m", model_url=CLEAR), {}, "--model-url"),
        (Flags(model="m", model_url=CLEAR), {"ANTHROPIC_BASE_URL": "https://models.example"}, "--model-url"),
    ],
    ids=["variable", "flag", "flag-over-variable"],
)
def test_a_model_that_would_get_its_key_in_clear_is_refused(
    tmp_path: Path, flags: Flags | None, environment: dict[str, str], place: str
) -> None:
    """Before anything is asked, with the place, the remedy and no value; without a key it may be asked."""
    with pytest.raises(SettingsError, match=rf"^{place}: begins with http://.*write https://") as raised:
        loaded(tmp_path, flags, ANTHROPIC_API_KEY=KEY, **environment)
    assert KEY not in str(raised.value)
    assert "192.0.2.1" not in str(raised.value)
    assert loaded(tmp_path, flags, **environment).model_host == "192.0.2.1:8080"


def test_a_key_alone_refuses_nothing(tmp_path: Path) -> None:
    """Key and address may lie in the environment for another program: no model is named, nothing is sent."""
    settings = loaded(tmp_path, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=CLEAR)
    assert not settings.model_configured
    assert settings.models.host_for("m", settings.model_keys()) is None


def test_an_endpoint_has_its_own_key_alone(tmp_path: Path) -> None:
    """A key goes to the endpoint whose variable holds it; one more in clear refuses the configuration by its place."""
    (tmp_path / FILE_NAME).write_text(
        f'[models]\ndefault = "own:m"\n[models.endpoints.own]\nbase_url = "{CLEAR}"\n', encoding="utf-8"
    )
    settings = loaded(tmp_path, ANTHROPIC_API_KEY=KEY)
    assert settings.model_keys().keys() == {"default"}
    assert settings.model_host == "192.0.2.1:8080"
    with pytest.raises(
        SettingsError, match=r"research\.toml: models\.endpoints\.own\.base_url: .*RESEARCH_ENDPOINT_OWN_KEY"
    ):
        loaded(tmp_path, RESEARCH_ENDPOINT_OWN_KEY=KEY)
