"""Fill the generated parts of `configuration.md` from the models, so that the page cannot drift from the code.

usage: python docs/generate_configuration.py      (a test compares the page with what this script would write)
"""  # noqa: INP001 - a folder of pages is no package

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.presets import preset
from contracts.request import Depth, ResearchRequest
from contracts.strategies import BUILT_IN as STRATEGIES
from providers.search.declarations import BUILT_IN, search_variables
from workers.settings.loading import CLUSTER_VARIABLES, CONFIG_VARIABLE, VARIABLES
from workers.settings.sections import FileSettings

PAGE = Path(__file__).with_name("configuration.md")

MEANINGS = {
    "RESEARCH_CONFIG": "a `research.toml` of which every key counts, as with `--config`",
    "RESEARCH_HOME": "folder of everything that is kept on this machine; default: the platform's user data folder",
    "RESEARCH_CONTENT_URL": "where sessions, documents and reports are stored, as a URL of an object store that all "
    "hosts share (a folder: documents and reports alone); default: `RESEARCH_HOME`",
    "RESEARCH_RETENTION_DAYS": "how long a run is kept, in days; without it until it is deleted",
    "RESEARCH_TENANT": "the tenant of the runs that are started here; commands and doors then find only its runs",
    "RESEARCH_RUNS_AT_ONCE": "how many runs go on at once; default 20, further ones wait for their turn",
    "RESEARCH_RUNS_AT_ONCE_PER_TENANT": "how many of them may be of one tenant; default as many as in all",
    "RESEARCH_BUILD_ID": "the version of the workflow code that workers of a cluster poll as; default: the product's "
    "with a digest of the code, without a cluster none; `unversioned`: none",
    "RESEARCH_ALLOW_HOSTS": "exact `host:port` pairs, separated by commas, that may be read although they are private",
    "RESEARCH_CONTACT": "your contact for owners of web sites: sent with every request for a page",
    "RESEARCH_SEMANTIC_RANKING": "rank passages by closeness of meaning, too: `true`, `false`, or `auto`, where the "
    "extra `semantic` is installed",
    "REDIS_URL": "what workers share: the journal, caches, rate limits; without it one SQLite file",
    "ANTHROPIC_API_KEY": "key of the model endpoint; alone it switches nothing on",
    "ANTHROPIC_BASE_URL": "another endpoint, of either protocol; a local one needs no key",
    "OPENAI_API_KEY": "key of an endpoint of chat completions; counts where nothing else names an endpoint",
    "OPENAI_BASE_URL": "its address; default: OpenAI's own; a local one needs no key",
    "RESEARCH_CHAT_KEY": "the key that clients of the chat completions of `research serve` must send",
    "RESEARCH_NOTIFY_URL": "the address that gets a notice when a run ends or waits for a person; as `notify.url`",
    "RESEARCH_NOTIFY_KEY": "the key that signs notices; without it they are not signed",
    "RESEARCH_TENANT_KEYS": "keys that sign the starts of runs, as `TENANT=KEY` with commas between; a client has its "
    "own, workers have all; `*` in place of a tenant: for all of them",
    "RESEARCH_ENCRYPTION_KEYS": "keys of `[encryption]`, as `ID=KEY` with commas between: each 32 bytes in base64, as "
    "`openssl rand -base64 32` makes them; every process needs them all",
    "RESEARCH_TRACING_ENDPOINT": "address of a collector that gets traces of runs, such as `http://127.0.0.1:4318`; "
    "needs the extra `tracing`",
    "RESEARCH_TRACING_HEADER": "a header for it, as `Name: value`, such as `Authorization: Bearer KEY`",
    "FIRECRAWL_API_KEY": "key of the service of `[web.firecrawl]`; a server of your own may need none",
    "RESEARCH_MODEL": "name of the model for every tier; a run uses a model only if one is named",
    "RESEARCH_MODEL_SIMPLE": "model of the simple tier (the supervisor's reflections)",
    "RESEARCH_MODEL_ANALYTICAL": "model of the analytical tier (planning, analysis, refinement)",
    "RESEARCH_MODEL_COMPLEX": "model of the complex tier (writing the report)",
    "TEMPORAL_ADDRESS": "`host:port` of a Temporal cluster; without it the dev server is used",
    "TEMPORAL_PROFILE": "a profile of Temporal's own client configuration file",
    "TEMPORAL_CONFIG_FILE": "another place of that file",
}
"""A variable without a meaning, here or in its provider's declaration, fails the generation."""

PRESET_ROWS = (
    "max_iterations",
    "max_sub_queries",
    "max_sources",
    "max_new_sources",
    "max_sources_per_query",
    "max_parallel",
    "max_parallel_reads",
    "deadline_seconds",
    "reserve_seconds",
    "max_cost_usd",
    "severity_floor",
)


def request_defaults() -> str:
    """The complete request with every default, as JSON."""
    request = ResearchRequest(query="How are backups made?").model_dump(mode="json")
    return f"```json\n{json.dumps(request, indent=2, ensure_ascii=False)}\n```"


def request_fields() -> str:
    """One row per field of the request."""
    schema = ResearchRequest.model_json_schema()
    strategies = ", ".join(strategy.name for strategy in STRATEGIES if not strategy.scoped)
    rows = [
        f"| `{path}` | {strategies if path == 'strategy' else values} | {default} |"
        for path, values, default in fields(schema, schema["$defs"])
    ]
    return "\n".join(["| field | values | default |", "|---|---|---|", *rows])


def presets() -> str:
    """The limits that `null` stands for."""
    depths = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
    limits = [preset("supervisor", depth).model_dump(mode="json") for depth in depths]
    rows = [f"| `{name}` | " + " | ".join(f"{each[name]}" for each in limits) + " |" for name in PRESET_ROWS]
    return "\n".join(["| supervisor | light | medium (= auto) | extended |", "|---|---|---|---|", *rows])


def variables() -> str:
    """One row per environment variable."""
    names = (CONFIG_VARIABLE, *VARIABLES, *search_variables(), *CLUSTER_VARIABLES)
    meanings = MEANINGS | {name: text for provider in BUILT_IN for name, text in provider.meanings.items()}
    rows = [f"| `{name}` | {meanings[name]} |" for name in names]
    return "\n".join(["| variable | meaning |", "|---|---|", *rows])


def file_keys() -> str:
    """One row per key of `research.toml`."""
    schema = FileSettings.model_json_schema()
    rows = [f"| `{path}` | {values} | {default} |" for path, values, default in fields(schema, schema["$defs"])]
    return "\n".join(["| key | values | default |", "|---|---|---|", *rows])


def fields(schema: dict[str, Any], definitions: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, values and default of each leaf of a JSON schema."""
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        path, inner = prefix + name, without_null(field, definitions)
        while (named := schema_of_named(inner)) is not None:
            path, inner = f"{path}.NAME", without_null(named, definitions)
        if "properties" in inner:
            yield from fields(inner, definitions, f"{path}.")
        else:
            default = "required" if name in required else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
            yield path, values_of(inner, definitions), default


def schema_of_named(field: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of the values of a table whose keys are names; None for anything else."""
    values = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
    return next((value for value in values if isinstance(value, dict)), None)


def without_null(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of the value itself: references followed, `null` left out."""
    if "$ref" in field:
        return dict(definitions[field["$ref"].rsplit("/", 1)[1]])
    options = [option for option in field.get("anyOf", []) if option.get("type") != "null"]
    return without_null(options[0], definitions) if len(options) == 1 else field


def values_of(field: dict[str, Any], definitions: dict[str, Any]) -> str:
    """In words: which values a field takes."""
    if "enum" in field:
        return ", ".join(field["enum"])
    if "const" in field:
        return str(field["const"])
    if "anyOf" in field:
        options = [option for option in field["anyOf"] if option.get("type") != "null"]
        return " or ".join(values_of(option, definitions) for option in options)
    if field.get("type") == "array":
        most = f", at most {field['maxItems']}" if "maxItems" in field else ""
        return f"list of: {values_of(without_null(field['items'], definitions), definitions)}{most}"
    if field.get("type") == "object":
        keys = ", ".join(field.get("properties", {}))
        return f"object with {keys}" if keys else "any JSON object"
    return scalar(field)


def scalar(field: dict[str, Any]) -> str:
    """A number, truth value or text with its bounds."""
    names = {"integer": "whole number", "number": "number", "boolean": "true, false", "string": "text"}
    low, high = field.get("minimum", field.get("minLength")), field.get("maximum", field.get("maxLength"))
    unit = " characters" if field.get("type") == "string" else ""
    bounds = {(True, True): f", {low} to {high}{unit}", (True, False): f", at least {low}{unit}"}
    bounds |= {(False, True): f", at most {high}{unit}"}
    return names.get(field.get("type", ""), "any") + bounds.get((low is not None, high is not None), "")


BLOCKS = {
    "request-defaults": request_defaults,
    "request-fields": request_fields,
    "presets": presets,
    "variables": variables,
    "file-keys": file_keys,
}


def filled(page: str) -> str:
    """The page with every generated block renewed. Raises KeyError for an unknown block, ValueError for a lost one."""
    if lost := [name for name in BLOCKS if page.count(f"<!-- generated: {name} -->") != 1]:
        raise ValueError(f"configuration.md wants exactly one block {lost[0]}")
    pattern = re.compile(r"(<!-- generated: (\S+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda match: match[1] + BLOCKS[match[2]]() + match[3], page)


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
