#!/usr/bin/env bash
# Installs the Debian 12 packages that braid is built from; with --lint also the linters, with --pages the browser
# that pages are checked in, with --fuzz the compiler of the fuzz targets, with --backends the libraries that operators
# can be run by; with --torch the library that plans are run by, and operators, too. Does nothing when they are all there.
# Needs root or sudo.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache
  libcli11-dev libfmt-dev nlohmann-json3-dev libyaml-cpp-dev libtomlplusplus-dev
  libprotobuf-dev protobuf-compiler libonnx-dev libonnx-testdata
  libsqlite3-dev
  node-d3-axis node-d3-scale node-d3-zoom
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev coinor-cbc
)
for option in "$@"; do
  case "$option" in
    --lint) packages+=(clang-format clang-tidy) ;;
    --pages) packages+=(chromium) ;;
    --fuzz) packages+=(clang libclang-rt-14-dev) ;;
    --backends)
      packages+=(libdnnl-dev libxnnpack-dev libpthreadpool-dev libxsmm-dev libeigen3-dev
        libopenblas0-pthread libblis4 libhalide14-0-dev)
      ;;
    --torch) packages+=(libtorch-dev libgloo-dev libopenblas0-pthread) ;;
    *)
      echo "usage: $0 [--lint] [--pages] [--fuzz] [--backends] [--torch]" >&2
      exit 2
      ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then exit 0; fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "$0: run this as root, or install sudo; missing: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
