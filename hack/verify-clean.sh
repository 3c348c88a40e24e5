#!/usr/bin/env bash
# Fails when generators changed a tracked file or left a new one: what is committed must be what the code generates.
set -euo pipefail
cd "$(dirname "$0")/.."
generated=(crds charts/boxwright/files charts/boxwright/values.schema.json docs/reasons.md docs/reference test/golden)
if ! git diff --exit-code --stat -- "${generated[@]}"; then
  echo 'Generated files differ from what is committed: run `make generate` and commit the result.' >&2
  exit 1
fi
untracked=$(git ls-files --others --exclude-standard -- "${generated[@]}")
if [ -n "$untracked" ]; then
  echo "Generated files are not committed: $untracked" >&2
  exit 1
fi
