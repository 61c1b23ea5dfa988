# Sourced by the scripts that install Python packages, with the script's name in $me.
# Both functions end the script with status 77 where the machine lacks what it needs.

need_pip() {
	python3 -m pip --version >/dev/null 2>&1 || {
		echo "$me: python3 with pip is not in PATH" >&2
		exit 77
	}
}

# Runs pip. If it fails where the package index answers, it is not for want of a
# network: a wrong hash, for example, stays an error.
pip() {
	status=0
	PIP_ROOT_USER_ACTION=ignore python3 -m pip "$@" || status=$?
	[ $status -eq 0 ] && return
	index=$(python3 -m pip config get global.index-url 2>/dev/null || :)
	python3 - "${PIP_INDEX_URL:-${index:-https://pypi.org/simple}}" <<-'PY' || {
		import sys, urllib.error, urllib.request
		try:
		    urllib.request.urlopen(sys.argv[1].rstrip("/") + "/pip/", timeout=20).close()
		except urllib.error.HTTPError:
		    pass  # it answers
		except OSError as e:
		    sys.exit("the package index cannot be reached: %s" % e)
	PY
		echo "$me: no network, and what it needs is not in pip's cache" >&2
		exit 77
	}
	exit $status
}
