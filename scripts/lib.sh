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

# Where programs are that were unpacked, not installed; and what is of another architecture, or old.
tools=$root/build/tools
arm64=$tools/arm64
old_cmake=$tools/cmake-3.18/cmake/data/bin/cmake
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
	cmocka-arm64) [ -f "$arm64/usr/include/cmocka.h" ] ;;
	pip) python3 -m pip --version >/dev/null 2>&1 ;;
	cmake-3.18) [ -x "$old_cmake" ] ;;
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
	cmocka-arm64) echo libcmocka-dev:arm64 ;;
	pip) echo python3-pip ;;
	cmake-3.18) echo cmake==3.18.4.post1 ;; # of Python's registry: Debian has newer ones only
	abidw) echo abigail-tools ;;
	musl-gcc) echo musl-tools ;;
	aarch64-linux-gnu-gcc) echo gcc-aarch64-linux-gnu ;;
	qemu-aarch64-static) echo qemu-user-static ;;
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

# For tests of another architecture. apt reads its lists into a folder of their own: the system does
# not get to know it.
unpack_arm64() {
	local apt=$arm64/apt deb get
	get=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt"
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o APT::Sandbox::User=root)
	echo "Unpacking into ${arm64#"$root/"}: $*"
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/deb"
	: >"$apt/status"
	(
		cd "$apt/deb"
		"${get[@]}" update </dev/null >/dev/null 2>&1 && "${get[@]}" download "$@" </dev/null >/dev/null
	) || return 1
	for deb in "$apt"/deb/*.deb; do
		dpkg -x "$deb" "$arm64" || return 1
	done
	rm -rf "$apt"
}

unpack_wheel() {
	echo "Unpacking into ${tools#"$root/"}: $*"
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$tools/cmake-3.18" "$@" </dev/null >/dev/null
}

# get_packages <package>...
get_packages() {
	local package installed=() unpacked=() foreign=() wheels=()
	for package; do
		case $package in
		libcmocka-dev:arm64) foreign+=(libcmocka0 libcmocka-dev) ;;
		*==*) wheels+=("$package") ;;
		*) if starts_service "$package"; then unpacked+=("$package"); else installed+=("$package"); fi ;;
		esac
	done
	[ ${#installed[@]} = 0 ] || apt_install "${installed[@]}" || return 1
	[ ${#unpacked[@]} = 0 ] || apt_unpack "${unpacked[@]}" || return 1
	[ ${#foreign[@]} = 0 ] || unpack_arm64 "${foreign[@]}" || return 1
	[ ${#wheels[@]} = 0 ] || unpack_wheel "${wheels[@]}"
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
