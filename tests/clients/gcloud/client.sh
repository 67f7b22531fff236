# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Has a program print a token, and calls the model with it. Reads commands, writes answers: lines.
# usage: client.sh PROGRAM: gcloud, gke-gcloud-auth-plugin with the credentials of Go, or gsutil, which
# lists a bucket and prints no token
set -uo pipefail

# gcloud and gsutil keep tokens below their home, gcloud in its logs, too: it is not to outlive this.
HOME=$(mktemp -d)
trap 'rm -rf -- "$HOME"' EXIT
said=$HOME/said

token() {
	case $program in
	gcloud) gcloud auth print-access-token ;;
	*)
		# An ExecCredential of Kubernetes.
		"$program" --use_application_default_credentials |
			sed -n 's/.*"token": *"\([^"]*\)".*/\1/p'
		;;
	esac
}

list() {
	local storage=${GOOGLE_STORAGE_URL#https://} answer log=$said.$BASHPID
	if answer=$(gsutil -o Boto:https_validate_certificates=False -o Boto:num_retries=0 -o "Credentials:gs_json_host=${storage%:*}" \
		-o "Credentials:gs_json_port=${storage##*:}" ls gs://my-bucket/ 2>"$log"); then
		printf 'text %s' "${answer#gs://my-bucket/}"
	else
		printf 'error %s' "$(<"$log")"
	fi
}

call() {
	local answer log=$said.$BASHPID
	if [ "$program" = gsutil ]; then
		list
		return
	fi
	if ! answer=$(token 2>"$log") || [ -z "$answer" ]; then
		printf 'error %s' "$(<"$log")"
		return
	fi
	# The token goes through standard input: an argument is seen by everybody.
	answer=$(curl -sS --fail-with-body -H @- -H 'Content-Type: application/json' \
		-d '{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}' \
		"$GOOGLE_VERTEX_BASE_URL/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-flash:generateContent" \
		2>&1 <<<"Authorization: Bearer $answer")
	if [[ $answer =~ \"text\":\ *\"([^\"]+)\" ]]; then
		printf 'text %s' "${BASH_REMATCH[1]}"
	else
		printf 'error %s' "$answer"
	fi
}

# show COMMAND...: what it prints, or what it says of its failure.
show() {
	local answer
	if answer=$("$@" 2>"$said"); then printf 'text %s' "$answer"; else printf 'error %s' "$(<"$said")"; fi
}

project() {
	show gcloud config get-value project
}

# Makes {"text":"…"} of "text …".
json() {
	local key=${1%% *} value=${1#* }
	value=${value//\\/\\\\} value=${value//\"/\\\"}
	value=${value//$'\n'/\\n} value=${value//$'\r'/} value=${value//$'\t'/\\t}
	# A terminal's colours
	printf '{"%s":"%s"}' "$key" "${value//[[:cntrl:]]/}"
}

program=$1
while read -r command count; do
	outcomes=()
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
