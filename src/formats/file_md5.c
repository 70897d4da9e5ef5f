/* See file_md5.h. */
#include "formats/file_md5.h"

#include "os/digest.h"
#include "wire/grpc_text.h"

static bytes without_padding(bytes base64)
{
    while (base64.size > 0 && base64.data[base64.size - 1] == '=')
        base64.size--;
    return base64;
}

static status compare(const char *path, bytes actual, bytes md5, const char *who)
{
    if (bytes_equal(actual, without_padding(md5)))
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "%s has the MD5 %.*s; %s says %.*s", path,
                       (int)actual.size, (const char *)actual.data, who, (int)md5.size,
                       (const char *)md5.data);
}

status file_md5_check(const char *path, bytes md5, const char *who)
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    struct buffer actual = {0};
    TRY(digest_file(DIGEST_MD5, path, digest, &size));
    base64_encode(bytes_make(digest, size), &actual);
    status s =
        actual.failed ? status_out_of_memory() : compare(path, buffer_bytes(&actual), md5, who);
    buffer_free(&actual);
    return s;
}
