#!/usr/bin/env bash
# Two questions about the documentation that Python itself carries: one that it answers, and one that it does not.
# No key is used, nothing is downloaded, no text leaves this machine. Called by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

documents=.demo/python-docs
research=.venv/bin/research

# The demo is the same for everybody: settings of the shell must not turn it into something else.
while read -r name; do
  case "$name" in
    RESEARCH_HOME) ;;
    RESEARCH_* | TEMPORAL_* | ANTHROPIC_* | REDIS_URL) unset "$name" ;;
  esac
done < <(compgen -e)

# ask EXPECTED-EXIT-CODE QUESTION
ask() {
  local code=0
  printf '\n$ research run "%s" --corpus %s --engine extractive\n\n' "$2" "$documents"
  "$research" run "$2" --corpus "$documents" --engine extractive || code=$?
  if [ "$code" -ne "$1" ]; then
    printf '\nThe demo failed: exit code %s where %s was expected. `%s doctor` may know why.\n' "$code" "$1" "$research"
    exit 1
  fi
}

.venv/bin/python examples/export_python_docs.py "$documents"
ask 0 "How does a context manager suppress an exception?"
ask 8 "How does PostgreSQL prevent transaction id wraparound?"

cat <<END

The second question has no answer in these documents: the report says so and cites nothing (exit code 8).

  reports              reports/, one folder per question with report.html, report.md and report.json
  read the last one    $research open last
  check its citations  $research audit last
  the web UI           $research serve    starts the server and its workers, and prints the address
  a second corpus      $research run "What happens to a run when its worker is killed?" --corpus docs
END
