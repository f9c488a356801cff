#!/bin/bash
# SPDX-License-Identifier: MIT
# callgrind_final.sh: an object with a finaliser is allocated by the same number of instructions as one without.
#
# usage: callgrind_final.sh [WEIR-BENCH]
#
# Job        Counts, under callgrind, the instructions of the allocation loops of bench/heap_loops.c (and of all that they call) for two numbers
#            of objects each. The difference divided by the objects between is what one object costs; start-up and shutdown are in neither.
# Cost       Four short runs, about 2 s together. Needs valgrind.

set -u -o pipefail
export LC_ALL=C
bench=${1:-build/release/weir-bench}
few=10000
many=110000
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-callgrind-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# instructions ID FUNCTION COUNT: what FUNCTION and its callees executed.
instructions()
{
    timeout 120 valgrind --tool=callgrind --callgrind-out-file="$work/$1-$3" --toggle-collect="$2" \
        "$bench" exec "$1" "$3" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
    awk '$1 == "totals:" || $1 == "summary:" { print $2; found = 1; exit } END { exit !found }' "$work/$1-$3"
}

# per_object ID FUNCTION, in thousandths of an instruction.
per_object()
{
    local at_few at_many
    at_few=$(instructions "$1" "$2" $few) && at_many=$(instructions "$1" "$2" $many) || return 1
    # A loop that was not seen, or was compiled away, must not pass as equal to another such.
    [ "$at_few" -ge "$few" ] && [ "$at_many" -ge "$many" ] || return 1
    echo $(((at_many - at_few) * 1000 / (many - few)))
}

if ! command -v valgrind >/dev/null; then
    echo "FAIL callgrind_final: valgrind is not installed"
    echo "0 passed, 1 failed"
    exit 1
fi
if plain=$(per_object alloc32 bench_allocate_plain) && final=$(per_object alloc32-final bench_allocate_final); then
    difference=$((final > plain ? final - plain : plain - final))
    printf 'instructions an object: %d.%03d without a finaliser, %d.%03d with one\n' \
        $((plain / 1000)) $((plain % 1000)) $((final / 1000)) $((final % 1000))
    if [ $difference -le 10 ]; then
        echo "PASS callgrind_final: equal within 0.01"
        echo "1 passed, 0 failed"
        exit 0
    fi
    printf 'FAIL callgrind_final: they differ by %d.%03d\n' $((difference / 1000)) $((difference % 1000))
else
    echo "FAIL callgrind_final: counting instructions failed"
fi
echo "0 passed, 1 failed"
exit 1
