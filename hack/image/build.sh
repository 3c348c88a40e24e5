#!/usr/bin/env bash
# Builds images of the product and writes them to one file that `cluster.sh load` takes.
#
#   hack/image/build.sh dev .local/images.tar                          # boxwright:dev, boxwright-runner:dev, boxwright-tools:dev
#   hack/image/build.sh dev .local/images.tar boxwright-tools-browser  # boxwright-tools:dev-browser
#
# After the file come the targets of the Dockerfile; boxwright-tools-browser adds Chromium and its driver, about 550 MB. The
# application must be bundled already; DIST names its folder (default: dist in the repository). REPOSITORY takes the place of
# `boxwright` in the names, for example registry.example.com/boxwright.
# Docker builds where Docker answers, else buildah, which needs root but no daemon and no registry: there the base image is
# made from Debian packages. CLUSTER=native chooses buildah in any case.
set -euo pipefail

if [[ $# -lt 2 ]]; then
  echo "usage: build.sh TAG FILE.tar [TARGET...]" >&2
  exit 1
fi
tag=$1
archive=$(realpath --canonicalize-missing "$2")
targets=("${@:3}")
if [[ ${#targets[@]} -eq 0 ]]; then targets=(boxwright boxwright-runner boxwright-tools); fi

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$source_dir/../.." && pwd)
dist=${DIST:-$repository/dist}
cache=${BOXWRIGHT_CACHE:-${HOME:?HOME or BOXWRIGHT_CACHE must be set}/.cache/boxwright}
debian_release=bookworm

# The image that a target makes.
name_of() {
  local names=${REPOSITORY:-boxwright}
  case $1 in
    boxwright) echo "$names:$tag" ;;
    boxwright-runner | boxwright-tools) echo "$names${1#boxwright}:$tag" ;;
    boxwright-tools-browser) echo "$names-tools:$tag-browser" ;;
    *) echo "build.sh: $1 is no target; these are: boxwright boxwright-runner boxwright-tools boxwright-tools-browser" >&2 && return 1 ;;
  esac
}

# Puts exactly what the images need into a folder.
stage() {
  local context=$1 architecture node ripgrep program
  case $(uname -m) in
    x86_64) architecture="linux-x64" ;;
    aarch64 | arm64) architecture="linux-arm64" ;;
    *) echo "build.sh: no Node.js package for $(uname -m)" >&2 && return 1 ;;
  esac
  node=$repository/node_modules/node-$architecture/bin/node
  ripgrep=$repository/node_modules/@vscode/ripgrep-$architecture/bin/rg
  for program in "$node" "$ripgrep"; do
    if [[ ! -f $program ]]; then
      echo "build.sh: $program is missing; run npm ci" >&2 && return 1
    fi
  done
  if [[ ! -d $dist/boxwright-tools ]]; then
    echo "build.sh: $dist/boxwright-tools is missing; run npm run build" >&2 && return 1
  fi
  # File times are kept, so that the layer with Node.js is found in the cache.
  cp -p "$source_dir"/{Dockerfile,minimal-root.sh,gitconfig,packages.txt,packages-browser.txt} "$node" "$ripgrep" "$context/"
  chmod 755 "$context/node" "$context/rg"
  mkdir "$context/modules" "$context/dist"
  if [[ " ${targets[*]} " == *' boxwright-tools-browser '* ]]; then
    cp -Rp "$repository/node_modules/playwright-core" "$context/modules/"
  fi
  cp -Rp "$dist"/boxwright* "$context/dist/"
}

run_buildah() {
  buildah --root "$cache/buildah/root" --runroot "$cache/buildah/run" --storage-driver overlay "$@"
}

# Makes the base image from Debian packages, once for each list of packages, and prints its name.
debian_base() {
  local work=$1 packages key base
  packages=$(paste -sd, "$source_dir/packages.txt")
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

build_with_docker() {
  local target names=()
  for target in "${targets[@]}"; do
    names+=("$(name_of "$target")")
    docker build --quiet --target "$target" --tag "${names[-1]}" "$work/context" >/dev/null
  done
  docker save --output "$archive" "${names[@]}"
}

build_with_buildah() {
  local program target name base
  for program in buildah mmdebstrap; do
    if ! command -v "$program" >/dev/null; then
      echo "build.sh: $program is missing; run: sudo apt-get install -y buildah mmdebstrap" >&2
      return 1
    fi
  done
  mkdir -p "$cache/buildah"
  base=$(debian_base "$work")
  for target in "${targets[@]}"; do
    name=$(name_of "$target")
    run_buildah bud --quiet --isolation chroot --layers --target "$target" --build-arg "BASE=$base" --tag "$name" "$work/context" >/dev/null
    run_buildah push --quiet --disable-compression "$name" "dir:$work/pushed"
    add_to_layout "$name" "$work/pushed" "$work/layout"
  done
  printf '{"schemaVersion":2,"manifests":[%s]}' "$(paste -sd, "$work/layout/entries")" >"$work/layout/index.json"
  echo '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
  tar --create --file "$archive" --directory "$work/layout" oci-layout index.json blobs
}

# Moves an image that buildah wrote into an OCI layout, in which layers that images share are there once. buildah itself would
# compress each of them, which takes longer than all the rest.
add_to_layout() {
  local name=$1 pushed=$2 layout=$3 blobs=$3/blobs/sha256 digest size
  mkdir -p "$blobs"
  digest=$(sha256sum "$pushed/manifest.json" | cut -d' ' -f1)
  size=$(stat --format=%s "$pushed/manifest.json")
  mv "$pushed/manifest.json" "$blobs/$digest"
  rm "$pushed/version"
  mv "$pushed"/* "$blobs/"
  rmdir "$pushed"
  # containerd takes the whole name, which for a short one begins like this.
  if [[ $name != */* ]]; then name=docker.io/library/$name; fi
  printf '{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":"%s"}}\n' \
    "$digest" "$size" "$name" >>"$layout/entries"
}

for target in "${targets[@]}"; do name_of "$target" >/dev/null; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context"
stage "$work/context"
mkdir -p "$(dirname "$archive")"

if [[ ${CLUSTER:-} != native ]] && timeout 10 docker info >/dev/null 2>&1; then
  echo "building ${targets[*]} with Docker" >&2
  build_with_docker
else
  echo "building ${targets[*]} with buildah" >&2
  build_with_buildah
fi
echo "wrote $archive" >&2
