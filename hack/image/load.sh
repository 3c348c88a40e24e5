#!/usr/bin/env bash
# Builds the image of the bundle in dist/ and loads it into the cluster of this machine, unless the cluster has it.
# Prints its tag, and nothing else, on standard output.
#
#   VARIANT=browser hack/image/load.sh     # see build.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly cluster=hack/cluster/cluster.sh
variant=${VARIANT:-slim}
# The tag is the content: an unchanged tree restarts nothing, a changed one replaces the pods.
tag=$(find dist hack/image -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12)
if [[ $variant != slim ]]; then tag=$tag-$variant; fi

eval "$("$cluster" env)"
# Only the native way can tell what the node has ($CTR); elsewhere loading is repeated, which costs seconds.
if [[ -n $CTR ]] && "$CTR" images list -q | grep -q "boxwright:$tag\$"; then
  echo "boxwright:$tag is in the cluster already" >&2
else
  archive=$(mktemp --suffix=.tar)
  trap 'rm -f "$archive"' EXIT
  VARIANT=$variant hack/image/build.sh "boxwright:$tag" "$archive" >&2
  "$cluster" load "$archive" >&2
fi
echo "$tag"
