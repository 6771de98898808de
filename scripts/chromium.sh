#!/usr/bin/env bash
# Installs Chromium and a font for the tests marked `browser`, where there is none: Debian's packages.
#
# CHROMIUM names another executable.
set -euo pipefail

if [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null; then
    exit 0
fi
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core \
    >/dev/null
