{{/*
Fills in what the values do not have: `helm upgrade --reuse-values` brings those of an older chart, without new ones. Every
template begins with it, since their order is Helm's. It writes nothing.
*/}}
{{- define "boxwright.fillValues" -}}
{{- range (.Files.Get "files/defaults.yaml" | fromYaml).defaults }}
{{- $place := $.Values }}
{{- range initial .path }}
{{- if not (kindIs "map" (get $place .)) }}{{ $_ := set $place . dict }}{{ end }}
{{- $place = get $place . }}
{{- end }}
{{- if not (hasKey $place (last .path)) }}{{ $_ := set $place (last .path) .value }}{{ end }}
{{- end }}
{{- end }}

{{- define "boxwright.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Image of a container of run pods. Argument: dict with root and container. */}}
{{- define "boxwright.runImage" -}}
{{- $image := .root.Values.image }}
{{- get $image .container | default (printf "%s-%s:%s" $image.repository .container ($image.tag | default .root.Chart.AppVersion)) }}
{{- end }}

{{- define "boxwright.labels" -}}
app.kubernetes.io/name: boxwright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Users of our own service accounts, as CEL list. Argument: dict with root and components. */}}
{{- define "boxwright.users" -}}
[{{- range $i, $component := .components }}{{ if $i }}, {{ end }}'system:serviceaccount:{{ $.root.Release.Namespace }}:boxwright-{{ $component }}'{{- end }}]
{{- end }}

{{/* True for a built-in system user, as CEL. */}}
{{- define "boxwright.systemUser" -}}
[{{- range $i, $prefix := .Values.admission.systemUserPrefixes }}{{ if $i }}, {{ end }}'{{ $prefix }}'{{- end }}].exists(p, p.endsWith(':') ? request.userInfo.username.startsWith(p) : request.userInfo.username == p)
{{- end }}

{{/* Ranges that runs never reach, of one family, as CEL list. Arguments: dict with root and v6. */}}
{{- define "boxwright.cidrs" -}}
{{- $ranges := ternary (list "fc00::/7" "fe80::/10") (list "10.0.0.0/8" "100.64.0.0/10" "127.0.0.0/8" "169.254.0.0/16" "172.16.0.0/12" "192.168.0.0/16") .v6 }}
{{- range .root.Values.clusterCidrs }}{{ if eq $.v6 (contains ":" .) }}{{ $ranges = append $ranges . }}{{ end }}{{ end -}}
[{{- range $i, $range := $ranges }}{{ if $i }}, {{ end }}'{{ $range }}'{{- end }}]
{{- end }}

{{- define "boxwright.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "boxwright.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Environment that every control-plane process has. */}}
{{- define "boxwright.commonEnv" -}}
- name: BOXWRIGHT_RELEASE_NAMESPACE
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- name: BOXWRIGHT_POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: BOXWRIGHT_POD_UID
  valueFrom: { fieldRef: { fieldPath: metadata.uid } }
- name: BOXWRIGHT_POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
- name: BOXWRIGHT_LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
{{- end }}

{{/* The archive's URL as environment. Arguments: dict with root and key. Begins with a line break unless it is empty. */}}
{{- define "boxwright.archiveEnv" -}}
{{- with .root.Values.archive.postgres.secretName }}
- { name: BOXWRIGHT_ARCHIVE_URL, valueFrom: { secretKeyRef: { name: {{ . | quote }}, key: {{ $.key | default "url" | quote }} } } }
{{- end }}
{{- end }}

{{/* Pull secrets of a pod of the control plane; nothing when there are none. */}}
{{- define "boxwright.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Deployment of one process. Argument: dict with root, component, values, env, ports, and volumes and mounts where it has any. */}}
{{- define "boxwright.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: boxwright-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "boxwright.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not (dig "autoscaling" "enabled" false .values) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: boxwright
      app.kubernetes.io/instance: {{ .root.Release.Name }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- $own := merge (dict "app.kubernetes.io/component" .component) (include "boxwright.labels" .root | fromYaml) }}
        {{- toYaml (mergeOverwrite (deepCopy .values.podLabels) $own) | nindent 8 }}
      annotations:
        {{- toYaml (merge (deepCopy .values.podAnnotations) (dict "prometheus.io/scrape" "true" "prometheus.io/port" "8081")) | nindent 8 }}
    spec:
      serviceAccountName: boxwright-{{ .component }}
      {{- include "boxwright.pullSecrets" .root | nindent 6 }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .grace | default 30 }}
      securityContext:
        {{- include "boxwright.podSecurity" .root | nindent 8 }}
      topologySpreadConstraints:
        {{- $pods := dict "matchLabels" (dict "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/component" .component) }}
        {{- $overNodes := dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" }}
        {{- range .values.topologySpreadConstraints | default (list $overNodes) }}
        - {{ merge (deepCopy .) (dict "labelSelector" $pods) | toJson }}
        {{- end }}
      {{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
      {{- with index $.values $field }}
      {{ $field }}: {{ toJson . }}
      {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "boxwright.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [{{ .component }}]
          env:
            {{- include "boxwright.commonEnv" .root | nindent 12 }}
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .root.Values.extraCaBundle.configMap }}
            - { name: NODE_EXTRA_CA_CERTS, value: /etc/boxwright/ca/bundle.crt }
            {{- end }}
            {{- with .values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- .ports | nindent 12 }}
            - { name: internal, containerPort: 8081 }
          livenessProbe:
            httpGet: { path: /livez, port: internal }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: { path: /readyz, port: internal }
            periodSeconds: 2
            timeoutSeconds: 3
            failureThreshold: 2
          startupProbe:
            httpGet: { path: /livez, port: internal }
            periodSeconds: 1
            failureThreshold: 60
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- include "boxwright.containerSecurity" .root | nindent 12 }}
          {{- $bundle := .root.Values.extraCaBundle }}
          {{- $bundleMount := dict "name" "extra-ca" "mountPath" "/etc/boxwright/ca" "readOnly" true }}
          {{- $bundleVolume := dict "name" "extra-ca" "configMap" (dict "name" $bundle.configMap "items" (list (dict "key" $bundle.key "path" "bundle.crt"))) }}
          {{- with concat (.mounts | default "[]" | fromYamlArray) (ternary (list $bundleMount) list (ne $bundle.configMap "")) .values.extraVolumeMounts }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with concat (.volumes | default "[]" | fromYamlArray) (ternary (list $bundleVolume) list (ne $bundle.configMap "")) .values.extraVolumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: boxwright-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "boxwright.labels" .root | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: boxwright
      app.kubernetes.io/instance: {{ .root.Release.Name }}
      app.kubernetes.io/component: {{ .component }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: boxwright-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "boxwright.labels" .root | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if dig "autoscaling" "enabled" false .values }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: boxwright-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "boxwright.labels" .root | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: boxwright-{{ .component }} }
  minReplicas: {{ .values.autoscaling.minReplicas }}
  maxReplicas: {{ .values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource: { name: cpu, target: { type: Utilization, averageUtilization: {{ .values.autoscaling.targetCPUUtilizationPercentage }} } }
{{- end }}
{{- end }}

{{/*
A cluster holds one installation: its kinds, its policies and its roles are there once. Without a cluster (helm template) nothing
is looked up.
*/}}
{{- define "boxwright.expectAlone" -}}
{{- $found := lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "boxwright-controller" }}
{{- if $found }}
{{- $place := (first $found.subjects).namespace }}
{{- $name := dig "metadata" "labels" "app.kubernetes.io/instance" .Release.Name $found }}
{{- if or (ne $place .Release.Namespace) (ne $name .Release.Name) }}
{{- fail (printf "this cluster has Boxwright already: release %s in namespace %s. A cluster holds one installation; use Workspaces and Boxes to separate teams, or uninstall that one first" $name $place) }}
{{- end }}
{{- end }}
{{- end }}
