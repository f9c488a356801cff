/* SPDX-License-Identifier: MIT */
/* Addresses: exact parsing, limits, round trips. */
#include "harness.h"
#include "streams/address.h"

#include <stdio.h>
#include <string.h>
#include <weir/base.h>

TEST(address, canonical_texts_survive_a_round_trip)
{
    static const char *const texts[] = {"unix:/run/app.sock",
                                        "unix:relative",
                                        "unix:@name",
                                        "unix:@@",
                                        "unix:/",
                                        "unix:with space:and]colon",
                                        "tcp:127.0.0.1:6379",
                                        "tcp:0.0.0.0:0",
                                        "tcp:255.255.255.255:65535",
                                        "tcp:[::1]:6379",
                                        "tcp:[::]:1",
                                        "tcp:[2001:db8::5]:80",
                                        "tcp:[fe80::1%3]:80",
                                        "tcp:[::ffff:1.2.3.4]:9",
                                        "tcp:[1:2:3:4:5:6:7:8]:9",
                                        "tcp:[fe80::%4294967295]:65535"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wr_address address;
        char out[WR_ADDRESS_TEXT_MAX];
        EXPECT_OK(wr_address_parse(texts[i], &address));
        EXPECT_EQ(wr_address_format(&address, out, sizeof out), strlen(texts[i]));
        EXPECT_STR(out, texts[i]);
    }
}

TEST(address, what_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",
        "unix",
        "unix:",
        "unix:@",
        "tcp:",
        "tcp::",
        "tcp:1.2.3.4",
        "tcp:1.2.3.4:",
        "tcp:1.2.3.4:x",
        "tcp:1.2.3.4:1 ",
        "tcp: 1.2.3.4:1",
        "tcp:1.2.3.4:65536",
        "tcp:1.2.3.4:-1",
        "tcp:1.2.3.4:+1",
        "tcp:1.2.3.4:99999999999999999999",
        "tcp:1.2.3:1",
        "tcp:1.2.3.256:1",
        "tcp:localhost:1",
        "tcp:::1:1",
        "tcp:[::1]",
        "tcp:[::1]1",
        "tcp:[::1:1",
        "tcp:[]:1",
        "tcp:[1.2.3.4]:1",
        "tcp:[::1%]:1",
        "tcp:[::1%eth0]:1",
        "tcp:[::1%4294967296]:1",
        "tcp:[:::1]:1",
        "tcp:[1::2::3]:1",
        "udp:1.2.3.4:1",
        "/run/app.sock",
        "UNIX:/x",
        "http://x",
        "tcp:[0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000::1]:1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wr_address address;
        if (wr_address_parse(texts[i], &address) != WEIR_EINVAL)
            test_fail(__FILE__, __LINE__, "\"%s\" was taken for an address", texts[i]);
    }
}

TEST(address, paths_and_names_have_a_limit_of_107_bytes)
{
    char text[300];
    wr_address address;
    for (int abstract = 0; abstract < 2; abstract++) {
        int head = snprintf(text, sizeof text, abstract ? "unix:@" : "unix:");
        memset(text + head, 'x', 200);
        text[head + WR_UNIX_PATH_MAX] = '\0';
        EXPECT_OK(wr_address_parse(text, &address));
        EXPECT_EQ(address.path_size, WR_UNIX_PATH_MAX);
        memset(text + head, 'x', 200);
        text[head + WR_UNIX_PATH_MAX + 1] = '\0';
        EXPECT_EQ(wr_address_parse(text, &address), WEIR_ENAMETOOLONG);
    }
}

TEST(address, format_cuts_and_tells_the_length)
{
    wr_address address;
    char out[8];
    EXPECT_OK(wr_address_parse("tcp:1.2.3.4:5", &address));
    EXPECT_EQ(wr_address_format(&address, out, sizeof out), 13);
    EXPECT_STR(out, "tcp:1.2");
    EXPECT_EQ(wr_address_format(&address, NULL, 0), 13);
}

TEST(address, random_addresses_survive_a_round_trip)
{
    for (unsigned i = 0; i < 20000; i++) {
        wr_address a = {.kind = i % 2 ? WR_ADDRESS_IPV6 : WR_ADDRESS_IPV4, .port = (uint16_t)test_random()};
        uint64_t zero_groups = test_random();
        for (unsigned k = 0; k < (i % 2 ? 16 : 4); k++)
            a.ip[k] = zero_groups >> (k / 2) & 1 ? 0 : (uint8_t)test_random();
        a.scope = i % 4 == 3 ? (uint32_t)test_random() : 0;
        wr_address b;
        char out[WR_ADDRESS_TEXT_MAX];
        wr_address_format(&a, out, sizeof out);
        EXPECT_OK(wr_address_parse(out, &b));
        EXPECT_MEM(&a.ip, &b.ip, sizeof a.ip);
        EXPECT(a.kind == b.kind && a.port == b.port && a.scope == b.scope);
    }
}

TEST(address, damaged_texts_are_refused_or_survive_a_round_trip)
{
    static const char *const texts[] = {"tcp:127.0.0.1:6379", "tcp:[2001:db8::1.2.3.4%12]:80", "unix:@x", "unix:/a"};
    unsigned accepted = 0, refused = 0;
    for (unsigned i = 0; i < 100000; i++) {
        char text[64], out[WR_ADDRESS_TEXT_MAX], again[WR_ADDRESS_TEXT_MAX];
        strcpy(text, texts[i % 4]);
        size_t size = strlen(text);
        for (uint64_t damage = test_random() % 3; damage-- > 0;)
            text[test_random() % size] = "0123456789abf:.[]%@/ux \0"[test_random() % 24];
        wr_address a, b;
        if (wr_address_parse(text, &a) != 0) {
            refused++;
            continue;
        }
        accepted++;
        wr_address_format(&a, out, sizeof out);
        EXPECT_OK(wr_address_parse(out, &b));
        wr_address_format(&b, again, sizeof again);
        EXPECT_STR(out, again);
    }
    EXPECT(accepted > 1000 && refused > 1000);
}
