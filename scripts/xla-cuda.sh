#!/bin/sh
# Installs XLA's CUDA plugin for builds with -tags xla, with the CUDA libraries that
# it loads, from packages that are checked by their hashes. x86-64 Linux; needs
# python3 with pip and 5 GB. The driver (580 or newer) is not part of it.
#
#   scripts/xla-cuda.sh DEST     afterwards: . DEST/env.sh
#
# A second run with the same DEST replaces the first. Exit status 77: this machine
# lacks what the script needs, the platform, python3 with pip or the network.
set -eu

if [ $# -ne 1 ] || [ "${1#-}" != "$1" ]; then
	sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" >&2
	exit 2
fi
if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
	echo "xla-cuda.sh: the packages are for Linux on x86-64, not $(uname -s) on $(uname -m)" >&2
	exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
me=xla-cuda.sh
. "$here/pip.sh"
need_pip
mkdir -p "$1"
dest=$(cd "$1" && pwd)
case $dest in *[:\']*)
	echo "xla-cuda.sh: choose a folder without : and ' in its path, not $dest" >&2
	exit 2
	;;
esac

# The plugin looks for libraries in ../nvidia, and go-xla for CUDA's compiler in
# the folder nvidia beside which it stands: so the plugin is put into that folder.
root=$dest/lib/go-xla
cuda=$root/nvidia
rm -rf "$root"
pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
	--target "$root" -r "$here/requirements-xla-cuda13.txt"
mv "$root/jax_plugins/xla_cuda13/xla_cuda_plugin.so" "$cuda/pjrt_c_api_cuda_plugin.so"
rm -r "$root/jax_plugins"

# What XLA starts (ptxas, nvlink) and reads (libdevice) is expected in the folder
# itself.
ln -s cu13/bin "$cuda/bin"
ln -s cu13/nvvm "$cuda/nvvm"
for file in bin/ptxas bin/nvlink nvvm/libdevice/libdevice.10.bc cu13/lib/libcudart.so.13 cudnn/lib/libcudnn.so.9 nccl/lib/libnccl.so.2; do
	[ -e "$cuda/$file" ] || { echo "xla-cuda.sh: the packages have no $file" >&2; exit 1; }
done
rm -rf "$cuda"/cu13/include "$cuda"/*/include "$cuda"/cu13/lib/*.a # of no use at run time

libraries=
for lib in cu13 cudnn nccl nvshmem; do
	libraries=$libraries${libraries:+:}$cuda/$lib/lib
done
cat >"$dest/env.sh" <<ENV
export PJRT_PLUGIN_LIBRARY_PATH='$cuda'
export LD_LIBRARY_PATH='$libraries'"\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
ENV
echo "plugin installed; now: . '$dest/env.sh'"
