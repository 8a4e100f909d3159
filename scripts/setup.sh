#!/usr/bin/env bash
# Installs what a command of the Makefile needs and is missing, through the
# system's package manager: scripts/setup.sh [postgres] [redis] [node] [python] [arm64] [chromium]
set -euo pipefail

missing=()
want() { # want PACKAGE CHECK…: remembers PACKAGE when CHECK fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_postgres() { ls /usr/lib/postgresql/*/bin/postgres || command -v initdb; }

for need in "$@"; do
  case $need in
    postgres) want postgresql has_postgres ;;
    redis) want redis-server command -v redis-server ;;
    arm64) want qemu-user-static command -v qemu-aarch64-static ;;
    python) want python3 python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' && want python3-venv python3 -c 'import ensurepip, venv' ;;
    chromium) want chromium command -v chromium ;;
    node) want nodejs command -v node && want npm command -v npm ;;
    *) echo "setup: unknown requirement '$need'" >&2 && exit 2 ;;
  esac
done

if ! command -v go >/dev/null; then
  echo "setup: Go 1.26 or newer is needed, see https://go.dev/dl" >&2
  exit 1
fi
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: please install: ${missing[*]} (no apt-get here to do it)" >&2
  exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: please run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  sudo=sudo
fi
echo "setup: installing ${missing[*]}" >&2
# Only the binaries are wanted: no cluster, no service started.
$sudo mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
  echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
$sudo apt-get update -qq >&2
if ! DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2; then
  echo "setup: could not install ${missing[*]}; install them and try again" >&2
  exit 1
fi
