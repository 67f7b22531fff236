# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Takes a token and calls the model with curl.

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
	generate "${BASH_REMATCH[1]}" "$known_project"
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

known_project=
prepare() {
	if [ -z "$known_project" ]; then known_project=$(ask project/project-id) || known_project=; fi
}
