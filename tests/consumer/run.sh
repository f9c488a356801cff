#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: users find the installed library and their programs work.
#
# usage: run.sh BUILD-FOLDER     (a release build)
#
# Job        Installs into a temporary prefix, moves that, and then builds and runs the consumers with both compilers through
#            pkg-config and through find_package; compiles each public header alone as C11, C17 and C++17.
# Cost       About 15 s.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1") || exit 2
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-consumer-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
strict=(-Wall -Wextra -Wpedantic -Werror)
passed=0
failed=0

# try "what" COMMAND...
try()
{
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok      %s\n' "$what"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: %s\n' "$what" "$*"
        head -n 40 "$work/log" | sed 's/^/        /'
    fi
}

compile_and_run()
{
    local program=$work/program
    rm -f "$program"
    "$@" -o "$program" && timeout 60 "$program"
}

# Also with the marks off that keep the headers' own warnings quiet.
header_alone()
{
    local compiler=$1 standard=$2 language=$3 header=$4
    printf '#include <weir/%s>\n#include <weir/%s>\n' "$header" "$header" |
        "$compiler" "-std=$standard" -x "$language" "${strict[@]}" -DWEIR_HEADER_CHECK -I"$prefix/include" -fsyntax-only -
}

needs_soname()
{
    readelf -d "$work/program" | grep -qF 'Shared library: [libweir.so.0]'
}

find_package_build()
{
    cmake -S "$here" -B "$work/$1" -G Ninja -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_COMPILER="$2" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$work/$1"
}

prefix=$work/prefix
install_and_move()
{
    cmake --install "$build" --prefix "$work/first" && mv "$work/first" "$prefix"
}
try "install into a prefix" install_and_move
libdir=$(dirname "$(find "$prefix" -name libweir.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir

try "pkg-config knows the version" test "$(pkg-config --modversion weir)" = 0.1.0
read -ra cflags <<<"$(pkg-config --cflags weir)"
read -ra libs <<<"$(pkg-config --libs weir)"
for compiler in gcc clang; do
    try "C11 through pkg-config, $compiler" compile_and_run "$compiler" -std=c11 "${strict[@]}" "${cflags[@]}" "$here/consumer.c" "${libs[@]}"
    try "the program asks for libweir.so.0, $compiler" needs_soname
    try "C17 with the static library, $compiler" compile_and_run "$compiler" -std=c17 -O2 "${strict[@]}" "${cflags[@]}" "$here/consumer.c" "$libdir/libweir.a" -pthread
done
for compiler in g++ clang++; do
    try "C++17 through pkg-config, $compiler" compile_and_run "$compiler" -std=c++17 "${strict[@]}" "${cflags[@]}" "$here/consumer.cpp" "${libs[@]}"
done

for pair in "gcc g++" "clang clang++"; do
    read -r c cpp <<<"$pair"
    try "find_package builds, $c and $cpp" find_package_build "$c" "$cpp"
    for program in c-shared c-static cpp-shared cpp-static; do
        try "find_package $program runs, $c and $cpp" timeout 60 "$work/$c/$program"
    done
done

for path in "$prefix"/include/weir/*.h; do
    header=${path##*/}
    for compiler in gcc clang; do
        for standard in c11 c17; do
            try "$header alone as $standard, $compiler" header_alone "$compiler" "$standard" c "$header"
        done
    done
    for compiler in g++ clang++; do
        try "$header alone as C++17, $compiler" header_alone "$compiler" c++17 c++ "$header"
    done
done

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
