#!/bin/sh
# Builds the static library of github.com/daulet/tokenizers, the bindings to
# Hugging Face's Rust tokenizers, for builds with -tags hftokenizers. The source
# is that of the Go module in go.mod; needs go, cargo (tested with Rust 1.95), a C++
# compiler, 300 MB and, where nothing is cached, crates.io.
#
#   scripts/build-tokenizers.sh DEST      afterwards: . DEST/env.sh
#
# A second run with the same DEST does nothing unless something changed. Exit status
# 77: this machine lacks what the script needs, a tool or the network.
set -eu

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
for tool in go cargo rustc c++; do
	command -v $tool >/dev/null || {
		echo "build-tokenizers.sh: $tool is not in PATH" >&2
		exit 77
	}
done
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dest=$(cd "$1" && pwd)
case $dest in *[[:space:]\'\"]*)
	# CGO_LDFLAGS separates arguments with spaces.
	echo "build-tokenizers.sh: choose a folder without spaces and quotes in its path, not $dest" >&2
	exit 2
	;;
esac

# Runs a command that downloads. If it fails for want of a network, and only then,
# the script ends with status 77: a wrong checksum stays an error.
fetch() {
	status=0
	LC_ALL=C "$@" >"$dest/fetch.log" 2>&1 || status=$?
	cat "$dest/fetch.log" >&2
	[ $status -eq 0 ] && return
	if grep -qiE 'resolve host|no such host|connect to server|connection refused|dial tcp|timed out|timeout|network is unreachable' "$dest/fetch.log"; then
		echo "build-tokenizers.sh: no network, and what it needs is not cached" >&2
		exit 77
	fi
	exit $status
}

module=github.com/daulet/tokenizers
cd "$here/.."
fetch go mod download $module
source=$(go list -m -f '{{.Dir}}' $module)
stamp="$(go list -m $module), $(cargo --version), Cargo.lock $(cksum <"$here/tokenizers/Cargo.lock"), script $(cksum <"$here/build-tokenizers.sh")"

if [ ! -f "$dest/libtokenizers.a" ] || [ "$(cat "$dest/stamp" 2>/dev/null)" != "$stamp" ]; then
	rm -rf "$dest/source" "$dest/stamp"
	cp -R "$source" "$dest/source"
	chmod -R u+w "$dest/source"
	cd "$dest/source"
	# Upstream takes tiktoken-rs from a git fork. Nothing here calls it; the
	# release that the crates of upstream compile with comes from crates.io. That
	# changes the lock file, so ours stands in for it.
	grep -q '^tiktoken-rs = ' Cargo.toml || {
		echo "build-tokenizers.sh: $module depends on tiktoken-rs no more: drop the edit of Cargo.toml from this script" >&2
		exit 1
	}
	sed 's|^tiktoken-rs = .*|tiktoken-rs = "0.9"|' Cargo.toml >Cargo.toml.new
	mv Cargo.toml.new Cargo.toml
	cp "$here/tokenizers/Cargo.lock" Cargo.lock
	fetch cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
	cargo build --locked --offline --release --lib
	cp target/release/libtokenizers.a "$dest/"
	cd "$dest"
	rm -rf source
	printf '%s\n' "$stamp" >stamp
fi

cat >"$dest/env.sh" <<ENV
export CGO_ENABLED=1
export CGO_LDFLAGS="-L$dest \${CGO_LDFLAGS:-}"
ENV
echo "libtokenizers.a built; now: . '$dest/env.sh'"
