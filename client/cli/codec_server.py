"""`codec-server`: decrypts payloads for Temporal's web UI and command line, by its protocol of remote codecs."""

import asyncio
import hmac
import signal
from dataclasses import dataclass
from typing import Annotated, Final

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from temporalio.api.common.v1 import Payloads
from typer import Option

from client.cli.context import CommandContext
from client.cli.http_doors import LOOPBACK, LOOPBACK_HOSTS, HttpDoor
from client.cli.options import Commands
from client.cli.output import CommandError, ensure_folder, print_hint, print_result
from client.http_server import Foreign, OwnNames, WholeRequests, make_server
from client.page.key import stored_key
from contracts.names import MODULE_PREFIX
from providers.errors import ProviderError
from workers.dev_server import describe_server
from workers.encryption import KeyringCodec

DOOR: Final = HttpDoor("the codec server", "--port", 7239, "", f"{MODULE_PREFIX}client.cli.codec_server")
TOKEN_FILE: Final = "codec.key"  # noqa: S105  its name
MAX_BODY_BYTES: Final = 16_000_000
"""Of a request: the web UI sends the payloads of a page of a history at once."""

commands = Commands()


@dataclass(frozen=True)
class CodecServer:
    """Answers POST /decode and /encode for requests that name this server and have its token.

    The token is sent as `Authorization: Bearer TOKEN`, or stands before the path, since the web UI can only be given an
    address. Web pages of other origins get nothing.
    """

    codec: KeyringCodec
    token: str
    names: OwnNames
    """Its own, with the origins of the web UI."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            return await _acknowledge(receive, send)
        request = Request(scope, receive)
        answer = self._objection(request) or await self._answer(request)
        origin = request.headers.get("origin")
        answer.headers["cache-control"] = "no-store"
        if origin is not None and origin in self.names.origins:
            answer.headers["access-control-allow-origin"] = origin
            answer.headers["access-control-allow-methods"] = "POST"
            answer.headers["access-control-allow-headers"] = "authorization, content-type, x-namespace"
            answer.headers["vary"] = "origin"
        return await answer(scope, receive, send)

    def _objection(self, request: Request) -> Response | None:
        """Return the refusal of a request; None if it may pass."""
        foreign = self.names.objection(request.headers)
        if foreign is Foreign.NAME:
            return PlainTextResponse("This server does not answer under that name.\n", 421)
        if foreign is Foreign.PAGE:
            return PlainTextResponse("Pages of this origin are not answered: see --origin.\n", 403)
        if request.method == "OPTIONS":  # a browser asks before it sends, without a token
            return Response(status_code=204)
        if request.method != "POST":
            return PlainTextResponse("Only POST is answered.\n", 405)
        named = request.url.path.rpartition("/")[0].removeprefix("/")
        sent = request.headers.get("authorization", "").removeprefix("Bearer ").strip() or named
        if not hmac.compare_digest(sent.encode(), self.token.encode()) or named not in ("", self.token):
            return PlainTextResponse("Wrong or missing token: `research codec-server` prints it.\n", 401)
        return None

    async def _answer(self, request: Request) -> Response:
        steps = {"decode": self.codec.decode, "encode": self.codec.encode}
        step = steps.get(request.url.path.rpartition("/")[2])
        if step is None:
            return PlainTextResponse("There are /decode and /encode.\n", 404)
        try:
            payloads = Parse(await request.body(), Payloads()).payloads
        except (ParseError, UnicodeDecodeError):
            return PlainTextResponse("The body is no JSON of payloads.\n", 400)
        try:
            done = Payloads(payloads=await step(payloads))
        except ProviderError as error:
            return PlainTextResponse(f"{error}\n", 422)
        return Response(MessageToJson(done, indent=None), media_type="application/json")


async def _acknowledge(receive: Receive, send: Send) -> None:
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


@commands.command("codec-server")
async def codec_server(
    context: CommandContext,
    *,
    port: Annotated[
        int | None, Option(min=0, max=65_535, help=f"its port [{DOOR.port} or a free one]; 0: a free one")
    ] = None,
    host: Annotated[str, Option(help="interface that it listens on")] = LOOPBACK,
    allow_host: Annotated[
        list[str] | None, Option(metavar="HOST:PORT", help="a further name of this server; repeatable")
    ] = None,
    origin: Annotated[
        list[str] | None, Option(metavar="URL", help="address of a web UI [that of the dev server]; repeatable")
    ] = None,
) -> None:
    """Decrypt payloads for Temporal's web UI and command line until stopped, with the keys of [encryption].

    It prints two addresses: the one with the token is for the dialog "Codec Server" of the web UI.

    research codec-server
    research codec-server --origin https://temporal.example.org
    """
    settings = context.settings
    if not settings.keyring.ids:
        raise CommandError("there is no encryption key: name one in [encryption.keys] of research.toml")
    if host not in LOOPBACK_HOSTS and not allow_host:
        raise CommandError(f"--host {host} can be reached from other machines: name this server by --allow-host, too")
    ensure_folder(settings.home, "set RESEARCH_HOME")
    origins = set(origin or ())
    server = None if settings.uses_cluster else describe_server(settings.home)
    if server is not None and server.ui_url:
        origins |= {server.ui_url, server.ui_url.replace(LOOPBACK, "localhost")}
    token = stored_key(settings.home / TOKEN_FILE)
    with DOOR.listen(port, host) as listener:
        listener.setblocking(False)
        number = listener.getsockname()[1]
        hosts = {f"{name}:{number}" for name in (LOOPBACK, "localhost", "[::1]")}
        hosts |= {name.lower() for name in allow_host or ()}
        app = CodecServer(KeyringCodec(settings.keyring), token, OwnNames(frozenset(hosts), frozenset(origins)))
        serving = make_server(WholeRequests(app, MAX_BODY_BYTES))
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, setattr, serving, "should_exit", True)
        address = f"http://{f'[{host}]' if ':' in host else host}:{number}"
        print_result(f"web UI   {address}/{token}")
        print_result(f"temporal --codec-endpoint {address} --codec-auth 'Bearer {token}'")
        print_hint("it decrypts for whoever has the token; Ctrl-C stops")
        await serving.serve([listener])
