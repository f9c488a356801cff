/* SPDX-License-Identifier: MIT */
/* kit.c: see kit.h. */
#include "kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

weir_stream *kit_server, *kit_client;

static const char *const kind_names[KIT_KINDS] = {"unix", "abstract", "tcp4", "tcp6", "pair"};

const char *kit_kind_name(kit_kind kind)
{
    return kind_names[kind];
}

static void nobody_comes(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    (void)listener, (void)arg, (void)descriptor;
    abort();
}

static void probe_tcp6(void *arg)
{
    weir_listener *listener;
    *(int *)arg = weir_listen("tcp:[::1]:0", NULL, nobody_comes, NULL, &listener);
    weir_stop();
}

bool kit_has(kit_kind kind)
{
    if (kind != KIT_TCP6)
        return true;
    int code = 0;
    EXPECT_OK(weir_run(&(weir_options){.threads = 1}, probe_tcp6, &code));
    if (code != 0)
        printf("no IPv6 on this machine: %s\n", weir_strerror(code));
    return code == 0;
}

const char *kit_address(kit_kind kind)
{
    static char text[256];
    static unsigned number;
    number++;
    switch (kind) {
    case KIT_UNIX: snprintf(text, sizeof text, "unix:%s/s%u", test_temp_dir(), number); return text;
    case KIT_ABSTRACT: snprintf(text, sizeof text, "unix:@weir-test-%d-%u", (int)getpid(), number); return text;
    case KIT_TCP6: return "tcp:[::1]:0";
    default: return "tcp:127.0.0.1:0";
    }
}

typedef struct kit_remote {
    weir_stream *stream;
} kit_remote;
WEIR_ACTOR(kit_remote, stream);

typedef struct kit_adopt {
    weir_descriptor *descriptor;
    const kit_setup *setup;
} kit_adopt;

WEIR_BEHAVIOUR(kit_remote, kit_adopt, descriptor)
{
    EXPECT_OK(weir_stream_open(msg->descriptor, &msg->setup->server, NULL, &self->stream));
    if (msg->setup->server_ready != NULL)
        msg->setup->server_ready(self->stream);
}

static void serve(const kit_setup *setup, weir_descriptor *descriptor)
{
    if (setup->apart) {
        EXPECT_OK(weir_send(weir_spawn(kit_remote), kit_remote, kit_adopt, .descriptor = descriptor, .setup = setup));
        return;
    }
    EXPECT_OK(weir_stream_open(descriptor, &setup->server, NULL, &kit_server));
    if (setup->server_ready != NULL)
        setup->server_ready(kit_server);
}

static void connection(weir_listener *listener, void *arg, weir_descriptor *descriptor)
{
    const kit_setup *setup = arg;
    weir_listener_close(listener);
    serve(setup, descriptor);
}

void kit_connect(const kit_setup *setup)
{
    if (setup->kind == KIT_PAIR) {
        weir_descriptor *pair[2];
        EXPECT_OK(weir_descriptor_pair(pair));
        serve(setup, pair[0]);
        EXPECT_OK(weir_stream_open(pair[1], &setup->client, NULL, &kit_client));
    } else {
        weir_listener *listener;
        char address[256];
        EXPECT_OK(weir_listen(kit_address(setup->kind), NULL, connection, (void *)(uintptr_t)setup, &listener));
        weir_listener_address(listener, address, sizeof address);
        EXPECT_OK(weir_stream_connect(address, &setup->client, NULL, &kit_client));
    }
    if (setup->client_ready != NULL)
        setup->client_ready(kit_client);
}

static void start(void *arg)
{
    kit_connect(arg);
}

void kit_run(const kit_setup *setup)
{
    weir_options options = {.threads = setup->threads != 0 ? setup->threads : 1, .poll_backend = setup->backend};
    int before = kit_open_descriptors();
    printf("kind %s, %u threads, backend %s\n", kit_kind_name(setup->kind), options.threads,
           setup->backend != NULL ? setup->backend : "usual");
    kit_server = kit_client = NULL;
    EXPECT_OK(weir_run(&options, start, (void *)(uintptr_t)setup));
    EXPECT_EQ(kit_open_descriptors(), before);
}

void kit_run_all(kit_setup setup, void (*reset)(void), void (*check)(void))
{
    static const char *const backends[] = {"epoll", "poll"};
    for (int kind = 0; kind < KIT_KINDS; kind++) {
        setup.kind = (kit_kind)kind;
        if (!kit_has(setup.kind))
            continue;
        for (unsigned i = 0; i < 4; i++) {
            setup.backend = backends[i % 2];
            setup.threads = 1 + i / 2;
            setup.apart = setup.threads == 2;
            if (reset != NULL)
                reset();
            kit_run(&setup);
            if (check != NULL)
                check();
        }
    }
}

int kit_open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    EXPECT(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without the one that listed them */
}

static uint64_t eight_bytes(uint64_t i)
{
    uint64_t x = i + test_seed();
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

unsigned char kit_byte(uint64_t i)
{
    return (unsigned char)(eight_bytes(i >> 3) >> (i & 7) * 8);
}

void kit_fill(void *out, uint64_t from, size_t size)
{
    unsigned char *to = out;
    uint64_t word = eight_bytes(from >> 3);
    for (size_t i = 0; i < size; i++) {
        if (((from + i) & 7) == 0)
            word = eight_bytes((from + i) >> 3);
        to[i] = (unsigned char)(word >> ((from + i) & 7) * 8);
    }
}

void kit_expect(const void *bytes, uint64_t from, size_t size)
{
    unsigned char wanted[4096];
    for (size_t done = 0; done < size;) {
        size_t part = size - done < sizeof wanted ? size - done : sizeof wanted;
        kit_fill(wanted, from + done, part);
        EXPECT_MEM((const unsigned char *)bytes + done, wanted, part);
        done += part;
    }
}
