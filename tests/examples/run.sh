#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: every example runs and does what it says.
#
# usage: run.sh BUILD-FOLDER
#
# Job        Runs each program made from examples/*.c in an empty folder; it must end by itself with exit code 0 within a minute. Where
#            NAME.out lies beside this script, standard output must equal it. Where NAME.sh does, that drives the program instead
#            (its argument is the program's path).

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1") || exit 2
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-examples-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

for source in "$here"/../../examples/*.c; do
    name=$(basename "$source" .c)
    command=("$build/examples/$name")
    if [ -f "$here/$name.sh" ]; then
        command=(bash "$here/$name.sh" "$build/examples/$name")
    fi
    mkdir -p "$work/$name"
    (cd "$work/$name" && timeout 60 "${command[@]}" >"$work/out" 2>"$work/err" </dev/null)
    code=$?
    if [ $code -eq 0 ] && { [ ! -f "$here/$name.out" ] || diff "$here/$name.out" "$work/out" >>"$work/err"; }; then
        passed=$((passed + 1))
        printf 'ok      %s\n' "$name"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: exit code %d\n' "$name" $code
        tail -n 40 "$work/out" "$work/err" | sed 's/^/        /'
    fi
done

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
