#!/bin/bash
# SPDX-License-Identifier: MIT
# selftest.sh: each rule of check.sh finds a planted violation and accepts clean code.
#
# Job        Builds a tiny tree that keeps every rule, lets each check pass on it, then breaks one rule at a time and expects exactly
#            that check to fail and to name the file.
# Invariants The tree is a temporary folder; the checkout is only read.
# Cost       About 5 s.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
tree=$(mktemp -d "${TMPDIR:-/tmp}/weir-checks-XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
passed=0
failed=0

# put FILE: its text from standard input.
put()
{
    mkdir -p "$(dirname "$tree/$1")"
    cat >"$tree/$1"
}

opening()
{
    printf '/* SPDX-License-Identifier: MIT */\n/* %s: a specimen.\n *\n' "$1"
    printf ' * Job        None.\n * Invariants None.\n * Threads    Any.\n * Cost       None.\n */\n'
}

# compile [LINKER-OPTION...]
compile()
{
    local source options=("$@")
    rm -rf "$tree/build"
    (
        cd "$tree" || exit 1
        for source in src/*/*.c; do
            mkdir -p "build/CMakeFiles/weir_objects.dir/$(dirname "$source")"
            gcc -Isrc -Iinclude -fPIC -w -O0 -c "$source" -o "build/CMakeFiles/weir_objects.dir/$source.o" || exit 1
        done
        gcc -shared "${options[@]}" -o build/libweir.so build/CMakeFiles/weir_objects.dir/src/*/*.o
    )
}

clean_tree()
{
    find "$tree" -mindepth 1 -delete
    cp "$here/../../.clang-format" "$tree/"
    {
        opening base.h
        printf '#ifndef WEIR_BASE_H\n#define WEIR_BASE_H\n\n#include <stddef.h>\n\nint weir_answer(void);\n\n#endif\n'
    } | put include/weir/base.h
    {
        opening os.h
        printf '#ifndef WR_OS_H\n#define WR_OS_H\n\nvoid *wr_os_bytes(void);\n\n#endif\n'
    } | put src/platform/os.h
    {
        opening os.c
        printf '#include "platform/os.h"\n\n#include <stdlib.h>\n#include <weir/base.h>\n\n'
        printf 'void *wr_os_bytes(void)\n{\n    return malloc(1);\n}\n'
    } | put src/platform/os.c
    {
        opening heap.c
        printf '#include "platform/os.h"\n\n#include <string.h>\n#include <weir/base.h>\n\n'
        printf 'int weir_answer(void)\n{\n    WR_ASSERT(1);\n    return memchr(wr_os_bytes(), 1, 1) == NULL;\n}\n'
    } | put src/memory/heap.c
    {
        opening check.h
        printf '#define WR_ASSERT(x) (void)(x)\n'
    } | put src/platform/check.h
    sed -i 's|#include "platform/os.h"|#include "platform/check.h"\n&|' "$tree/src/memory/heap.c"
    {
        opening main.c
        printf '#include "own.h"\n\n#include <stdio.h>\n#include <weir/base.h>\n\nint main(void)\n{\n    return weir_answer();\n}\n'
    } | put apps/kv/main.c
    opening own.h | put apps/kv/own.h
}

verdict()
{
    if [ "$1" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s\n' "$3"
        sed 's/^/    /' <<<"$output"
    fi
}

check()
{
    output=$(bash "$here/check.sh" --root "$tree" --build "$tree/build" "$@" 2>&1)
}

# found CHECK TEXT: that check fails and its output names TEXT.
found()
{
    check --only "$1"
    verdict "$?/$(grep -c -F -- "$2" <<<"$output" | sed 's/^[1-9].*/named/')" 1/named "$1 does not report $2"
    clean_tree
}

hidden="-Wl,--version-script=$here/../../cmake/weir.map"
clean_tree
compile "$hidden"
for name in format layers public assert fences extensions platforms symbols names exports openings asserts; do
    check --only "$name"
    verdict $? 0 "$name reports something in clean code"
done
check
verdict $? 0 "all checks together report something in clean code"

printf 'int  wr_spaced ;\n' >>"$tree/src/memory/heap.c"
found format src/memory/heap.c

printf '#include "memory/heap.h"\n' >>"$tree/src/platform/os.c"
found layers 'src/platform/os.c:18: "memory/heap.h" belongs to a higher layer'
printf '#include <weir/heap.h>\n' >>"$tree/include/weir/base.h"
found layers 'include/weir/base.h'
printf '#include <weir/stream.h>\n' >>"$tree/src/memory/heap.c"
found layers 'src/memory/heap.c'
printf '#include <unistd.h>\n' >>"$tree/src/memory/heap.c"
found layers '<unistd.h>'
printf '  #  include "../platform/os.h"\n' >>"$tree/src/memory/heap.c"
found layers '../platform/os.h'
opening new.c | put src/surprise/new.c
found layers 'src/surprise/new.c'

printf '#include "platform/os.h"\n' >>"$tree/apps/kv/main.c"
found public apps/kv/main.c
{ opening one.c && printf '#include "own.h"\n'; } | put examples/one.c
found public examples/one.c

printf '#include <assert.h>\n' >>"$tree/src/memory/heap.c"
found assert src/memory/heap.c
{ opening test_one.c && printf '#include <assert.h>\n'; } | put tests/unit/memory/test_one.c
found assert tests/unit/memory/test_one.c

printf 'void f(void)\n{\n    atomic_thread_fence(memory_order_seq_cst);\n}\n' >>"$tree/src/memory/heap.c"
found fences src/memory/heap.c

printf '__attribute__((noinline)) void wr_f(void);\n' >>"$tree/src/memory/heap.c"
found extensions src/memory/heap.c

printf '#ifdef __linux__\n#endif\n' >>"$tree/src/memory/heap.c"
found platforms src/memory/heap.c

for call in 'malloc:void *malloc(unsigned long)\;:(void)malloc(8)' 'clock_gettime:int clock_gettime(int, void *)\;:clock_gettime(1, 0)' \
    'pthread_create:int pthread_create(void *, void *, void *, void *)\;:pthread_create(0, 0, 0, 0)' \
    'write:long write(int, const void *, unsigned long)\;:(void)write(1, 0, 0)' 'getenv:char *getenv(const char *)\;:(void)getenv("A")' \
    'rand:int rand(void)\;:(void)rand()' 'printf:int printf(const char *, ...)\;:printf("%%d", 1)' 'syscall:long syscall(long, ...)\;:syscall(1)'; do
    IFS=: read -r symbol declaration statement <<<"$call"
    printf "${declaration//\\;/;}\nvoid wr_f(void);\nvoid wr_f(void)\n{\n    $statement;\n}\n" >>"$tree/src/memory/heap.c"
    compile
    found symbols "src/memory/heap.c: $symbol:"
done

printf 'int stray;\n' >>"$tree/src/memory/heap.c"
compile
found names 'src/memory/heap.c: stray'

# Nothing in the clean tree is hidden, so without the version script its library exports wr_os_bytes.
compile
found exports 'libweir.so exports wr_os_bytes'
rm -rf "$tree/build"
found symbols 'no objects'
found names 'no objects'
found exports 'no '

sed -i 1d "$tree/src/memory/heap.c"
found openings src/memory/heap.c:1
sed -i '2s/heap/pile/' "$tree/src/memory/heap.c"
found openings src/memory/heap.c:2
sed -i 's/Threads/Thread /' "$tree/src/memory/heap.c"
found openings 'lacks "Threads"'
printf '#!/bin/sh\n' | put tests/run.sh
found openings tests/run.sh

for line in $(seq 1 40); do printf '/* filler %s */\n' "$line"; done >>"$tree/src/memory/heap.c"
found asserts src/memory

for line in $(seq 1 900); do printf '/* filler %s */\n' "$line"; done >>"$tree/src/platform/os.c"
check
verdict "$(grep -c 'long file *src/platform/os.c' <<<"$output")" 1 "long files are not reported"
clean_tree
{ printf 'void wr_f(void)\n{\n'; for line in $(seq 1 71); do printf '    /* %s */\n' "$line"; done; printf '}\n'; } >>"$tree/src/platform/os.c"
check
verdict "$(grep -c 'long function *src/platform/os.c' <<<"$output")" 1 "long functions are not reported"

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
