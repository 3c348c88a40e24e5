#!/usr/bin/env bash
# All tests, cheapest first: generated files, types, lint, format; unit, component and repository tests; integration tests
# on a real API server; a burst on one; MCP clients that others wrote; end-to-end tests in real pods. Every level runs even
# when an earlier one failed, so that one run tells everything. The last line counts all tests: `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failures=0

# level NAME COMMAND...: one pass or failure of a check that is not a Jest run.
level() {
  local name=$1
  shift
  printf '\n==> %s\n' "$name"
  if "$@"; then printf '{"numPassedTests":1}' >"$results/$name.json"
  else
    printf '{"numFailedTests":1}' >"$results/$name.json"
    failures=1
  fi
}

# jest_level NAME PROJECT...: Jest projects; a run without a result counts as one failure.
jest_level() {
  local name=$1
  shift
  printf '\n==> %s\n' "$name"
  NODE_OPTIONS='--experimental-vm-modules --disable-warning=ExperimentalWarning' \
    jest --ci --selectProjects "$@" --json --outputFile "$results/$name.json" || failures=1
  [[ -s $results/$name.json ]] || printf '{"numFailedTests":1}' >"$results/$name.json"
}

# The archive's tests start a PostgreSQL server of their own, those of the browser tools a Chromium. Installed here and not
# in a test: two test files at once would fight for the lock of apt.
# install_package PACKAGE FILE: the file is there when the package is.
install_package() {
  if compgen -G "$2" >/dev/null; then return 0; fi
  if [[ $(id -u) -ne 0 ]]; then
    echo "$1 is missing; run: sudo apt-get install $1" >&2
    return 1
  fi
  local retries=(-o Acquire::Retries=5)
  apt-get update -q "${retries[@]}" &&
    DEBIAN_FRONTEND=noninteractive apt-get install -q --yes --no-install-recommends "${retries[@]}" "$1"
}

make deps || exit 1
node_bin=$PWD/node_modules/node-linux-$(if [[ $(uname -m) == aarch64 ]]; then echo arm64; else echo x64; fi)/bin
export PATH=$node_bin:$PWD/node_modules/.bin:$PATH

# Kubernetes and Helm are built once on a new machine; no test should wait for that inside its own bound.
level tools hack/cluster/cluster.sh tools
level postgresql install_package postgresql '/usr/lib/postgresql/*/bin/postgres'
level browser install_package chromium-headless-shell /usr/bin/chromium-headless-shell
level verify make verify
jest_level unit unit component repo
jest_level integration integration
# Alone: it takes the whole machine, and a controller of another test would lose its Lease.
jest_level load load --runInBand
jest_level clients clients
level up make up
# One after the other: some of them take parts of the control plane away.
jest_level e2e e2e --runInBand

node hack/count-results.mjs "$results"
exit "$failures"
