"""Every workflow that the pool `workflows` runs."""

from workflows.deep_research import DeepResearchWorkflow
from workflows.research_agent import ResearchAgentWorkflow
from workflows.research_document import ResearchDocumentWorkflow

WORKFLOWS: list[type] = [DeepResearchWorkflow, ResearchAgentWorkflow, ResearchDocumentWorkflow]
