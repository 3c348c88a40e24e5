#!/usr/bin/env bash
# Builds the images of the bundles in dist/ and loads them into the cluster of this machine, unless the cluster has them.
# Prints their tag, and nothing else, on standard output.
#
#   VARIANT=browser hack/image/load.sh     # boxwright-tools with a browser, and no other
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly cluster=hack/cluster/cluster.sh
# The tag is the content: an unchanged tree restarts nothing, a changed one replaces the pods.
tag=$(find dist hack/image -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12)
case ${VARIANT:-slim} in
  slim) targets=() loaded=$tag ;;
  browser) targets=(boxwright-tools-browser) loaded=$tag-browser ;;
  *) echo "load.sh: VARIANT is slim or browser, not $VARIANT" >&2 && exit 1 ;;
esac

eval "$("$cluster" env)"
# Only the native way can tell what the node has ($CTR); elsewhere loading is repeated, which costs seconds.
if [[ -n $CTR ]] && "$CTR" images list -q | grep -q "boxwright-tools:$loaded\$"; then
  echo "boxwright-tools:$loaded is in the cluster already" >&2
else
  archive=$(mktemp --suffix=.tar)
  trap 'rm -f "$archive"' EXIT
  hack/image/build.sh "$tag" "$archive" "${targets[@]}" >&2
  "$cluster" load "$archive" >&2
fi
echo "$loaded"
