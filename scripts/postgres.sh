#!/usr/bin/env bash
# Runs a command with a private PostgreSQL server: scripts/postgres.sh make test
#
# The server is Debian's, installed if missing. Its cluster is in a temporary folder, it listens on a free port of the
# loopback address with a random password, and both are removed when the command ends. The command finds its address
# in FOLDLINE_TEST_POSTGRES_URL. Tests that need a service now fail instead of being skipped.
set -euo pipefail

if [ $# = 0 ]; then
    echo "usage: scripts/postgres.sh COMMAND…" >&2
    exit 2
fi

tool() { # a program of the server: Debian keeps them out of the PATH
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
    if [ -x "$found/$1" ]; then echo "$found/$1"; else command -v "$1"; fi
}

if ! tool initdb >/dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -qq
    # No system cluster is needed.
    $sudo mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql >/dev/null
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/foldline-postgres.XXXXXX")
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
    chown postgres: "$folder"
    as() { (cd "$folder" && runuser -u postgres -- "$@"); }
fi

stop() {
    status=$?
    trap - EXIT
    as "$(tool pg_ctl)" -D "$folder/data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$folder"
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
(umask 077 && printf '%s\n' "$password" >"$folder/password")
[ "$(id -u)" != 0 ] || chown postgres: "$folder/password"
as "$(tool initdb)" -D "$folder/data" -U foldline -A scram-sha-256 --pwfile="$folder/password" -E UTF8 --locale=C \
    >/dev/null
rm -f "$folder/password"

for _ in 1 2 3 4 5; do # the port may be taken between the check and the start
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    if as "$(tool pg_ctl)" -D "$folder/data" -l "$folder/log" -w -t 60 \
        -o "-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories=$folder -c max_connections=100" \
        start >/dev/null; then
        started=1
        break
    fi
done
if [ -z "${started:-}" ]; then
    cat "$folder/log" >&2
    exit 1
fi

export FOLDLINE_TEST_POSTGRES_URL="postgresql://foldline:$password@127.0.0.1:$port/postgres"
export FOLDLINE_REQUIRE_SERVICES=1
"$@"
