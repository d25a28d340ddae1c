"""`steer`, `stop`, `cancel`: messages to a run."""

from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode
from client.handle import ResearchHandle


async def steer(given: str, text: str) -> int:
    """Give guidance; what the run understands and does is printed."""
    if not text.strip():
        raise CommandError(f'the text is empty: research steer {given} "Look at …"')
    async with open_context() as context:
        handle = await _handle(context, given)
        answer = await handle.steer(text)
    output.say(answer or "noted for the next phase")
    return ExitCode.COMPLETED


async def stop(given: str) -> int:
    """Ask for the report from what is there."""
    async with open_context() as context:
        handle = await _handle(context, given)
        answer = await handle.stop_and_report()
    output.say(answer or "the report is being written from what is there")
    output.tell(f"research watch {handle.research_id}")
    return ExitCode.COMPLETED


async def cancel(given: str, *, force: bool) -> int:
    """Stop a run without a report, with `force` over its head; a run that is over is left alone."""
    async with open_context() as context:
        handle = await _handle(context, given)
        if not await handle.is_running():
            output.say(f"{handle.research_id} has already ended")
            return ExitCode.COMPLETED
        if force:
            await handle.terminate()
            output.say(
                f"{handle.research_id} was ended; go on from its last checkpoint: research resume {handle.research_id}"
            )
            return ExitCode.COMPLETED
        await handle.cancel()
    output.say(f"{handle.research_id} is being cancelled; continue it with `research resume {handle.research_id}`")
    return ExitCode.COMPLETED


async def _handle(context: CommandContext, given: str) -> ResearchHandle:
    research_id = await context.resolve(given)
    client = await context.running_client()
    return client.handle(research_id)
