# shellcheck shell=bash
#
# Shared by the scripts of this folder; sourced, not run.
#
# Goes to the root of the repository, and knows how to get the tools: on Debian
# and Ubuntu missing packages are installed (as root, or through sudo), or only
# unpacked below build/ if they would start a service; on other systems they are
# named and the script ends.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Where programs are that were unpacked, not installed.
tools=$root/build/tools
PATH=$PATH:$tools/usr/bin

cpus=$(nproc 2>/dev/null || echo 1)

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

has_header() {
	echo "#include <$1>" | gcc -E - >/dev/null 2>&1
}

# have <tool>: is it there? Most are commands; the others are looked for in their own way.
have() {
	case $1 in
	libc) has_header stdio.h ;;
	libev) has_header ev.h ;;
	libuv) has_header uv.h ;;
	glib) pkg-config --exists glib-2.0 2>/dev/null ;;
	cmocka) pkg-config --exists cmocka 2>/dev/null ;;
	libmicrohttpd) pkg-config --exists libmicrohttpd 2>/dev/null ;;
	selenium) /usr/bin/python3 -c "import selenium" 2>/dev/null ;; # of the system, whichever python3 comes first
	clang-rt) # the runtimes of clang's sanitizers and of libFuzzer
		local dir
		dir=$(clang -print-resource-dir 2>/dev/null) || return 1
		compgen -G "$dir/lib/*/libclang_rt.fuzzer*.a" >/dev/null
		;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# package_of <tool>: the Debian package that brings it.
package_of() {
	case $1 in
	libc) echo libc6-dev ;;
	ninja) echo ninja-build ;;
	cmocka) echo libcmocka-dev ;;
	libmicrohttpd) echo libmicrohttpd-dev ;;
	ss) echo iproute2 ;;
	chromedriver) echo chromium-driver ;;
	selenium) echo python3-selenium ;;
	libev) echo libev-dev ;;
	libuv) echo libuv1-dev ;;
	glib) echo libglib2.0-dev ;;
	go) echo golang-go ;;
	cargo) echo cargo-web ;; # the one that is kept up to date
	javac) echo default-jdk-headless ;;
	mvn) echo maven ;;
	clang-rt) echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" ;;
	nm | readelf) echo binutils ;;
	script) echo bsdutils ;;
	*) echo "$1" ;;
	esac
}

is_debian() {
	[ -r /etc/os-release ] && command -v apt-get >/dev/null 2>&1 || return 1
	# shellcheck disable=SC1091
	(. /etc/os-release && case " ${ID:-} ${ID_LIKE:-} " in *" debian "* | *" ubuntu "*) true ;; *) false ;; esac)
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		command -v sudo >/dev/null 2>&1 && sudo "$@"
	fi
}

apt_install() {
	echo "Installing: $*"
	# Without fresh lists the install may still succeed.
	as_root apt-get update -qq </dev/null >/dev/null || true
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		-o Dpkg::Use-Pty=0 --no-install-recommends "$@" </dev/null >/dev/null
}

# starts_service <package>: installing it starts a server, and has it start with the machine. Nobody
# who wants to run our tests has asked for that: such a package is only unpacked.
starts_service() { [ "$1" = prometheus ]; }

apt_unpack() {
	local deb
	echo "Unpacking into ${tools#"$root/"}: $*"
	rm -rf "$tools/deb"
	mkdir -p "$tools/deb"
	(
		cd "$tools/deb"
		# apt drops its rights and may find that it cannot write here; it says so and goes on.
		apt-get download -qq "$@" </dev/null >/dev/null 2>&1 || {
			as_root apt-get update -qq </dev/null >/dev/null
			apt-get download -qq "$@" </dev/null >/dev/null
		}
	) || return 1
	for deb in "$tools"/deb/*.deb; do
		dpkg -x "$deb" "$tools" || return 1
	done
	rm -rf "$tools/deb"
}

# get_packages <package>...
get_packages() {
	local package installed=() unpacked=()
	for package; do
		if starts_service "$package"; then unpacked+=("$package"); else installed+=("$package"); fi
	done
	[ ${#installed[@]} = 0 ] || apt_install "${installed[@]}" || return 1
	[ ${#unpacked[@]} = 0 ] || apt_unpack "${unpacked[@]}"
}

# need <tool>...: see to it that they are there.
need() {
	local tool missing=() packages=()
	for tool; do
		if ! have "$tool"; then
			missing+=("$tool")
			packages+=("$(package_of "$tool")")
		fi
	done
	[ ${#missing[@]} = 0 ] && return
	if is_debian && get_packages "${packages[@]}"; then
		for tool in "${missing[@]}"; do
			have "$tool" || die "$tool is still missing after getting $(package_of "$tool")"
		done
		return
	fi
	printf '%s: these are missing (as Debian packages: %s):\n' "${0##*/}" "${packages[*]}" >&2
	printf '  %s\n' "${missing[@]}" >&2
	exit 1
}

# want <tool>...: get them if that is possible; the caller can do without.
want() {
	(need "$@") || true
}

# What every build needs.
need_build() {
	need gcc libc cmake ninja
	local version
	version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
	[ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" = 3.25 ] ||
		die "cmake $version is too old: 3.25 or newer is needed"
}

# configure_and_build <folder> <preset> [<cmake argument>... [-- <target>...]]
#
# For the programs of scripts/demo and scripts/bench: quiet unless it fails.
configure_and_build() {
	local dir=$1 preset=$2 args=() log
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	[ $# -gt 0 ] && shift
	mkdir -p "$dir"
	log=$dir/build.log
	if ! { cmake --preset "$preset" -B "$dir" "${args[@]}" &&
		cmake --build "$dir" --parallel "$cpus" ${1:+--target "$@"}; } >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		die "the build failed; its output is in $log"
	fi
}
