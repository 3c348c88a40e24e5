#!/usr/bin/env bash
# Runs the cluster driver (driver/, a Go program without dependencies), building it first when its
# files have changed. `cluster.sh help` lists the commands.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache_dir=${BOXWRIGHT_CACHE:-${HOME:?HOME or BOXWRIGHT_CACHE must be set}/.cache/boxwright}

if [[ $(uname -s) != Linux ]]; then
  echo "cluster.sh: this needs Linux; elsewhere use it inside a virtual machine" >&2
  exit 1
fi
if ! command -v go >/dev/null; then
  echo "cluster.sh: Go 1.24 or newer is needed (Debian: apt-get install golang-go from backports; others: https://go.dev/dl)" >&2
  exit 1
fi

driver_hash=$(cd "$source_dir" && cat go.mod driver/*.go | sha256sum | cut -c1-16)
driver=$cache_dir/driver-$driver_hash/cluster
if [[ ! -x $driver ]]; then
  mkdir -p "${driver%/*}"
  # Built beside its final name and moved, so that two first runs at once cannot see half a file.
  (cd "$source_dir" && CGO_ENABLED=0 go build -buildvcs=false -o "$driver.$$" ./driver)
  mv "$driver.$$" "$driver"
fi

export BOXWRIGHT_CACHE=$cache_dir BOXWRIGHT_CLUSTER_SOURCE=$source_dir
exec "$driver" "$@"
