{{/* Names and labels. */}}
{{- define "rackwise.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "rackwise.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "rackwise.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "rackwise.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "rackwise.selector" -}}
app.kubernetes.io/name: {{ include "rackwise.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rackwise.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "rackwise.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "rackwise.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "rackwise.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "rackwise.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Agents: those that act have a standby. */}}
{{- define "rackwise.replicas" -}}
{{- if kindIs "invalid" .Values.replicas }}
{{- ternary 2 1 (eq (default "propose" .Values.config.mode) "execute") }}
{{- else }}
{{- .Values.replicas }}
{{- end }}
{{- end }}

{{/* What probes and Prometheus speak: a server with a certificate (config.http.tls) answers to TLS alone. */}}
{{- define "rackwise.scheme" -}}
{{- $tls := or (hasKey (default dict .Values.config.http) "tls") (hasKey .Values.config "http.tls") }}
{{- range $name, $_ := .Values.config }}
{{- $tls = or $tls (hasPrefix "http.tls." $name) }}
{{- end }}
{{- ternary "HTTPS" "HTTP" $tls }}
{{- end }}

{{/* Fails when a secret is written out in the settings. A ConfigMap is no place for one. The words are those of
config/secrets.py. Takes {name, value}: a dotted name, and what is below it. */}}
{{- define "rackwise.refuseSecrets" -}}
{{- $name := .name }}
{{- if kindIs "map" .value }}
{{- range $key, $below := .value }}
{{- include "rackwise.refuseSecrets" (dict "name" (ternary $key (printf "%s.%s" $name $key) (eq $name "")) "value" $below) }}
{{- end }}
{{- else if kindIs "slice" .value }}
{{- range .value }}
{{- include "rackwise.refuseSecrets" (dict "name" $name "value" .) }}
{{- end }}
{{- else if kindIs "string" .value }}
{{- if regexMatch "(?i)password|passwd|passphrase|pwd|secret|token|jaas|credential|authorization|signature|private.?key|access.?key|account.?key|api.?key|shared.?key|(^|[._-])(sas|sig|auth|key)$|^ssl\\.key\\.pem$|\\.ssl\\.key\\.pem$" $name }}
{{- if not (regexMatch "(?i)^(true|false|yes|no|none|null|[0-9]{1,6}[a-z]{0,3})?$|^\\$\\{(env|file|directory):[^{}]+\\}$" .value) }}
{{- fail (printf "config.%s holds a secret, and a ConfigMap is readable: mount a Secret (mounts) and write ${file:PATH}, or set a variable from it (env) and write ${env:NAME}" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails when the settings say what the chart says: probes, Service and NetworkPolicy rest on it. */}}
{{- define "rackwise.refuseHttp" -}}
{{- range $name, $instead := dict "enabled" "is always on here" "bind" "is http.bind of the chart" "pages" "is http.pages of the chart" "port" "is always 9464 in the pod: see service.port" "allowed_hosts" "is http.allowedHosts of the chart" }}
{{- if or (hasKey $.Values.config (printf "http.%s" $name)) (hasKey (default dict $.Values.config.http) $name) }}
{{- fail (printf "config.http.%s %s" $name $instead) }}
{{- end }}
{{- end }}
{{- end }}
