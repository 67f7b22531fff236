# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs a client in shell: serve.sh CLIENT [ARGUMENT...]. Reads commands, functions of the client, each of
# which prints "text TEXT" or "error TEXT"; writes outcomes: lines.
set -uo pipefail

# prepare: before each command, in this shell. The client may have its own.
prepare() { :; }

# generate TOKEN PROJECT: calls the model.
generate() {
	local answer
	# The token goes through standard input: an argument is seen by everybody.
	answer=$(curl -sS --fail-with-body -H @- -H 'Content-Type: application/json' \
		-d '{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}' \
		"$GOOGLE_VERTEX_BASE_URL/v1/projects/$2/locations/global/publishers/google/models/gemini-2.5-flash:generateContent" \
		2>&1 <<<"Authorization: Bearer $1")
	if [[ $answer =~ \"text\":\ *\"([^\"]+)\" ]]; then
		printf 'text %s' "${BASH_REMATCH[1]}"
	else
		printf 'error %s' "$answer"
	fi
}

# Makes {"text":"…"} of "text …".
json() {
	local key=${1%% *} value=${1#* }
	value=${value//\\/\\\\} value=${value//\"/\\\"}
	value=${value//$'\n'/\\n} value=${value//$'\r'/} value=${value//$'\t'/\\t}
	# A terminal's colours
	printf '{"%s":"%s"}' "$key" "${value//[[:cntrl:]]/}"
}

# shellcheck source=/dev/null
source "$@"

while read -r command count; do
	outcomes=()
	prepare
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
