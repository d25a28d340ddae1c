#!/bin/sh
# Start the server with the configuration beside this script, and with a password if REDIS_PASSWORD holds one.
# The password goes in through standard input: arguments can be read by every process of the machine.
set -eu
configuration=$(dirname "$0")/valkey.conf
password=${REDIS_PASSWORD:-}
unset REDIS_PASSWORD
case $password in
  '') exec valkey-server "$configuration" "$@" ;;
  *[!A-Za-z0-9_-]*)
    echo 'REDIS_PASSWORD: use letters, digits, - and _ alone, because it is also part of an address' >&2
    exit 1 ;;
esac
exec valkey-server "$configuration" "$@" - <<END
requirepass $password
END
