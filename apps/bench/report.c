/* SPDX-License-Identifier: MIT */
/* bench/report.c: the machine line, the table and the JSON file.
 *
 * Job        Say where figures come from before giving them; give them for people (standard output) and for programs
 *            (JSON).
 * Invariants Each figure stands beside its peer's from the same run. JSON has exactly the keys that
 *            docs/internals/bench.md names.
 * Threads    One.
 */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <weir/weir.h>

static double load_at_start;

void bench_note_machine(void)
{
    double load[1];
    if (getloadavg(load, 1) == 1)
        load_at_start = load[0];
}

static void cpu_model(char *out, size_t size)
{
    char line[256];
    snprintf(out, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && value != NULL) {
            line[strcspn(line, "\n")] = 0;
            snprintf(out, size, "%s", value + 1 + (value[1] == ' '));
            break;
        }
    }
    fclose(file);
}

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void bench_print_machine(const bench_options *options)
{
    char cpu[256];
    struct utsname system;
    cpu_model(cpu, sizeof(cpu));
    uname(&system);
    printf("machine: %s, %ld cores, %s %s, %s, Weir %s, load %.2f at the start%s%s\n", cpu,
           sysconf(_SC_NPROCESSORS_ONLN), system.sysname, system.release, COMPILER, weir_version(), load_at_start,
           options->cpus ? ", pinned to CPUs " : "", options->cpus ? options->cpus : "");
}

/* Enough digits to compare, none that are noise. */
static void print_figure(double value)
{
    if (value < 100)
        printf(" %12.2f", value);
    else
        printf(" %12.0f", value);
}

static int column(const char *text, int width)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

/* What a row is compared with: its peer, which follows it, or else the same row on one scheduler, which is before
 * it. */
static const bench_result *beside(const bench_result *results, size_t count, size_t i)
{
    const bench_result *r = &results[i];
    if (i + 1 < count && r[1].row == r->row && r[1].threads == r->threads)
        return r + 1;
    if (i > 0 && r[-1].row == r->row && r[-1].threads == 1 && r->threads > 1)
        return r - 1;
    return NULL;
}

static void print_beside(const bench_suite *suite, const bench_result *r, const bench_result *other)
{
    double ratio = suite->rate ? r->stats.median / other->stats.median : other->stats.median / r->stats.median;
    printf("  %6.2f x %s", ratio, other->threads == r->threads ? other->impl : "1 thread");
}

void bench_print_table(const bench_suite *suite, const bench_result *results, size_t count)
{
    int id_width = 4, impl_width = 4, unit_width = 4;
    bool writes = false, compared = false;
    for (size_t i = 0; i < count; i++) {
        id_width = column(results[i].row->id, id_width);
        impl_width = column(results[i].impl, impl_width);
        unit_width = column(results[i].row->unit, unit_width);
        writes = writes || results[i].writes.runs;
    }
    printf("\n%s: %s\n", suite->name, suite->about);
    printf("%-*s  %-*s  thr %12s %12s %12s spread  %-*s%s\n", id_width, "id", impl_width, "impl", "median", "min",
           "max", unit_width, "unit", writes ? "  writes/op" : "");
    for (size_t i = 0; i < count; i++) {
        const bench_result *r = &results[i], *other = beside(results, count, i);
        printf("%-*s  %-*s  %3u", id_width, r->row->id, impl_width, r->impl, r->threads);
        print_figure(r->stats.median);
        print_figure(r->stats.min);
        print_figure(r->stats.max);
        printf(" %5.1f%%  %-*s", r->stats.spread * 100, unit_width, r->row->unit);
        if (writes)
            printf("  %9.3f", r->writes.median);
        if (other && r->stats.median > 0 && other->stats.median > 0) {
            print_beside(suite, r, other);
            compared = true;
        }
        putchar('\n');
    }
    if (compared)
        printf("2.00 x other: twice as fast as the other (medians).\n");
}

static void json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void json_row(FILE *file, const bench_suite *suite, const bench_result *r, const char *suffix, const char *unit,
                     const bench_stats *stats, bool first)
{
    fprintf(file, "%s\n  {\"suite\":\"%s\",\"id\":\"%s%s\",\"impl\":", first ? "" : ",", suite->name, r->row->id,
            suffix);
    json_text(file, r->impl);
    fprintf(file, ",\"threads\":%u,\"unit\":\"%s\",\"median\":%.10g,\"min\":%.10g,\"max\":%.10g,\"runs\":%zu}",
            r->threads, unit, stats->median, stats->min, stats->max, stats->runs);
}

bool bench_can_write(const char *path)
{
    FILE *file = fopen(path, "ae");
    return file != NULL && fclose(file) == 0;
}

int bench_write_json(const char *path, const bench_suite *suite, const bench_options *options,
                     const bench_result *results, size_t count)
{
    char cpu[256];
    struct utsname system;
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        fprintf(stderr, "weir-bench: cannot write %s: ", path);
        perror(NULL);
        return -1;
    }
    cpu_model(cpu, sizeof(cpu));
    uname(&system);
    fputs("{\"machine\":{\"cpu\":", file);
    json_text(file, cpu);
    fprintf(file, ",\"cores\":%ld,\"kernel\":", sysconf(_SC_NPROCESSORS_ONLN));
    json_text(file, system.release);
    fputs(",\"compiler\":", file);
    json_text(file, COMPILER);
    fprintf(file, ",\"weir\":\"%s\",\"load\":%.2f,\"pinned\":", weir_version(), load_at_start);
    json_text(file, options->cpus ? options->cpus : "");
    fputs("},\"rows\":[", file);
    for (size_t i = 0; i < count; i++) {
        json_row(file, suite, &results[i], "", results[i].row->unit, &results[i].stats, i == 0);
        if (results[i].writes.runs)
            json_row(file, suite, &results[i], "-writes", "writes/op", &results[i].writes, false);
    }
    fputs("\n]}\n", file);
    bool bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        fprintf(stderr, "weir-bench: writing %s failed\n", path);
        return -1;
    }
    return 0;
}
