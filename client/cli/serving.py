"""`worker` and `serve`: processes that do the work."""

from client.cli import output
from client.cli.desk import open_desk
from client.cli.exit_codes import ExitCode
from client.cli.here import workers_here
from workers.pools import chosen_pools
from workers.runtime import stop_signals, until_stopped


async def worker(pools: str) -> int:
    """Run pools against the engine that is there, until stopped."""
    chosen = chosen_pools(pools)
    async with open_desk() as desk:
        client = await desk.running_client()
        with stop_signals() as stop:
            async with workers_here(desk, client, chosen, log_to_terminal=True) as group:
                output.tell(f"polling as {', '.join(chosen)}; Ctrl-C drains and stops")
                await until_stopped(group, stop)
    return ExitCode.COMPLETED


async def serve() -> int:
    """Run the engine and all pools on this machine, until stopped."""
    async with open_desk() as desk:
        client = await desk.ensured_client()
        with stop_signals() as stop:
            async with workers_here(desk, client, log_to_terminal=True) as group:
                output.say(f"engine   {client.temporal.service_client.config.target_host}")
                if desk.ui_url:
                    output.say(f"web UI   {desk.ui_url}")
                output.tell('ready: research start "…" --corpus NAME in another terminal; Ctrl-C drains and stops')
                await until_stopped(group, stop)
    return ExitCode.COMPLETED
