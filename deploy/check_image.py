"""Carry out deploy/Dockerfile without Docker, and use what it makes as the image is used: read-only, without rights.

usage: python deploy/check_image.py      (Linux, as root, with the package index that pip knows)

Its instructions run in a copy of this machine's files that vanishes in the end, so the base image is this machine. Not
checked: the base image itself, its digest, other platforms, and what only a container runtime does.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOPBACK_UP = (
    "import fcntl, socket, struct; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    "fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 1))"
)
"""Sets the interface `lo` of a new network namespace up: SIOCSIFFLAGS with IFF_UP."""
CHECKS = (
    ("the version", "research --version"),
    ("an account without rights", "test $(id -u) = 10001 && grep -q 'CapEff:.0000000000000000' /proc/self/status"),
    (
        "nothing but /data and /tmp is written",
        "for f in /opt/research /etc /srv/research; do ! touch $f/x || exit 1; done",
    ),
    ("one name is installed", "! python -c 'import client' && python -c 'import durable_research.client.handle'"),
    ("the list of packages", 'grep -q \'"name": "temporalio"\' /opt/research/sbom.cdx.json'),
    ("what sets a cluster up", "python -m durable_research.workers.setup --help"),
    ("a worker without a cluster says so", "! research worker --pool models"),
    ("the doctor", "research doctor"),
    ("a question", "research run 'How are backups made?' --corpus /srv/documents --out /data/report --json"),
    ("its citations", "research audit last"),
)
"""What is tried in the image, in this order; each is a line of a shell that has to succeed."""


def main() -> int:
    """Check the image; return 0 if every check passed, 2 if this machine cannot do it."""
    if sys.platform != "linux" or os.geteuid() != 0:
        sys.stderr.write("The image is checked on Linux as root: it needs mounts of its own.\n")
        return 2
    if len(sys.argv) == 1:
        folder = tempfile.mkdtemp(prefix="image-")
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--propagation",
            "private",
            sys.executable,
            __file__,
            folder,
        ]
        code = subprocess.run(command, check=False).returncode
        Path(folder).rmdir()  # empty again: what was mounted there went with its process
        return code
    _run("mount", "-t", "tmpfs", "none", sys.argv[1])
    image = Image(Path(sys.argv[1]))
    image.build()
    return image.check()


class Image:
    """The files of an image over those of this machine, and what its instructions have set so far."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        for name in ("upper", "work", "root"):
            (folder / name).mkdir()
        layers = f"lowerdir=/,upperdir={folder / 'upper'},workdir={folder / 'work'}"
        _run("mount", "-t", "overlay", "overlay", "-o", layers, str(self.root))
        for name in ("proc", "dev", "sys"):
            kind = ["-t", "proc", "proc"] if name == "proc" else ["--rbind", f"/{name}"]
            _run("mount", *kind, str(self.root / name))
        for parent in Path(os.path.realpath(sys.base_prefix)).parents:  # a base image is readable for everybody
            inside = self.root / parent.relative_to("/")
            inside.chmod(inside.stat().st_mode | 0o055)
        self.environment = {"PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
        self.place = "/"
        self.user = "0:0"

    def build(self) -> None:
        """Carry out the instructions. Raises `CalledProcessError` for one that fails, ValueError for an unknown one."""
        base = dict(self.environment)
        for name, words in instructions((ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")):
            sys.stdout.write(f"{name} {words[:100]}\n")
            sys.stdout.flush()
            if name == "FROM":
                self.environment, self.place = dict(base), "/"
            elif name == "ENV":
                self.environment |= {key: self._filled(value) for key, value in _pairs(words)}
            elif name == "WORKDIR":
                self.place = words
                self._inside(words).mkdir(parents=True, exist_ok=True)
            elif name == "COPY":
                self._copy(words)
            elif name == "RUN":
                self._shell(words)
            elif name == "USER":
                self.user = words
            elif name not in {"ARG", "LABEL", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}:
                raise ValueError(f"deploy/Dockerfile has an instruction that is not known here: {name}")

    def check(self) -> int:
        """Try what the image is for, each in the finished, read-only files; return 0 if all succeeded."""
        documents = self._inside("/srv/documents")
        documents.mkdir(parents=True)
        (documents / "backups.md").write_text(
            "# Backups\n\nBackups are made every night by pg_dump.\n", encoding="utf-8"
        )
        self._mount_writable("/data")
        self._mount_writable("/tmp")  # noqa: S108  as every container has it
        _run("mount", "-o", "remount,ro", str(self.root))
        failed = []
        for title, line in CHECKS:
            ended = self._as_user(line)
            sys.stdout.write(f"{'ok  ' if ended.returncode == 0 else 'FAIL'} {title}: {line}\n")
            if ended.returncode != 0:
                failed.append(title)
                sys.stdout.write(f"{ended.stdout[-2_000:]}{ended.stderr[-2_000:]}\n")
        sys.stdout.write(f"Not good: {', '.join(failed)}\n" if failed else "All good.\n")
        return 1 if failed else 0

    def _mount_writable(self, path: str) -> None:
        """Mount a volume: it has the owner, the rights and the folders that the image has there."""
        place = self._inside(path)
        owner = place.stat()
        folders = {folder.name: folder.stat() for folder in place.iterdir() if owner.st_uid and folder.is_dir()}
        rights = f"mode={owner.st_mode & 0o7777:o},uid={owner.st_uid},gid={owner.st_gid}"
        _run("mount", "-t", "tmpfs", "-o", rights, "none", str(place))
        for name, found in folders.items():
            (place / name).mkdir(mode=found.st_mode & 0o777)
            os.chown(place / name, found.st_uid, found.st_gid)

    def _as_user(self, line: str) -> "subprocess.CompletedProcess[str]":
        """Run a line as the image's account, without a network but its own loopback and without a way to rights."""
        account, _, group = self.user.partition(":")
        rights = ["setpriv", "--reuid", account, "--regid", group, "--clear-groups", "--no-new-privs"]
        start = ["env", "-i", *(f"{key}={value}" for key, value in self.environment.items()), "LANG=C.UTF-8"]
        rights += ["--bounding-set=-all", "--inh-caps=-all"]
        inside = shlex.join([*rights, *start, "sh", "-c", f"cd {self.place} && {line}"])
        enter = f"{shlex.quote(sys.executable)} -c {shlex.quote(LOOPBACK_UP)} && exec chroot {self.root} {inside}"
        return subprocess.run(["unshare", "--net", "sh", "-c", enter], capture_output=True, text=True, check=False)

    def _shell(self, words: str) -> None:
        environment = {**_index_of_packages(), **self.environment, "HOME": "/root"}
        line = ["sh", "-ec", f"cd {self.place} && {words}"]
        subprocess.run(["chroot", str(self.root), *line], env=environment, check=True, stdout=subprocess.DEVNULL)

    def _copy(self, words: str) -> None:
        *sources, target = [word for word in words.split() if not word.startswith("--")]
        if words.startswith("--from="):
            if sources != [target]:
                raise ValueError(f"COPY between stages changes the place of files, which is not known here: {words}")
            return  # both stages are one tree here
        place = self._inside(str(Path(self.place) / target))
        for source in sources:
            into = place / source if target.endswith("/") else place
            into.parent.mkdir(parents=True, exist_ok=True)
            _run("cp", "--recursive", "--no-target-directory", str(ROOT / source), str(into))

    def _inside(self, path: str) -> Path:
        return self.root / Path(path).relative_to("/")

    def _filled(self, value: str) -> str:
        return value.replace("$PATH", self.environment["PATH"])


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and words of each instruction; comments are left out, continued lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, words = line.partition(" ")
        yield name, " ".join(words.split())


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    for pair in shlex.split(words):
        name, _, value = pair.partition("=")
        yield name, value


def _index_of_packages() -> Mapping[str, str]:
    """Return the variables by which this machine's pip finds its packages."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")}


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
