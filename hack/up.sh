#!/usr/bin/env bash
# The main job on one machine: a Kubernetes cluster, the product in it, and a real run from a webhook call to `done`.
# Safe to repeat: it updates what is there. `make up` calls it; nothing else is needed on the machine but Go and npm.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly namespace=boxwright-system
readonly cluster=hack/cluster/cluster.sh
readonly facts=.local/quickstart.json

step() { printf '\n==> %s\n' "$*"; }
fail() { printf '\nerror: %s\n' "$*" >&2; exit 1; }

cat <<PLAN
make up will:
  1. find or start a Kubernetes cluster on this machine (CLUSTER=kind|native|current overrides the choice)
  2. bundle the product, build its images and load them into the cluster
  3. install the Helm chart charts/boxwright into namespace $namespace (two pods each of api, gateway, controller)
  4. apply examples/quickstart.yaml
  5. fire the trigger's URL, wait for the run and show it
PLAN

step 'Cluster'
"$cluster" up
eval "$("$cluster" env)"
export KUBECONFIG
kubectl() { "$KUBECTL" "$@"; }

step 'Images'
node hack/build.mjs
tag=$(hack/image/load.sh)
# BROWSER=1: tools with a browser for the agents, about 550 MB more.
tools=boxwright-tools:$(if [[ ${BROWSER:-} == 1 ]]; then VARIANT=browser hack/image/load.sh; else echo "$tag"; fi)

step 'Helm install'
"$HELM" upgrade --install boxwright charts/boxwright --namespace "$namespace" --create-namespace \
  --set image.tag="$tag" --set image.tools="$tools" --set publicUrl="$BOXWRIGHT_SERVICE_URL" \
  --set api.service.type=NodePort --set api.service.nodePort=30080 >/dev/null
for component in controller gateway api; do
  kubectl -n "$namespace" rollout status "deployment/boxwright-$component" --timeout=600s ||
    fail "boxwright-$component did not become ready: $KUBECTL --kubeconfig $KUBECONFIG -n $namespace logs deploy/boxwright-$component"
done

step 'Quickstart objects'
# The namespaces appear a moment after Workspace and Box, so the first tries are refused for the objects inside them.
for attempt in $(seq 1 60); do
  if output=$(kubectl apply -f examples/quickstart.yaml 2>&1); then break; fi
  [[ $attempt -lt 60 ]] || fail "examples/quickstart.yaml was not accepted: $output"
  sleep 1
done
kubectl wait box/quickstart --for=condition=Ready --timeout=300s >/dev/null
kubectl -n bw-ws-quickstart wait apikey/quickstart --for=condition=Ready --timeout=300s >/dev/null
kubectl -n bw-quickstart wait agenttrigger/greeter.hello --for=condition=Ready --timeout=300s >/dev/null

step 'A real run'
node hack/first-run.mjs "$BOXWRIGHT_SERVICE_URL" "$KUBECTL" "$facts"
kubectl get agentruns -A
node hack/next-steps.mjs "$facts" "$KUBECTL"
