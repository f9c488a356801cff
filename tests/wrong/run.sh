#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: each wrong program in wrong.c is refused by each compiler, at the mistake's own line.
#
# Cost       About 10 s.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-wrong-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# compile LANGUAGE [OPTION...]
compile()
{
    local compiler=${1%% *} standard=${1##* } language=c
    shift
    if [[ $standard == c++* ]]; then
        language=c++
    fi
    "$compiler" "-std=$standard" -x "$language" -Wall -Wextra -Wpedantic -Wno-undef -Werror -fsyntax-only \
        -fdiagnostics-color=never -I"$here/../../include" "$@" "$here/wrong.c" >"$work/log" 2>&1
}

verdict()
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED  %s\n' "$2"
        head -n 20 "$work/log" | sed 's/^/        /'
    fi
}

# "line case word title" of each case.
cases=$(sed -nE 's|^#(el)?if CASE == ([0-9]+) /\* (.*): ([^ ]+) \*/$|\2 \4 \3|p' "$here/wrong.c")
for language in "gcc c11" "gcc c17" "clang c11" "clang c17" "g++ c++17" "clang++ c++17"; do
    compile "$language"
    verdict $? "$language: the right program does not compile"
    while read -r number word title; do
        line=$(grep -nE "CASE == $number /" "$here/wrong.c" | cut -d: -f1)
        if compile "$language" -DCASE="$number"; then
            verdict 1 "$language: compiles: $title (line $((line + 1)))"
            continue
        fi
        first=$(grep -m 1 'error:' "$work/log")
        # The word may stand in the lines that explain the error.
        [[ $first == *"/wrong.c:$((line + 1)):"* ]] && grep -qF -- "$word" "$work/log"
        verdict $? "$language: $title: no error at line $((line + 1)) that names $word; the first is: $first"
    done <<<"$cases"
done

printf '%d programs\n' "$(wc -l <<<"$cases")"
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
