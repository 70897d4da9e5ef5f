#include "transfer/rejects.h"

#include "base/utf8.h"
#include "wire/grpc_text.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

static status cannot_write(const struct rejects *rejects)
{
    return status_from_errno(errno, "cannot write %s", rejects->path);
}

status rejects_open(struct rejects *rejects, const char *path, uint64_t bytes)
{
    *rejects = (struct rejects){.path = path, .bytes = bytes};
    if (bytes == 0)
        return status_ok();
    rejects->file = fopen(path, "r+e");
    if (rejects->file == NULL || ftruncate(fileno(rejects->file), (off_t)bytes) != 0 ||
        fseeko(rejects->file, 0, SEEK_END) != 0)
        return cannot_write(rejects);
    return status_ok();
}

static status make_file(struct rejects *rejects)
{
    if (rejects->file == NULL)
        rejects->file = fopen(rejects->path, "we");
    return rejects->file == NULL ? cannot_write(rejects) : status_ok();
}

static void append_record(struct buffer *text, bytes record)
{
    if (utf8_is_valid(record)) {
        buffer_append_bytes(text, bytes_of(",\"record\":"));
        json_encode_string(record, text);
        return;
    }
    buffer_append_bytes(text, bytes_of(",\"record_base64\":\""));
    base64_encode(record, text);
    buffer_append(text, "==", (3 - record.size % 3) % 3);
    buffer_append_byte(text, '"');
}

static void append_line(struct buffer *text, const struct transfer_place *place, const char *reason,
                        bytes record)
{
    buffer_append_bytes(text, bytes_of("{\"file\":"));
    json_encode_string(bytes_of(place->file), text);
    buffer_append_format(text, ",\"line\":%" PRIu64 ",\"reason\":", place->line);
    json_encode_shown(bytes_of(reason), text);
    if (record.size > 0)
        append_record(text, record);
    buffer_append_bytes(text, bytes_of("}\n"));
}

status rejects_add(struct rejects *rejects, const struct transfer_place *place, const char *reason,
                   bytes record)
{
    struct buffer text = {0};
    TRY(make_file(rejects));
    append_line(&text, place, reason, record);
    bool is_whole = !text.failed;
    bool is_written = is_whole && fwrite(text.data, 1, text.size, rejects->file) == text.size;
    buffer_free(&text);
    if (!is_whole)
        return status_out_of_memory();
    return is_written ? status_ok() : cannot_write(rejects);
}

status rejects_flush(struct rejects *rejects)
{
    if (rejects->file == NULL)
        return status_ok();
    if (fflush(rejects->file) != 0 || fsync(fileno(rejects->file)) != 0)
        return cannot_write(rejects);
    rejects->bytes = (uint64_t)ftello(rejects->file);
    return status_ok();
}

void rejects_close(struct rejects *rejects)
{
    if (rejects->file != NULL)
        fclose(rejects->file);
    rejects->file = NULL;
}
