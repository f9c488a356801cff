/* SPDX-License-Identifier: MIT */
/* bench/main.c: the command line of weir-bench.
 *
 * Job        Read the command line, refuse what it does not understand (exit 2), run one suite, print and write what
 *            came out (exit 1 if a repeat failed or the file could not be written).
 * Threads    One.
 */
#define _GNU_SOURCE /* CPU sets */
#include "bench.h"
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bench_suite *const suites[] = {&bench_heap, &bench_messages, &bench_redis};
#define SUITES (sizeof(suites) / sizeof(suites[0]))

static const char usage[] = "usage: weir-bench list\n"
                            "       weir-bench run SUITE [options]\n"
                            "\n"
                            "Suites: heap, messages, redis (a Redis-protocol server, through Weir's client).\n"
                            "\n"
                            "  --json FILE          write the rows to FILE as well\n"
                            "  --filter TEXT        only rows whose id contains TEXT\n"
                            "  --runs N             repeats of each row, 1 to 101 (7)\n"
                            "  --time MS            about how long one repeat is measured, 1 to 10000 (100)\n"
                            "  --cpu LIST           run on these CPUs only, for example 0 or 0,2-3\n"
                            "  --threads LIST       only with these numbers of schedulers, for example 1 or 1,2\n"
                            "  --socket PATH        redis: the server's Unix socket\n"
                            "  --address ADDRESS    redis: the server's address, for example tcp:127.0.0.1:6379\n"
                            "  --peer-socket PATH   redis: a second server, measured in turns with the first\n"
                            "  --peer-address ADDRESS\n"
                            "  --peer-name NAME     what to call it (peer)\n"
                            "\n"
                            "Figures are medians over the repeats; progress goes to standard error. Exit code 1: "
                            "something failed; 2: not understood.\n";

static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("weir-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\nTry: weir-bench --help\n", stderr);
    va_end(args);
    exit(2);
}

static unsigned parse_number(const char *option, const char *text, unsigned min, unsigned max)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value < min || value > max)
        refuse("%s takes a number from %u to %u, not '%s'", option, min, max, text);
    return (unsigned)value;
}

static uint64_t parse_list(const char *option, const char *text)
{
    uint64_t set = bench_parse_set(text);
    if (set == 0)
        refuse("%s takes a list of numbers below 64 like 0,2-3, not '%s'", option, text);
    return set;
}

/* "unix:" and the path, in `out`. */
static const char *unix_address(const char *path, char *out, size_t size)
{
    if (snprintf(out, size, "unix:%s", path) >= (int)size)
        refuse("the path of the socket is too long");
    return out;
}

static void pin(const char *cpus)
{
    cpu_set_t set;
    uint64_t bits = parse_list("--cpu", cpus);
    CPU_ZERO(&set);
    for (size_t i = 0; i < 64; i++)
        if (bits >> i & 1)
            CPU_SET(i, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        refuse("cannot run on CPUs %s: %s", cpus, strerror(errno));
}

static bench_options parse_options(int argc, char **argv)
{
    static char address[4096], peer_address[4096];
    bench_options options = {.runs = 7, .repeat_ms = 100, .peer_name = "peer"};
    for (int i = 0; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (option[0] != '-')
            refuse("one suite at a time; '%s' is too many", option);
        static const char *const known[] = {"--json",        "--filter",       "--runs",     "--time",
                                            "--cpu",         "--threads",      "--socket",   "--address",
                                            "--peer-socket", "--peer-address", "--peer-name"};
        bool found = false;
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            found = found || strcmp(option, known[k]) == 0;
        if (!found)
            refuse("unknown option '%s'", option);
        if (value == NULL)
            refuse("%s needs a value", option);
        i++;
        if (strcmp(option, "--json") == 0)
            options.json = value;
        else if (strcmp(option, "--filter") == 0)
            options.filter = value;
        else if (strcmp(option, "--runs") == 0)
            options.runs = parse_number(option, value, 1, BENCH_RUNS_MAX);
        else if (strcmp(option, "--time") == 0)
            options.repeat_ms = parse_number(option, value, 1, 10000);
        else if (strcmp(option, "--cpu") == 0)
            options.cpus = value;
        else if (strcmp(option, "--threads") == 0)
            options.threads = parse_list(option, value);
        else if (strcmp(option, "--socket") == 0)
            options.address = unix_address(value, address, sizeof(address));
        else if (strcmp(option, "--address") == 0)
            options.address = value;
        else if (strcmp(option, "--peer-socket") == 0)
            options.peer_address = unix_address(value, peer_address, sizeof(peer_address));
        else if (strcmp(option, "--peer-address") == 0)
            options.peer_address = value;
        else
            options.peer_name = value;
    }
    return options;
}

static const bench_suite *find_suite(const char *name)
{
    for (size_t i = 0; i < SUITES; i++)
        if (strcmp(suites[i]->name, name) == 0)
            return suites[i];
    refuse("no suite '%s'; there are: heap, messages, redis", name);
}

static int list(void)
{
    for (size_t i = 0; i < SUITES; i++) {
        printf("%s: %s\n", suites[i]->name, suites[i]->about);
        for (size_t r = 0; r < suites[i]->row_count; r++)
            printf("  %-16s %s\n", suites[i]->rows[r].id, suites[i]->rows[r].unit);
    }
    return 0;
}

static int run(const bench_suite *suite, const bench_options *options)
{
    bench_result *results;
    size_t matched;
    if (suite->server && options->address == NULL)
        refuse("suite %s needs a server: --socket PATH or --address ADDRESS", suite->name);
    if (!suite->server && (options->address || options->peer_address))
        refuse("suite %s talks to no server", suite->name);
    if (options->threads && !suite->server && !(options->threads & suite->threads))
        refuse("suite %s does not run on that number of threads", suite->name);
    if (options->json && !bench_can_write(options->json))
        refuse("cannot write %s: %s", options->json, strerror(errno));
    if (options->cpus)
        pin(options->cpus);
    bench_note_machine();
    bench_print_machine(options);
    int count = bench_run_suite(suite, options, &results, &matched);
    if (count >= 0 && matched == 0)
        refuse("suite %s has no row with '%s' in its id", suite->name, options->filter);
    int code = count < 0;
    if (count >= 0) {
        bench_print_table(suite, results, (size_t)count);
        if (options->json && bench_write_json(options->json, suite, options, results, (size_t)count) != 0)
            code = 1;
    }
    free(results);
    return code;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
    }
    if (command == NULL)
        refuse("say what to do: list or run");
    if (strcmp(command, "list") == 0) {
        if (argc > 2)
            refuse("list takes nothing, not '%s'", argv[2]);
        return list();
    }
    if (strcmp(command, "exec") == 0 && argc == 4)
        return bench_exec(argv[2], parse_number("exec", argv[3], 1, 100000000));
    if (strcmp(command, "run") != 0)
        refuse("unknown command '%s'; there are: list, run", command);
    if (argc < 3)
        refuse("run needs the name of a suite: heap, messages, redis");
    const bench_suite *suite = find_suite(argv[2]);
    bench_options options = parse_options(argc - 3, argv + 3);
    return run(suite, &options);
}
