#!/bin/bash
# SPDX-License-Identifier: MIT
# docs.sh: the C in README.md and docs/guide/ compiles, runs, and names only what there is.
#
# usage: docs.sh BUILD-FOLDER
#
# Job        Every block marked as C is one of two things. A whole program has a `main`; `<!-- prints: TEXT -->` in the line before the
#            block tells its output. A fragment has `<!-- fragment: NAME -->` there, and the fragments of PAGE.md are completed to a
#            program by docs/PAGE.c beside this script, which says `#include "PAGE/NAME.c"` where each belongs. Both kinds are compiled by
#            both compilers, and must end by themselves with exit code 0 within 30 s. Every weir_ and WEIR_ name must exist.
# Invariants No block escapes: one that is neither fails, and so do a fragment that its page's program leaves out, a block without a
#            language, and a program whose page is gone. Errors point at the page's own line.
# Cost       About 5 s.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "${1-}") || exit 2
cd "$here/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-docs-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# verdict CODE "what": what went wrong is in the log.
verdict()
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        printf 'ok      %s\n' "$2"
    else
        failed=$((failed + 1))
        printf 'FAILED  %s\n' "$2"
        head -n 40 "$work/log" | sed 's/^/        /'
    fi
}

# blocks PAGE FOLDER: writes each block of C to FOLDER/NAME.c and prints "program NAME LINE TEXT-THAT-IT-PRINTS" or "fragment NAME LINE",
# or "wrong LINE REASON".
blocks()
{
    awk -v page="$1" -v folder="$2" '
        BEGIN { split("cmake console diff json python sh text", names); for (i in names) other[names[i]] = 1 }
        function wrong(line, text) { printf "wrong %d %s\n", line, text }
        function opened(language) {
            kind = before ~ /^<!-- fragment: [a-z0-9_]+ -->$/ ? "fragment" : "program"
            name = kind == "fragment" ? word[3] : "line" line
            prints = before ~ /^<!-- prints: .* -->$/ ? substr(before, 14, length(before) - 17) : ""
            file = tolower(language) == "c" ? folder "/" name ".c" : ""
            if (file == "" && !(language in other)) wrong(line, "a block needs a known language: ```c, ```text ...")
            if (file != "" && taken[name]++) wrong(line, "another fragment is called " name)
            if (file != "") printf "#line %d \"%s\"\n", line + 1, page >file
        }
        !line && /^ *(```|~~~)/ {
            line = NR
            split(before, word, " ")
            sub(/^ *[`~]+ */, "")
            opened($0)
            next
        }
        line && /^ *(```|~~~) *$/ {
            if (file != "") print kind, name, line, prints
            if (file != "") close(file)
            line = 0
            before = ""
            next
        }
        line { if (file != "") print >file }
        !line { before = $0 }
        END { if (line) wrong(line, "the block has no end") }' "$1"
}

# runs COMPILER SOURCE EXPECTED-OUTPUT: compiles and runs it in an empty folder; "" expects nothing in particular.
runs()
{
    rm -rf "$work/empty"
    mkdir "$work/empty"
    "$1" -std=gnu11 -Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -MMD -MF "$work/included" -Iinclude -I"$work" "$2" "$build/libweir.a" -pthread \
        -o "$work/run" >"$work/log" 2>&1 || return 1
    (cd "$work/empty" && timeout -k 2 30 "$work/run" >"$work/out" 2>"$work/log" </dev/null)
    local code=$?
    if [ $code -ne 0 ]; then
        printf 'exit code %d\n' $code | cat - "$work/out" >>"$work/log"
        return 1
    fi
    [ -z "$3" ] || diff <(printf '%s\n' "$3") "$work/out" >>"$work/log"
}

# page PATH: its whole programs, its program of fragments, its names.
page()
{
    local path=$1 name kind block line rest frame compiler code fragments=()
    name=$(basename "$path" .md)
    frame=tests/examples/docs/$name.c
    mkdir "$work/$name"
    while read -r kind block line rest; do
        case $kind in
        wrong)
            printf '%s:%s: %s\n' "$path" "$block" "$line $rest" >"$work/log"
            verdict 1 "$path: blocks"
            ;;
        fragment) fragments+=("$block") ;;
        program)
            if ! grep -qE '(^|[^_[:alnum:]])main\(' "$work/$name/$block.c"; then
                printf 'no main, and no <!-- fragment: NAME --> in the line before it (%s then completes it)\n' "$frame" >"$work/log"
                verdict 1 "$path:$line"
                continue
            fi
            for compiler in gcc clang; do
                runs "$compiler" "$work/$name/$block.c" "$rest"
                verdict $? "$path:$line runs, $compiler"
            done
            ;;
        esac
    done < <(blocks "$path" "$work/$name")

    if [ ${#fragments[@]} -gt 0 ] || [ -f "$frame" ]; then
        for compiler in gcc clang; do
            : >"$work/included"
            runs "$compiler" "$frame" ""
            code=$?
            verdict $code "$path: its fragments run, $compiler"
        done
        if [ $code -eq 0 ]; then
            for block in "${fragments[@]}"; do
                printf '%s does not include "%s/%s.c"\n' "$frame" "$name" "$block" >"$work/log"
                grep -qF "/$name/$block.c" "$work/included"
                verdict $? "$path: fragment $block"
            done
        fi
    fi

    unknown_names "$path" >"$work/log"
    [ ! -s "$work/log" ]
    verdict $? "$path: its names exist"
}

# Names of the environment stand in the headers' comments.
unknown_names()
{
    grep -noE '\b(weir_[a-z0-9_]*[a-z0-9]|WEIR_[A-Z0-9_]*[A-Z0-9])\b' "$1" | while IFS=: read -r line name; do
        grep -qwF "$name" include/weir/*.h || printf '%s:%s: no header knows %s\n' "$1" "$line" "$name"
    done
}

for path in README.md docs/guide/*.md; do
    page "$path"
done
for frame in tests/examples/docs/*.c; do
    name=$(basename "$frame" .c)
    if [ ! -d "$work/$name" ]; then
        printf 'no page is called %s.md\n' "$name" >"$work/log"
        verdict 1 "$frame"
    fi
done

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
