/* SPDX-License-Identifier: MIT */
/* shared_buffer.c: four actors add up parts of one large buffer, which is never copied and freed once.
 *
 * Prints      sum 534773760, buffer released 1 time
 * Shows       A store is what actors share: it goes into a message as a handle, weir_buf_of_store makes a buffer of it
 *             on the other side, and the release function runs when no actor holds it any more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir/weir.h>

#define SIZE (4u << 20)
#define PARTS 4

static unsigned char bytes[SIZE];
static unsigned released;
static uint64_t sum; /* written by one actor, read after the run */

static void release(void *data, size_t length, void *arg)
{
    (void)data;
    (void)length;
    ++*(unsigned *)arg;
}

typedef struct total {
    uint64_t sum;
    unsigned parts;
} total;
WEIR_ACTOR(total);

typedef struct part_sum {
    uint64_t sum;
} part_sum;

WEIR_BEHAVIOUR(total, part_sum)
{
    self->sum += msg->sum;
    if (++self->parts == PARTS)
        sum = self->sum;
}

typedef struct adder {
    char unused;
} adder;
WEIR_ACTOR(adder);

typedef struct add_up {
    weir_store *store;
    total_ref to;
    size_t offset, length;
} add_up;

WEIR_BEHAVIOUR(adder, add_up, store, to)
{
    weir_buf *part;
    uint64_t part_total = 0;
    if (weir_buf_of_store(msg->store, msg->offset, msg->length, &part) != 0) {
        weir_set_exit_code(1);
        return;
    }
    const unsigned char *data = weir_buf_data(part);
    for (size_t i = 0; i < weir_buf_length(part); i++)
        part_total += data[i];
    weir_send(msg->to, total, part_sum, .sum = part_total);
}

static void start(void *arg)
{
    weir_buf *whole;
    (void)arg;
    if (weir_buf_wrap(bytes, SIZE, release, &released, &whole) != 0) {
        weir_set_exit_code(1);
        return;
    }
    total_ref t = weir_spawn(total);
    for (unsigned i = 0; i < PARTS; i++) {
        adder_ref a = weir_spawn(adder);
        weir_send(a, adder, add_up, .store = weir_buf_store(whole), .to = t, .offset = i * (SIZE / PARTS),
                  .length = SIZE / PARTS);
    }
}

int main(void)
{
    uint64_t expected = 0;
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (unsigned char)(i * 7);
        expected += bytes[i];
    }
    int code = weir_run(NULL, start, NULL);
    printf("sum %" PRIu64 ", buffer released %u time\n", sum, released);
    return code != 0 || sum != expected || released != 1;
}
