#!/bin/bash
# SPDX-License-Identifier: MIT
# check.sh: rules of the code base that a machine can check.
#
# usage: check.sh [--fix] [--root FOLDER] [--build FOLDER] [--only CHECK]
#
# Job        One function a rule: it prints a line for each violation, `file:line: what and what to do instead`.
#            --fix formats in place and checks nothing. --root and --build point it at planted violations (selftest.sh).
# Invariants A check that finds nothing to look at fails: an empty list must not look like a clean one.
# Cost       About 10 s, nearly all of it clang-format.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
build=
only=
fix=

while [ $# -gt 0 ]; do
    case $1 in
    --root) root=$(readlink -f "$2") && shift ;;
    --build) build=$(readlink -f "$2") && shift ;;
    --only) only=$2 && shift ;;
    --fix) fix=1 ;;
    *)
        printf 'check.sh: unknown argument %s\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done
build=${build:-$root/build/release}
cd "$root" || exit 2

# files NAME-PATTERN... -- FOLDER...: those that exist, in order.
files()
{
    local patterns=() folders=() folder
    while [ "$1" != -- ]; do
        patterns+=(-o -name "$1")
        shift
    done
    shift
    for folder in "$@"; do
        if [ -e "$folder" ]; then
            folders+=("$folder")
        fi
    done
    if [ ${#folders[@]} -gt 0 ]; then
        find "${folders[@]}" -type f \( "${patterns[@]:1}" \) | sort
    fi
}

c_files()
{
    files '*.c' '*.h' -- include src apps bench examples tests
}

# ---- the rules ----

title_format="clang-format finds nothing to change"
check_format()
{
    c_files | xargs -r -n 1 -P 2 sh -c '
        places=$(clang-format --dry-run "$0" 2>&1 | grep -c "warning: code should be clang-formatted")
        [ "$places" -eq 0 ] || echo "$0: $places places; run ./dev check --fix"'
}

title_layers="no layer includes a higher one, and only platform includes system headers"
check_layers()
{
    files '*.c' '*.h' -- src include | xargs -r awk '
        BEGIN {
            split("platform memory actors buffers streams protocols", names)
            for (i in names) level[names[i]] = i
            # The layer each public header belongs to.
            public["base"] = 1; public["heap"] = 2; public["actor"] = public["runtime"] = 3; public["buffer"] = 4
            public["stream"] = public["process"] = 5; public["resp"] = 6; public["bench"] = public["weir"] = 7
            split("errno float inttypes iso646 limits stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string", names)
            for (i in names) plain[names[i] ".h"] = 1
        }
        function bad(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }
        FNR == 1 {
            split(FILENAME, part, "/")
            name = part[3]
            sub(/\.h$/, "", name)
            own = part[1] == "src" ? level[part[2]] : public[name]
            if (!own) bad("belongs to no known layer")
        }
        /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
            match($0, /[<"][^">]*/)
            header = substr($0, RSTART + 1, RLENGTH - 1)
            quoted = substr($0, RSTART, 1) == "\""
            count = split(header, at, "/")
            name = at[2]
            sub(/\.h$/, "", name)
            if (at[1] == "weir") {
                if (!public[name]) bad(header " belongs to no known layer")
                else if (public[name] > own) bad(header " belongs to a higher layer")
            } else if (!quoted) {
                if (part[2] != "platform" && !plain[header]) bad("<" header ">: only src/platform talks to the system; ask os.h")
            } else if (part[1] == "include") {
                bad("\"" header "\": public headers include public headers only")
            } else if (header ~ /\.\./) {
                bad("\"" header "\": write layer/file.h")
            } else if (count > 1 && !level[at[1]]) {
                bad("\"" header "\" is in no layer")
            } else if (count > 1 && level[at[1]] > own) {
                bad("\"" header "\" belongs to a higher layer")
            }
        }'
}

title_public="programs and examples include public headers only"
check_public()
{
    files '*.c' '*.h' -- apps bench examples | while read -r file; do
        grep -nE '^[ \t]*#[ \t]*include[ \t]*"' "$file" | while IFS=: read -r line text; do
            header=$(sed -E 's/^[^"]*"([^"]*)".*/\1/' <<<"$text")
            # bench/ and apps/bench are one program.
            case $header in
            weir/*) continue ;;
            */*) ;;
            *)
                if [ -f "$(dirname "$file")/$header" ] || { [[ $file == bench/* ]] && [ -f "apps/bench/$header" ]; }; then
                    continue
                fi
                ;;
            esac
            printf '%s:%s: "%s" is not a header of this program; use <weir/...>\n' "$file" "$line" "$header"
        done
    done
}

title_assert="<assert.h> is not used"
check_assert()
{
    c_files | xargs -r grep -nE '^[ \t]*#[ \t]*include[ \t]*<assert\.h>|(^|[^_[:alnum:]])assert\(' /dev/null |
        sed 's/$/   (use WR_CHECK or WR_ASSERT, in tests EXPECT)/'
}

title_fences="no atomic_thread_fence"
check_fences()
{
    c_files | xargs -r grep -nE '(^|[^_[:alnum:]])(atomic_thread_fence|__atomic_thread_fence|__sync_synchronize)[ \t]*\(' /dev/null |
        sed 's/$/   (ThreadSanitizer cannot see it: acquire and release on the object)/'
}

title_extensions="GNU extensions stand in compiler.h only"
check_extensions()
{
    files '*.c' '*.h' -- src | grep -v '^src/platform/compiler\.h$' |
        xargs -r grep -nE '__attribute__|__builtin_|__asm__|(^|[^_[:alnum:]])asm[ \t]*(volatile)?[ \t]*\(|__typeof__|(^|[^_[:alnum:]])__thread([^_[:alnum:]]|$)|__extension__|__has_feature' /dev/null |
        sed 's/$/   (give it a name in src\/platform\/compiler.h)/'
}

title_platforms="no conditional per platform outside src/platform"
check_platforms()
{
    files '*.c' '*.h' -- src include apps bench | grep -v '^src/platform/' |
        xargs -r grep -nE '^[ \t]*#[ \t]*(el)?if.*(__linux__|__APPLE__|__FreeBSD__|__unix__|_WIN32|__x86_64__|__aarch64__|__GLIBC__)' /dev/null |
        sed 's/$/   (belongs behind src\/platform\/os.h or compiler.h)/'
}

# The release build's objects, as lines "layer/file.c path".
objects()
{
    local folder=$build/CMakeFiles/weir_objects.dir/src
    if [ -d "$folder" ]; then
        find "$folder" -name '*.c.o' | sort | while read -r object; do
            # What a deleted source left behind does not count.
            if [ -f "src/$(sed -E "s|^.*/src/(.*)\.o$|\1|" <<<"$object")" ]; then
                printf '%s %s\n' "$(sed -E 's|^.*/src/(.*)\.o$|\1|' <<<"$object")" "$object"
            fi
        done
    fi
}

title_symbols="only src/platform calls the operating system, clocks, random numbers, threads, malloc or output"
check_symbols()
{
    local file object all
    all=$(objects)
    if [ -z "$all" ]; then
        printf 'no objects in %s: build the release preset first\n' "$build"
        return
    fi
    while read -r file object; do
        if [[ $file != platform/* ]]; then
            nm -u "$object" | awk -v file="src/$file" '
                NR == FNR { if ($0 !~ /^#/) pure[$1] = 1; next }
                {
                    sub(/@.*/, "", $2)
                    if ($2 !~ /^(wr|weir)_/ && !pure[$2]) {
                        printf "%s: %s: go through src/platform, or add it to tests/checks/pure_symbols if it is pure\n", file, $2
                    }
                }' "$here/pure_symbols" -
        fi
    done <<<"$all"
}

title_names="symbols shared between files are named wr_ or weir_"
check_names()
{
    local file object all
    all=$(objects)
    if [ -z "$all" ]; then
        printf 'no objects in %s: build the release preset first\n' "$build"
        return
    fi
    while read -r file object; do
        nm -g --defined-only "$object" | awk -v file="src/$file" '$3 !~ /^(wr|weir)_/ { printf "%s: %s is neither static nor named wr_\n", file, $3 }'
    done <<<"$all"
}

title_exports="the shared library exports weir_ names only"
check_exports()
{
    if [ ! -e "$build/libweir.so" ]; then
        printf 'no %s/libweir.so: build the release preset first\n' "$build"
        return
    fi
    nm -D --defined-only "$build/libweir.so" | awk '
        { sub(/@.*/, "", $3) }
        $2 == "A" { next } # the name of the symbol version
        $3 ~ /^weir_/ { exported++; next }
        { printf "libweir.so exports %s\n", $3 }
        END { if (!exported) print "libweir.so exports nothing" }'
}

title_openings="every file opens with its licence and says what it is; sources give job, invariants, threads and cost"
check_openings()
{
    c_files | xargs -r awk '
        function judge(  i, word) {
            if (path == "") return
            if (first != "/* SPDX-License-Identifier: MIT */") printf "%s:1: first line is not the SPDX comment\n", path
            if (index(second, "/* ") != 1 || (path !~ /^(tests|examples)\// && !index(second, base))) printf "%s:2: second line does not begin a comment that says what the file is, by name\n", path
            else if (path ~ /^src\/.*\.c$/) {
                for (i = 1; i <= words; i++)
                    if (comment !~ ("\n \\* " word_list[i] " ")) printf "%s:2: opening comment lacks \"%s\"\n", path, word_list[i]
            }
        }
        BEGIN { words = split("Job Invariants Threads Cost", word_list) }
        FNR == 1 { judge(); path = FILENAME; base = path; sub(/.*\//, "", base); first = $0; second = comment = ""; open = 0 }
        FNR == 2 { second = $0; open = 1 }
        open { comment = comment "\n" $0; if (/\*\//) open = 0 }
        END { judge() }'
    files '*.sh' '*.py' '*.cmake' CMakeLists.txt dev run -- dev .ci CMakeLists.txt cmake tests | while read -r file; do
        if ! head -n 2 "$file" | grep -q '^# SPDX-License-Identifier: MIT$'; then
            printf '%s:1: neither of the first two lines is the SPDX comment\n' "$file"
        fi
    done
}

title_asserts="memory and actors have at least 35 assertions per 1000 lines"
check_asserts()
{
    local layer
    for layer in memory actors; do
        files '*.c' '*.h' -- "src/$layer" | xargs -r cat | awk -v layer="$layer" '
            { count += gsub(/(^|[^_[:alnum:]])(WR_CHECK|WR_ASSERT)[A-Z_]*\(/, "") }
            END { if (NR > 0 && count * 1000 < 35 * NR) printf "src/%s: %d in %d lines, %.0f per 1000\n", layer, count, NR, count * 1000 / NR }'
    done
}

# Reported, not judged: a limit that everybody works around helps nobody.
report_sizes()
{
    c_files | xargs -r awk '
        function file_end() { if (path != "" && lines > 800) printf "long file      %s: %d lines\n", path, lines }
        FNR == 1 { file_end(); path = FILENAME; start = 0 }
        { lines = FNR }
        /^\{$/ { start = FNR; name = before }
        /^\}/ && start { if (FNR - start - 1 > 70) printf "long function  %s:%d: %d lines: %s\n", path, start, FNR - start - 1, name; start = 0 }
        { before = $0 }
        END { file_end() }'
}

# ---- running them ----

if [ -n "$fix" ]; then
    c_files | xargs -r clang-format -i
    exit
fi

passed=0
failed=0
for check in format layers public assert fences extensions platforms symbols names exports openings asserts; do
    if [ -n "$only" ] && [ "$only" != "$check" ]; then
        continue
    fi
    title=title_$check
    found=$("check_$check")
    if [ -z "$found" ]; then
        passed=$((passed + 1))
        printf 'ok      %-11s %s\n' "$check" "${!title}"
    else
        failed=$((failed + 1))
        printf 'FAILED  %-11s %s\n' "$check" "${!title}"
        printf '%s\n' "$found" | head -n 60 | sed 's/^/        /'
    fi
done
if [ -z "$only" ]; then
    report_sizes
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
