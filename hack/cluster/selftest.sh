#!/usr/bin/env bash
# Brings the cluster up and checks that it can do what the product and its tests need. Prints one
# PASS or FAIL line for each check and fails if one failed.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$source_dir/cluster.sh
namespace=boxwright-selftest
image=boxwright-tools:selftest
work=$(mktemp -d)
failures=0

kubectl() { "$cluster" kubectl "$@"; }

# check DESCRIPTION COMMAND...: the command's output is shown only when it fails.
check() {
  local description=$1
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "PASS  $description"
  else
    echo "FAIL  $description"
    sed 's/^/      /' "$work/output"
    failures=$((failures + 1))
  fi
}

# The log of the Job's container holds a line, written by the program below.
job_says() { grep -qx "$1" "$work/job.log" || { cat "$work/job.log" && return 1; }; }

remove_leftovers() {
  kubectl delete namespace "$namespace" --ignore-not-found --timeout=60s >/dev/null 2>&1 || true
  rm -rf "$work"
}

# A stand-in for the product: "serve" answers HTTP, "job" reports what a pod sees.
write_program() {
  mkdir -p "$work"/dist/{boxwright,boxwright-runner,boxwright-tools}
  cat >"$work/dist/boxwright-tools/boxwright.mjs" <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { createServer } from 'node:http';

if (process.argv[2] === 'serve') {
  createServer((_, response) => response.end('selftest\n')).listen(8080, () => console.log('serving'));
  process.on('SIGTERM', () => process.exit(0));
} else {
  const claims = JSON.parse(Buffer.from(readFileSync('/token/token', 'utf8').split('.')[1], 'base64url'));
  console.log(`audience ${claims.aud.join()} of ${claims['kubernetes.io'].serviceaccount.name}`);
  console.log(`user ${process.getuid()}`);
  console.log(`sidecar ${(await (await fetch('http://127.0.0.1:8080')).text()).trim()}`);
  console.log(`kubernetes ${(await lookup('kubernetes.default.svc.cluster.local')).address}`);
  console.log(`service ${(await (await fetch('http://server:8080')).text()).trim()}`);
}
PROGRAM
}

manifests() {
  local security='{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}'
  local pod_security='{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}'
  cat <<MANIFESTS
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {app: server}}
spec:
  automountServiceAccountToken: false
  securityContext: $pod_security
  containers:
  - {name: server, image: "$image", imagePullPolicy: Never, args: [serve], securityContext: $security}
---
apiVersion: v1
kind: Service
metadata: {name: server}
spec: {selector: {app: server}, ports: [{port: 8080}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: $pod_security
      initContainers:
      - name: sidecar
        image: "$image"
        imagePullPolicy: Never
        restartPolicy: Always
        args: [serve]
        startupProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
        securityContext: $security
      containers:
      - name: main
        image: "$image"
        imagePullPolicy: Never
        args: [job]
        securityContext: $security
        volumeMounts: [{name: token, mountPath: /token, readOnly: true}]
      volumes:
      - name: token
        projected: {sources: [{serviceAccountToken: {path: token, audience: boxwright-run, expirationSeconds: 3600}}]}
MANIFESTS
}

# The product may be installed and own the port; then its answer is what counts.
check_service_port() {
  if ! kubectl get services -A -o jsonpath='{.items[*].spec.ports[*].nodePort}' | grep -qw 30080; then
    kubectl -n "$namespace" patch service server --type merge \
      -p '{"spec": {"type": "NodePort", "ports": [{"port": 8080, "nodePort": 30080}]}}'
  fi
  curl --silent --show-error --noproxy '*' --retry 10 --retry-delay 1 --retry-all-errors --max-time 5 -o /dev/null http://127.0.0.1:30080/
}

refuses_privileged_pod() {
  ! kubectl -n "$namespace" run root --image="$image" --restart=Never --dry-run=server --privileged
}

check 'the cluster comes up' "$cluster" up
check 'a second up changes nothing' "$cluster" up
check 'status finds all components' "$cluster" status
trap remove_leftovers EXIT
write_program
check 'the image is built' env "DIST=$work/dist" "$source_dir/../image/build.sh" selftest "$work/image.tar" boxwright-tools
check 'the image is loaded' "$cluster" load "$work/image.tar"

kubectl delete namespace "$namespace" --ignore-not-found >/dev/null
kubectl create namespace "$namespace" >/dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
check 'Pod Security refuses a privileged pod' refuses_privileged_pod
for _ in {1..50}; do # a pod is refused until its namespace has a service account
  kubectl -n "$namespace" get serviceaccount default >/dev/null 2>&1 && break
  sleep 0.1
done
check 'a restricted pod, a Service and a Job are admitted' kubectl -n "$namespace" apply -f - < <(manifests)
check 'the pod gets ready' kubectl -n "$namespace" wait --for=condition=Ready pod/server --timeout=60s
check 'the Job with a native sidecar completes' kubectl -n "$namespace" wait --for=condition=Complete job/job --timeout=60s
check 'kubectl logs works' kubectl -n "$namespace" logs job/job -c main
cp "$work/output" "$work/job.log"
check 'the projected token has the audience asked for' job_says 'audience boxwright-run of default'
check 'the container runs as user 65532' job_says 'user 65532'
check 'the sidecar serves on loopback' job_says 'sidecar selftest'
check 'DNS answers for Services' job_says 'kubernetes 10.96.0.1'
check 'a Service is reached by name from a pod' job_says 'service selftest'
check 'kubectl exec works' kubectl -n "$namespace" exec server -- bash -c 'git --version && curl --version && ps 1'
check 'the service port answers on 127.0.0.1:30080' check_service_port

if ((failures > 0)); then
  echo "$failures checks failed"
  exit 1
fi
