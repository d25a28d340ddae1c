"""From a draft with evidence markers to a report that can be checked: numbers, claims, Markdown, HTML, JSON, audit."""
