# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Takes a token and calls the model with curl. Reads commands, writes answers: lines.
set -uo pipefail

metadata=http://$GCE_METADATA_HOST/computeMetadata/v1

ask() {
	curl -sS --fail-with-body --retry 3 -H 'Metadata-Flavor: Google' "$metadata/$1" 2>&1
}

call() {
	local answer
	answer=$(ask instance/service-accounts/default/token)
	if ! [[ $answer =~ \"access_token\":\"([^\"]+)\" ]]; then
		printf 'error %s' "$answer"
		return
	fi
	# The token goes through standard input: an argument is seen by everybody.
	answer=$(curl -sS --fail-with-body -H @- -H 'Content-Type: application/json' \
		-d '{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}' \
		"$GOOGLE_VERTEX_BASE_URL/v1/projects/$known_project/locations/global/publishers/google/models/gemini-2.5-flash:generateContent" \
		2>&1 <<<"Authorization: Bearer ${BASH_REMATCH[1]}")
	if [[ $answer =~ \"text\":\ *\"([^\"]+)\" ]]; then
		printf 'text %s' "${BASH_REMATCH[1]}"
	else
		printf 'error %s' "$answer"
	fi
}

project() {
	printf 'text %s' "$(ask project/project-id)"
}

foreign() {
	printf 'error %s' "$(ask 'instance/service-accounts/other@my-project.iam.gserviceaccount.com/token')"
}

identity() {
	printf 'error %s' "$(ask 'instance/service-accounts/default/identity?audience=https://service.example')"
}

# Makes {"text":"…"} of "text …".
json() {
	local key=${1%% *} value=${1#* }
	value=${value//\\/\\\\} value=${value//\"/\\\"}
	value=${value//$'\n'/\\n} value=${value//$'\r'/} value=${value//$'\t'/\\t}
	printf '{"%s":"%s"}' "$key" "$value"
}

known_project=
while read -r command count; do
	outcomes=()
	if [ -z "$known_project" ]; then known_project=$(ask project/project-id) || known_project=; fi
	if [ "$command" = calls ]; then
		for ((i = 0; i < count; i++)); do call >"$HOME/outcome.$i" & done
		wait
		for ((i = 0; i < count; i++)); do outcomes+=("$(json "$(<"$HOME/outcome.$i")")"); done
	else
		outcomes+=("$(json "$("$command")")")
	fi
	(
		IFS=,
		printf '[%s]\n' "${outcomes[*]}"
	)
done
