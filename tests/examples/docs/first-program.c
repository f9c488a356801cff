/* SPDX-License-Identifier: MIT */
/* first-program.c: completes the fragments of docs/guide/first-program.md to the program that the page describes.
 *
 * It must print 45, and the asker must be told 45.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

static FILE *printed;
static uint64_t told;

#include "first-program/counter.c"

#define start start_spawning
#include "first-program/spawn.c"
#undef start

#include "first-program/add.c"

#include "first-program/report.c"

typedef struct asker {
    uint64_t total;
} asker;
WEIR_ACTOR(asker);

typedef struct answer {
    uint64_t total;
} answer;

WEIR_BEHAVIOUR(asker, answer)
{
    told = msg->total;
}

#include "first-program/ask.c"

static void start(void *arg)
{
    start_spawning(arg);
    counter_ref c = weir_spawn(counter, .total = 0);
#include "first-program/send.c"
    weir_send(c, counter, report, .to_fd = fileno(printed));
    weir_send(c, counter, ask, .from = weir_spawn(asker));
}

int main(void)
{
    char text[16] = "";
    printed = tmpfile();
    if (printed == NULL)
        return 2;
    int code = weir_run(NULL, start, NULL);
    rewind(printed);
    if (fgets(text, sizeof text, printed) == NULL || strcmp(text, "45\n") != 0 || told != 45) {
        fprintf(stderr, "printed \"%s\", told %" PRIu64 "\n", text, told);
        return 1;
    }
    return code;
}
