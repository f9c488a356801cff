#!/bin/bash
# SPDX-License-Identifier: MIT
# dev.sh: the front door keeps its promises: it judges stages, installs what is missing, and says clearly what is wrong.
#
# Job        Calls ./dev with stand-ins for dpkg-query, apt-get, sudo and id, and its `stage` function with commands that succeed, fail,
#            crash and say nothing.
# Invariants Nothing is installed: the stand-ins only write down how they were called.
# Cost       About a second.

set -u -o pipefail
export LC_ALL=C
here=$(dirname "$(readlink -f "$0")")
dev=$(readlink -f "$here/../../dev")
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-dev-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
output=

# is "property" GOT EXPECTED
is()
{
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: got "%s", expected "%s"\n%s\n' "$1" "$2" "$3" "$output"
    fi
}

says()
{
    if [[ $output == *"$2"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED  %s: no "%s" in:\n%s\n' "$1" "$2" "$output"
    fi
}

run()
{
    output=$("$dev" "$@" 2>&1)
}

# ---- the command line ----

for name in build demo test soak bench check help; do
    run
    is "no subcommand: help" $? 0
    says "help names $name" "./dev $name"
    run "$name" --help
    is "$name --help" $? 0
    says "$name --help explains $name" "./dev $name"
    output=$("$dev" help "$name" 2>&1)
    is "help $name" $? 0
done
run nonsense
is "an unknown subcommand is an error" $? 2
says "an unknown subcommand is named" "no subcommand 'nonsense'"
for name in demo test soak bench check; do
    run "$name" --nonsense
    is "an unknown option of $name is an error" $? 2
done
run build nonsense
is "an unknown preset is an error" $? 2
says "an unknown preset lists those there are" "tsan-clang"

# ---- what is missing is installed ----

# stand_in NAME: a program that does what standard input says.
stand_in()
{
    mkdir -p "$work/bin"
    { printf '#!/bin/bash\n' && cat; } >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# install: calls install_needed with three packages needed, of which "installed" lists those there; apt-get calls go to `calls`.
install()
{
    : >"$work/calls"
    output=$(PATH=$work/bin:$PATH bash -c '. "$1"; need "do one thing" one two; need "do another" three; install_needed' dev.sh "$dev" 2>&1)
}

stand_in dpkg-query <<<"cat '$work/installed'; exit 1"
stand_in apt-get <<<"printf '%s\n' \"\$*\" >>'$work/calls'"
stand_in sudo <<<"printf 'sudo ' >>'$work/calls'; exec \"\$@\""
stand_in id <<<'echo 0'
printf 'installed/one\nnot-installed/two\ninstalled/three\n' >"$work/installed"
install
is "installing succeeds" $? 0
is "only what is missing is said" "$(grep installing <<<"$output")" "dev: installing two (to do one thing)"
is "only what is missing is installed" "$(grep -c 'install --no-install-recommends two$' "$work/calls")" 1

stand_in id <<<'echo 1000'
install
is "without root, sudo is used" "$(grep -c '^sudo .*install --no-install-recommends two$' "$work/calls")" 1

printf 'installed/one\ninstalled/two\ninstalled/three\n' >"$work/installed"
install
is "nothing missing: silent" "$output" ""
is "nothing missing: apt-get is not called" "$(cat "$work/calls")" ""

printf 'installed/one\n' >"$work/installed"
stand_in apt-get <<<"printf '%s\n' \"\$*\" >>'$work/calls'; case \$* in *update*) touch '$work/updated' ;; *) [ -e '$work/updated' ] || exit 100 ;; esac"
stand_in id <<<'echo 0'
install
is "old package lists are renewed" $? 0
stand_in apt-get <<<'echo "E: no such package"; exit 100'
install
is "apt-get failing is an error" $? 1
says "its own words are shown" "E: no such package"
says "the packages are named" "could not install: two three"
# Only the stand-ins and what install_needed itself calls, so that there is no sudo.
rm "$work/bin/sudo"
stand_in id <<<'echo 1000'
for tool in bash cat grep readlink dirname; do
    ln -s "$(command -v "$tool")" "$work/bin/$tool"
done
output=$(PATH=$work/bin bash -c '. "$1"; need "do one thing" one two; install_needed' dev.sh "$dev" 2>&1)
is "neither root nor sudo is an error" $? 1
says "neither root nor sudo: the command to give" "As root: apt-get install two"

# ---- stages are judged ----

# judge COMMAND...: runs it as a stage; prints "passed failed skipped verdict".
judge()
{
    output=$(bash -c '. "$1"; logs=$2; shift 2; stage "$@"; code=$?; echo "sums $sum_passed $sum_failed $sum_skipped code $code"' \
        dev.sh "$dev" "$work" "$@" 2>&1)
    tail -n 1 <<<"$output"
}

is "counts are added" "$(judge tests sh -c 'echo 3 passed, 0 failed, 1 skipped')" "sums 3 0 1 code 0"
is "counts without skipped are added" "$(judge tests sh -c 'echo 3 passed, 0 failed')" "sums 3 0 0 code 0"
is "failures are added" "$(judge tests sh -c 'echo 3 passed, 2 failed, 0 skipped; exit 1')" "sums 3 2 0 code 1"
is "a crash without counts is a failure" "$(judge tests sh -c 'kill -SEGV $$')" "sums 0 1 0 code 1"
is "a crash after good counts is a failure" "$(judge tests sh -c 'echo 3 passed, 0 failed, 0 skipped; kill -SEGV $$')" "sums 3 1 0 code 1"
is "silence is a failure" "$(judge tests true)" "sums 0 1 0 code 1"
is "no test at all is a failure" "$(judge tests sh -c 'echo 0 passed, 0 failed, 0 skipped')" "sums 0 1 0 code 1"
is "a build needs no counts" "$(judge "build dev" true)" "sums 0 0 0 code 0"
is "a failed build is a failure" "$(judge "build dev" false)" "sums 0 1 0 code 1"
judge tests sh -c 'echo "something broke"; exit 3' >/dev/null
says "a failed stage's output is shown" "something broke"
judge tests sh -c 'echo "skipped a.b: no reason"; echo 1 passed, 0 failed, 1 skipped' >/dev/null
says "skipped tests are shown" "skipped a.b: no reason"

# ---- private servers come and go ----

# serve COMMAND...: starts it as a server and stops it; prints "started PATH-OF-FOLDER" and "stopped CODE".
serve()
{
    output=$(bash -c '. "$1"; shift; dir=$(mktemp -d "$0/server-XXXXXX"); trap stop_servers EXIT
        start_server specimen "now ready" "$@"; echo "started $dir"; stop_servers; echo "stopped $?"' "$work" "$dev" "$@" 2>&1)
}

folders()
{
    find "$work" -maxdepth 1 -name 'server-*' | wc -l
}

# It goes on by reading an end that closes only when the specimen itself dies, so no sleep bounds its life.
alive='mkfifo "$0"; exec 3<>"$0"; read -r _ <&3'
serve bash -c "trap 'exit 0' TERM; echo hello; echo now ready; $alive" "$work/fifo1"
says "a server that gets ready is started" "started $work/server-"
says "a server that ends well is stopped" "stopped 0"
is "its folder is removed" "$(folders)" 0
serve bash -c "trap 'exit 7' TERM; echo now ready; $alive" "$work/fifo2"
says "a server that ends badly is told" "ended with exit code 7"
says "a server that ends badly is a failure" "stopped 1"
serve bash -c 'echo "no room" >&2; exit 3'
is "a server that does not start is an error" $? 1
says "its own words are shown" "no room"
is "no started line then" "$(grep -c '^started' <<<"$output")" 0
is "its folder is removed as well" "$(folders)" 0

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
