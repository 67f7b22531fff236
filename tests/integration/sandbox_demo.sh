#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an agent of scripts/demo does in its sandbox: it looks round. The image's shell runs it.
set -u
metadata=http://$GCE_METADATA_HOST/computeMetadata/v1
token=$metadata/instance/service-accounts/default/token
wrong=0

# show EXPECTED TITLE CURL-ARGUMENT...
show() {
	expected=$1 title=$2
	shift 2
	status=$(curl -s -m 5 --path-as-is -o /tmp/body -w '%{http_code}' "$@")
	mark=
	[ "$status" = "$expected" ] || { mark="   <- should be $expected" && wrong=$((wrong + 1)); }
	printf '  %-34s %s %s%s\n' "$title" "$status" "$(tr '\n' ' ' </tmp/body)" "$mark"
}

# absent TITLE PATH
absent() {
	if [ -e "$2" ]; then
		printf '  %-34s is there   <- should not be\n' "$1"
		wrong=$((wrong + 1))
	else
		printf '  %-34s is not there\n' "$1"
	fi
}

printf 'its token, from %s:\n' "$GCE_METADATA_HOST"
curl -s -m 5 -H 'Metadata-Flavor: Google' "$token" >/tmp/token
sed -E 's/("access_token":"[^"]{14})[^"]*/\1…/; s/^/  /' /tmp/token
printf '\n'
grep -q '"access_token":"offline\.' /tmp/token || wrong=$((wrong + 1))

set -- -H 'Metadata-Flavor: Google'
printf 'its account, where libraries look that read no variable:\n'
show 200 '169.254.169.254' "$@" http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/email
show 200 'metadata.google.internal' "$@" http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/email

printf 'what is refused:\n'
show 404 'instance/attributes/kube-env' "$@" "$metadata/instance/attributes/kube-env"
show 404 'instance/zone' "$@" "$metadata/instance/zone"
show 404 'identity?audience=x' "$@" "$metadata/instance/service-accounts/default/identity?audience=x"
show 404 'another account' "$@" "$metadata/instance/service-accounts/x@y.iam.gserviceaccount.com/token"
show 404 'dot segments' "$@" "$metadata/x/../instance/service-accounts/default/token"
show 403 'no Metadata-Flavor' "$token"
show 403 'a foreign Host' "$@" -H 'Host: attacker.example' "$token"

printf 'what is not here:\n'
absent 'the engine'"'"'s socket' /var/run/docker.sock
absent 'a gcloud directory' "$HOME/.config/gcloud"
# What the caller has planted is of this form, and so is what must be found.
printf 'canary-%s\n' 0123456789abcdef >/tmp/like-an-adc-file
found=$(grep -r -l -s -E 'canary-[0-9a-f]{16}' /baked /creds /etc /home /mnt /root /run /tmp /var /workspace)
if [ "$found" = /tmp/like-an-adc-file ]; then
	printf '  %-34s is in no file\n' 'what the operator'"'"'s ADC file holds'
else
	printf '  %-34s is in: %s   <- should not be\n' 'what the operator'"'"'s ADC file holds' "$found"
	wrong=$((wrong + 1))
fi
rm /tmp/like-an-adc-file

# The caller looks for values of its own in it.
env >/workspace/environment
cat /proc/self/mounts /creds/kubeconfig >/workspace/rest
printf 'the names in its environment:\n'
env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort | tr '\n' ' ' | fold -s -w 96 | sed 's/^/  /'
printf '\nits kubeconfig (%s):\n  %s\n' "$KUBECONFIG" \
	"$(sed -E 's/"token": ?"[^"]*"/"token":"…"/' "$KUBECONFIG" | tr -d '\n ')"
printf 'its mounts, besides those of every container:\n'
grep -vE ' (/|/proc|/sys|/dev)(/[^ ]*)? ' /proc/self/mounts |
	awk '{ split($4, how, ","); printf "  %-20s %s, %s\n", $2, $3, how[1] }'
printf 'its user: %s, its capabilities: %s\n' "$(id -u)" "$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)"
[ "$wrong" -eq 0 ] || exit 1
printf 'the sandbox has seen what it should\n'
