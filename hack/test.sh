#!/usr/bin/env bash
# All tests, each level as early as what it needs is there: generated files, types, lint, format; unit, component and
# repository tests; integration tests on a real API server; a burst on one; MCP clients that others wrote; the app in a browser; end-to-end tests
# in real pods. Every level runs even when an earlier one failed, so that one run tells everything. At the end: how long each
# level took, the slowest tests, and one line that counts all of them: `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
results=$(mktemp -d)
levels=()
declare -A jobs

# What works in the background is a group of processes each, so that it ends with this script.
end_all() {
  local job
  for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null; done
  rm -rf "$results"
}
trap end_all EXIT
trap 'exit 130' INT TERM

# timed NAME COMMAND...: runs it and notes how long it took and how it ended.
timed() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" || status=$?
  printf '{"seconds":%d,"exit":%d}' $((SECONDS - start)) "$status" >"$results/$name.level"
}

# level NAME COMMAND...: one level, here and now.
level() {
  levels+=("$1")
  printf '\n==> %s\n' "$1"
  timed "$@"
}

# beside NAME COMMAND...: a level that works in the background; `await NAME` shows what it said.
beside() {
  levels+=("$1")
  set -m
  timed "$@" >"$results/$1.log" 2>&1 </dev/null &
  set +m
  jobs[$1]=$!
}

# await NAME: until a level of the background has ended.
await() {
  wait "${jobs[$1]}"
  unset "jobs[$1]"
  printf '\n==> %s (in the background)\n' "$1"
  cat "$results/$1.log"
}

# run_jest NAME PROJECT...: Jest projects; without a result of theirs the level has failed.
run_jest() {
  local name=$1 status=0
  shift
  NODE_OPTIONS='--experimental-vm-modules --disable-warning=ExperimentalWarning' \
    jest --ci --selectProjects "$@" --json --outputFile "$results/$name.json" || status=$?
  [[ -s $results/$name.json ]] || status=1
  return "$status"
}

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

# The archive's tests start a PostgreSQL server of their own, those of the browser tools and of the app a Chromium. Installed here and not
# in a test: two test files at once would fight for the lock of apt.
install_packages() {
  install_package postgresql '/usr/lib/postgresql/*/bin/postgres' &&
    install_package chromium-headless-shell /usr/bin/chromium-headless-shell
}

# The cluster with the product in it, and the image for the tests of the browser. It installs packages too, so not while
# others are installed; for Kubernetes it waits by itself.
bring_up() {
  until [[ -e $results/packages.level ]]; do sleep 1; done
  make up && VARIANT=browser hack/image/load.sh
}

# Kubernetes and Helm are built once on a new machine, from the first second on; nothing else needs them yet, and no test
# should wait for that inside its own bound.
beside tools hack/cluster/cluster.sh tools
beside packages install_packages
level deps make deps
grep -q '"exit":0' "$results/deps.level" || exit 1
node_bin=$PWD/node_modules/node-linux-$(if [[ $(uname -m) == aarch64 ]]; then echo arm64; else echo x64; fi)/bin
export PATH=$node_bin:$PWD/node_modules/.bin:$PATH

beside up bring_up
beside verify make verify
level unit run_jest unit unit component repo
await verify
await packages
await tools
# They mostly wait for an API server, as the end-to-end tests wait for their pods: more of them at once than processors.
level integration run_jest integration integration --maxWorkers 3
level browser run_jest browser browser --runInBand
level clients run_jest clients clients
await up
# With nothing beside it but a cluster at rest: it takes the whole machine, and a controller would lose its Lease.
level load run_jest load load --runInBand
level e2e run_jest e2e e2e --maxWorkers 4
# One after the other: they take parts of the control plane away, or count what all of it does.
level e2e-alone run_jest e2e-alone e2e-alone --runInBand

node hack/count-results.mjs "$results" "${levels[@]}"
