#!/bin/sh
# Installs XLA's CPU plugin for builds with -tags xla, from one package that is
# checked by its hash. x86-64 Linux; needs python3 with pip and 200 MB.
#
#   scripts/xla-cpu.sh DEST      afterwards: . DEST/env.sh
#
# A second run with the same DEST replaces the first. Exit status 77: this machine
# lacks what the script needs, the platform, python3 with pip or the network.
set -eu

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
	echo "xla-cpu.sh: the package is for Linux on x86-64, not $(uname -s) on $(uname -m)" >&2
	exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
me=xla-cpu.sh
. "$here/pip.sh"
need_pip
mkdir -p "$1"
dest=$(cd "$1" && pwd)
case $dest in *[:\']*)
	# PJRT_PLUGIN_LIBRARY_PATH separates folders with colons.
	echo "xla-cpu.sh: choose a folder without : and ' in its path, not $dest" >&2
	exit 2
	;;
esac

pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
	--upgrade --target "$dest/python" -r "$here/requirements-xla-cpu.txt"

# A folder with nothing but the plugin: every library in it is loaded in the
# search for plugins.
rm -rf "$dest/pjrt"
mkdir "$dest/pjrt"
plugin=lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
[ -f "$dest/python/$plugin" ]
ln -s "../python/$plugin" "$dest/pjrt/pjrt_c_api_cpu_plugin.so"

cat >"$dest/env.sh" <<ENV
export PJRT_PLUGIN_LIBRARY_PATH='$dest/pjrt'
ENV
echo "plugin installed; now: . '$dest/env.sh'"
