# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How a client is installed: one way for each kind of lock file. scripts/clients sets root, cache and scratch.
# Homes and caches lie below $cache. Where packages come from stays with this user's settings.

: "${root:?}" "${cache:?}" "${scratch:?}"

# The user's own settings of each package manager, where there are any.
settings=()
setting() { # VARIABLE FILE
	if [ -z "${!1:-}" ] && [ -f "$2" ]; then settings+=("$1=$2"); fi
}
configs=${XDG_CONFIG_HOME:-$HOME/.config}
setting NPM_CONFIG_USERCONFIG "$HOME/.npmrc"
setting PIP_CONFIG_FILE "$configs/pip/pip.conf"
setting GOENV "$configs/go/env"
own_cargo=${CARGO_HOME:-$HOME/.cargo}
rustup=${RUSTUP_HOME:-$HOME/.rustup}

# installer COMMAND...: with a home and caches of its own; shows what is said only on failure.
installer() {
	local home=$cache/home
	mkdir -p "$home/cargo"
	# Maven asks the password file for the home, so it finds its settings by itself.
	HOME=$home XDG_CACHE_HOME=$home/.cache XDG_CONFIG_HOME=$home/.config XDG_DATA_HOME=$home/.local/share \
		PIP_CACHE_DIR=$home/pip npm_config_cache=$home/npm \
		GOPATH=$home/go GOMODCACHE=$home/go/pkg/mod GOCACHE=$home/go-build GOBIN='' GOWORK=off \
		GOTOOLCHAIN=local CARGO_HOME=$home/cargo RUSTUP_HOME=$rustup \
		timeout --kill-after=10 "${installer_s:-1200}" env "${settings[@]}" "$@" >"$scratch/said" 2>&1 || {
		cat "$scratch/said" >&2
		return 1
	}
}

with_pip() {
	installer /usr/bin/python3 -m venv "$2/venv" &&
		installer "$2/venv/bin/python" -m pip install --require-hashes --only-binary=:all: \
			--disable-pip-version-check -r "$1/requirements.txt"
}

with_npm() {
	cp "$1/package.json" "$1/package-lock.json" "$2/" &&
		installer npm ci --ignore-scripts --no-audit --no-fund --prefix "$2"
}

with_go() {
	installer go build -C "$1" -buildvcs=false -mod=readonly -modcacherw -trimpath -o "$2/client" .
}

with_maven() {
	installer mvn --batch-mode --strict-checksums --file "$1/pom.xml" -Dmaven.repo.local="$cache/home/m2" \
		-DoutputDirectory="$2/lib" dependency:copy-dependencies &&
		(cd "$2/lib" && installer sha256sum --check --strict --quiet "$root/$1/SHA256SUMS") &&
		[ "$(find "$2/lib" -name '*.jar' | wc -l)" -eq "$(wc -l <"$1/SHA256SUMS")" ] &&
		installer javac -d "$2/classes" -cp "$2/lib/*" "$1/Client.java"
}

# The lock file is kept without the name of the registry, which cargo tells.
with_cargo() {
	local file
	for file in config.toml config; do
		if [ -f "$own_cargo/$file" ]; then ln -sfn "$own_cargo/$file" "$cache/home/cargo/$file"; fi
	done
	mkdir -p "$2/src" && cp "$1/Cargo.toml" "$2/" && cp "$1/main.rs" "$2/src/" &&
		installer cargo metadata --no-deps --format-version 1 --manifest-path "$2/Cargo.toml" &&
		/usr/bin/python3 scripts/clients.d/cargo_lock.py restore "$1/Cargo.lock" \
			"$scratch/said" >"$2/Cargo.lock" &&
		installer cargo build --locked --manifest-path "$2/Cargo.toml" --target-dir "$2/target"
}

# What a folder's client is made of, and by what: NAME of the way, LOCK file, the tool's version.
way_of() {
	local here=$1
	if [ -f "$here/requirements.txt" ]; then
		way=with_pip lock=$here/requirements.txt by=$(/usr/bin/python3 --version)
	elif [ -f "$here/package-lock.json" ]; then
		way=with_npm lock=$here/package-lock.json by=$(node --version)
	elif [ -f "$here/go.sum" ]; then
		way=with_go lock=$here/go.sum by=$(GOTOOLCHAIN=local go version)
	elif [ -f "$here/pom.xml" ]; then
		way=with_maven lock=$here/SHA256SUMS by=$(javac -version 2>&1)
	elif [ -f "$here/Cargo.lock" ]; then
		way=with_cargo lock=$here/Cargo.lock by=$(cargo --version)
	else
		way=
	fi
}

# The first version in what a program says of itself.
version_of() {
	# Go has a word for it, the others an option.
	{ if [ "${1##*/}" = go ]; then GOTOOLCHAIN=local "$1" version; else "$1" --version; fi; } 2>&1 </dev/null |
		grep -oEm1 '[0-9]+(\.[0-9]+)+' | head -n 1 || printf 'of no version\n'
}

# find_tool PROGRAM LEAST: the first in PATH that is new enough becomes the first of all.
find_tool() {
	local path
	while read -r path; do
		if [ "$(printf '%s\n' "$2" "$(version_of "$path")" | sort -V | head -n 1)" = "$2" ]; then
			if [[ $1 != */* && $path != "$scratch"/* ]]; then ln -sfn "$path" "$scratch/tools/$1"; fi
			hash -r
			return 0
		fi
	done < <(type -ap "$1")
	return 1
}
mkdir -p "$scratch/tools"
PATH=$scratch/tools:$PATH

# find_tools PROGRAM=LEAST...: all of them; where one is missing or too old, `why` says so by name.
find_tools() {
	local need program least
	why=
	for need in "$@"; do
		program=${need%%=*} least=${need#*=}
		if ! command -v "$program" >/dev/null; then
			why+="there is no $program; "
		elif ! find_tool "$program" "$least"; then
			why+="$(command -v "$program") is $(version_of "$program"), too old: it needs $least; "
		fi
	done
	[ -z "$why" ]
}

# install_one NAME: unless what is there was made of the same files by the same tools.
install_one() {
	local here=tests/clients/$1 there=$cache/$1 way lock by wanted sources
	way_of "$here"
	if [ -n "$way" ]; then
		sources=("$here"/{Client.java,pom.xml,main.rs,Cargo.toml,go.mod,*.go})
		if [ "$way" = with_go ]; then sources+=(tests/clients/serve/go/*); fi
		wanted="$root $by $(cat "$lock" "${sources[@]}" 2>/dev/null |
			sha256sum)"
		if [ "$(cat "$there/.made-of" 2>/dev/null)" != "$wanted" ]; then
			rm -rf -- "$there"
			mkdir -p "$there"
			"$way" "$here" "$there" || return 1
			printf '%s\n' "$wanted" >"$there/.made-of"
		fi
	fi
	# An import is looked up from where the importing file is.
	if [ -f "$here/client.mjs" ]; then cp "$here/client.mjs" "$there/"; fi
}
