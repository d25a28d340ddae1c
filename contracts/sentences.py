"""The sentences of this product about a run: data with an id and values, shown in the language of the reader.

A limitation, a note on a gap or a reason is made where its cause is known, and shown elsewhere: by a report in the
language of its question, by a terminal or a program in English. `Message` travels between both. `SENTENCES` has the
English sentences; `providers/languages/*.toml` translate them by id.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import PlainSerializer, SerializationInfo, ValidatorFunctionWrapHandler, WrapValidator

from contracts.vocabulary import StopReason

SENTENCES: Final[Mapping[str, str]] = {
    **{f"stop_{reason.value}": reason.text for reason in StopReason},
    "content_not_archived": "content that was not shown could not be archived: {reason}",
    "not_answered": "Not answered: {text}",
    "empty_sections": "Nothing was written under: {text}",
    "update_undivided": "a change of the report could not be divided into updates, and was not made ({reason})",
    "report_unrevised": "the report was not revised ({reason})",
    "update_too_long": "parts of a new text exceed limits.max_update_characters, so the report lacks them",
    "gap_failed": "The search for “{query}” failed, so it is not answered.",
    "gap_skipped": "“{query}” was not looked into to its end ({why}).",
    "gap_silent": "Nothing in the sources answers “{query}”.",
    "written_from_there": "{why}; the report was written from what was there.",
    "sources_lost": "{count} of {all} sources were not read: {why}.",
    "check_failed": "The report did not pass its check: {what}.",
    "nothing_leaves": "nothing leaves this machine",
    "passages_go": "passages go to {host}",
    "searches_go": "searches go to {host}",
    "pages_read": "pages are read from the web",
    "browser_asked": "addresses of pages that need a browser go to {host}",
    "by_operator": "your documents",
    "by_setting": "your setting for this site",
    "site_plain": "site without special standing",
    "site_private": "private source",
    "site_government": "government site",
    "site_international": "international organisation",
    "site_standards": "standards body",
    "site_university": "university or research institute",
    "site_publisher": "scholarly publisher",
    "site_index": "scholarly index",
    "site_preprint": "preprint server",
    "site_official": "official documentation",
    "site_encyclopedia": "encyclopedia",
    "site_wiki": "encyclopedia that anybody can edit",
    "site_news": "established news organisation",
    "site_reference": "reference or research organisation",
    "site_anybody_pages": "pages that anybody can write",
    "site_anybody_hosting": "hosting that anybody can use",
    "site_thin": "site with thin or paid content",
    "site_hiding": "address that hides another",
    "page_language": "in another language than the question",
    "page_covers": "covers {found} of {all} words",
    "page_undated": "undated",
    "page_too_old": "{year}, before the time asked for",
    "page_little": "little text",
    "lost_time": "no worker read them in time",
    "lost_room": "no room was left to keep them",
    "lost_store": "the store of documents did not answer",
    "lost_stopped": "the workers that read them were stopped",
    "lost_workers": "the workers that read them were lost",
    "degraded_steered": "{role}: done without the model, whose answers could not be used",
    "degraded_refused": "{role}: done without the model ({reason})",
    "degraded_provider": "search provider {name} was lost during the run: {why}",
    "degraded_anew": "the report was written anew without the model, whose text could not be laid out",
    "degraded_analysis": "not everything that was read could be analyzed in time",
    "degraded_kept": "not in the text: {findings} ({subjects}); {why}",
    "shorter_report_only": "what was left would have paid for a shorter report only",
    "no_usable_text": "the model gave no usable text",
    "degraded_no_text": "no text could be written, not even without the model",
    "degraded_unsaved": "a checkpoint could not be saved",
    "degraded_gate_planning": "planning gate: {issue}",
    "degraded_gate_gathering": "gathering gate: {issue}",
    "degraded_gate_analysis": "analysis gate: {issue}",
    "degraded_gate_synthesis": "synthesis gate: {issue}",
    "few_sources": "too few sources: {count}, at least {least} needed",
    "few_findings": "too few findings: {count}, at least {least} needed",
    "low_coverage": "findings rest on {share} of the sources, at least {least} needed",
    "half_completed": "{count} of {all} sub-queries completed, at least half needed",
    "no_high_source": "no source is of high quality",
    "no_high_finding": "no finding is of high confidence",
    "skip_empty": "the file is empty",
    "skip_no_text": "the file has no text",
    "skip_document": "the document has no text",
    "skip_scanned": "the document has no text, perhaps only scanned pages",
    "skip_password": "the document is protected by a password",
    "skip_pdf": "a damaged PDF",
    "skip_archive": "a damaged archive",
    "skip_type": "files named {suffix} are not read as documents",
    "skip_large": "larger than {size} bytes",
    "skip_outside": "a link that leads out of the folder",
    "skip_forbidden": "the file may not be read",
    "skip_gone": "the file is not there",
    "without_research": "Nothing was searched or read for this answer, so nothing in it is cited or checked.",
    "taken_as_it_stands": "The question was taken as it stands, though it leaves open: {asked}",
    "decided_by_itself": "the question was left open, so the run decided by itself: {question}",
    "degraded_whole_section": "the report was written as a whole: a section could not be written by itself",
    "degraded_whole_joined": "the report was written as a whole: its sections could not be put together",
    "degraded_not_reviewed": "the draft was not reviewed to the end",
    "degraded_not_checked": "the claims could not all be checked ({reason})",
    "reason_word_for_word": "The passage is word for word the quoted text of its source.",
    "reason_not_checked": "Nobody has checked whether the cited passages support this sentence.",
    "reason_not_the_quote": "The passage is not word for word the text that it cites.",
    "reason_cites_nothing": "It cites no passage.",
    "reason_agrees": "Numbers, names and wording agree with the cited passages.",
    "reason_something_else": "The cited passages are about something else.",
    "reason_word_order": "The parts are in another order in the source.",
    "reason_in_no_passage": "“{part}” is in no cited passage.",
    "reason_least_most": "“{number}” is a minimum in one and a maximum in the other.",
    "reason_other_number": "The claim says “{number}”; the cited passages say “{rival}”.",
    "reason_not_reached": "The check did not get to this sentence.",
    "reason_passages_say": "The passages say: “{words}”",
    "reason_no_answer": "The checker gave no usable verdict on it.",
    "reason_two_answers": "The checker gave two verdicts on it.",
    "reason_names_no_words": "The checker called it supported, yet named no words of its passages.",
    "reason_credulous": "The checker called it supported, and something that no passage speaks of as well.",
    "reason_named_nowhere": "“{part}” is named in no cited passage.",
    "reason_undecided": "The wording differs too much for rules to judge.",
    "reason_modifier": "Only one of the claim and its source says “{word}” or the like.",
    "reason_leaves_out_number": "The claim leaves out a number of its source.",
    "reason_conclusion": "It is the writer's conclusion; the facts that it gives are in the cited passages.",
    "reason_split_off": "No passage of the run supports this part.",
    "several": "{parts}",
    "label_high": "high",
    "label_medium": "medium",
    "label_low": "low",
    "label_unknown": "unknown",
    "quality_changed": "{role}: {now} (was {before})",
    "skip_damaged": "the document is damaged",
    "skip_book": "the book is damaged",
    "skip_notebook": "the notebook is damaged",
    "skip_protected_book": "the book is protected against copies",
    "skip_reader_limit": "the document exceeds a limit of its reader",
    "skip_mail_parts": "the mail has more than {count} parts in parts",
    "skip_no_html": "the page is no HTML",
    "skip_elements": "the page has more than {count} elements",
    "skip_nested": "elements are nested too deep",
    "skip_nested_deeper": "elements are nested deeper than {count}",
    "skip_attributes": "a tag has more than {count} attributes",
    "skip_mismatch": "the content is not of the type that the server declares",
    "skip_media_type": "documents of the type {kind} are not read",
    "skip_format": "documents of this format are not read",
    "skip_format_remedy": "documents of this format are not read: save it as {kind}",
    "skip_unpacks": "the document unpacks to more than {size} bytes",
    "skip_pages": "the document has more than {count} pages",
    "skip_not_regular": "not a regular file",
    "skip_link": "a link: links are not followed",
    "skip_disk": "the file cannot be read from its disk",
    "skip_key": "looks like a key or a password; a corpus holds documents",
    "skip_stalled": "its reader got no processor time; the next refresh reads it again",
    "skip_too_long": "reading took too long",
    "skip_memory": "reading needed too much memory",
    "skip_crashed": "the document made its reader crash",
    "skip_failed": "the document made its reader fail",
    "statement_one": "{count} statement",
    "statement_many": "{count} statements",
    "finding_one": "{count} finding",
    "finding_many": "{count} findings",
    "page_one": "{count} page",
    "page_many": "{count} pages",
    "cycle_one": "{count} cycle",
    "cycle_many": "{count} cycles",
    "turn_one": "{count} turn",
    "turn_many": "{count} turns",
    "note_one": "{count} note",
    "note_many": "{count} notes",
    "ended_early": "{why}.",
    "done_without_model": "Part of the work was done without the model.",
    "sources_gone": "Gone or unreachable when the sources were read again, so cited as archived: {titles}",
    "refresh_unfinished": "The refresh ended before all sources were read again: {count} were not.",
    "lost_processor": "the processes that read them got no processor time",
    "no_report": "there is no report",
    "short_report": "the report has {count} characters, at least {least} needed",
    "no_sections": "the report has no section headings",
    "unresolved_citations": "{count} citations or names of the prompt named nothing known and were removed",
    "no_citations": "the report cites nothing although there are findings",
    "not_supported": "{count} of {statements} not borne out by the cited sources.",
    "not_supported_remedy": "{count} of {statements} not borne out by the cited sources; `--set verify=full` has them "
    "corrected.",
    "protected_unread": "A protected source was not read: {url} ({reason}).",
    "run_ended_before": "the run ended before",
    "no_web": "this run reads no pages of the web (`--web`)",
    "analysis_failed": "analysis of “{query}”: {reason}",
    "analysis_of_pages_failed": "analysis of {pages}: {reason}",
    "pages_not_analyzed": "{pages} of those read could not be analyzed any more",
    "steered": "an answer of the model repeated its private mark: page text may have steered it",
    "search_failed": "search for “{query}”: {reason}",
    "sources_unavailable": "{count} of {all} sources were unavailable for a long time",
    "change_too_late": "a change of the plan came too late: the report goes by the version before",
    "hook_failed": "hook {name} failed after {phase}: {reason}",
    "hook_malformed": "hook {name} answered after {phase} with something that is neither text nor null",
    "session_unsaved": "the finished session could not be saved: only the engine's history has this result",
    "layout_failed": "the text of the report could not be laid out ({problem})",
    "rated_by_rules": "sources were assessed by rules alone",
    "removals_undone": "the check would have removed {statements} that passages of the run may support: they stay, "
    "marked",
    "notes_not_placed": "not everything that was noted could be put into the report in time",
    "no_notes": "the agent finished without a note: rules chose the pages that were read",
    "idle_turns": "{turns} of the agent in a row brought nothing",
    "turns_used_up": "the turns of the agent are used up",
    "notes_without_room": "{notes} found no room in the report, under: {sections}",
    "important_notes_left_out": "{notes} of the highest priority found no section that took them: {numbers}",
    "update_unwritten": "an update of the report was not written ({reason}); rules put its notes in",
    "read_last_by_rules": "what was read last was analyzed without the model, for which nothing was left",
    "not_read_again": "not read again, because the limit of pages was reached: {titles}",
    "no_agent_sent": "the orchestrator sent no agent in {cycles}",
    "no_tool_called": "the orchestrator called no tool in cycle {count}",
    "executor_too_deep": "an executor of level {level} was not started: {goal}",
    "leaf_failed": "leaf “{goal}”: {reason}",
    "leaf_source_gone": "its source is not there any more",
    "leaf_unread": "not read",
    "no_tree": "no tree for “{query}”: {why}",
    "of_agent": "{agent}: {note}",
    "call_not_allowed": "{caller} may not call {called}: this branch ends here",
    "role_failed": "{role}: {reason}",
    "role_failed_detail": "{role}: {reason}: {detail}",
    "role_ended_processes": "{role}: a text ended the processes that worked on it ({reason})",
    "no_room_for_protected": "no model has room for the protected sources: the rest was done without it",
    "shortened_by_sentences": "{role}: a text was shortened by its own sentences, since no model summarised it",
    "work_failed": "{work}: {reason}: {detail}",
    "without_usable_answers": "done without the model, whose answers could not be used",
    "failure_unusable": "the model's answer was unusable",
    "failure_cut": "the model's answer was cut off",
    "failure_declined": "the model declined to answer",
    "failure_rejected": "the model's endpoint refused the call",
    "failure_model": "the model did not answer",
    "failure_search": "the search service did not answer",
    "failure_search_form": "the search service gives no answer of the documented form: check its address with "
    "`research doctor --search`",
    "failure_search_refused": "the search service refused the query",
    "failure_search_settings": "the search service takes no query with the settings of this installation",
    "failure_corpus": "there is no such corpus, or its folder is gone",
    "failure_busy": "the service was busy for too long",
    "failure_workers": "its workers were lost",
    "failure_text": "a text ended the processes that worked on it",
    "failure_processor": "its process got no processor time",
    "failure_store": "a store did not answer",
    "failure_room": "no room was left where documents are stored",
    "failure_time": "no worker did it in time",
    "several_readings": "it can be read in several ways",
    "answered_before": "what was found answers the question, as was judged after an earlier step",
    "agent_turn_not_come": "its turn had not come when the run was to end",
    "agent_unanswered": "it had not answered when the run was to end",
    "agent_repeats": "its task repeats what only this run knows",
    "agent_nothing_left": "nothing is left for it to use: {why}",
    "agent_late": "it had not answered after {seconds} s, the most that is waited for",
    "agent_failed": "it failed: {why}",
    "agent_stopped": "it was stopped before it had anything",
    "activity_failed": "{work} failed: {reason}",
    "gate_few_queries": "too few sub-queries: {count}, at least {least} needed",
    "gate_many_queries": "{count} sub-queries, at most {most}",
    "gate_no_brief": "the research brief is missing",
    "gate_short_query": "sub-query too short: {text}",
    "gate_analyses_failed": "{count} of the analyses failed",
    "gate_open_gaps": "open after the last iteration: {gaps}",
    "gap_one": "{count} gap",
    "gap_many": "{count} gaps",
    "words_read": "{share} of the words are read; not read: {parts}",
    "part_words": "{part} ({count})",
    "part_formulas": "formulas that no program has calculated",
    "part_other": "other text",
    "part_footnotes": "footnotes",
    "part_endnotes": "endnotes",
    "part_comments": "comments",
    "part_charts": "charts",
    "part_footers": "footers",
    "part_dialogs": "dialogs",
    "part_buttons": "buttons",
    "part_form_fields": "form fields",
    "part_navigation": "navigation",
    "part_beside": "text beside the main part",
    "part_repeated": "repeated page heads and feet",
    "part_outside": "beyond the edge of a page",
    "part_invisible": "invisible letters",
    "pages_unread": "{pages} could not be read: {numbers}",
    "pages_without_words": "{pages} without words, perhaps scanned: {numbers}",
    "pages_unnamed_letters": "{pages} with letters that the file does not name, read as other signs: {numbers}",
    "pages_uncertain": "reading uncertain on {pages}, where two readers differ: {numbers}",
    "abstract_closed": "only the abstract of this paper was read: the search named no open text",
    "abstract_instead": "only the abstract of this paper was read, as its open text could not be: {why}",
    "abstract_no_pdf": "its address gave no PDF",
    "text_cut": "the text is long: only its first {count} characters are read",
    "attachments_unread": "{attachments} not read",
    "attachment_one": "{count} attachment",
    "attachment_many": "{count} attachments",
    "provider_unset": "set {variables}",
    "provider_scheme": "{variable} must begin with https:// or http://",
    "provider_address": "{variable} is no usable address",
    "read_in_browser": "read in a browser of the service at {host}: without its scripts the page has no text",
    "browser_failed": "may show more in a browser; the service at {host} did not give it: {reason}",
    "provider_ended": "its service has ended on {day}: set up {successor}",
    "provider_invalid_address": "its address is not valid",
    "provider_silent": "{host} gave no answer in {seconds} s: check the network",
    "provider_untrusted": "{host} has no certificate that is trusted, or does not speak TLS at port {port}",
    "provider_unreachable": "{host} is not reachable at port {port} ({reason}): check the network",
    "provider_not_started": "{host} is not reachable at port {port} ({reason}): start its server, or check the port",
    "provider_model_missing": "needs a model endpoint that searches the web: set {key} and {model}, without {address}",
    "provider_not_needed": "not needed: {name} searches the web",
    "listed": "{first}, {rest}",
    "searches_used_up": "the limit of searches was reached",
    "cut_to_budget": "{setting}: {allowed} in place of {asked}, as no more of the day's money is left",
    "cut_to_ceiling": "{setting}: {allowed} in place of {asked}, as the operator allows no more",
    "provider_unconfigured": "the workers that search are not configured for it: see `research doctor`",
}
"""Sentences in English by id. A sentence that ends with a full stop begins with a capital letter when it is shown."""
SENTENCE: Final = "sentence"
"""Key of the id of a message as JSON."""
AS_DATA: Final = "messages as data"
"""Context of Pydantic for JSON that a process of this product reads back; any other JSON has the English text."""
SEPARATOR: Final = "; "
"""Between the values of a list."""


READ_IN_BROWSER: Final = "read_in_browser"
"""Id of the note on a page that a browser of a service has read."""


class Message(str):
    """A sentence of the product with its values; as a string it is the English text, as JSON of a run its data.

    A value is a text, a whole number, another message, or a list of these. Raises KeyError for an id without a sentence
    and for a value that the sentence needs and does not get.
    """

    __slots__ = ("id", "values")

    id: str
    values: "Mapping[str, Value]"

    def __new__(cls, identity: str, /, **values: "Value") -> Self:
        """Create the message with the English text of its sentence."""
        message = super().__new__(cls, fill(SENTENCES[identity], values, _in_english))
        message.id = identity
        message.values = values
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, "Value"]]:
        """Return what a copy or a pickle is created from."""
        return (self.id,), dict(self.values)

    def data(self) -> dict[str, Any]:
        """Return the message as JSON: its id, and its values if there are any."""
        data: dict[str, Any] = {SENTENCE: self.id}
        if self.values:
            data["values"] = {name: _to_data(value) for name, value in self.values.items()}
        return data

    def rendered(self, sentences: Mapping[str, str], show: "Callable[[str, Value], str]") -> str:
        """Return the text in another language: its `sentences` by id, and `show` for each name and value.

        A sentence without a translation is returned in English.
        """
        if self.id in sentences:
            return fill(sentences[self.id], self.values, show)
        return str(self)


def why_stopped(reason: StopReason) -> "Message":
    """Return the reason of a run's end as a message."""
    return Message(f"stop_{reason.value}")


def counted(noun: str, count: int) -> "Message":
    """Return a number with its noun, such as `1 page` or `2 pages`: its sentences are `NOUN_one` and `NOUN_many`."""
    return Message(f"{noun}_one" if count == 1 else f"{noun}_many", count=count)


def bounded(text: str, limit: int) -> str:
    """Return a message as it is, and of any other text at most `limit` characters."""
    if isinstance(text, Message):
        return text
    return text[:limit]


def joined(parts: "Sequence[str]") -> str:
    """Return texts and messages as one; empty for none."""
    if len(parts) > 1:
        return Message("several", parts=parts)
    return parts[0] if parts else ""


Value: TypeAlias = "str | int | Sequence[str]"
"""A value of a sentence; a string may be a message."""


def fill(sentence: str, values: Mapping[str, Value], show: Callable[[str, Value], str]) -> str:
    """Fill the values into a sentence. Raises KeyError if one is missing."""
    text = sentence.format(**{name: show(name, value) for name, value in values.items()})
    if sentence.endswith("."):
        return f"{text[:1].upper()}{text[1:]}"
    return text


def _in_english(_name: str, value: Value) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return SEPARATOR.join(value)


# --- as JSON ---------------------------------------------------------------------------------------------------------
def to_data(text: str) -> str | dict[str, Any]:
    """Return a text as JSON from which `from_data` makes the same text or message."""
    if isinstance(text, Message):
        return text.data()
    return str(text)


def from_data(data: object) -> str:
    """Return the text or message of some JSON; a message whose sentence this version lacks as its id and values.

    Raises ValueError for any other JSON.
    """
    match data:
        case str():
            return data
        case {"sentence": str(identity), "values": dict(written)}:
            values = {str(name): _value_of(value) for name, value in written.items()}
        case {"sentence": str(identity)}:
            values = {}
        case _:
            raise ValueError("expected a text, or a sentence with its values")
    try:
        return Message(identity, **values)
    except KeyError:
        known = SEPARATOR.join(_in_english(name, value) for name, value in values.items())
        if known:
            return f"{identity} ({known})"
        return identity


def _to_data(value: Value) -> Any:
    if isinstance(value, str):
        return to_data(value)
    if isinstance(value, int):
        return value
    return [to_data(item) for item in value]


def _value_of(data: object) -> Value:
    if isinstance(data, int):
        return data
    if isinstance(data, list):
        return [from_data(item) for item in data]
    return from_data(data)


def _read(value: object, handler: ValidatorFunctionWrapHandler) -> str:
    text = from_data(value) if isinstance(value, Mapping) else value
    if isinstance(text, Message):
        return text
    return str(handler(text))


def _write(value: str, info: SerializationInfo) -> Any:
    if info.context == AS_DATA:
        return to_data(value)
    return str(value)


Text = Annotated[str, WrapValidator(_read), PlainSerializer(_write, when_used="json")]
"""A text that may be a message of the product; from outside or of earlier versions it is a plain string.

As JSON a message is its English text or, in the context `AS_DATA`, its data.
"""
