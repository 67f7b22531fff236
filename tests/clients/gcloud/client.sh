# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Has a program print a token, and calls the model with it.
# usage: client.sh PROGRAM: gcloud, gke-gcloud-auth-plugin with the credentials of Go, or gsutil, which
# lists a bucket and prints no token

# gcloud and gsutil keep tokens below their home, gcloud in its logs, too: it is not to outlive this.
HOME=$(mktemp -d)
trap 'rm -rf -- "$HOME"' EXIT
said=$HOME/said
program=$1

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
	generate "$answer" my-project
}

# show COMMAND...: what it prints, or what it says of its failure.
show() {
	local answer
	if answer=$("$@" 2>"$said"); then printf 'text %s' "$answer"; else printf 'error %s' "$(<"$said")"; fi
}

project() {
	show gcloud config get-value project
}
