#!/bin/sh
# Run a command with SEARXNG_SECRET set: SearXNG refuses to start with the key that it is delivered with. The key signs
# cookies and addresses of images; workers use neither, so a random one for this start is as good as any.
set -eu
if [ -z "${SEARXNG_SECRET:-}" ]; then
  SEARXNG_SECRET=$(head -c 48 /dev/urandom | base64 | tr -dc 'A-Za-z0-9')
  export SEARXNG_SECRET
fi
exec "$@"
