# Shared by the scripts: what the project needs is installed, and a preset is built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '== %s\n' "$*" >&2; }

# What is installed, and what those packages stand in for (NodeSource's nodejs for npm, say).
installed_packages() {
  dpkg-query -W -f='${db:Status-Status} ${Package}, ${Provides}\n' 2>/dev/null |
    sed -n 's/^installed //p' | tr ',' '\n' | awk 'NF { print $1 }'
}

# Installs the Debian packages of scripts/packages.txt that are missing.
install_packages() {
  local wanted missing=() package installed
  wanted=$(grep -v '^#' scripts/packages.txt)
  installed=$(installed_packages)
  for package in $wanted; do
    grep -qxF "$package" <<<"$installed" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get >/dev/null; then
    echo "missing packages: ${missing[*]}; install what your system calls them" >&2
    return 1
  fi
  say "installing ${missing[*]}"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" ${1:+--target "$@"} >&2
}
