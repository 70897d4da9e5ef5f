/* See signature.h. */
#include "aws/signature.h"

#include "os/digest.h"

#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"

enum { DATE_SIZE = 8, US_PER_S = 1000 * 1000 };

void aws_time_format(int64_t wall_us, char out[AWS_TIME_SIZE])
{
    time_t seconds = (time_t)(wall_us / US_PER_S);
    struct tm parts = {0};
    gmtime_r(&seconds, &parts);
    if (strftime(out, AWS_TIME_SIZE, "%Y%m%dT%H%M%SZ", &parts) == 0)
        out[0] = '\0';
}

static void append_hex(bytes digest, struct buffer *out)
{
    for (size_t i = 0; i < digest.size; i++)
        buffer_append_format(out, "%02x", digest.data[i]);
}

static status append_digest(bytes text, struct buffer *out)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_compute(DIGEST_SHA256, text, digest, &size));
    append_hex(bytes_make(digest, size), out);
    return status_ok();
}

static void append_header_names(const struct aws_request *request, struct buffer *out)
{
    for (size_t i = 0; i < request->header_count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? "" : ";", request->headers[i].name);
}

/* The request in the one form that both sides sign. */
static status append_canonical(const struct aws_request *request, struct buffer *out)
{
    buffer_append_format(out, "%s\n%s\n%s\n", request->method, request->path,
                         request->query != NULL ? request->query : "");
    for (size_t i = 0; i < request->header_count; i++)
        buffer_append_format(out, "%s:%s\n", request->headers[i].name, request->headers[i].value);
    buffer_append_byte(out, '\n');
    append_header_names(request, out);
    buffer_append_byte(out, '\n');
    return append_digest(request->body, out);
}

static void append_scope(const struct aws_signer *signer, const char *time, struct buffer *out)
{
    buffer_append_format(out, "%.*s/%s/%s/aws4_request", DATE_SIZE, time, signer->region,
                         signer->service);
}

static status append_what_is_signed(const struct aws_signer *signer,
                                    const struct aws_request *request, const char *time,
                                    struct buffer *out)
{
    struct buffer canonical = {0};
    buffer_append_format(out, ALGORITHM "\n%s\n", time);
    append_scope(signer, time, out);
    buffer_append_byte(out, '\n');
    status s = append_canonical(request, &canonical);
    if (status_is_ok(s) && canonical.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = append_digest(buffer_bytes(&canonical), out);
    buffer_free(&canonical);
    return s;
}

/* A key of that day, region and service: each step's result is the key of the next. */
static status derive_key(const struct aws_signer *signer, const char *time,
                         uint8_t key[HMAC_SHA256_BYTES])
{
    const bytes steps[] = {bytes_make(time, DATE_SIZE), bytes_of(signer->region),
                           bytes_of(signer->service), bytes_of("aws4_request")};
    struct buffer first = {0};
    buffer_append_format(&first, "AWS4%s", signer->secret_key);
    status s =
        first.failed ? status_out_of_memory() : hmac_sha256(buffer_bytes(&first), steps[0], key);
    buffer_free(&first);
    TRY(s);
    for (size_t i = 1; i < sizeof steps / sizeof *steps; i++)
        TRY(hmac_sha256(bytes_make(key, HMAC_SHA256_BYTES), steps[i], key));
    return status_ok();
}

status aws_sign(const struct aws_signer *signer, const struct aws_request *request,
                const char *time, struct buffer *out)
{
    uint8_t key[HMAC_SHA256_BYTES], signature[HMAC_SHA256_BYTES];
    struct buffer text = {0};
    status s = append_what_is_signed(signer, request, time, &text);
    if (status_is_ok(s) && text.failed)
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = derive_key(signer, time, key);
    if (status_is_ok(s))
        s = hmac_sha256(bytes_make(key, sizeof key), buffer_bytes(&text), signature);
    buffer_free(&text);
    TRY(s);
    buffer_append_format(out, ALGORITHM " Credential=%s/", signer->access_key);
    append_scope(signer, time, out);
    buffer_append_bytes(out, bytes_of(", SignedHeaders="));
    append_header_names(request, out);
    buffer_append_bytes(out, bytes_of(", Signature="));
    append_hex(bytes_make(signature, sizeof signature), out);
    return out->failed ? status_out_of_memory() : status_ok();
}
