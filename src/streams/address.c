/* SPDX-License-Identifier: MIT */
/* streams/address.c: addresses from text and to text.
 *
 * Job        Exact, bounded parsing of what users give, and the canonical text of what the system reports.
 * Invariants Whatever was parsed is formatted to a text that parses to the same address. Nothing is read behind the
 *            zero, nothing accepted in part: no spaces, signs, leading "+", port numbers over 65535, names.
 * Threads    Any; pure functions.
 * Cost       Under a microsecond.
 */
#include "streams/address.h"

#include "platform/check.h"
#include "weir/base.h"

#include <stdio.h>
#include <string.h>

#define HOST_TEXT_MAX 63 /* the longest IPv6 text is 45 bytes, and a scope number 11 */

/* Decimal digits only, all of `text`; false if empty, too long or over `max`. */
static bool parse_number(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && p - text < 10; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    if (p == text || *p != '\0' || value > max)
        return false;
    *out = (uint32_t)value;
    return true;
}

static int parse_unix(const char *text, wr_address *out)
{
    out->kind = WR_ADDRESS_UNIX;
    if (*text == '@') {
        out->kind = WR_ADDRESS_ABSTRACT;
        text++;
    }
    size_t size = strnlen(text, WR_UNIX_PATH_MAX + 1);
    if (size == 0)
        return WEIR_EINVAL;
    if (size > WR_UNIX_PATH_MAX)
        return WEIR_ENAMETOOLONG;
    memcpy(out->path, text, size);
    out->path_size = size;
    return 0;
}

static int parse_ipv6(char *host, wr_address *out)
{
    out->kind = WR_ADDRESS_IPV6;
    char *scope = strchr(host, '%');
    if (scope != NULL) {
        *scope = '\0';
        if (!parse_number(scope + 1, UINT32_MAX, &out->scope))
            return WEIR_EINVAL;
    }
    return wr_ip_parse(host, WR_ADDRESS_IPV6, out->ip);
}

static int parse_tcp(const char *text, wr_address *out)
{
    bool bracketed = *text == '[';
    const char *start = text + (bracketed ? 1 : 0);
    const char *end = strchr(start, bracketed ? ']' : ':');
    if (end == NULL || end - start > HOST_TEXT_MAX)
        return WEIR_EINVAL;
    const char *colon = bracketed ? end + 1 : end;
    uint32_t port;
    if (*colon != ':' || !parse_number(colon + 1, UINT16_MAX, &port))
        return WEIR_EINVAL;
    out->port = (uint16_t)port;

    char host[HOST_TEXT_MAX + 1];
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    if (bracketed)
        return parse_ipv6(host, out);
    out->kind = WR_ADDRESS_IPV4;
    return wr_ip_parse(host, WR_ADDRESS_IPV4, out->ip);
}

int wr_address_parse(const char *text, wr_address *out)
{
    memset(out, 0, sizeof *out);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, out);
    if (strncmp(text, "tcp:", 4) == 0)
        return parse_tcp(text + 4, out);
    return WEIR_EINVAL;
}

static int format_unix(const wr_address *address, char *out, size_t size)
{
    const char *mark = address->kind == WR_ADDRESS_ABSTRACT ? "@" : "";
    return snprintf(out, size, "unix:%s%.*s", mark, (int)address->path_size, address->path);
}

static int format_ipv6(const wr_address *address, char *out, size_t size)
{
    char host[WR_IP_TEXT_MAX], scope[16] = "";
    wr_ip_format(WR_ADDRESS_IPV6, address->ip, host);
    if (address->scope != 0)
        snprintf(scope, sizeof scope, "%%%u", (unsigned)address->scope);
    return snprintf(out, size, "tcp:[%s%s]:%u", host, scope, (unsigned)address->port);
}

size_t wr_address_format(const wr_address *address, char *out, size_t size)
{
    int length = 0;
    switch (address->kind) {
    case WR_ADDRESS_UNIX:
    case WR_ADDRESS_ABSTRACT: length = format_unix(address, out, size); break;
    case WR_ADDRESS_IPV4:
        length = snprintf(out, size, "tcp:%u.%u.%u.%u:%u", address->ip[0], address->ip[1], address->ip[2],
                          address->ip[3], (unsigned)address->port);
        break;
    case WR_ADDRESS_IPV6: length = format_ipv6(address, out, size); break;
    }
    WR_ASSERT(length > 0 && length < WR_ADDRESS_TEXT_MAX);
    return (size_t)length;
}
