/* SPDX-License-Identifier: MIT */
/* heap_finaliser.c: a temporary file that closes itself when nobody refers to it any more.
 *
 * Prints      1000 notes kept, 1000 files closed
 * Shows       Objects need no free: 1000 temporary files are opened and dropped, yet few are open at any time. Each
 *             finaliser runs exactly once, the last ones when the run ends. weir_external_bytes tells the collector of
 *             what an object costs outside the heap, so that it collects in time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#define FILES 1000
#define FILE_COST 100000 /* so many bytes of memory are worth one open file */

static unsigned closed, kept; /* written by one actor, read after the run */

typedef struct temporary {
    FILE *file;
} temporary;

static void close_temporary(temporary *self)
{
    fclose(self->file);
    weir_external_bytes(-FILE_COST);
    closed++;
}
WEIR_TYPE_FINAL(temporary, close_temporary);

/* A list that stays: `next` refers to heap objects, so it is named. */
typedef struct note {
    struct note *next;
    char text[24];
} note;
WEIR_TYPE(note, next);

typedef struct writer {
    note *notes;
    unsigned written;
} writer;
WEIR_ACTOR(writer, notes);

typedef struct write_next {
    char unused;
} write_next;

WEIR_BEHAVIOUR(writer, write_next)
{
    temporary *t = weir_new(temporary);
    t->file = tmpfile();
    if (t->file == NULL) {
        perror("tmpfile");
        weir_set_exit_code(1);
        return;
    }
    weir_external_bytes(FILE_COST);
    note *n = weir_new(note);
    n->next = self->notes;
    self->notes = n;
    fprintf(t->file, "%u\n", self->written);
    rewind(t->file);
    if (fgets(n->text, sizeof(n->text), t->file) == NULL)
        weir_set_exit_code(1);
    if (++self->written < FILES) {
        weir_send(weir_self(writer), writer, write_next);
        return;
    }
    for (n = self->notes; n != NULL; n = n->next)
        kept += (unsigned)atoi(n->text) < FILES;
}

static void start(void *arg)
{
    (void)arg;
    writer_ref w = weir_spawn(writer);
    weir_send(w, writer, write_next);
}

int main(void)
{
    int code = weir_run(NULL, start, NULL);
    printf("%u notes kept, %u files closed\n", kept, closed);
    return code != 0 || kept != FILES || closed != FILES;
}
