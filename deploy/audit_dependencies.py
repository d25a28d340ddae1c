"""Look every pinned package up in an advisory database, by pip-audit.

usage: python deploy/audit_dependencies.py LOCK_FILE [options of pip-audit, such as --vulnerability-service osv]

Exit code 0: every package was looked up, and nothing is known against any. 1: a vulnerability is known. 3: the database
was not reachable, or did not know some of the packages, so that nothing can be said of them. pip-audit itself ends with
0 when it could look up nothing at all.
"""  # noqa: INP001 - a folder of files for the deployment is no package

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3
PROGRAM = Path(sys.executable).with_name("pip-audit")
OPTIONS = ("--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off")


def audit(lock: str, options: list[str]) -> int:
    """Run pip-audit over a lock file and say what came of it; the exit code."""
    command = [str(PROGRAM), *OPTIONS, *options, "--requirement", lock]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own tool, no shell
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return tell(UNKNOWN, f"{lock}: nothing was looked up, the advisory database is not reachable: {reason[:300]}")
    return judge_answer(lock, packages)


def judge_answer(lock: str, packages: list[dict[str, Any]]) -> int:
    """What an answer means, in words and as the exit code."""
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    known = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in {' '.join(flaw['fix_versions']) or 'none'}"
        for package in packages
        for flaw in package.get("vulns", [])
    ]
    if known:
        return tell(VULNERABLE, f"{lock}: {len(known)} known vulnerabilities", *known)
    if skipped or not packages:
        shown = ", ".join(skipped[:5]) + (" …" if len(skipped) > 5 else "")
        return tell(
            UNKNOWN,
            f"{lock}: {len(skipped)} of {len(packages)} packages could not be looked up ({shown or 'none there'}): "
            "the advisory database is not reachable or does not know them, so nothing is said of them",
        )
    return tell(CLEAN, f"{lock}: nothing is known against its {len(packages)} packages")


def tell(code: int, *lines: str) -> int:
    """Say it."""
    (sys.stderr if code else sys.stdout).write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1], sys.argv[2:]))
